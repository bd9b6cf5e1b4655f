//! Entries that a writer applies to the index.

use crawl_index_entry::{IndexEntry, IndexedPage, url_key};

use crate::error::IndexError;
use crate::writer::IndexWriter;

impl IndexWriter {
    /// Applies an entry.
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
