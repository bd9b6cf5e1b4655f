//! The last pass over an index: facts that only all pages together tell, such as their names
//! for each other, and duplicates.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use tantivy::schema::Value as _;
use tantivy::{Searcher, TantivyDocument};
use xxhash_rust::xxh3::xxh3_64;

use crate::document::{power_of_two, text_hash};
use crate::error::{IndexError, guarded};
use crate::indexed_page::IndexedPage;
use crate::schema::Fields;
use crate::writer::{Commit, IndexWriter};

/// The names that others give a page: so many at most, the most frequent first.
const MAX_ANCHORS: usize = 16;
/// A text that leads to more pages than this names none of them: `next`, `here`, `back`.
const MAX_NAMES: usize = 8;

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
    /// Reads each page once. It takes memory for the words of all links.
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
        let dir = self.dir().to_path_buf();
        let done = guarded(&dir, || reconcile(self, now, is_stopped))?;
        if done.is_some_and(|done| done.changed()) && self.commit(note)? == Commit::Stopped {
            return Ok(None);
        }
        Ok(done)
    }
}

/// None where it `is_stopped`.
fn reconcile(
    writer: &mut IndexWriter,
    now: i64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Reconciled>, IndexError> {
    let searcher = searcher(writer)?;
    let (dir, fields) = (writer.dir().to_path_buf(), writer.fields.clone());
    let mut seen = Survey::default();
    let is_over = |page: &IndexedPage| page.until.is_some_and(|until| until <= now);
    let survey = each_stored::<IndexError>(&dir, &fields, &searcher, is_stopped, |page| {
        if !is_over(&page) {
            seen.page(&page);
        }
        Ok(())
    })?;
    if survey.is_break() {
        return Ok(None);
    }
    let twins = seen.twins();
    let names = seen.names();
    let mut done = Reconciled::default();
    // Deletions and additions under way don't touch the segments that are read.
    let rewriting = each_stored::<IndexError>(&dir, &fields, &searcher, is_stopped, |mut page| {
        if is_over(&page) {
            writer.drop_url(&page.url);
            done.expired += 1;
            return Ok(());
        }
        let key = key(&page.url);
        let same_as = twins.get(&text_hash(&page)).filter(|url| **url != page.url);
        let (linked_from, anchors) = names.get(&key).cloned().unwrap_or_default();
        match same_as {
            Some(_) => done.duplicates += 1,
            None => done.pages += 1,
        }
        let is_as_it_was = page.same_as.as_ref() == same_as
            && page.anchors == anchors
            && power_of_two(page.linked_from) == power_of_two(linked_from);
        if is_as_it_was {
            return Ok(());
        }
        page.same_as = same_as.cloned();
        page.anchors = anchors;
        page.linked_from = linked_from;
        done.rewritten += 1;
        writer.put(&page)
    })?;
    Ok(rewriting.is_continue().then_some(done))
}

/// The facts that one pass over all pages gathers.
#[derive(Default)]
struct Survey {
    /// The URL that stands for each text, of those that have it: see [`stands_for`].
    by_text: HashMap<u64, (String, bool)>,
    here: HashSet<u64>,
    texts: HashMap<Box<str>, u32>,
    /// By the page that is linked: from how many pages, and how often under which text.
    named: HashMap<u64, (u32, HashMap<u32, u32>)>,
}

impl Survey {
    fn page(&mut self, page: &IndexedPage) {
        let url = &page.url;
        self.here.insert(key(url));
        let text = self.by_text.entry(text_hash(page));
        text.and_modify(|(first, has_twin)| {
            *has_twin = true;
            if stands_for(url, first) {
                first.clone_from(url);
            }
        })
        .or_insert_with(|| (url.clone(), false));
        // One page has one vote for a page, and one for a name, however often it repeats them.
        let (mut linked, mut said) = (HashSet::new(), HashSet::new());
        for link in page.links.iter().filter(|link| link.url != *url) {
            let target = key(&link.url);
            let (count, names) = self.named.entry(target).or_default();
            *count += u32::from(linked.insert(target));
            if link.text.is_empty() {
                continue;
            }
            let next = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
            let text = *self.texts.entry(link.text.as_str().into()).or_insert(next);
            if said.insert((target, text)) {
                *names.entry(text).or_default() += 1;
            }
        }
    }

    fn twins(&mut self) -> HashMap<u64, String> {
        let by_text = std::mem::take(&mut self.by_text);
        let twins = by_text.into_iter().filter(|(_, (_, has_twin))| *has_twin);
        twins.map(|(text, (url, _))| (text, url)).collect()
    }

    /// For each page that is here: from how many it is linked, and under which names.
    fn names(mut self) -> HashMap<u64, (u32, Vec<String>)> {
        let here = &self.here;
        self.named.retain(|target, _| here.contains(target));
        let mut targets: HashMap<u32, usize> = HashMap::new();
        for text in self.named.values().flat_map(|(_, said)| said.keys()) {
            *targets.entry(*text).or_default() += 1;
        }
        let is_name = |text: &u32| targets.get(text).is_some_and(|pages| *pages <= MAX_NAMES);
        let texts: HashMap<u32, &str> = self.texts.iter().map(|(text, n)| (*n, &**text)).collect();
        let of = |(linked, said): &(u32, HashMap<u32, u32>)| {
            let said = said.iter().filter(|(text, _)| is_name(text));
            let said = said.filter_map(|(text, count)| Some((*count, *texts.get(text)?)));
            let mut said: Vec<(u32, &str)> = said.collect();
            said.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
            said.truncate(MAX_ANCHORS);
            let mut said: Vec<_> = said.into_iter().map(|(_, text)| text.to_owned()).collect();
            // So that more of the same votes change nothing.
            said.sort_unstable();
            (*linked, said)
        };
        self.named
            .iter()
            .map(|(target, said)| (*target, of(said)))
            .collect()
    }
}

/// Returns whether the first of two URLs stands for both: the shorter, which has the fewer folders
/// and parameters as a rule; of two as long the first by its letters.
fn stands_for(a: &str, b: &str) -> bool {
    (a.len(), a) < (b.len(), b)
}

fn key(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
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
    let stored = document.get_first(fields.page)?.as_bytes()?;
    serde_json::from_slice(stored).ok()
}
