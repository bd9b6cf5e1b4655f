//! A site owner's search rules: synonyms and pinned pages.

use std::collections::{BTreeMap, HashMap};

use crawl_weburl::canonicalize;
use serde::Deserialize;

use crate::words::{Stemmer, WordRelation, words};

/// Maximum number of words in all synonym lists together. Also the maximum number of queries in all
/// pins together.
const MAX_WORDS: usize = 10_000;

/// The site owner's rules for searches: synonyms and pinned pages.
#[derive(Clone, Debug, Default)]
pub struct SearchRules {
    /// Maps a word to its synonyms.
    synonyms: HashMap<String, Vec<String>>,
    /// Maps a query, reduced to its words, to the URL of the pinned page.
    pins: HashMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchRulesToml {
    #[serde(default)]
    synonyms: Vec<Vec<String>>,
    #[serde(default)]
    pins: Vec<Pin>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    queries: Vec<String>,
    url: String,
}

impl SearchRules {
    /// Parses rules from TOML. `synonyms` is a list of lists of equivalent words. Each table
    /// `[[pins]]` has `queries` and the `url` of the page to put first for them.
    ///
    /// # Errors
    /// A message: invalid TOML or an unknown key (with line and column), a synonym that is
    /// not one word, a pin without queries or without a full URL, a query without words or with two
    /// pins, or more than 10,000 words or queries.
    pub fn parse(text: &str) -> Result<SearchRules, String> {
        let written: SearchRulesToml = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut rules = SearchRules::default();
        let synonyms: usize = written.synonyms.iter().map(Vec::len).sum();
        let queries: usize = written.pins.iter().map(|pin| pin.queries.len()).sum();
        for (count, of) in [(synonyms, "synonyms"), (queries, "queries of pins")] {
            if count > MAX_WORDS {
                return Err(format!("{count} {of}, where {MAX_WORDS} are the most"));
            }
        }
        for group in &written.synonyms {
            let group: Vec<String> = group
                .iter()
                .map(|word| one_word(word))
                .collect::<Result<_, _>>()?;
            for word in &group {
                let synonyms = group.iter().filter(|other| *other != word);
                let entry = rules.synonyms.entry(word.clone()).or_default();
                entry.extend(synonyms.cloned());
                entry.sort();
                entry.dedup();
            }
        }
        for pin in written.pins {
            if pin.queries.is_empty() {
                return Err(format!("the pin of `{}` has no queries", pin.url));
            }
            let url = canonicalize(None, &pin.url).map_err(|_| {
                let example = "https://www.example.org/visit";
                format!("`{}` is not a full URL, such as {example}", pin.url)
            })?;
            for query in &pin.queries {
                let key = key(query);
                if key.is_empty() {
                    return Err(format!(
                        "the pin of `{}` has a query without words: `{query}`",
                        pin.url
                    ));
                }
                if let Some(other) = rules.pins.insert(key, url.to_string()) {
                    return Err(format!(
                        "`{query}` is pinned twice: to `{other}` and to `{url}`"
                    ));
                }
            }
        }
        Ok(rules)
    }

    /// Returns the synonyms of a query word.
    pub(crate) fn synonyms(&self, word: &str) -> &[String] {
        self.synonyms.get(word).map_or(&[], Vec::as_slice)
    }

    /// Returns a map from words to their synonyms.
    pub(crate) fn all_synonyms(&self) -> BTreeMap<String, Vec<String>> {
        let each = self.synonyms.iter();
        each.map(|(word, others)| (word.clone(), others.clone()))
            .collect()
    }

    /// Returns a map from normalized queries to the URLs pinned to them.
    pub(crate) fn all_pins(&self) -> &HashMap<String, String> {
        &self.pins
    }

    /// Returns the URLs of all pins, which may be replaced.
    pub(crate) fn pinned_urls(&mut self) -> impl Iterator<Item = &mut String> {
        self.pins.values_mut()
    }

    /// Returns the URL pinned to a query.
    pub(crate) fn pinned(&self, query: &str) -> Option<&str> {
        if self.pins.is_empty() {
            return None;
        }
        self.pins.get(&key(query)).map(String::as_str)
    }
}

/// Reduces a query to its words in lower case without accents, joined by spaces.
fn key(query: &str) -> String {
    let all_words = words(query, &Stemmer::none());
    let whole = all_words
        .iter()
        .filter(|word| word.kind != WordRelation::Part);
    let whole: Vec<_> = whole.map(|word| word.text.as_str()).collect();
    whole.join(" ")
}

/// Returns the form of a word under which it is looked up. Fails if `text` is not exactly one word.
fn one_word(text: &str) -> Result<String, String> {
    let all_words = words(text, &Stemmer::none());
    let mut whole = all_words
        .into_iter()
        .filter(|word| word.kind == WordRelation::Plain);
    match (whole.next(), whole.next()) {
        (Some(word), None) if !text.trim().contains(char::is_whitespace) => Ok(word.text),
        _ => Err(format!("the synonym `{text}` is not one word")),
    }
}

#[cfg(test)]
mod tests {
    use super::SearchRules;

    #[test]
    fn invalid_rules_are_reported() {
        for (text, message) in [
            (
                "synonyms = [['a b', 'c']]",
                "the synonym `a b` is not one word",
            ),
            ("synonyms = [['', 'c']]", "the synonym `` is not one word"),
            (
                "[[pins]]\nqueries = []\nurl = 'x'",
                "the pin of `x` has no queries",
            ),
            (
                "[[pins]]\nqueries = ['?']\nurl = 'http://x'",
                "has a query without words: `?`",
            ),
            (
                "[[pins]]\nqueries = ['A', 'a']\nurl = 'http://x'",
                "`a` is pinned twice: to `http://x/` and to `http://x/`",
            ),
            (
                "[[pins]]\nqueries = ['a']\nurl = '/visit'",
                "`/visit` is not a full URL, such as",
            ),
            ("synonym = []", "unknown field `synonym`"),
            ("synonyms = [", "line 1, column"),
        ] {
            let error = SearchRules::parse(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        let many = format!("synonyms = [[{}]]", "'a', ".repeat(10_001));
        assert!(
            SearchRules::parse(&many)
                .unwrap_err()
                .starts_with("10001 synonyms")
        );
    }
}
