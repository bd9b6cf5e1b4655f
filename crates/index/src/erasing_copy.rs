//! Copies an index page by page, so that the copy contains no trace of the pages left out. Deleting
//! pages from an index would not suffice, because their words and texts stay in its files until
//! tantivy merges segments.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;

use crawl_index_entry::{IndexLogEntry, IndexedPage};

use crate::cross_page_update::{EntryVisitor, PendingEntrySource};
use crate::error::IndexError;
use crate::file_check::check_checksums;
use crate::index_searcher::IndexSearcher;
use crate::index_writer::IndexWriter;
use crate::login_redirects::AnswerLookUp;

/// Changes a page, and returns whether to keep it.
pub type PageEdit<'a> = dyn Fn(&mut IndexedPage) -> bool + 'a;

/// Copies the pages of the index in `from` into a new index in `to`, and stores `note` with it.
/// Link texts, duplicates and versions are computed again from the pages that `edit` keeps. Expired
/// pages are copied too, and so are pages that will only be removed at the end of a run. `answers`
/// is the same as for [`IndexWriter::reconcile_with`].
///
/// # Errors
/// [`IndexError`] if the index has another format or is damaged, or the disk fails.
pub fn copy_pages(
    from: &Path,
    to: &Path,
    note: &str,
    edit: &PageEdit<'_>,
    answers: &AnswerLookUp<'_>,
) -> Result<(), IndexError> {
    check_checksums(from)?;
    let pages = EditedPageSource {
        from: IndexSearcher::open(from)?,
        edit,
    };
    // At this time, no page has expired.
    let now = i64::MIN;
    let writer = IndexWriter::open(to)?.with_all_processors(note)?;
    let Some(mut writer) = writer else {
        return Ok(());
    };
    writer.reconcile_with(&pages, answers, note, now, &|| false)?;
    writer.close()
}

/// The pages of an index that `edit` keeps, as entries for another index.
struct EditedPageSource<'a> {
    from: IndexSearcher,
    edit: &'a PageEdit<'a>,
}

impl PendingEntrySource for EditedPageSource<'_> {
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        let flow = Cell::new(ControlFlow::Continue(()));
        self.from.each_page_and_duplicate(|mut page| {
            if flow.get().is_continue() && (self.edit)(&mut page) {
                flow.set(visit(IndexLogEntry::Put(Box::new(page)))?);
            }
            Ok::<(), IndexError>(())
        })?;
        Ok(flow.get())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crawl_index_entry::{IndexedPage, OutgoingLink};

    use super::copy_pages;
    use crate::index_searcher::IndexSearcher;
    use crate::index_writer::{IndexWriter, note_in};

    fn page(url: &str, text: &str) -> IndexedPage {
        IndexedPage {
            url: format!("http://a.example/{url}"),
            text: text.to_owned(),
            ..IndexedPage::default()
        }
    }

    #[test]
    fn a_copy_has_nothing_of_the_pages_that_it_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let mut writer = IndexWriter::open(&from).unwrap();
        let gone = IndexedPage {
            links: vec![OutgoingLink {
                url: "http://a.example/kept".to_owned(),
                text: "quince".to_owned(),
            }],
            ..page("a", "medlar")
        };
        let over = IndexedPage {
            until: Some(1),
            leaving: Some("soft_404".to_owned()),
            ..page("over", "pear")
        };
        // `same` has the text of `gone`, and a longer URL.
        for page in [&gone, &page("kept", "plum"), &page("same", "medlar")] {
            writer.put(page).unwrap();
        }
        writer.reconcile("1", 0).unwrap();
        // The next run ended before it decided whether to remove `over`.
        writer.put(&over).unwrap();
        writer.commit("1").unwrap();
        writer.close().unwrap();
        let old = IndexSearcher::open(&from).unwrap();
        let stored = |index: &IndexSearcher, name: &str| {
            let url = format!("http://a.example/{name}");
            index.stored(&url).unwrap()
        };
        assert_eq!(stored(&old, "kept").unwrap().anchors, ["quince"]);
        assert_eq!(
            stored(&old, "same").unwrap().same_as,
            Some(gone.url.clone())
        );

        let is_kept = |page: &mut IndexedPage| page.url != gone.url;
        copy_pages(&from, &to, "2", &is_kept, &|_| Ok(HashMap::new())).unwrap();
        let new = IndexSearcher::open(&to).unwrap();
        assert_eq!(stored(&new, "a"), None);
        assert_eq!(stored(&new, "kept"), Some(page("kept", "plum")));
        assert_eq!(stored(&new, "same"), Some(page("same", "medlar")));
        assert_eq!(stored(&new, "over"), Some(over));
        assert_eq!(note_in(&to).unwrap().as_deref(), Some("2"));
    }
}
