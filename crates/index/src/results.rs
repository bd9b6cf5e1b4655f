//! The results of a search.

use crawl_weburl::safe_line;
use serde::{Deserialize, Serialize};

use crate::facets::Facets;

/// The results of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchResults {
    /// The query as it was typed.
    pub query: String,
    /// The number of pages that fit it.
    pub total: usize,
    /// The best of them, best first, without those that were skipped.
    pub results: Vec<Hit>,
    /// The query with words that the index knows in place of those it does not. The results
    /// are those of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// The words and phrases that no page has, as typed or in lower case: the results are those
    /// of the others. Where no page has any word of the query, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// True if the results include pages with one of the query's two words, because few or no pages
    /// have both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_words: bool,
    /// Its pages by folder, language, version and type, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facets: Option<Facets>,
}

impl SearchResults {
    /// A sentence on what the results lack of the query. `None` if they have all of it.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let words: Vec<_> = self.unknown.iter().map(|word| safe_line(word)).collect();
        let words = words.join(", ");
        match (words.is_empty(), self.total) {
            (true, _) if self.lacks_words => {
                Some("Few pages have both words: pages with one of them follow.".to_owned())
            }
            (true, _) => None,
            (false, 0) => Some(format!("No page has {words}.")),
            (false, _) => Some(format!("No page has {words}: left out.")),
        }
    }
}

/// A page that fits a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Its URL.
    pub url: String,
    /// Its title; where it has none, its first heading or its URL.
    pub title: String,
    /// The part of its text that fits best, in one line; empty where the page allows none.
    pub excerpt: String,
    /// The measure of its fit; to be compared within one answer only.
    pub score: f32,
    /// The title cut where words of the query begin and end.
    pub title_parts: Vec<TextPart>,
    /// The excerpt cut likewise.
    pub excerpt_parts: Vec<TextPart>,
    /// The section that the excerpt stands in; none for what comes before the second heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<ResultSection>,
    /// The sections that have most of the query, best first: three at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<ResultSection>,
    /// The address that the title leads to: the page's, or that of the best section where its
    /// heading has words of the query that the title lacks.
    pub leads_to: String,
    /// The same, with the passage that the excerpt shows: a browser goes there and marks it. None
    /// where the excerpt has no word of the query, or another section is the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage_url: Option<String>,
    /// True if it comes first by the rules of the site's owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The language of the page.
    pub language: Option<String>,
    /// When it was last modified by its own word, in seconds since 1970 UTC.
    pub modified: Option<i64>,
    /// When it was fetched, in seconds since 1970 UTC.
    pub fetched_at: i64,
}

/// A piece of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPart {
    /// Its characters.
    pub text: String,
    /// True if it is a word of the query.
    #[serde(rename = "match")]
    pub is_match: bool,
}

/// A section of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultSection {
    /// The words of its heading.
    pub heading: String,
    /// The headings above it, the nearest first, without the one that names the page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// The URL that leads to it: the page's with its id as fragment; with a text fragment
    /// (`#:~:text=`) where it has none.
    pub url: String,
}

impl ResultSection {
    /// Its heading and those above it: `70.1 Introduction · GIN indexes`.
    #[must_use]
    pub fn name(&self) -> String {
        let names = [&self.heading].into_iter().chain(&self.parents);
        let names = names.filter(|name| !name.is_empty()).map(String::as_str);
        names.collect::<Vec<_>>().join(" \u{b7} ")
    }
}

/// The size of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexStats {
    /// Pages that a search can find.
    pub pages: u64,
    /// Pages that are left out since others have the same text.
    pub duplicates: u64,
    /// Pages by language, most frequent first; an empty name where it can't be told.
    pub languages: Vec<(String, u64)>,
    /// Pages by host, most frequent first.
    pub hosts: Vec<(String, u64)>,
    /// Bytes of the index on disk.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// When the page that was fetched last was, in seconds since 1970 UTC.
    pub fetched_at: Option<i64>,
}
