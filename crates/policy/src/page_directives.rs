//! Directives for robots in a page and its headers: META ROBOTS and X-Robots-Tag.

mod directive_words;

use std::fmt;

use crate::product_token::{ProductToken, RobotsProfile};

use directive_words::{ParsedDirective, ValuelessDirective};

/// The directives for one robot in a page and its headers, each with its source text.
///
/// A field that is `None` restricts nothing: without any directive, a page may be indexed and its
/// links followed. Directives for all robots and for this robot both apply. If two directives
/// contradict, the stricter one wins. Exception: under [`RobotsProfile::Extended1997`], `ALL` and
/// permissive words in a META win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageDirectives {
    /// Don't index the page.
    pub noindex: Option<CitedDirective>,
    /// Don't follow the page's links.
    pub nofollow: Option<CitedDirective>,
    /// Don't show a stored copy to others (`noarchive`, `nocache`).
    pub noarchive: Option<CitedDirective>,
    /// Don't show any part of the page.
    pub nosnippet: Option<CitedDirective>,
    /// Maximum characters of a snippet; -1 means no limit, 0 means no snippet.
    pub max_snippet: Option<CitedDirectiveValue<i32>>,
    /// Don't show the page after this time, in seconds since 1970 (UTC).
    pub unavailable_after: Option<CitedDirectiveValue<i64>>,
    /// Don't use the page for AI (`noai`).
    pub noai: Option<CitedDirective>,
    /// Don't use the page's images for AI (`noimageai`).
    pub noimageai: Option<CitedDirective>,
}

/// A value and its source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedDirectiveValue<T> {
    /// The parsed value, such as a number of characters.
    pub value: T,
    /// The directive that contains the value, and where it was found.
    pub source: CitedDirective,
}

/// The header or `meta` element that contains a directive, as written, and which of the two it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedDirective {
    /// Whether the text is in a header or in the page.
    pub place: DirectiveSource,
    /// The header or META as written: `X-Robots-Tag: crawl: noindex`.
    pub text: String,
}

/// The source of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectiveSource {
    /// The response's headers.
    Header,
    /// The page's META elements.
    Meta,
}

impl fmt::Display for CitedDirective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PageDirectives {
    /// Reads the values of all `X-Robots-Tag` headers and all `(name, content)` pairs of META
    /// elements, in order. METAs with other names are skipped.
    #[must_use]
    pub fn read<'a>(
        headers: impl IntoIterator<Item = &'a str>,
        metas: impl IntoIterator<Item = (&'a str, &'a str)>,
        agent: &ProductToken,
        profile: RobotsProfile,
    ) -> PageDirectives {
        let mut directives = PageDirectives::default();
        for value in headers {
            for said in directive_words::of_header(value, agent) {
                directives.take(&said, DirectiveSource::Header, || {
                    format!("X-Robots-Tag: {value}")
                });
            }
        }
        let metas: Vec<_> = metas
            .into_iter()
            .map(|(name, content)| (name.trim(), content))
            .filter(|(name, _)| addresses(name, agent))
            .collect();
        let liberal = profile == RobotsProfile::Extended1997;
        let spoken: Vec<_> = metas
            .iter()
            .flat_map(|m| directive_words::of_meta(m.1))
            .collect();
        for (name, content) in metas {
            for said in directive_words::of_meta(content) {
                if !(liberal && overruled_1997(&said, &spoken)) {
                    let text = || format!("<meta name=\"{name}\" content=\"{content}\">");
                    directives.take(&said, DirectiveSource::Meta, text);
                }
            }
        }
        directives
    }

    /// Adds a directive. If a word such as `noindex` was added before, keeps the earlier text. If a
    /// directive with a value was added before, keeps the stricter value.
    fn take(
        &mut self,
        directive: &ParsedDirective,
        place: DirectiveSource,
        text: impl Fn() -> String,
    ) {
        let source = || CitedDirective {
            place,
            text: text(),
        };
        let flag = match *directive {
            ParsedDirective::Word(ValuelessDirective::None) => {
                self.noindex.get_or_insert_with(source);
                &mut self.nofollow
            }
            ParsedDirective::Word(ValuelessDirective::Noindex) => &mut self.noindex,
            ParsedDirective::Word(ValuelessDirective::Nofollow) => &mut self.nofollow,
            ParsedDirective::Word(ValuelessDirective::Noarchive) => &mut self.noarchive,
            ParsedDirective::Word(ValuelessDirective::Nosnippet) => &mut self.nosnippet,
            ParsedDirective::Word(ValuelessDirective::Noai) => &mut self.noai,
            ParsedDirective::Word(ValuelessDirective::Noimageai) => &mut self.noimageai,
            ParsedDirective::Word(
                ValuelessDirective::All | ValuelessDirective::Index | ValuelessDirective::Follow,
            ) => {
                return;
            }
            ParsedDirective::MaxSnippet(n) => {
                return least(&mut self.max_snippet, n, unlimited, source);
            }
            ParsedDirective::UnavailableAfter(at) => {
                return least(&mut self.unavailable_after, at, |at| at, source);
            }
        };
        flag.get_or_insert_with(source);
    }
}

fn least<T: Copy, K: Ord>(
    slot: &mut Option<CitedDirectiveValue<T>>,
    value: T,
    rank: impl Fn(T) -> K,
    source: impl Fn() -> CitedDirective,
) {
    if slot
        .as_ref()
        .is_none_or(|kept| rank(value) < rank(kept.value))
    {
        *slot = Some(CitedDirectiveValue {
            value,
            source: source(),
        });
    }
}

/// Converts a limit to a number for comparison. -1 means no limit, so it becomes the largest
/// number.
fn unlimited(n: i32) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn addresses(name: &str, agent: &ProductToken) -> bool {
    name.eq_ignore_ascii_case("robots")
        || (!agent.as_str().is_empty() && name.eq_ignore_ascii_case(agent.as_str()))
}

/// Returns whether `ALL`, `INDEX` or `FOLLOW` on the page overrules the restriction `directive`. By
/// the 1997 standard, ALL outweighs every other word, and if two words contradict, the permissive
/// one wins.
fn overruled_1997(directive: &ParsedDirective, spoken: &[ParsedDirective]) -> bool {
    let any = |word: ValuelessDirective| spoken.contains(&ParsedDirective::Word(word));
    match directive {
        ParsedDirective::Word(ValuelessDirective::Noindex) => {
            any(ValuelessDirective::All) || any(ValuelessDirective::Index)
        }
        ParsedDirective::Word(ValuelessDirective::Nofollow) => {
            any(ValuelessDirective::All) || any(ValuelessDirective::Follow)
        }
        ParsedDirective::Word(ValuelessDirective::None) => {
            any(ValuelessDirective::All)
                || (any(ValuelessDirective::Index) && any(ValuelessDirective::Follow))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
