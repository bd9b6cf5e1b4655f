//! The log entries that update the search index of a crawl. Each entry adds or removes one page.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::indexed_page::IndexedPage;

/// A log entry that adds one page to the search index, replaces it or removes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexLogEntry {
    /// Adds the page, in place of any older version with the same URL.
    Put(Box<IndexedPage>),
    /// Removes the page with this URL. A redirect, a soft 404, a response of another type (such as
    /// an image), and a document that is empty or can't be read may be an error of the whole site.
    /// For these reasons, the page is kept until the end of the run, when all such pages are
    /// counted and judged together.
    Drop {
        /// The URL, in canonical form.
        url: String,
        /// The reason: its name and, if a rule decided, the text of the rule.
        why: String,
    },
}

impl IndexLogEntry {
    /// Returns the URL of the entry.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            IndexLogEntry::Put(page) => &page.url,
            IndexLogEntry::Drop { url, .. } => url,
        }
    }

    /// Returns the approximate memory use of the entry, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            IndexLogEntry::Put(page) => page.bytes(),
            IndexLogEntry::Drop { url, why } => url.len() + why.len(),
        }
    }

    /// Returns the reason why the entry removes a page or replaces it by its canonical URL, if this
    /// reason is doubtful. A doubtful reason, such as a soft 404, may only be an error of the whole
    /// site. `None` for any other entry.
    #[must_use]
    pub fn doubtful_reason(&self) -> Option<Cow<'_, str>> {
        const DOUBTFUL: [&str; 4] = ["soft_404", "empty", "redirect", "no_page"];
        // Reasons such as `document_timeout` mean that the document could not be read.
        let is_doubtful = |name: &&str| DOUBTFUL.contains(name) || name.starts_with("document_");
        let name = self.left_out().filter(is_doubtful);
        match self {
            IndexLogEntry::Drop { why, .. } => name.map(|_| Cow::Borrowed(why.as_str())),
            IndexLogEntry::Put(page) => page.gives_way().map(Cow::Owned),
        }
    }

    /// Returns the name of the reason for removing a page, such as `soft_404`. `None` if the entry
    /// adds a page.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        match self {
            IndexLogEntry::Put(_) => None,
            IndexLogEntry::Drop { why, .. } => Some(why.split(':').next().unwrap_or_default()),
        }
    }
}
