//! The last pass over an index: facts that only all pages together tell, such as their names
//! for each other, and duplicates.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use foldhash::fast::RandomState;
use tantivy::schema::Value as _;
use tantivy::{Searcher, TantivyDocument};

use crate::document::power_of_two;
use crate::entry::IndexEntry;
use crate::error::{IndexError, guarded};
use crate::indexed_page::IndexedPage;
use crate::page_facts::{AllFacts, Survey, url_key};
use crate::schema::Fields;
use crate::writer::{Commit, IndexWriter};

/// The result of [`IndexWriter::reconcile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Pages that a search can find.
    pub pages: u64,
    /// Pages that are left out since others have the same text.
    pub duplicates: u64,
    /// Pages that were taken out since their time is over.
    pub expired: u64,
    /// Pages that were written anew.
    pub rewritten: u64,
}

impl Reconciled {
    fn changed(&self) -> bool {
        self.expired + self.rewritten > 0
    }
}

impl IndexWriter {
    /// Commits, then settles what only all pages together can tell: what they call each other,
    /// which of them are the same, and which may not be shown any more at `now` (seconds since
    /// 1970 UTC); then commits again.
    ///
    /// Reads each page twice. The words of links are sorted on disk, beside the index, so that it
    /// takes the same memory for however many.
    ///
    /// # Errors
    /// The disk, or a damaged index.
    pub fn reconcile(&mut self, note: &str, now: i64) -> Result<Reconciled, IndexError> {
        let done = self.reconcile_unless(note, now, &|| false)?;
        Ok(done.unwrap_or_default())
    }

    /// The same, unless `is_stopped`, which is asked before each page: then there is no result,
    /// and what was not committed before must not be, as one half of the pages would be told
    /// from the other by two measures. Drop the writer.
    ///
    /// # Errors
    /// The disk, or a damaged index.
    pub fn reconcile_unless(
        &mut self,
        note: &str,
        now: i64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Reconciled>, IndexError> {
        if self.commit(note)? == Commit::Stopped {
            return Ok(None);
        }
        self.reconcile_with(&(), note, now, is_stopped)
    }

    /// The same for all that was committed, and for entries that are pending: what they put is
    /// written once, as it is to be. The note speaks of them too.
    ///
    /// # Errors
    /// The disk, a damaged index, or that of the entries.
    pub fn reconcile_with(
        &mut self,
        pending: &dyn PendingEntries,
        note: &str,
        now: i64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Reconciled>, IndexError> {
        let dir = self.dir().to_path_buf();
        let done = guarded(&dir, || reconcile(self, pending, now, is_stopped))?;
        let is_due = done.is_some_and(|done| done.changed() || self.note() != Some(note));
        if is_due && self.commit(note)? == Commit::Stopped {
            return Ok(None);
        }
        Ok(done)
    }
}

/// Entries that are not in the index yet, and can be read as often as it takes: those of a log.
pub trait PendingEntries {
    /// Hands over each of them, in their order, until the visitor breaks off.
    ///
    /// # Errors
    /// That of the visitor, of the disk, or a damaged source.
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError>;
}

/// Takes an entry, and says whether to go on.
pub type EntryVisitor<'a> = dyn FnMut(IndexEntry) -> Result<ControlFlow<()>, IndexError> + 'a;

/// There are none.
impl PendingEntries for () {
    fn each(&self, _visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// The number of the last pending entry of each URL, by the key of the URL: it alone holds.
type LatestEntries = HashMap<u64, u32, RandomState>;

/// One pass over all pages, those in the index and those that are pending.
struct AllPages<'a> {
    dir: &'a Path,
    fields: &'a Fields,
    searcher: &'a Searcher,
    pending: &'a dyn PendingEntries,
    is_stopped: &'a dyn Fn() -> bool,
    now: i64,
}

impl AllPages<'_> {
    fn is_over(&self, page: &IndexedPage) -> bool {
        page.until.is_some_and(|until| until <= self.now)
    }

    /// Gathers what they tell of each other. None where it `is_stopped`.
    fn survey(&self) -> Result<Option<(AllFacts, LatestEntries)>, IndexError> {
        let mut latest = LatestEntries::default();
        let Some((mut survey, has_repeats)) = self.survey_pending(&mut latest, None)? else {
            return Ok(None);
        };
        if has_repeats {
            // What a later entry took back has no vote.
            let known = latest.clone();
            match self.survey_pending(&mut latest, Some(&known))? {
                Some((again, _)) => survey = again,
                None => return Ok(None),
            }
        }
        let walk = self.each_stored(&latest, |page| match self.is_over(&page) {
            true => Ok(()),
            false => survey.page(&page).map_err(IndexError::disk(self.dir)),
        })?;
        if walk.is_break() {
            return Ok(None);
        }
        let facts = survey.finish().map_err(IndexError::disk(self.dir))?;
        Ok(Some((facts, latest)))
    }

    /// A survey of pending pages, of those alone that are the `known` latest of their URLs; and
    /// whether there are others.
    fn survey_pending(
        &self,
        latest: &mut LatestEntries,
        known: Option<&LatestEntries>,
    ) -> Result<Option<(Survey, bool)>, IndexError> {
        let (mut survey, mut has_repeats) = (Survey::new(self.dir), false);
        let walk = self.each_pending(|number, entry| {
            let key = url_key(entry.url());
            has_repeats |= latest.insert(key, number).is_some();
            let is_latest = known.is_none_or(|known| known.get(&key) == Some(&number));
            match entry {
                IndexEntry::Put(page) if is_latest && !self.is_over(&page) => {
                    survey.page(&page).map_err(IndexError::disk(self.dir))
                }
                _ => Ok(()),
            }
        })?;
        Ok(walk.is_continue().then_some((survey, has_repeats)))
    }

    /// Each page that is stored and that no pending entry speaks of.
    fn each_stored(
        &self,
        latest: &LatestEntries,
        mut visit: impl FnMut(IndexedPage) -> Result<(), IndexError>,
    ) -> Result<ControlFlow<()>, IndexError> {
        each_stored(
            self.dir,
            self.fields,
            self.searcher,
            self.is_stopped,
            |page| match latest.contains_key(&url_key(&page.url)) {
                true => Ok(()),
                false => visit(page),
            },
        )
    }

    fn each_pending(
        &self,
        mut visit: impl FnMut(u32, IndexEntry) -> Result<(), IndexError>,
    ) -> Result<ControlFlow<()>, IndexError> {
        let mut number = 0;
        self.pending.each(&mut |entry| {
            if (self.is_stopped)() {
                return Ok(ControlFlow::Break(()));
            }
            visit(number, entry)?;
            number += 1;
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// None where it `is_stopped`.
fn reconcile(
    writer: &mut IndexWriter,
    pending: &dyn PendingEntries,
    now: i64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Reconciled>, IndexError> {
    let searcher = searcher(writer)?;
    let (dir, fields) = (writer.dir().to_path_buf(), writer.fields.clone());
    let all = AllPages {
        dir: &dir,
        fields: &fields,
        searcher: &searcher,
        pending,
        is_stopped,
        now,
    };
    let Some((facts, latest)) = all.survey()? else {
        return Ok(None);
    };
    let mut done = Reconciled::default();
    let mut settle = |entry: IndexEntry, is_new: bool| {
        let mut page = match entry {
            IndexEntry::Put(page) if !all.is_over(&page) => page,
            entry => {
                writer.drop_url(entry.url());
                done.expired += u64::from(entry.left_out().is_none());
                return Ok(());
            }
        };
        let facts = facts.of(&page.url).map_err(IndexError::disk(&dir))?;
        match facts.same_as {
            Some(_) => done.duplicates += 1,
            None => done.pages += 1,
        }
        let is_as_it_was = page.same_as == facts.same_as
            && page.anchors == facts.anchors
            && power_of_two(page.linked_from) == power_of_two(facts.linked_from);
        if is_as_it_was && !is_new {
            return Ok(());
        }
        page.same_as = facts.same_as;
        page.anchors = facts.anchors;
        page.linked_from = facts.linked_from;
        done.rewritten += 1;
        writer.put(&page)
    };
    // Deletions and additions under way don't touch the segments that are read.
    let stored = |page| settle(IndexEntry::Put(Box::new(page)), false);
    if all.each_stored(&latest, stored)?.is_break() {
        return Ok(None);
    }
    let walk = all.each_pending(|number, entry| {
        match latest.get(&url_key(entry.url())) == Some(&number) {
            true => settle(entry, true),
            false => Ok(()),
        }
    })?;
    Ok(walk.is_continue().then_some(done))
}

fn searcher(writer: &IndexWriter) -> Result<Searcher, IndexError> {
    let error = IndexError::of(writer.dir());
    let reader = writer.inner.index().reader_builder();
    let reader = reader.reload_policy(tantivy::ReloadPolicy::Manual);
    let reader: tantivy::IndexReader = reader.try_into().map_err(&error)?;
    reader.reload().map_err(&error)?;
    Ok(reader.searcher())
}

/// Each page that is stored, in no order of meaning. Breaks off where it `is_stopped`, which is
/// asked before each.
pub(crate) fn each_stored<E: From<IndexError>>(
    dir: &Path,
    fields: &Fields,
    searcher: &Searcher,
    is_stopped: &dyn Fn() -> bool,
    mut visit: impl FnMut(IndexedPage) -> Result<(), E>,
) -> Result<ControlFlow<()>, E> {
    for segment in searcher.segment_readers() {
        let store = segment.get_store_reader(2);
        let store = store.map_err(IndexError::disk(dir))?;
        let mut documents = store.iter::<TantivyDocument>(segment.alive_bitset());
        let mut next = || documents.next().transpose().map_err(IndexError::of(dir));
        while let Some(document) = guarded(dir, &mut next)? {
            if is_stopped() {
                return Ok(ControlFlow::Break(()));
            }
            let page = stored(fields, &document)
                .ok_or_else(|| IndexError::damaged(dir, "a stored page can't be read"))?;
            visit(page)?;
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The page that a document holds.
pub(crate) fn stored(fields: &Fields, document: &TantivyDocument) -> Option<IndexedPage> {
    let stored = document.get_first(fields.page)?;
    match stored.as_str() {
        Some(text) => serde_json::from_str(text).ok(),
        // As earlier versions stored it.
        None => serde_json::from_slice(stored.as_bytes()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use tantivy::TantivyDocument;

    use super::stored;
    use crate::document::document;
    use crate::indexed_page::IndexedPage;
    use crate::schema::schema;

    #[test]
    fn ours_a_page_is_read_as_it_is_stored_and_as_it_was_before() {
        let page = IndexedPage {
            url: "http://a.example/".to_owned(),
            text: "tea".to_owned(),
            ..IndexedPage::default()
        };
        let (_, fields) = schema();
        let mut before = TantivyDocument::new();
        before.add_bytes(fields.page, &serde_json::to_vec(&page).unwrap());
        for document in [document(&fields, &page), before] {
            assert_eq!(stored(&fields, &document).as_ref(), Some(&page));
        }
    }
}
