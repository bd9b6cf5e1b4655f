//! Entries: one URL each, as the source of an index gives them.

use serde::{Deserialize, Serialize};

use crate::error::IndexError;
use crate::indexed_page::IndexedPage;
use crate::page_facts::url_key;
use crate::writer::IndexWriter;

/// One URL goes into the index, or stays out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexEntry {
    /// The page stands there from now on, in place of what stood under its URL.
    Put(Box<IndexedPage>),
    /// Nothing stands there from now on. Where the reason may be a fault of the site (a redirect,
    /// a canonical address, a page that says that there is none, an answer without one), the page
    /// stays until [`IndexWriter::reconcile`] has seen how many leave so.
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

    /// The reason to leave that a whole site may give by a fault; none where the page goes in, or
    /// goes out beyond doubt.
    pub(crate) fn doubtful_reason(&self) -> Option<&str> {
        const DOUBTFUL: [&str; 5] = ["canonical", "soft_404", "empty", "redirect", "no_page"];
        // `document_timeout` and its like: what could not be read.
        let is_doubtful = |name: &&str| DOUBTFUL.contains(name) || name.starts_with("document_");
        let name = self.left_out().filter(is_doubtful);
        match self {
            IndexEntry::Drop { why, .. } => name.map(|_| why.as_str()),
            IndexEntry::Put(_) => None,
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

impl IndexWriter {
    /// Does what an entry says.
    ///
    /// # Errors
    /// The disk.
    pub fn apply(&mut self, entry: &IndexEntry) -> Result<(), IndexError> {
        match entry {
            IndexEntry::Put(page) => self.put(page),
            IndexEntry::Drop { url, .. } => {
                let known = match entry.doubtful_reason() {
                    Some(why) => self.committed(url)?.map(|page| (page, why)),
                    None => None,
                };
                let Some((mut page, why)) = known else {
                    self.drop_url(url);
                    return Ok(());
                };
                page.leaving = Some(why.to_owned());
                self.marked.insert(url_key(url));
                self.put(&page)
            }
        }
    }
}
