//! The record of a page in the search index.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A page as the search index stores and returns it.
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
    /// and lists of links in elements marked as content. Navigation is not included.
    pub beside: String,
    /// The text that snippets must not contain (`data-nosnippet`), one line per block. Searches
    /// find its words, but it is never shown or exported.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub withheld: String,
    /// The description that the page declares; empty if there is none.
    pub description: String,
    /// The keywords that the page declares.
    pub keywords: Vec<String>,
    /// The names of the authors, as stated by the page.
    pub authors: Vec<String>,
    /// The section of the site, such as News, as stated by the page.
    pub section: Option<String>,
    /// The language without region, in lower case (ISO 639); `None` if it is unknown.
    pub language: Option<String>,
    /// The publication time, as stated by the page, in seconds since 1970 UTC.
    pub published: Option<i64>,
    /// The time of the last modification, as stated by the page, in seconds since 1970 UTC.
    pub modified: Option<i64>,
    /// When the page was last fetched, in seconds since 1970 UTC. A 304 response, which has no
    /// body, doesn't change it.
    pub fetched_at: i64,
    /// When the page must no longer be shown (`unavailable_after`), in seconds since 1970 UTC.
    pub until: Option<i64>,
    /// Maximum characters of an excerpt from the page (`max-snippet`). `None` means no limit; 0
    /// means no excerpt (`nosnippet`).
    pub max_snippet: Option<u32>,
    /// The targets of the page's links, with the link texts.
    pub links: Vec<OutgoingLink>,
    /// The texts of links to this page on other pages, sorted.
    pub anchors: Vec<String>,
    /// The number of pages with a link to this page.
    pub linked_from: u32,
    /// The URL of the page that replaces this page in search results: a page with the same text, or
    /// the page at the canonical URL. If set, this page is stored but never returned as a result.
    pub same_as: Option<String>,
    /// The URL of the newest version of this page, which may be this page. `None` if there is only
    /// one version.
    pub newest: Option<String>,
    /// The number of newer versions of this page.
    pub newer_versions: u32,
    /// The version named in the URL (`14`, `latest`). `None` unless the site has several versions
    /// of its pages.
    pub version: Option<String>,
    /// The document type: `html`, `pdf`, `docx`, `markdown` or `text`.
    #[serde(rename = "type")]
    pub document_type: String,
    /// The page's canonical URL (`rel=canonical`), if it is outside of the crawl.
    pub canonical: Option<String>,
    /// The page's canonical URL, or the URL to which it redirects at once, if it is another URL of
    /// this crawl. At the end of a run, an indexed page at that URL replaces this page in search
    /// results (see `same_as`).
    pub gives_way_to: Option<String>,
    /// The reason why the last visit would have removed the page, if it is still kept. At the end
    /// of a run, all pages with such a reason are judged together: see
    /// [`IndexLogEntry::Drop`](crate::IndexLogEntry::Drop).
    pub leaving: Option<String>,
}

/// A heading of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// The level of the heading, from 1 to 6.
    pub level: u8,
    /// The text of the heading.
    pub text: String,
    /// The id of the heading, for links to it.
    pub id: Option<String>,
    /// The byte offset in [`IndexedPage::text`] at which the heading occurs.
    pub at: usize,
}

/// A link to another page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingLink {
    /// The URL of the linked page, in canonical form without fragment.
    pub url: String,
    /// The link text; empty if there is none.
    pub text: String,
}

/// Returns the key under which an index stores a URL.
#[must_use]
pub fn url_key(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

impl IndexedPage {
    /// Returns a hash of the page's title, main text and withheld text. If the main text is empty,
    /// the hash includes the URL.
    #[must_use]
    pub fn text_hash(&self) -> u64 {
        let mut all = String::with_capacity(self.text.len() + self.title.len() + 1);
        all.push_str(&self.title);
        all.push('\n');
        all.push_str(&self.text);
        all.push_str(&self.withheld);
        // Include the URL, so that pages without text are not duplicates of each other.
        if self.text.trim().is_empty() {
            all.push_str(&self.url);
        }
        xxh3_64(all.as_bytes())
    }

    /// Returns `canonical: URL` as a reason if the page at its canonical URL should replace this
    /// page; otherwise `None`.
    #[must_use]
    pub fn gives_way(&self) -> Option<String> {
        self.gives_way_to
            .as_ref()
            .map(|url| format!("canonical: {url}"))
    }

    /// Returns whether removing this stored page for the reason `why` would lose it from search
    /// results. True for a page without `gives_way_to`, and for a page with `leaving`, which is
    /// shown in results. Otherwise, false if another page replaces this page already, or if `why`
    /// is a canonical URL too.
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

    /// Returns the approximate memory use of the page, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let headings = self.headings.iter().map(|heading| heading.text.len());
        let links = self
            .links
            .iter()
            .map(|link| link.url.len() + link.text.len());
        let parts = self.headings.len() * size_of::<Heading>()
            + self.links.len() * size_of::<OutgoingLink>();
        let texts = self.text.len() + self.beside.len() + self.withheld.len();
        size_of::<IndexedPage>() + texts + headings.chain(links).sum::<usize>() + parts
    }

    /// Returns the page's title or, if it has none, its first heading or its URL.
    #[must_use]
    pub fn name(&self) -> &str {
        let heading = || self.headings.iter().map(|heading| heading.text.as_str());
        std::iter::once(self.title.as_str())
            .chain(heading())
            .find(|name| !name.trim().is_empty())
            .unwrap_or(&self.url)
    }
}
