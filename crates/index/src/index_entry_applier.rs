//! Applies index entries, which add or remove pages.

use crawl_index_entry::{IndexLogEntry, IndexedPage, url_key};

use crate::error::IndexError;
use crate::index_writer::IndexWriter;

impl IndexWriter {
    /// Applies an entry: adds or removes its page.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn apply(&mut self, entry: &IndexLogEntry) -> Result<(), IndexError> {
        match entry {
            IndexLogEntry::Put(page) => match self.stays_for_now(entry)? {
                None => self.put(page),
                // Whether another page replaces this one is decided at the end of the run. Until
                // then, index the page under its own URL, so that searches still find it.
                Some((_, why)) => self.put(&IndexedPage {
                    same_as: None,
                    leaving: Some(why),
                    ..(**page).clone()
                }),
            },
            IndexLogEntry::Drop { url, .. } => match self.stays_for_now(entry)? {
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

    /// Returns the stored page and the reason if the entry would remove the page from search
    /// results for a doubtful reason: see [`IndexLogEntry::doubtful_reason`]. Such a page is kept
    /// until the end of the run. Returns `None` if the entry takes effect at once.
    fn stays_for_now(
        &mut self,
        entry: &IndexLogEntry,
    ) -> Result<Option<(IndexedPage, String)>, IndexError> {
        let Some(why) = entry.doubtful_reason() else {
            return Ok(None);
        };
        let page = self.committed(entry.url())?;
        let page_at_risk = page.filter(|page| page.would_be_lost(&why));
        if page_at_risk.is_some() {
            self.marked.insert(url_key(entry.url()));
        }
        Ok(page_at_risk.map(|page| (page, why.into_owned())))
    }
}
