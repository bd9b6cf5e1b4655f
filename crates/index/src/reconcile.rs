//! The last pass over an index: facts that only all pages together tell, such as their names
//! for each other, and duplicates.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use foldhash::fast::RandomState;
use tantivy::Searcher;

use crate::document::power_of_two;
use crate::entry::IndexEntry;
use crate::error::{IndexError, guarded};
use crate::indexed_page::IndexedPage;
use crate::page_facts::{AllFacts, Survey, url_key};
use crate::schema::Fields;
use crate::stored_page::{each_stored, marked_as_leaving, page_at, searcher};
use crate::writer::{Commit, IndexWriter};

/// Of the pages of an index so many percent at most leave it in a run for a reason that may be a
/// fault of the site.
const MAX_LEAVING_PERCENT: u64 = 10;

/// The result of [`IndexWriter::reconcile`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Pages that a search can find.
    pub pages: u64,
    /// Pages that are left out since others have the same text.
    pub duplicates: u64,
    /// Pages that were taken out since their time is over.
    pub expired: u64,
    /// Pages that were taken out for a reason that may be a fault of the site.
    pub left: u64,
    /// Pages that would have left for such a reason and stay, by the reason: they are more than a
    /// tenth of all.
    pub kept: BTreeMap<String, u64>,
    /// Those of them that an entry would have dropped since the writer was opened, or a pending
    /// one would.
    pub kept_anew: BTreeMap<String, u64>,
    /// Pages that call an address outside of the crawl their own.
    pub canonical_elsewhere: u64,
    /// Pages that were written anew.
    pub rewritten: u64,
}

impl Reconciled {
    fn changed(&self) -> bool {
        self.expired + self.left + self.rewritten > 0
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
        let is_due = |done: &Reconciled| done.changed() || self.note() != Some(note);
        let is_due = done.as_ref().is_some_and(is_due);
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

/// The last pending entry of each URL, by the key of the URL: it alone holds.
type LatestEntries = HashMap<u64, Latest, RandomState>;

#[derive(Clone, Copy, Debug)]
struct Latest {
    /// Its number among all pending entries.
    number: u32,
    is_put: bool,
}

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

    /// Gathers what they tell of each other, and which pages leave. None where it `is_stopped`.
    fn survey(&self) -> Result<Option<(AllFacts, LatestEntries, Leaving)>, IndexError> {
        let mut latest = LatestEntries::default();
        let mut doubtful = Vec::new();
        let Some((mut survey, has_repeats)) =
            self.survey_pending(&mut latest, None, &mut doubtful)?
        else {
            return Ok(None);
        };
        if has_repeats {
            // What a later entry took back has no vote.
            let known = latest.clone();
            doubtful.clear();
            match self.survey_pending(&mut latest, Some(&known), &mut doubtful)? {
                Some((again, _)) => survey = again,
                None => return Ok(None),
            }
        }
        let leaving = guarded(self.dir, || self.leaving(&latest, doubtful))?;
        let walk = self.each_stored(&latest, |page| {
            match self.is_over(&page) || leaving.goes(&page.url) {
                true => Ok(()),
                false => survey.page(&page).map_err(IndexError::disk(self.dir)),
            }
        })?;
        if walk.is_break() {
            return Ok(None);
        }
        for url in leaving.kept_of_pending(&latest) {
            if let Some(page) = self.page_at(url)? {
                survey.page(&page).map_err(IndexError::disk(self.dir))?;
            }
        }
        let facts = survey.finish().map_err(IndexError::disk(self.dir))?;
        Ok(Some((facts, latest, leaving)))
    }

    /// The pages that leave for a reason that may be a fault of the site: by pending entries, and by
    /// those before.
    fn leaving(
        &self,
        latest: &LatestEntries,
        doubtful: Vec<(String, String)>,
    ) -> Result<Leaving, IndexError> {
        let mut pages = Vec::new();
        for (url, why) in doubtful {
            if self.page_at(&url)?.is_some() {
                pages.push((url, why));
            }
        }
        let marked = marked_as_leaving(self.searcher, self.fields);
        for page in marked.map_err(IndexError::of(self.dir))? {
            if let Some(why) = page.leaving
                && !latest.contains_key(&url_key(&page.url))
            {
                pages.push((page.url, why));
            }
        }
        let mut leaving = Leaving {
            pages: HashMap::default(),
            stay: false,
        };
        let keys: HashSet<u64> = pages.iter().map(|(url, _)| url_key(url)).collect();
        for (url, why) in pages {
            // Where it is found under another address from now on, nothing is lost.
            let moved = match why.split_once(": ") {
                Some((_, to)) if !keys.contains(&url_key(to)) => match latest.get(&url_key(to)) {
                    Some(latest) => latest.is_put,
                    None => self.page_at(to)?.is_some(),
                },
                _ => false,
            };
            leaving
                .pages
                .insert(url_key(&url), Leaves { url, why, moved });
        }
        let lost = leaving.pages.values().filter(|page| !page.moved).count() as u64;
        leaving.stay = lost * 100 > self.searcher.num_docs() * MAX_LEAVING_PERCENT;
        Ok(leaving)
    }

    fn page_at(&self, url: &str) -> Result<Option<IndexedPage>, IndexError> {
        page_at(self.searcher, self.fields, url).map_err(IndexError::of(self.dir))
    }

    /// A survey of pending pages, of those alone that are the `known` latest of their URLs; and
    /// whether there are others. `doubtful` gets URL and reason of those that leave by what may be a
    /// fault of the site.
    fn survey_pending(
        &self,
        latest: &mut LatestEntries,
        known: Option<&LatestEntries>,
        doubtful: &mut Vec<(String, String)>,
    ) -> Result<Option<(Survey, bool)>, IndexError> {
        let (mut survey, mut has_repeats) = (Survey::new(self.dir), false);
        let walk = self.each_pending(|number, entry| {
            let key = url_key(entry.url());
            let is_put = entry.left_out().is_none();
            has_repeats |= latest.insert(key, Latest { number, is_put }).is_some();
            let is_latest = known.is_none_or(|known| is_latest(known, key, number));
            if let Some(why) = entry.doubtful_reason().filter(|_| is_latest) {
                doubtful.push((entry.url().to_owned(), why.to_owned()));
            }
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
    let searcher = searcher(writer.dir(), writer.inner.index())?;
    let (dir, fields) = (writer.dir().to_path_buf(), writer.fields.clone());
    let all = AllPages {
        dir: &dir,
        fields: &fields,
        searcher: &searcher,
        pending,
        is_stopped,
        now,
    };
    let Some((all_facts, latest, leaving)) = all.survey()? else {
        return Ok(None);
    };
    let mut done = Reconciled::default();
    let mut settle = |entry: IndexEntry, is_new: bool| {
        let url = entry.url().to_owned();
        let known = match (entry, leaving.why_it_stays(&url)) {
            (IndexEntry::Put(page), _) if !all.is_over(&page) && !leaving.goes(&url) => Some(page),
            (IndexEntry::Drop { .. }, Some(why)) => {
                let page = all.page_at(&url)?.filter(|page| !all.is_over(page));
                page.map(|page| {
                    Box::new(IndexedPage {
                        leaving: Some(why.to_owned()),
                        ..page
                    })
                })
            }
            (IndexEntry::Put(_), _) if !leaving.goes(&url) => {
                done.expired += 1;
                None
            }
            _ => None,
        };
        let Some(mut page) = known else {
            done.left += u64::from(leaving.goes(&url));
            writer.drop_url(&url);
            return Ok(());
        };
        if let Some(why) = leaving.why_it_stays(&url) {
            let name = why.split(':').next().unwrap_or_default();
            *done.kept.entry(name.to_owned()).or_default() += 1;
            if is_new || writer.marked.contains(&url_key(&url)) {
                *done.kept_anew.entry(name.to_owned()).or_default() += 1;
            }
        }
        let facts = all_facts.of(&url).map_err(IndexError::disk(&dir))?;
        match facts.same_as {
            Some(_) => done.duplicates += 1,
            None => done.pages += 1,
        }
        done.canonical_elsewhere += u64::from(page.canonical.is_some());
        let version = all_facts.version_of(&url).map_err(IndexError::disk(&dir))?;
        let is_as_it_was = page.same_as == facts.same_as
            && page.newest == facts.newest
            && page.newer_versions == facts.newer_versions
            && page.version == version
            && page.anchors == facts.anchors
            && power_of_two(page.linked_from) == power_of_two(facts.linked_from);
        if is_as_it_was && !is_new {
            return Ok(());
        }
        page.same_as = facts.same_as;
        page.newest = facts.newest;
        page.newer_versions = facts.newer_versions;
        page.version = version;
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
    let walk =
        all.each_pending(
            |number, entry| match is_latest(&latest, url_key(entry.url()), number) {
                true => settle(entry, true),
                false => Ok(()),
            },
        )?;
    Ok(walk.is_continue().then_some(done))
}

fn is_latest(latest: &LatestEntries, key: u64, number: u32) -> bool {
    latest
        .get(&key)
        .is_some_and(|latest| latest.number == number)
}

/// The pages that leave for a reason that may be a fault of the site.
struct Leaving {
    pages: HashMap<u64, Leaves, RandomState>,
    /// They are so many that they stay.
    stay: bool,
}

struct Leaves {
    url: String,
    why: String,
    /// It is found under another address, which the index has and keeps.
    moved: bool,
}

impl Leaving {
    fn goes(&self, url: &str) -> bool {
        let page = self.pages.get(&url_key(url));
        page.is_some_and(|page| page.moved || !self.stay)
    }

    fn why_it_stays(&self, url: &str) -> Option<&str> {
        let page = self.pages.get(&url_key(url))?;
        (self.stay && !page.moved).then_some(&page.why)
    }

    /// The URLs of those that stay though a pending entry would drop them.
    fn kept_of_pending(&self, latest: &LatestEntries) -> impl Iterator<Item = &str> {
        let stay = self.pages.values().filter(|page| self.stay && !page.moved);
        let pending = stay.filter(|page| latest.contains_key(&url_key(&page.url)));
        pending.map(|page| page.url.as_str())
    }
}
