//! The results of a search.

use crawl_weburl::safe_line;
use serde::{Deserialize, Serialize};

use crate::facets::FacetCounts;

/// The results of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchResults {
    /// The query as typed.
    pub query: String,
    /// The number of matching pages.
    pub total: usize,
    /// The requested range of the ranked pages, best first.
    pub results: Vec<Hit>,
    /// The corrected query, if the query has words that no page has and similar words exist. In
    /// this case, the results are those of the corrected query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// The words and phrases of the query that no page has. The results match the other words. If
    /// no page has any word of the query, all its words are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// True if the results include pages with only some of the query's words, because few or no
    /// pages have all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_words: bool,
    /// The number of matching pages by folder, language, version and type, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facets: Option<FacetCounts>,
}

impl SearchResults {
    /// Returns a sentence about words of the query that some or all results lack. `None` if all
    /// results have all words.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let words: Vec<_> = self.unknown.iter().map(|word| safe_line(word)).collect();
        let words = words.join(", ");
        match (words.is_empty(), self.total) {
            (true, _) if self.lacks_words => {
                Some("Few pages have all words: pages with some of them follow.".to_owned())
            }
            (true, _) => None,
            (false, 0) => Some(format!("No page has {words}.")),
            (false, _) => Some(format!("No page has {words}: left out.")),
        }
    }
}

/// A page that matches a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The URL of the page.
    pub url: String,
    /// The title of the page, or else its first heading or URL.
    pub title: String,
    /// The best part of the text, on one line; empty if the page does not allow excerpts.
    pub excerpt: String,
    /// The score, which is comparable only within one result list.
    pub score: f32,
    /// The title, split into words of the query and the text between them.
    pub title_parts: Vec<MarkedTextPart>,
    /// The excerpt, split into words of the query and the text between them.
    pub excerpt_parts: Vec<MarkedTextPart>,
    /// The section that contains the excerpt. `None` if the excerpt is before the second heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<ResultSection>,
    /// Up to three sections with the most query words, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<ResultSection>,
    /// The link target of the title. This is the page or, if the heading of its best section has
    /// query words that the title lacks, that section.
    pub leads_to: String,
    /// `leads_to` with a text fragment that makes a browser highlight the passage in the excerpt.
    /// `None` if the excerpt has no query word, or if `leads_to` is a section that doesn't contain
    /// the excerpt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage_url: Option<String>,
    /// True if the site owner's rules put this page first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The language of the page.
    pub language: Option<String>,
    /// The modification time that the page declares, in seconds since 1970 UTC.
    pub modified: Option<i64>,
    /// When the page was fetched, in seconds since 1970 UTC.
    pub fetched_at: i64,
}

/// A part of a title or excerpt: either a word of the query or other text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedTextPart {
    /// The text of the part.
    pub text: String,
    /// True if the part is a word of the query.
    #[serde(rename = "match")]
    pub is_match: bool,
}

/// A section of a found page that matches the query, with its heading and URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultSection {
    /// The text of the heading.
    pub heading: String,
    /// The headings above the section, nearest first, without the page's title.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// The URL of the section: the page's URL with the heading's ID as fragment, or with a text
    /// fragment (`#:~:text=`) if there is no ID.
    pub url: String,
}

impl ResultSection {
    /// Joins the heading and the headings above it, nearest first: `70.1 Introduction · GIN
    /// indexes`.
    #[must_use]
    pub fn name(&self) -> String {
        let names = [&self.heading].into_iter().chain(&self.parents);
        let names = names.filter(|name| !name.is_empty()).map(String::as_str);
        names.collect::<Vec<_>>().join(" \u{b7} ")
    }
}

/// The size and contents of an index, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexStats {
    /// The number of pages that a search can find.
    pub pages: u64,
    /// The number of pages that are left out because another page replaces them: one with the same
    /// text, or the one at their canonical URL.
    pub duplicates: u64,
    /// The number of pages by language (ISO 639 code), most frequent first. The code is empty if
    /// the language is unknown.
    pub languages: Vec<(String, u64)>,
    /// The number of pages by host, most frequent first.
    pub hosts: Vec<(String, u64)>,
    /// The size of the index on disk in bytes.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// The latest time at which any page was fetched, in seconds since 1970 UTC.
    pub fetched_at: Option<i64>,
}
