//! Parses the terms of a query.
//!
//! Syntax: `word other` matches both words anywhere, `"two words"` adjacent words, `-word` pages
//! without the word, `word*` words with a prefix, `title:word` pages with the word in their title,
//! and `site:example.org/docs` pages of a host or folder. A quotation mark between two Hebrew
//! letters is part of an abbreviation.

use crawl_weburl::{CanonicalUrl, canonicalize};

use crate::error::QueryError;
use crate::words::is_hebrew_letter;

/// Maximum bytes of a query.
/// Beyond the limit: refused.
pub const MAX_QUERY_BYTES: usize = 4096;
/// Maximum words and phrases of a query. Further ones are ignored.
/// Beyond the limit: ignored.
pub(crate) const MAX_TERMS: usize = 32;

/// A query, split into its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) terms: Vec<QueryTerm>,
    /// Hosts and folders to search. A page must be in at least one of them.
    pub(crate) sites: Vec<String>,
    /// Hosts and folders to exclude.
    pub(crate) not_sites: Vec<String>,
}

/// A term of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryTerm {
    /// The term as typed, without its operators.
    pub(crate) text: String,
    pub(crate) how: QueryTermKind,
    pub(crate) is_not: bool,
    pub(crate) in_title: bool,
}

/// How the text of a term is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryTermKind {
    Words,
    Phrase,
    Prefix,
}

impl Query {
    /// Parses a query. Any text is valid.
    ///
    /// # Errors
    /// [`QueryError::TooLong`]
    pub(crate) fn parse(text: &str) -> Result<Query, QueryError> {
        if text.len() > MAX_QUERY_BYTES {
            return Err(QueryError::TooLong {
                bytes: text.len(),
                most: MAX_QUERY_BYTES,
            });
        }
        let mut query = Query::default();
        let mut rest = text;
        while query.terms.len() < MAX_TERMS {
            rest = rest.trim_start_matches(is_space);
            if rest.is_empty() {
                break;
            }
            rest = query.take(rest);
        }
        Ok(query)
    }

    /// Returns the texts of all terms that are not excluded, in lower case.
    pub(crate) fn text(&self) -> String {
        let terms = self.terms.iter().filter(|term| !term.is_not);
        let terms: Vec<_> = terms.map(|term| term.text.to_lowercase()).collect();
        terms.join(" ")
    }

    /// Parses the term at the start of `text`, adds it to the query, and returns the text after it.
    fn take<'q>(&mut self, text: &'q str) -> &'q str {
        let (is_not, text) = match text.strip_prefix('-') {
            Some(rest) if rest.starts_with(|c: char| c.is_alphanumeric() || is_quote(c)) => {
                (true, rest)
            }
            _ => (false, text),
        };
        if let Some(rest) = strip_label(text, "site:") {
            let (site, rest) = quoted(rest).unwrap_or_else(|| word(rest));
            let site = site_name(site);
            if !site.is_empty() {
                match is_not {
                    true => self.not_sites.push(site),
                    false => self.sites.push(site),
                }
            }
            return rest;
        }
        let (in_title, text) = match strip_label(text, "title:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (how, found, rest) = term(text);
        if !found.trim().is_empty() {
            self.terms.push(QueryTerm {
                text: found.to_owned(),
                how,
                is_not,
                in_title,
            });
        }
        rest
    }
}

/// Converts a host or a host's folder to the form in the index: `https://Example.org/docs/` becomes
/// `example.org/docs`, and `bücher.example/é` becomes `xn--bcher-kva.example/%C3%A9`.
pub(crate) fn site_name(typed: &str) -> String {
    let (scheme, site) = typed.split_once("://").unwrap_or(("http", typed));
    let site = site.trim_end_matches('/');
    // A URL parser would skip slashes before the host, so don't parse a path without a host.
    if !site.starts_with('/')
        && let Some(url) = url_without_query(&format!("{scheme}://{site}"))
        && let Some((_, site)) = url.as_str().split_once("://")
    {
        return site.trim_end_matches('/').to_owned();
    }
    let (host, path) = site.split_at(site.find('/').unwrap_or(site.len()));
    format!("{}{path}", host.to_lowercase())
}

/// Converts a folder without a host to the form in the index: `products/` becomes `/products`, and
/// `my docs` becomes `/my%20docs`.
pub(crate) fn folder_of_any_host(typed: &str) -> String {
    let typed = typed.trim_matches('/');
    let url = url_without_query(&format!("http://localhost/{typed}"));
    let folder = url.as_ref().map_or(typed, |url| url.path());
    format!("/{}", folder.trim_matches('/'))
}

/// Parses a URL, taking `?` and `#` as part of the path. `None` if the text is not a URL.
fn url_without_query(text: &str) -> Option<CanonicalUrl> {
    canonicalize(None, &text.replace('?', "%3F").replace('#', "%23")).ok()
}

fn term(text: &str) -> (QueryTermKind, &str, &str) {
    if let Some((phrase, rest)) = quoted(text) {
        return (QueryTermKind::Phrase, phrase, rest);
    }
    let (word, rest) = word(text);
    match word.strip_suffix('*') {
        // A word that ends in an asterisk is a prefix. If the rest has no letters or digits, it is
        // an operator, such as `**`.
        Some(stem) if stem.contains(char::is_alphanumeric) => {
            (QueryTermKind::Prefix, stem.trim_end_matches('*'), rest)
        }
        _ => (QueryTermKind::Words, word, rest),
    }
}

/// Splits off a text in quotation marks. If the closing quotation mark is missing, the text extends
/// to the end of the query.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quoted = text.strip_prefix(is_quote)?;
    let (text, rest) = quoted.split_at(find_quote(quoted).unwrap_or(quoted.len()));
    Some((text, rest.strip_prefix(is_quote).unwrap_or("")))
}

/// Splits `text` before the first space or quotation mark.
fn word(text: &str) -> (&str, &str) {
    let word = text.split(is_space).next().unwrap_or_default();
    text.split_at(find_quote(word).unwrap_or(word.len()))
}

/// Finds the first quotation mark that is not between two Hebrew letters.
fn find_quote(text: &str) -> Option<usize> {
    let mut quotes = text.match_indices(is_quote);
    let quote = quotes.find(|(at, quote)| {
        let is_after_letter = text[..*at].ends_with(is_hebrew_letter);
        !(is_after_letter && text[at + quote.len()..].starts_with(is_hebrew_letter))
    });
    quote.map(|(at, _)| at)
}

/// Returns the text after `label`. `None` if `text` doesn't start with `label`, or if a space or
/// nothing follows.
fn strip_label<'q>(text: &'q str, label: &str) -> Option<&'q str> {
    let begins = text.get(..label.len())?.eq_ignore_ascii_case(label);
    let rest = &text[label.len()..];
    (begins && rest.starts_with(|c| !is_space(c))).then_some(rest)
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

fn is_quote(c: char) -> bool {
    matches!(
        c,
        '"' | '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{AB}' | '\u{BB}'
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Query, folder_of_any_host, site_name};

    fn check(text: &str, expected: Expect) {
        let query = Query::parse(text).unwrap();
        let mut lines: Vec<String> = Vec::new();
        for term in &query.terms {
            let not = if term.is_not { "not " } else { "" };
            let title = if term.in_title { " in title" } else { "" };
            lines.push(format!("{not}{:?} {:?}{title}", term.how, term.text));
        }
        lines.extend(query.sites.iter().map(|site| format!("site {site}")));
        lines.extend(
            query
                .not_sites
                .iter()
                .map(|site| format!("not site {site}")),
        );
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn words_phrases_and_signs() {
        check(
            "read \"csv file\" -excel instal*",
            expect![[r#"
                Words "read"
                Phrase "csv file"
                not Words "excel"
                Prefix "instal""#]],
        );
        check(
            "title:install title:\"first steps\" -title:old",
            expect![[r#"
                Words "install" in title
                Phrase "first steps" in title
                not Words "old" in title"#]],
        );
        check(
            "tea site:https://Example.org/docs/ -site:old.example.org site:\"a.example/my docs\"",
            expect![[r#"
                Words "tea"
                site example.org/docs
                site a.example/my%20docs
                not site old.example.org"#]],
        );
    }

    #[test]
    fn misplaced_operators_are_text() {
        check(
            "--delay - 5 - 3",
            expect![[r#"
            Words "--delay"
            Words "-"
            Words "5"
            Words "-"
            Words "3""#]],
        );
        check(
            "site: title: a:b",
            expect![[r#"
            Words "site:"
            Words "title:"
            Words "a:b""#]],
        );
        check(
            "19\" rack 5'10\"",
            expect![[r#"
            Words "19"
            Phrase " rack 5'10""#]],
        );
        check(
            "-צה\"ל \"דו\"ח שנתי\" ארה”ב",
            expect![[r#"
            not Words "צה\"ל"
            Phrase "דו\"ח שנתי"
            Words "ארה”ב""#]],
        );
        check("\"never closed", expect![[r#"Phrase "never closed""#]]);
        check("\"\" \u{0}\u{7} **", expect![[r#"Words "**""#]]);
    }

    #[test]
    fn hosts_and_folders_are_those_of_urls() {
        for (typed, expected) in [
            ("Bücher.example", "xn--bcher-kva.example"),
            ("faß.example/", "xn--fa-hia.example"),
            ("https://example.org:443/A b/", "example.org/A%20b"),
            ("127.0.0.1:19121/日", "127.0.0.1:19121/%E6%97%A5"),
            ("[0:0::1]:80/%e6^", "[::1]/%e6%5E"),
            ("example.org/a/../c#?x=é", "example.org/c%23%3Fx=%C3%A9"),
            // These are not hosts.
            ("My docs/A", "my docs/A"),
            ("/Docs", "/Docs"),
            ("", ""),
        ] {
            assert_eq!(site_name(typed), expected);
        }
        for (typed, expected) in [
            ("日本", "/%E6%97%A5%E6%9C%AC"),
            ("/My docs/c#/", "/My%20docs/c%23"),
            ("my%20docs", "/my%20docs"),
            ("v1.2", "/v1.2"),
            ("", "/"),
        ] {
            assert_eq!(folder_of_any_host(typed), expected);
        }
    }
}
