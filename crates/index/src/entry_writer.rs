//! Applies index entries, which add or remove pages.

use crawl_index_entry::{IndexEntry, IndexedPage, url_key};

use crate::error::IndexError;
use crate::writer::IndexWriter;

impl IndexWriter {
    /// Applies an entry: adds or removes its page.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn apply(&mut self, entry: &IndexEntry) -> Result<(), IndexError> {
        match entry {
            IndexEntry::Put(page) => match self.stays_for_now(entry)? {
                None => self.put(page),
                // Until the run ends, searches still find the page under its own URL.
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

    /// Returns the page that searches find under the entry's URL, with the reason of the entry.
    /// `None` unless the entry would remove this page for a doubtful reason.
    fn stays_for_now(
        &mut self,
        entry: &IndexEntry,
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
