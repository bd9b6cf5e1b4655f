//! Entries: each adds or removes one URL in a crawl's search index.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::indexed_page::IndexedPage;

/// Adds a URL to the index, or keeps it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexEntry {
    /// Adds the page, replacing any page under its URL.
    Put(Box<IndexedPage>),
    /// Removes the page under the URL. If the reason may be a fault of the site (a redirect, a soft
    /// 404, a response without a page), the page stays until the end of the run, when the pages
    /// that leave for such reasons are counted.
    Drop {
        /// The URL, in canonical form.
        url: String,
        /// The reason: a name, and the text of the rule if there is one.
        why: String,
    },
}

impl IndexEntry {
    /// Returns the URL of the entry.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            IndexEntry::Put(page) => &page.url,
            IndexEntry::Drop { url, .. } => url,
        }
    }

    /// Returns the approximate memory use, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            IndexEntry::Put(page) => page.bytes(),
            IndexEntry::Drop { url, why } => url.len() + why.len(),
        }
    }

    /// Returns the reason to leave if it may be a fault of the whole site. `None` if the page
    /// stays, or leaves beyond doubt.
    #[must_use]
    pub fn doubtful_reason(&self) -> Option<Cow<'_, str>> {
        const DOUBTFUL: [&str; 4] = ["soft_404", "empty", "redirect", "no_page"];
        // `document_timeout` and the like: the document could not be read.
        let is_doubtful = |name: &&str| DOUBTFUL.contains(name) || name.starts_with("document_");
        let name = self.left_out().filter(is_doubtful);
        match self {
            IndexEntry::Drop { why, .. } => name.map(|_| Cow::Borrowed(why.as_str())),
            IndexEntry::Put(page) => page.gives_way().map(Cow::Owned),
        }
    }

    /// Returns the name of the reason that keeps the URL out; `None` if it is added.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        match self {
            IndexEntry::Put(_) => None,
            IndexEntry::Drop { why, .. } => Some(why.split(':').next().unwrap_or_default()),
        }
    }
}
