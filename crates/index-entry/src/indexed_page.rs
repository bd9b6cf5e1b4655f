//! A page as the index holds it.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A page as it is indexed, stored and given back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexedPage {
    /// Its URL in canonical form: what it is known by.
    pub url: String,
    /// Its title; empty where it has none.
    pub title: String,
    /// Its headings, in the order of the page.
    pub headings: Vec<Heading>,
    /// The main text, a line for each block.
    pub text: String,
    /// The text outside of the main text, a line for each block: boxes, notices, footers, comments,
    /// and links in elements named as content. Navigation is not in it.
    pub beside: String,
    /// The page's description of itself; empty where it has none.
    pub description: String,
    /// Its keywords.
    pub keywords: Vec<String>,
    /// The names of its authors, by its own word.
    pub authors: Vec<String>,
    /// The part of its site that it stands in, by its own word: News, say.
    pub section: Option<String>,
    /// The language without region, in lower case (ISO 639); none where it can't be told.
    pub language: Option<String>,
    /// When it was published, in seconds since 1970 UTC, by its own word.
    pub published: Option<i64>,
    /// When it was last modified, by its own word.
    pub modified: Option<i64>,
    /// When it was fetched.
    pub fetched_at: i64,
    /// From when on it is not to be shown (`unavailable_after`).
    pub until: Option<i64>,
    /// Characters of an excerpt that may be shown: none is without limit, 0 is no excerpt
    /// (`nosnippet`, `max-snippet`).
    pub max_snippet: Option<u32>,
    /// The targets of its links, and what those pages are called here.
    pub links: Vec<Anchor>,
    /// The names that other pages give this one, in the order of the alphabet.
    pub anchors: Vec<String>,
    /// The number of pages that link to it.
    pub linked_from: u32,
    /// The page that is found in its place: one with the same text, or the one that its canonical URL
    /// leads to. A page with this is stored, but no search finds it.
    pub same_as: Option<String>,
    /// The newest of the versions of this page, itself or another; none where it has one version.
    pub newest: Option<String>,
    /// The number of its versions that are newer.
    pub newer_versions: u32,
    /// The version that its address names (`14`, `latest`), on a site that has several.
    pub version: Option<String>,
    /// What kind of document it was: `html`, `pdf`, `docx`, `markdown` or `text`.
    #[serde(rename = "type")]
    pub document_type: String,
    /// The address outside of the crawl that it calls its own (`rel=canonical`).
    pub canonical: Option<String>,
    /// The URL in this crawl that the page names as canonical in place of its own. When a run ends, the page
    /// gives way to the indexed page that this URL leads to (`same_as`), if there is one.
    pub gives_way_to: Option<String>,
    /// Why the last visit would take it out, until a run ends and all such pages are looked at
    /// together: see [`IndexEntry::Drop`](crate::IndexEntry::Drop).
    pub leaving: Option<String>,
}

/// A heading of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// 1 to 6.
    pub level: u8,
    /// Its words.
    pub text: String,
    /// The id to link to it.
    pub id: Option<String>,
    /// The place at which the text under it begins in [`IndexedPage::text`], in bytes.
    pub at: usize,
}

/// A link to another page, by its words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The target, in canonical form without fragment.
    pub url: String,
    /// Its words; empty where it has none.
    pub text: String,
}

/// Returns the key of a URL in an index.
#[must_use]
pub fn url_key(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

impl IndexedPage {
    /// A number for what makes two pages the same to a reader: title and text, and their headings.
    #[must_use]
    pub fn text_hash(&self) -> u64 {
        let mut all = String::with_capacity(self.text.len() + self.title.len() + 1);
        all.push_str(&self.title);
        all.push('\n');
        all.push_str(&self.text);
        // A page without text is like no other.
        if self.text.trim().is_empty() {
            all.push_str(&self.url);
        }
        xxh3_64(all.as_bytes())
    }

    /// Why a page that names another URL as canonical leaves: `canonical: URL`.
    #[must_use]
    pub fn gives_way(&self) -> Option<String> {
        self.gives_way_to
            .as_ref()
            .map(|url| format!("canonical: {url}"))
    }

    /// Returns whether searches would lose the page if it left for the reason `why`. They don't if it gave
    /// way already, or if it named its canonical URL before, which led nowhere.
    #[must_use]
    pub fn would_be_lost(&self, why: &str) -> bool {
        let Some(_) = self.gives_way_to else {
            return true;
        };
        self.leaving.is_some() || self.same_as.is_none() && !why.starts_with("canonical: ")
    }

    /// The host of its URL, with the port where it has one.
    #[must_use]
    pub fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', '?']).next().unwrap_or_default()
    }

    /// The path and query of its URL, from the first slash on.
    #[must_use]
    pub fn path(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.find('/').map_or("/", |slash| &rest[slash..])
    }

    /// The memory that it takes, about: its text, its headings and its links. Bytes.
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

    /// The name of the page in a list: its title, else its first heading, else its URL.
    #[must_use]
    pub fn name(&self) -> &str {
        let heading = || self.headings.iter().map(|heading| heading.text.as_str());
        std::iter::once(self.title.as_str())
            .chain(heading())
            .find(|name| !name.trim().is_empty())
            .unwrap_or(&self.url)
    }
}
