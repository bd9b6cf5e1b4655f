//! Rebuilds the search index from `pages.jsonl` and the archive.

mod pages_to_index;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crawl_archive::rows::{READER_PANICKED, WarcRecordLocation};
use crawl_archive::{FOLDER, ReadError, dom_at, head_fields_at, read_place};
use crawl_fetcher::Secrets;
use crawl_frontier::Frontier;
use crawl_index::{
    AnswerLookUp, CrossPageUpdateCounts, IndexLogEntry, IndexSearcher, IndexWriter, IndexedPage,
    PendingEntriesFile,
};
use crawl_policy::{ProductToken, RobotsProfile};
use crawl_weburl::{CanonicalUrl, HostKey, canonicalize};

use self::pages_to_index::{PageToIndex, kept_pages};
use super::redirect_and_interstitial_answers::answers_of;
use crate::config::Config;
use crate::document_conversion::DocumentIndexingSettings;
use crate::error::EngineError;
use crate::index::archived_page_entry::{
    ArchivedPage, ArchivedPageRules, header_map, update_indexing_fields,
};
use crate::index::entry_creation::{indexing_fields_digest, left_out};
use crate::index::followed_indexing_log::number;
use crate::index::indexing_log::{begin_log, mend_swap, note_of};
use crate::index::{INDEX_FOLDER, NEW_FOLDER, OLD_FOLDER};
use crate::state::crawl_directory::{examine, hold_gathered, open_frontier};

/// The number of pages between two progress reports.
const REPORT_INTERVAL_PAGES: u64 = 100;
/// Maximum bytes of pages to collect in a file until the end of the build. Collected pages are
/// written to the index only once, together with the texts of links that lead to them. Pages
/// beyond this limit are written immediately, and again in the final pass over all pages.
const MAX_PENDING_BYTES: u64 = 512 << 20;

/// How to read pages when an index is rebuilt.
#[derive(Clone, Debug)]
pub struct IndexRebuildSettings {
    /// The crawler's name in the directives of pages: robots META elements and `X-Robots-Tag`.
    pub agent: ProductToken,
    /// The rules for reading these directives.
    pub profile: RobotsProfile,
    /// Secrets to redact, since the archive contains pages as the server sent them.
    pub secrets: Secrets,
    /// The documents to index.
    pub documents: DocumentIndexingSettings,
}

impl IndexRebuildSettings {
    /// Takes the settings from the configuration of a crawl.
    #[must_use]
    pub fn of(config: &Config) -> IndexRebuildSettings {
        IndexRebuildSettings {
            agent: config.agent.clone(),
            profile: config.profile,
            secrets: config.fetch.secrets(),
            documents: config.documents.clone(),
        }
    }
}

/// The result of building an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexRebuildResult {
    /// Pages that a search can find.
    pub pages: u64,
    /// Pages left out because another page has the same text.
    pub duplicates: u64,
    /// Pages that are left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Pages whose canonical URL is outside the crawl.
    pub canonical_elsewhere: u64,
    /// Whether the build was stopped, which leaves the old index unchanged.
    pub is_stopped: bool,
}

/// Rebuilds the search index of the crawl in `dir`. The old index answers queries until the new one
/// replaces it. Calls `report` with the number of pages read so far.
///
/// # Errors
/// [`EngineError`] if there is no crawl or no archive, another process uses the crawl, or writing
/// fails.
pub fn reindex(
    dir: &Path,
    rules: &IndexRebuildSettings,
    is_stopped: &dyn Fn() -> bool,
    report: &mut dyn FnMut(u64),
) -> Result<IndexRebuildResult, EngineError> {
    if let Some(_held) = hold_gathered(dir)? {
        return build(dir, None, rules, is_stopped, report);
    }
    if !examine(dir)? {
        return Err(EngineError::NothingToDo {
            dir: dir.to_path_buf(),
        });
    }
    let frontier = open_frontier(dir, &dir.join("state"))?;
    build(dir, Some(&frontier), rules, is_stopped, report)
}

/// Builds the index. Without a frontier, only the rows decide which pages are indexed, and the
/// index doesn't follow an indexing log afterwards.
fn build(
    dir: &Path,
    frontier: Option<&dyn Frontier>,
    rules: &IndexRebuildSettings,
    is_stopped: &dyn Fn() -> bool,
    report: &mut dyn FnMut(u64),
) -> Result<IndexRebuildResult, EngineError> {
    mend_swap(dir)?;
    // A crawl that was indexed from its beginning follows log 1, so its first rebuild begins log 2.
    let next = frontier.map(number).transpose()?.flatten().unwrap_or(1) + 1;
    let marks = frontier.map(Frontier::marks).transpose()?;
    let committed = marks.and_then(|marks| marks.get("pages.jsonl").copied());
    let stopped = IndexRebuildResult {
        is_stopped: true,
        ..IndexRebuildResult::default()
    };
    let once = PageWriteTiming::Once;
    let Some((build, latest)) =
        build_new(dir, frontier, rules, committed, once, is_stopped, report)?
    else {
        return Ok(stopped);
    };
    let IndexBuild {
        writer,
        pending,
        mut done,
        ..
    } = build;
    let note = note_of(next);
    // Pass `latest`, the time of the last fetch, as the time at which pages may have expired, so
    // that the result does not depend on the time of the rebuild.
    let answers = |urls: &BTreeSet<String>| answers_of(dir, committed, urls);
    let settled = settle(writer, pending, &answers, &note, latest, is_stopped)?;
    let Some((writer, reconciled)) = settled else {
        crawl_index::remove(&dir.join(NEW_FOLDER))?;
        return Ok(stopped);
    };
    let CrossPageUpdateCounts {
        pages,
        duplicates,
        canonical_elsewhere,
        gave_way,
        ..
    } = reconciled;
    if gave_way > 0 {
        done.left_out.insert("canonical".to_owned(), gave_way);
    }
    done.canonical_elsewhere = canonical_elsewhere;
    writer.close()?;
    (done.pages, done.duplicates) = (pages, duplicates);
    take_place(dir)?;
    if let Some(frontier) = frontier {
        begin_log(dir, frontier, next)?;
    }
    Ok(done)
}

/// Makes the decisions that need all pages, such as which pages are duplicates. Includes the pages
/// in `pending`. `None` if stopped.
fn settle(
    writer: IndexWriter,
    pending: Option<PendingEntriesFile>,
    answers: &AnswerLookUp<'_>,
    note: &str,
    now: i64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<(IndexWriter, CrossPageUpdateCounts)>, EngineError> {
    let Some(mut writer) = writer.with_all_processors(note)? else {
        return Ok(None);
    };
    let done = match pending {
        Some(mut pending) => {
            pending.flush()?;
            writer.reconcile_with(&pending, answers, note, now, is_stopped)?
        }
        None => writer.reconcile_with(&(), answers, note, now, is_stopped)?,
    };
    Ok(done.map(|done| (writer, done)))
}

/// Builds the index during a crawl, from the first `committed` bytes of `pages.jsonl`, and stores
/// `note` with it. Decisions that need all pages, such as which pages are duplicates, are left to
/// the end of the run. Returns false if the build was stopped, which leaves the old index
/// unchanged.
pub(crate) fn build_behind(
    dir: &Path,
    frontier: &dyn Frontier,
    rules: &IndexRebuildSettings,
    committed: Option<u64>,
    note: &str,
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, EngineError> {
    let now = PageWriteTiming::Now;
    let built = build_new(
        dir,
        Some(frontier),
        rules,
        committed,
        now,
        is_stopped,
        &mut |_| {},
    )?;
    let Some((mut build, _)) = built else {
        return Ok(false);
    };
    build.writer.commit(note)?;
    build.writer.close()?;
    take_place(dir)?;
    Ok(true)
}

/// When a rebuild writes a page into the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageWriteTiming {
    /// Immediately, so that the index is usable before the final pass over all pages.
    Now,
    /// Once, during the final pass over all pages.
    Once,
}

/// Reads all pages into an index in `index.new`. Returns the index, and the time of the last fetch.
/// `None` if stopped.
fn build_new<'a>(
    dir: &'a Path,
    frontier: Option<&dyn Frontier>,
    rules: &'a IndexRebuildSettings,
    committed: Option<u64>,
    timing: PageWriteTiming,
    is_stopped: &dyn Fn() -> bool,
    report: &mut dyn FnMut(u64),
) -> Result<Option<(IndexBuild<'a>, i64)>, EngineError> {
    if !dir.join(FOLDER).is_dir() {
        return Err(EngineError::NoArchive {
            dir: dir.to_path_buf(),
        });
    }
    let folder = dir.join(NEW_FOLDER);
    crawl_index::remove(&folder)?;
    let writer = IndexWriter::open(&folder)?;
    let pending = match timing {
        PageWriteTiming::Now => None,
        PageWriteTiming::Once => Some(PendingEntriesFile::new(&folder)?),
    };
    let mut build = IndexBuild {
        dir,
        rules,
        old: IndexSearcher::open(&dir.join(INDEX_FOLDER)).ok(),
        writer,
        pending,
        done: IndexRebuildResult::default(),
        hosts: HashSet::new(),
    };
    let of = (dir, committed, frontier);
    let Some((kept, unreadable)) = kept_pages(of, rules, is_stopped)? else {
        build.remove()?;
        return Ok(None);
    };
    let urls = kept
        .iter()
        .filter_map(|page| canonicalize(None, &page.url).ok());
    build.hosts = urls.map(|url| url.host_key()).collect();
    if unreadable > 0 {
        let left_out = &mut build.done.left_out;
        left_out.insert("row_unreadable".to_owned(), unreadable);
    }
    let mut latest = 0;
    for (read, kept) in kept.iter().enumerate() {
        if is_stopped() {
            build.remove()?;
            return Ok(None);
        }
        if (read as u64).is_multiple_of(REPORT_INTERVAL_PAGES) {
            report(read as u64);
        }
        latest = latest.max(kept.visited_at);
        build.page(kept)?;
    }
    report(kept.len() as u64);
    Ok(Some((build, latest)))
}

/// Replaces the folder `index` by `index.new`.
fn take_place(dir: &Path) -> Result<(), EngineError> {
    let (folder, old) = (dir.join(INDEX_FOLDER), dir.join(OLD_FOLDER));
    if folder.exists() {
        fs::rename(&folder, &old).map_err(EngineError::disk(&folder))?;
    }
    fs::rename(dir.join(NEW_FOLDER), &folder).map_err(EngineError::disk(&folder))?;
    let synced = fs::File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(EngineError::disk(dir))?;
    Ok(crawl_index::remove(&old)?)
}

struct IndexBuild<'a> {
    dir: &'a Path,
    rules: &'a IndexRebuildSettings,
    old: Option<IndexSearcher>,
    writer: IndexWriter,
    /// Pages that are not written to the index until the end of the build.
    pending: Option<PendingEntriesFile>,
    done: IndexRebuildResult,
    /// The hosts of the indexed pages.
    hosts: HashSet<HostKey>,
}

impl IndexBuild<'_> {
    /// Discards the new index.
    fn remove(self) -> Result<(), EngineError> {
        let folder = self.dir.join(NEW_FOLDER);
        drop(self);
        Ok(crawl_index::remove(&folder)?)
    }

    fn page(&mut self, kept: &PageToIndex) -> Result<(), EngineError> {
        let Ok(url) = canonicalize(None, &kept.url) else {
            return Ok(());
        };
        let entry = match &kept.place {
            // If a parser panics, only this page is left out.
            Some(place) => catch_unwind(AssertUnwindSafe(|| self.archived(&url, kept, place)))
                .unwrap_or_else(|_| Ok(left_out(&url, READER_PANICKED)))?,
            // If the site refuses archiving, the archive has no body. The old index may have the
            // page.
            None => match self.known(kept) {
                Some(page) => IndexLogEntry::Put(Box::new(page)),
                None => left_out(&url, "not_archived"),
            },
        };
        if let Some(why) = entry.left_out() {
            *self.done.left_out.entry(why.to_owned()).or_default() += 1;
        }
        match &mut self.pending {
            Some(pending) if pending.bytes() < MAX_PENDING_BYTES => pending.push(&entry)?,
            _ => self.writer.apply(&entry)?,
        }
        Ok(())
    }

    fn known(&self, kept: &PageToIndex) -> Option<IndexedPage> {
        let page = self.old.as_ref()?.stored(&kept.url).ok()??;
        let page = IndexedPage {
            anchors: Vec::new(),
            linked_from: 0,
            same_as: None,
            leaving: None,
            ..page
        };
        // The old entry is outdated if it was created before the page's last new body was fetched.
        let is_it = kept.refused.is_none() && page.fetched_at >= kept.in_full_at;
        Some(page).filter(|_| is_it)
    }

    /// Reads the DOM of a page from the archive. `None` if the page was not rendered, or its DOM
    /// can't be read.
    fn dom(&self, kept: &PageToIndex) -> Option<Vec<u8>> {
        let (place, bytes) = kept.dom.as_ref()?;
        dom_at(self.dir, &kept.url, place, *bytes)
    }

    fn archived(
        &self,
        url: &CanonicalUrl,
        kept: &PageToIndex,
        place: &WarcRecordLocation,
    ) -> Result<IndexLogEntry, EngineError> {
        let record = match read_place(self.dir, place, kept.bytes) {
            Ok(record) => record,
            Err(ReadError::ForeignName { .. }) => return Ok(left_out(url, "archive_name_foreign")),
            Err(ReadError::TooLong { .. }) => return Ok(left_out(url, "record_too_long")),
            Err(_) => return Ok(left_out(url, "archive_unreadable")),
        };
        let Some(http) = record.http().filter(|_| record.url() == Some(&kept.url)) else {
            return Ok(left_out(url, "not_archived"));
        };
        let mut headers = header_map(&http.fields);
        let mut at = kept.at;
        for later in &kept.later_heads {
            if let Some(newer) = head_fields_at(self.dir, &later.place) {
                let newer = header_map(&newer);
                // If a later response has other fields, a crawl indexes the page again, with the
                // time of that response. Use the same time here.
                let fields = indexing_fields_digest(&newer);
                if fields.is_some() && fields != indexing_fields_digest(&headers) {
                    at = at.max(later.at);
                }
                update_indexing_fields(&mut headers, &newer, later.replaces_all);
            }
        }
        let page = ArchivedPage {
            url,
            at,
            http: &http,
            headers: &headers,
            dom: self.dom(kept),
            refused: kept.refused.as_deref(),
        };
        let rules = ArchivedPageRules {
            agent: &self.rules.agent,
            profile: self.rules.profile,
            secrets: &self.rules.secrets,
            documents: &self.rules.documents,
            is_in_crawl: &|url| self.hosts.contains(&url.host_key()),
        };
        Ok(page.entry(rules, &AtomicBool::new(false)))
    }
}
