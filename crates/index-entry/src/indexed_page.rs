//! A page in the index.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A page as it is indexed, stored and returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexedPage {
    /// The canonical form of the URL, which identifies the page.
    pub url: String,
    /// The title; empty if there is none.
    pub title: String,
    /// The headings, in page order.
    pub headings: Vec<Heading>,
    /// The main text, one line per block.
    pub text: String,
    /// The text outside of the main text, one line per block: boxes, notices, footers, comments,
    /// and links in elements named as content. Navigation is excluded.
    pub beside: String,
    /// The page's own description; empty if there is none.
    pub description: String,
    /// The keywords.
    pub keywords: Vec<String>,
    /// The names of the authors, as stated by the page.
    pub authors: Vec<String>,
    /// The section of the site, as stated by the page, such as News.
    pub section: Option<String>,
    /// The language without region, in lower case (ISO 639); `None` if it is unknown.
    pub language: Option<String>,
    /// The publication time, as stated by the page, in seconds since 1970 UTC.
    pub published: Option<i64>,
    /// The time of the last modification, as stated by the page.
    pub modified: Option<i64>,
    /// The time of the fetch.
    pub fetched_at: i64,
    /// When the page must no longer be shown (`unavailable_after`).
    pub until: Option<i64>,
    /// Maximum characters of an excerpt: `None` is unlimited, 0 is no excerpt (`nosnippet`,
    /// `max-snippet`).
    pub max_snippet: Option<u32>,
    /// The targets of the page's links, with the link texts.
    pub links: Vec<Anchor>,
    /// The texts of links from other pages, sorted.
    pub anchors: Vec<String>,
    /// Number of pages that link here.
    pub linked_from: u32,
    /// The page found in place of this one: a page with the same text, or the one that the
    /// canonical URL leads to. If this is set, the page is stored, but never found.
    pub same_as: Option<String>,
    /// The newest version of this page, possibly itself; `None` if there is only one version.
    pub newest: Option<String>,
    /// Number of newer versions.
    pub newer_versions: u32,
    /// The version named in the URL (`14`, `latest`), on a site with several versions.
    pub version: Option<String>,
    /// The document type: `html`, `pdf`, `docx`, `markdown` or `text`.
    #[serde(rename = "type")]
    pub document_type: String,
    /// The canonical URL if it is outside of the crawl (`rel=canonical`).
    pub canonical: Option<String>,
    /// The canonical URL if it is another URL in this crawl. At the end of a run, the page gives
    /// way to the indexed page that this URL leads to (`same_as`), if there is one.
    pub gives_way_to: Option<String>,
    /// Why the last visit would remove the page. At the end of a run all such pages are judged
    /// together: see [`IndexEntry::Drop`](crate::IndexEntry::Drop).
    pub leaving: Option<String>,
}

/// A heading of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Level from 1 to 6.
    pub level: u8,
    /// The text.
    pub text: String,
    /// The id, for links to the heading.
    pub id: Option<String>,
    /// Offset in bytes of the section's text in [`IndexedPage::text`].
    pub at: usize,
}

/// A link to another page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The target, in canonical form without fragment.
    pub url: String,
    /// The link text; empty if there is none.
    pub text: String,
}

/// Returns the key of a URL in an index.
#[must_use]
pub fn url_key(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

impl IndexedPage {
    /// Hashes everything that makes two pages equal to a reader: title and text, including
    /// headings.
    #[must_use]
    pub fn text_hash(&self) -> u64 {
        let mut all = String::with_capacity(self.text.len() + self.title.len() + 1);
        all.push_str(&self.title);
        all.push('\n');
        all.push_str(&self.text);
        // A page without text equals no other page.
        if self.text.trim().is_empty() {
            all.push_str(&self.url);
        }
        xxh3_64(all.as_bytes())
    }

    /// Returns the reason if the page leaves for its canonical URL: `canonical: URL`.
    #[must_use]
    pub fn gives_way(&self) -> Option<String> {
        self.gives_way_to
            .as_ref()
            .map(|url| format!("canonical: {url}"))
    }

    /// Returns whether removing the page for the reason `why` takes it from search results. False
    /// if the page has already given way, or if its previous canonical URL led nowhere.
    #[must_use]
    pub fn would_be_lost(&self, why: &str) -> bool {
        let Some(_) = self.gives_way_to else {
            return true;
        };
        self.leaving.is_some() || self.same_as.is_none() && !why.starts_with("canonical: ")
    }

    /// Returns the host of the URL, with the port if there is one.
    #[must_use]
    pub fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', '?']).next().unwrap_or_default()
    }

    /// Returns the path and query of the URL, from the first slash.
    #[must_use]
    pub fn path(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.find('/').map_or("/", |slash| &rest[slash..])
    }

    /// Returns the approximate memory use of the text, headings and links, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let headings = self.headings.iter().map(|heading| heading.text.len());
        let links = self
            .links
            .iter()
            .map(|link| link.url.len() + link.text.len());
        let parts =
            self.headings.len() * size_of::<Heading>() + self.links.len() * size_of::<Anchor>();
        let texts = self.text.len() + self.beside.len();
        size_of::<IndexedPage>() + texts + headings.chain(links).sum::<usize>() + parts
    }

    /// Returns the name of the page in a list: its title, else its first heading, else its URL.
    #[must_use]
    pub fn name(&self) -> &str {
        let heading = || self.headings.iter().map(|heading| heading.text.as_str());
        std::iter::once(self.title.as_str())
            .chain(heading())
            .find(|name| !name.trim().is_empty())
            .unwrap_or(&self.url)
    }
}
