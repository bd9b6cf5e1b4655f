//! The last pass over an index: updates each page with the facts that depend on all pages, such as
//! link texts and duplicates.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::Path;

use foldhash::fast::RandomState;
use tantivy::Searcher;

use crate::canonical_urls::CanonicalUrlMap;
use crate::cross_page_facts::{CrossPageFactsCollector, CrossPageFactsFile};
use crate::error::{IndexError, guarded};
use crate::index_document::power_of_two;
use crate::index_writer::{CommitOutcome, IndexWriter};
use crate::login_redirects::{AnswerLookUp, lead_to_login};
use crate::schema::{GIVES_WAY, IndexFields, LEAVING};
use crate::stored_page_reader::{each_stored, marked_as, page_at, searcher};
use crawl_index_entry::IndexLogEntry;
use crawl_index_entry::IndexedPage;
use crawl_index_entry::url_key;

/// Maximum percentage of an index's pages to remove in one run. If there are more, the cause may be
/// an error on the site's side.
/// Beyond the limit: the pages stay, and the run reports it.
const MAX_DOUBTFUL_REMOVAL_PERCENT: u64 = 10;
/// Maximum number of pages with other texts that may move to pages with the same text. If there are
/// more, such as when every page redirects to a maintenance page, the texts are lost.
const MAX_PAGES_MOVED_TO_TEXT: usize = 4;

/// The numbers of pages that [`IndexWriter::reconcile`] found, left out as duplicates, removed or
/// kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossPageUpdateCounts {
    /// The number of pages that a search can find.
    pub pages: u64,
    /// The number of pages that are left out because another page has the same text.
    pub duplicates: u64,
    /// The number of pages that were removed because they have expired.
    pub expired: u64,
    /// The number of pages that were removed for a doubtful reason, such as a soft 404, which may
    /// only be an error on the site's side.
    pub left: u64,
    /// The number of pages, by reason, that are kept although a doubtful reason would remove them.
    /// If these pages are more than a tenth of all pages, they are all kept, because that suggests
    /// an error on the site's side.
    pub kept: BTreeMap<String, u64>,
    /// The number of pages, by reason, that are kept although a recent entry would remove them.
    /// Such pages are in `kept` or redirect to a login. An entry is recent if it is pending or was
    /// applied since the writer was opened.
    pub kept_anew: BTreeMap<String, u64>,
    /// The number of pages that are replaced by the page that their canonical URL leads to.
    pub gave_way: u64,
    /// The number of pages that name a canonical URL outside of the crawl.
    pub canonical_elsewhere: u64,
    /// The number of pages that were written again.
    pub rewritten: u64,
}

impl CrossPageUpdateCounts {
    fn changed(&self) -> bool {
        self.expired + self.left + self.rewritten > 0
    }
}

impl IndexWriter {
    /// Commits, then computes the facts about each page that depend on all pages, such as link
    /// texts and duplicates. Removes pages that have expired at `now` (seconds since 1970 UTC).
    /// Then commits again.
    ///
    /// Reads each page twice. Link texts are sorted on disk, next to the index, so memory use
    /// doesn't depend on their number.
    ///
    /// # Errors
    /// If the disk fails or the index is damaged.
    pub fn reconcile(&mut self, note: &str, now: i64) -> Result<CrossPageUpdateCounts, IndexError> {
        let done = self.reconcile_unless(note, now, &|| false)?;
        Ok(done.unwrap_or_default())
    }

    /// Reconciles the index like [`IndexWriter::reconcile`], but calls `is_stopped` before each
    /// page. Returns `None` if stopped because `is_stopped` returned true. In this case drop the
    /// writer without committing, because only some of the pages have been updated.
    ///
    /// # Errors
    /// If the disk fails or the index is damaged.
    pub fn reconcile_unless(
        &mut self,
        note: &str,
        now: i64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<CrossPageUpdateCounts>, IndexError> {
        if self.commit(note)? == CommitOutcome::Stopped {
            return Ok(None);
        }
        let no_answers: &AnswerLookUp<'_> = &|_| Ok(HashMap::new());
        self.reconcile_with(&(), no_answers, note, now, is_stopped)
    }

    /// Reconciles the index like [`IndexWriter::reconcile_unless`], and applies the pending entries
    /// in the same pass. So each of their pages is written only once, in its final form. Doesn't
    /// commit before the pass; `note` is stored with the final commit and must cover the pending
    /// entries.
    ///
    /// `answers` is called if a page redirects, or names a canonical URL that is not indexed. A
    /// page that redirects to a login stays as it is. Returns `None` if stopped: see
    /// [`IndexWriter::reconcile_unless`]. Each page that names another URL as canonical takes about
    /// 200 bytes of memory.
    ///
    /// # Errors
    /// If the disk fails, the index is damaged, or the entries can't be read.
    pub fn reconcile_with(
        &mut self,
        pending: &dyn PendingEntrySource,
        answers: &AnswerLookUp<'_>,
        note: &str,
        now: i64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<CrossPageUpdateCounts>, IndexError> {
        let dir = self.dir().to_path_buf();
        let done = guarded(&dir, || {
            reconcile(self, (pending, answers), now, is_stopped)
        })?;
        let is_due = |done: &CrossPageUpdateCounts| done.changed() || self.note() != Some(note);
        let is_due = done.as_ref().is_some_and(is_due);
        if is_due && self.commit(note)? == CommitOutcome::Stopped {
            return Ok(None);
        }
        Ok(done)
    }
}

/// A source of entries that are not in the index yet, such as a log. The entries can be read
/// repeatedly.
pub trait PendingEntrySource {
    /// Passes each entry to `visit`, in order, until `visit` returns `Break`.
    ///
    /// # Errors
    /// The visitor's error, an I/O error, or an error for a damaged source.
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError>;
}

/// Visits an entry and returns whether to continue.
pub type EntryVisitor<'a> = dyn FnMut(IndexLogEntry) -> Result<ControlFlow<()>, IndexError> + 'a;

/// A source without entries.
impl PendingEntrySource for () {
    fn each(&self, _visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// The last pending entry of each URL, by URL key. Earlier entries of the URL are ignored.
type LatestEntries = HashMap<u64, LatestEntry, RandomState>;

#[derive(Clone, Copy, Debug)]
struct LatestEntry {
    /// The position of the entry among all pending entries, from 0.
    number: u32,
    /// The [`ShortTextHash`] of the page that the entry adds. `None` if the page names another URL
    /// as canonical, or if the entry removes the page.
    text: Option<ShortTextHash>,
}

/// The lower 32 bits of `IndexedPage::text_hash`. There is one for each pending page, so it is
/// short. Equal hashes of different texts can only affect a guess.
type ShortTextHash = NonZeroU32;

fn text_mark(page: &IndexedPage) -> ShortTextHash {
    NonZeroU32::new(page.text_hash() as u32).unwrap_or(NonZeroU32::MIN)
}

/// The result of a survey of the pending entries: facts for their pages, and the last entry of each
/// URL.
struct PendingSurvey {
    survey: CrossPageFactsCollector,
    latest: LatestEntries,
    /// The URLs and reasons of entries that would remove a page for a doubtful reason: see
    /// [`IndexLogEntry::doubtful_reason`].
    doubtful: Vec<(String, String)>,
    /// Maps each page whose entry names another URL as canonical to that URL.
    named: BTreeMap<String, String>,
}

/// The result of a survey of all pages.
struct AllPagesSurvey {
    facts: CrossPageFactsFile,
    latest: LatestEntries,
    removals: DoubtfulRemovals,
    /// Maps each page that is replaced because of its canonical URL to the page that replaces it.
    behind: HashMap<String, String>,
}

/// The input of a pass over all pages: the stored pages of the index, and the pages of pending
/// entries.
struct AllPagesInput<'a> {
    dir: &'a Path,
    fields: &'a IndexFields,
    searcher: &'a Searcher,
    pending: &'a dyn PendingEntrySource,
    answers: &'a AnswerLookUp<'a>,
    is_stopped: &'a dyn Fn() -> bool,
    now: i64,
}

impl AllPagesInput<'_> {
    fn is_over(&self, page: &IndexedPage) -> bool {
        page.until.is_some_and(|until| until <= self.now)
    }

    /// Collects the facts that depend on all pages. Returns `None` if stopped by `is_stopped`.
    fn survey(&self) -> Result<Option<AllPagesSurvey>, IndexError> {
        let Some(pending) = self.survey_pending()? else {
            return Ok(None);
        };
        let PendingSurvey {
            mut survey,
            latest,
            doubtful,
            named,
        } = pending;
        let removals = guarded(self.dir, || self.doubtful_removals(&latest, doubtful))?;
        let (behind, has_returned) = self.yielding_pages(named, &latest, &removals)?;
        let stands = |page: &IndexedPage| !self.is_over(page) && !behind.contains_key(&page.url);
        if has_returned {
            let walk = self.each_pending(|number, entry| match entry {
                IndexLogEntry::Put(page)
                    if page.gives_way_to.is_some()
                        && is_latest(&latest, url_key(&page.url), number)
                        && stands(&page) =>
                {
                    survey.page(&page).map_err(IndexError::disk(self.dir))
                }
                _ => Ok(()),
            })?;
            if walk.is_break() {
                return Ok(None);
            }
        }
        let walk = self.each_stored(&latest, |page| {
            match stands(&page) && !removals.removes(&page.url) {
                true => survey.page(&page).map_err(IndexError::disk(self.dir)),
                false => Ok(()),
            }
        })?;
        if walk.is_break() {
            return Ok(None);
        }
        for url in removals.kept_of_pending(&latest) {
            if let Some(page) = self.page_at(url)? {
                survey.page(&page).map_err(IndexError::disk(self.dir))?;
            }
        }
        let facts = survey.finish().map_err(IndexError::disk(self.dir))?;
        Ok(Some(AllPagesSurvey {
            facts,
            latest,
            removals,
            behind,
        }))
    }

    /// Returns the pages that an entry would remove for a doubtful reason: see
    /// [`IndexLogEntry::doubtful_reason`]. The entry may be pending, or may have been applied
    /// earlier.
    fn doubtful_removals(
        &self,
        latest: &LatestEntries,
        doubtful: Vec<(String, String)>,
    ) -> Result<DoubtfulRemovals, IndexError> {
        let mut pages = Vec::new();
        for (url, why) in doubtful {
            let page = self.page_at(&url)?;
            if let Some(page) = page.filter(|page| page.would_be_lost(&why)) {
                pages.push((url, why, text_mark(&page)));
            }
        }
        let marked = marked_as(LEAVING, self.searcher, self.fields);
        for page in marked.map_err(IndexError::of(self.dir))? {
            let text = text_mark(&page);
            if let Some(why) = page.leaving
                && !latest.contains_key(&url_key(&page.url))
            {
                pages.push((page.url, why, text));
            }
        }
        let mut removals = DoubtfulRemovals {
            pages: HashMap::default(),
            stay: false,
            logged_out: HashMap::default(),
        };
        let targets = pages.iter().filter_map(|(_, why, _)| redirect_target(why));
        let targets: BTreeSet<String> = targets.map(str::to_owned).collect();
        let logins = lead_to_login(&targets, self.answers)?;
        pages.retain(|(url, why, _)| {
            let is_login = redirect_target(why).is_some_and(|to| logins.contains(to));
            if is_login {
                removals.logged_out.insert(url_key(url), url.clone());
            }
            !is_login
        });
        let keys: HashSet<u64> = pages.iter().map(|(url, ..)| url_key(url)).collect();
        let mut moves = Vec::with_capacity(pages.len());
        let mut pages_moved_to: HashMap<ShortTextHash, usize> = HashMap::new();
        for (url, why, text) in pages {
            // The reason of a redirect or canonical URL ends with the target.
            let target = match why.split_once(": ") {
                Some((_, to)) if !keys.contains(&url_key(to)) => self.text_at(to, latest)?,
                _ => None,
            };
            if let Some(target) = target.filter(|target| *target != text) {
                *pages_moved_to.entry(target).or_default() += 1;
            }
            moves.push((
                DoubtfulRemoval {
                    url,
                    why,
                    moved: false,
                },
                text,
                target,
            ));
        }
        for (mut page, text, target) in moves {
            // If the target stays in the index, the content can still be found there, unless the
            // same answer replaces many pages.
            page.moved = target.is_some_and(|target| {
                target == text
                    || pages_moved_to.get(&target).copied().unwrap_or(0) <= MAX_PAGES_MOVED_TO_TEXT
            });
            removals.pages.insert(url_key(&page.url), page);
        }
        let lost = removals.pages.values().filter(|page| !page.moved).count() as u64;
        removals.stay = lost * 100 > self.searcher.num_docs() * MAX_DOUBTFUL_REMOVAL_PERCENT;
        Ok(removals)
    }

    /// Returns the mark of the text that the index will contain under a URL. `None` if it will not
    /// contain the page, or if the page names another URL as canonical.
    fn text_at(
        &self,
        url: &str,
        latest: &LatestEntries,
    ) -> Result<Option<ShortTextHash>, IndexError> {
        if let Some(latest) = latest.get(&url_key(url)) {
            return Ok(latest.text);
        }
        let page = self.page_at(url)?;
        let page = page.filter(|page| page.gives_way_to.is_none());
        Ok(page.as_ref().map(text_mark))
    }

    fn page_at(&self, url: &str) -> Result<Option<IndexedPage>, IndexError> {
        page_at(self.searcher, self.fields, url).map_err(IndexError::of(self.dir))
    }

    /// Surveys the pending pages, using only the last entry of each URL. `None` if stopped by
    /// `is_stopped`.
    fn survey_pending(&self) -> Result<Option<PendingSurvey>, IndexError> {
        let mut latest = LatestEntries::default();
        let (pending, has_repeats) = match self.survey_latest(&mut latest, None)? {
            Some(surveyed) => surveyed,
            None => return Ok(None),
        };
        if !has_repeats {
            return Ok(Some(PendingSurvey { latest, ..pending }));
        }
        // Some URLs have several entries. Survey again, counting only the last entry of each.
        let last_entries = latest.clone();
        let again = self.survey_latest(&mut latest, Some(&last_entries))?;
        Ok(again.map(|(pending, _)| PendingSurvey { latest, ..pending }))
    }

    /// Surveys the pending entries, and stores the latest entry of each URL in `latest`. If `known`
    /// is given, only surveys the entries that `known` lists as the latest of their URLs. Also
    /// returns whether any URL has several entries. `None` if stopped by `is_stopped`.
    fn survey_latest(
        &self,
        latest: &mut LatestEntries,
        known: Option<&LatestEntries>,
    ) -> Result<Option<(PendingSurvey, bool)>, IndexError> {
        let mut pending = PendingSurvey {
            survey: CrossPageFactsCollector::new(self.dir),
            latest: LatestEntries::default(),
            doubtful: Vec::new(),
            named: BTreeMap::new(),
        };
        let mut has_repeats = false;
        let walk = self.each_pending(|number, entry| {
            let key = url_key(entry.url());
            let text = match &entry {
                IndexLogEntry::Put(page) if page.gives_way_to.is_none() => Some(text_mark(page)),
                _ => None,
            };
            has_repeats |= latest.insert(key, LatestEntry { number, text }).is_some();
            if known.is_some_and(|known| !is_latest(known, key, number)) {
                return Ok(());
            }
            if let Some(why) = entry.doubtful_reason() {
                pending
                    .doubtful
                    .push((entry.url().to_owned(), why.into_owned()));
            }
            match entry {
                IndexLogEntry::Put(page) if self.is_over(&page) => Ok(()),
                IndexLogEntry::Put(page) => match page.gives_way_to {
                    Some(to) => {
                        pending.named.insert(page.url, to);
                        Ok(())
                    }
                    None => {
                        let surveyed = pending.survey.page(&page);
                        surveyed.map_err(IndexError::disk(self.dir))
                    }
                },
                IndexLogEntry::Drop { .. } => Ok(()),
            }
        })?;
        Ok(walk.is_continue().then_some((pending, has_repeats)))
    }

    /// Returns a map from each page that is replaced because of its canonical URL to the page that
    /// replaces it. Also returns whether any page of `pending_named` is not replaced.
    fn yielding_pages(
        &self,
        pending_named: BTreeMap<String, String>,
        latest: &LatestEntries,
        removals: &DoubtfulRemovals,
    ) -> Result<(HashMap<String, String>, bool), IndexError> {
        let pending_urls: Vec<String> = pending_named.keys().cloned().collect();
        let mut canonicals = CanonicalUrlMap::default();
        canonicals.named = pending_named;
        let stored = marked_as(GIVES_WAY, self.searcher, self.fields);
        for page in stored.map_err(IndexError::of(self.dir))? {
            if let Some(to) = &page.gives_way_to
                && !latest.contains_key(&url_key(&page.url))
                && !self.is_over(&page)
            {
                canonicals.named.insert(page.url, to.clone());
            }
        }
        canonicals
            .named
            .retain(|url, _| removals.reason_to_keep(url).is_none() && !removals.removes(url));
        let mut is_indexed = |url: &str| self.is_indexed(url, latest, removals);
        canonicals.look_up_redirects(&mut is_indexed, self.answers)?;
        let behind = canonicals.resolve(&mut is_indexed)?;
        let has_returned = pending_urls.iter().any(|url| !behind.contains_key(url));
        Ok((behind, has_returned))
    }

    /// Returns whether the index will contain a page under this URL that isn't replaced by another
    /// page.
    fn is_indexed(
        &self,
        url: &str,
        latest: &LatestEntries,
        removals: &DoubtfulRemovals,
    ) -> Result<bool, IndexError> {
        if removals.reason_to_keep(url).is_some() {
            return Ok(true);
        }
        if removals.goes(url) {
            return Ok(false);
        }
        let entry = latest.get(&url_key(url));
        match entry.filter(|_| !removals.is_logged_out(url)) {
            Some(latest) => Ok(latest.text.is_some()),
            None => {
                let page = self.page_at(url)?;
                Ok(page.is_some_and(|page| page.gives_way_to.is_none() && !self.is_over(&page)))
            }
        }
    }

    /// Visits each page of the index whose URL has no pending entry. Stops early if `is_stopped`
    /// returns true.
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
        mut visit: impl FnMut(u32, IndexLogEntry) -> Result<(), IndexError>,
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

/// Runs both passes: surveys all pages, then writes those that changed. Returns `None` if stopped
/// because `is_stopped` returned true.
fn reconcile(
    writer: &mut IndexWriter,
    (pending, answers): (&dyn PendingEntrySource, &AnswerLookUp<'_>),
    now: i64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<CrossPageUpdateCounts>, IndexError> {
    let searcher = searcher(writer.dir(), writer.inner.index())?;
    let (dir, fields) = (writer.dir().to_path_buf(), writer.fields.clone());
    let all = AllPagesInput {
        dir: &dir,
        fields: &fields,
        searcher: &searcher,
        pending,
        answers,
        is_stopped,
        now,
    };
    let Some(surveyed) = all.survey()? else {
        return Ok(None);
    };
    let mut page_writer = ChangedPageWriter {
        all: &all,
        surveyed: &surveyed,
        writer,
        done: CrossPageUpdateCounts::default(),
    };
    // The pass adds changes while it reads, but `searcher` sees only the last commit, so no page is
    // visited twice.
    let stored = |page| page_writer.update(IndexLogEntry::Put(Box::new(page)), false);
    if all.each_stored(&surveyed.latest, stored)?.is_break() {
        return Ok(None);
    }
    let walk = all.each_pending(|number, entry| {
        match is_latest(&surveyed.latest, url_key(entry.url()), number) {
            true => page_writer.update(entry, true),
            false => Ok(()),
        }
    })?;
    let done = page_writer.done;
    Ok(walk.is_continue().then_some(done))
}

/// The second pass over all pages: writes each page whose facts have changed.
struct ChangedPageWriter<'a> {
    all: &'a AllPagesInput<'a>,
    surveyed: &'a AllPagesSurvey,
    writer: &'a mut IndexWriter,
    done: CrossPageUpdateCounts,
}

impl ChangedPageWriter<'_> {
    /// Updates a page. `is_new` is true if the entry is pending, false if the page is stored.
    fn update(&mut self, entry: IndexLogEntry, is_new: bool) -> Result<(), IndexError> {
        let url = entry.url().to_owned();
        let stays = self.surveyed.removals.reason_to_keep(&url);
        let is_logged_out = self.surveyed.removals.is_logged_out(&url);
        let Some(mut page) = self.kept(entry, stays)? else {
            let leaves = self.surveyed.removals.goes(&url);
            self.done.left += u64::from(leaves);
            self.writer.drop_url(&url);
            return Ok(());
        };
        if let Some(why) = stays {
            let name = why.split(':').next().unwrap_or_default();
            *self.done.kept.entry(name.to_owned()).or_default() += 1;
            self.count_kept_anew(&url, name, is_new);
        }
        let before = (!is_new).then(|| DependentParts::of(&page));
        if is_logged_out {
            self.count_kept_anew(&url, REDIRECT, is_new);
            page.leaving = None;
        }
        if page.gives_way_to.is_some() {
            page.leaving = stays.map(str::to_owned);
        }
        self.take_facts(&mut page)?;
        if before.is_some_and(|before| before == DependentParts::of(&page)) {
            return Ok(());
        }
        self.done.rewritten += 1;
        self.writer.put(&page)
    }

    /// Counts a page that is kept, if the entry that would have removed it is pending (`is_new`) or
    /// was applied since the writer was opened.
    fn count_kept_anew(&mut self, url: &str, reason: &str, is_new: bool) {
        if is_new || self.writer.marked.contains(&url_key(url)) {
            *self.done.kept_anew.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// Returns the page to keep under a URL; `None` if the URL is removed.
    fn kept(
        &mut self,
        entry: IndexLogEntry,
        stays: Option<&str>,
    ) -> Result<Option<Box<IndexedPage>>, IndexError> {
        let removals = &self.surveyed.removals;
        match (entry, stays) {
            (IndexLogEntry::Put(page), _) if removals.removes(&page.url) => Ok(None),
            (IndexLogEntry::Put(page), _) if self.all.is_over(&page) => {
                self.done.expired += 1;
                Ok(None)
            }
            (IndexLogEntry::Put(page), _) => Ok(Some(page)),
            (IndexLogEntry::Drop { url, .. }, Some(why)) => {
                let page = self.all.page_at(&url)?;
                let page = page.filter(|page| !self.all.is_over(page));
                Ok(page.map(|page| {
                    Box::new(IndexedPage {
                        leaving: Some(why.to_owned()),
                        ..page
                    })
                }))
            }
            (IndexLogEntry::Drop { url, .. }, None) if removals.is_logged_out(&url) => {
                let page = self.all.page_at(&url)?;
                Ok(page.filter(|page| !self.all.is_over(page)).map(Box::new))
            }
            (IndexLogEntry::Drop { .. }, None) => Ok(None),
        }
    }

    /// Sets the fields of a page that depend on all pages, and counts the page in the report.
    fn take_facts(&mut self, page: &mut IndexedPage) -> Result<(), IndexError> {
        let disk = || IndexError::disk(self.all.dir);
        let all_facts = &self.surveyed.facts;
        let facts = all_facts.of(&page.url).map_err(disk())?;
        page.version = all_facts.version_of(&page.url).map_err(disk())?;
        page.newest = facts.newest;
        page.newer_versions = facts.newer_versions;
        page.anchors = facts.anchors;
        page.linked_from = facts.linked_from;
        let canonical = self.surveyed.behind.get(&page.url);
        let counted = match (canonical, &facts.same_as) {
            (Some(_), _) => &mut self.done.gave_way,
            (None, Some(_)) => &mut self.done.duplicates,
            (None, None) => &mut self.done.pages,
        };
        *counted += 1;
        page.same_as = canonical.cloned().or(facts.same_as);
        self.done.canonical_elsewhere += u64::from(page.canonical.is_some());
        Ok(())
    }
}

/// The parts of an indexed page that depend on other pages. A page isn't written again if these
/// parts are unchanged.
#[derive(PartialEq)]
struct DependentParts {
    leaving: Option<String>,
    same_as: Option<String>,
    newest: Option<String>,
    newer_versions: u32,
    version: Option<String>,
    anchors: Vec<String>,
    linked: u64,
}

impl DependentParts {
    fn of(page: &IndexedPage) -> DependentParts {
        DependentParts {
            leaving: page.leaving.clone(),
            same_as: page.same_as.clone(),
            newest: page.newest.clone(),
            newer_versions: page.newer_versions,
            version: page.version.clone(),
            anchors: page.anchors.clone(),
            linked: power_of_two(page.linked_from),
        }
    }
}

fn is_latest(latest: &LatestEntries, key: u64, number: u32) -> bool {
    latest
        .get(&key)
        .is_some_and(|latest| latest.number == number)
}

/// Pages that would be removed from the index for a doubtful reason, and whether they are removed.
struct DoubtfulRemovals {
    /// The pages, by URL key.
    pages: HashMap<u64, DoubtfulRemoval, RandomState>,
    /// True if the pages are kept in the index, because they are more than the limit. Pages that
    /// have moved are removed anyway.
    stay: bool,
    /// The URLs of pages that redirect to a login, by URL key. Such pages are kept in the index
    /// unchanged.
    logged_out: HashMap<u64, String, RandomState>,
}

/// The name of the reason for removing a page that redirects.
const REDIRECT: &str = "redirect";

/// The beginning of the reason for replacing a page that names a canonical URL.
const CANONICAL: &str = "canonical: ";

/// Returns the target in the reason for removing a page that redirects. `None` for other reasons.
fn redirect_target(why: &str) -> Option<&str> {
    let (name, target) = why.split_once(": ")?;
    (name == REDIRECT).then_some(target)
}

/// A page in [`DoubtfulRemovals`].
struct DoubtfulRemoval {
    url: String,
    /// The reason for the removal.
    why: String,
    /// True if the page can be found under another URL that stays in the index.
    moved: bool,
}

impl DoubtfulRemoval {
    fn names_canonical(&self) -> bool {
        self.why.starts_with(CANONICAL)
    }
}

impl DoubtfulRemovals {
    fn goes(&self, url: &str) -> bool {
        let page = self.pages.get(&url_key(url));
        page.is_some_and(|page| page.moved || !self.stay)
    }

    /// Returns whether a page is removed. False for a page in `pages` only because of its canonical
    /// URL, which is stored as a duplicate while its canonical page is in the index.
    fn removes(&self, url: &str) -> bool {
        let page = self.pages.get(&url_key(url));
        page.is_some_and(|page| !page.names_canonical()) && self.goes(url)
    }

    fn is_logged_out(&self, url: &str) -> bool {
        self.logged_out.contains_key(&url_key(url))
    }

    fn reason_to_keep(&self, url: &str) -> Option<&str> {
        let page = self.pages.get(&url_key(url))?;
        (self.stay && !page.moved).then_some(&page.why)
    }

    /// Returns the URLs of pages that are kept although a pending entry would remove them.
    fn kept_of_pending(&self, latest: &LatestEntries) -> impl Iterator<Item = &str> {
        let stay = self.pages.values().filter(|page| self.stay && !page.moved);
        let is_dropped = |page: &&DoubtfulRemoval| {
            let entry = latest.get(&url_key(&page.url));
            // Skip pages that name a canonical URL. The survey reads these from their pending
            // entries.
            entry.is_some_and(|_| !page.names_canonical())
        };
        let pending = stay.filter(is_dropped);
        let logged_out = self.logged_out.iter();
        let logged_out = logged_out.filter(|(key, _)| latest.contains_key(key));
        let pending = pending.map(|page| page.url.as_str());
        pending.chain(logged_out.map(|(_, url)| url.as_str()))
    }
}
