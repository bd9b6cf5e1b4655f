//! Entries: one URL each, as the source of an index gives them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::IndexError;
use crate::indexed_page::IndexedPage;
use crate::indexed_page::url_key;
use crate::writer::IndexWriter;

/// One URL goes into the index, or stays out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexEntry {
    /// The page stands there from now on, in place of what stood under its URL.
    Put(Box<IndexedPage>),
    /// No page is found under the URL from now on. If the reason may be a fault of the site (a redirect, a
    /// page that says that there is none, an answer without one), the page stays until
    /// [`IndexWriter::reconcile`] has counted the pages that leave for such reasons.
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
    pub(crate) fn doubtful_reason(&self) -> Option<Cow<'_, str>> {
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

impl IndexWriter {
    /// Does what an entry says.
    ///
    /// # Errors
    /// The disk.
    pub fn apply(&mut self, entry: &IndexEntry) -> Result<(), IndexError> {
        match entry {
            IndexEntry::Put(page) => match self.stays_for_now(entry)? {
                None => self.put(page),
                // Searches find the page, as before, until the run ends.
                Some((_, why)) => self.put(&IndexedPage {
                    same_as: None,
                    leaving: Some(why),
                    ..(**page).clone()
                }),
            },
            IndexEntry::Drop { url, .. } => match self.stays_for_now(entry)? {
                None => {
                    self.drop_url(url);
                    Ok(())
                }
                Some((page, why)) => self.put(&IndexedPage {
                    leaving: Some(why),
                    ..page
                }),
            },
        }
    }

    /// The page that searches find under the entry's URL, with the doubtful reason for which it leaves.
    fn stays_for_now(
        &mut self,
        entry: &IndexEntry,
    ) -> Result<Option<(IndexedPage, String)>, IndexError> {
        let Some(why) = entry.doubtful_reason() else {
            return Ok(None);
        };
        let page = self.committed(entry.url())?;
        let found = page.filter(|page| page.would_be_lost(&why));
        if found.is_some() {
            self.marked.insert(url_key(entry.url()));
        }
        Ok(found.map(|page| (page, why.into_owned())))
    }
}
