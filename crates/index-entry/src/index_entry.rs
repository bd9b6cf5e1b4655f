//! Entries: one URL each, as a crawl gives them to its search index.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::indexed_page::IndexedPage;

/// One URL goes into the index, or stays out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexEntry {
    /// The page stands there from now on, in place of what stood under its URL.
    Put(Box<IndexedPage>),
    /// No page is found under the URL from now on. If the reason may be a fault of the site (a redirect, a
    /// page that says that there is none, an answer without one), the page stays until
    /// the end of the run has counted the pages that leave for such reasons.
    Drop {
        /// The URL, in canonical form.
        url: String,
        /// Why: a name, and the rule's words where it has some.
        why: String,
    },
}

impl IndexEntry {
    /// The URL that it speaks of.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            IndexEntry::Put(page) => &page.url,
            IndexEntry::Drop { url, .. } => url,
        }
    }

    /// The memory that it takes, about. Bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            IndexEntry::Put(page) => page.bytes(),
            IndexEntry::Drop { url, why } => url.len() + why.len(),
        }
    }

    /// The reason to leave that a whole site may give by a fault. `None` if the page stays, or leaves
    /// beyond doubt.
    #[must_use]
    pub fn doubtful_reason(&self) -> Option<Cow<'_, str>> {
        const DOUBTFUL: [&str; 4] = ["soft_404", "empty", "redirect", "no_page"];
        // `document_timeout` and its like: what could not be read.
        let is_doubtful = |name: &&str| DOUBTFUL.contains(name) || name.starts_with("document_");
        let name = self.left_out().filter(is_doubtful);
        match self {
            IndexEntry::Drop { why, .. } => name.map(|_| Cow::Borrowed(why.as_str())),
            IndexEntry::Put(page) => page.gives_way().map(Cow::Owned),
        }
    }

    /// The name of what keeps the URL out; none where it goes in.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        match self {
            IndexEntry::Put(_) => None,
            IndexEntry::Drop { why, .. } => Some(why.split(':').next().unwrap_or_default()),
        }
    }
}
