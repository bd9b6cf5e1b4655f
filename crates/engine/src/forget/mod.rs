//! Erases pages and hosts from a crawl that is not running: from its archive, rows, index and
//! state.
//!
//! The search index is rewritten rather than built again, because the archive may lack pages that
//! the index has.
//!
//! All changes are written to new files in the folder of [`file_swap`], which then replaces all
//! files at once. After a crash, either the crawl is unchanged, or everything to be erased is gone.

mod page_resources;
#[cfg_attr(not(feature = "search"), path = "rewrite_index_disabled.rs")]
mod rewrite_index;
mod rewrite_row_files;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use crawl_archive::rows::TombstoneRow;
use crawl_archive::{
    CAPTURES, DIGESTS, FOLDER, INDEX, RemovalSelection, RewrittenArchive, TEMPORARY_DIGESTS,
    Timestamp, replace_file, rewrite_archive, write_index,
};
use crawl_fetcher::SiteSessions;
use crawl_frontier::{Frontier as _, RemovalFilter};
use crawl_weburl::{CanonicalUrl, HostKey};
use serde::Serialize;

pub use self::page_resources::add_page_resources;
use self::rewrite_index::{RewrittenIndex, rewrite_index, why_not};
use self::rewrite_row_files::{ROW_FILES, rewrite_file};
use crate::error::EngineError;
use crate::frontier_meta_keys::{
    META_INDEX, META_PARKED, META_SCOPE_SEEDS, META_SEED_TARGETS, META_SESSION, META_TOMBSTONE_KEY,
    META_TRAPS,
};
use crate::index::{INDEX_FOLDER, LOG, NEW_FOLDER, OLD_FOLDER};
use crate::revisit::visit::without_redirect_to;
use crate::sampling::random_walk::without_forgotten;
use crate::scope_seeds::{seeds_without, targets_without};
use crate::state::crawl_directory::{examine, open_at_rest, open_resting};
use crate::state::excluded_rows_of_last_run::LAST_RUN_ROWS_NEW;
use crate::state::extracted_field_files::NEW_EXTRACTS;
use crate::state::file_swap::{self, FileSwapList, LIST};
use crate::tombstones::{
    HOST, PAGE, TOMBSTONES, TombstoneHmacKey, Tombstones, host_digest, page_digest, tombstone_of,
};

/// The number of erased records, by kind.
///
/// Field names are stable. Later versions may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErasedRecordCounts {
    /// Rows of `pages.jsonl`.
    pub pages: u64,
    /// Rows of `requests.jsonl`.
    pub requests: u64,
    /// Rows of `excluded.jsonl`.
    pub excluded: u64,
    /// Rows of `links.jsonl`.
    pub links: u64,
    /// Rows of `extracts.jsonl`.
    pub extracts: u64,
    /// Records of the archive.
    pub records: u64,
    /// Erased URLs that were pending, leased or deferred.
    pub waiting: u64,
    /// Rows and records of other pages that mentioned an erased page or host. The mentions were
    /// removed.
    pub changed: u64,
    /// New tombstones.
    pub tombstones: u64,
}

impl ErasedRecordCounts {
    /// Returns whether the crawl had nothing to erase. Ignores `tombstones`.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let ErasedRecordCounts {
            pages,
            requests,
            excluded,
            links,
            extracts,
            records,
            waiting,
            changed,
            tombstones: _,
        } = *self;
        [
            pages, requests, excluded, links, extracts, records, waiting, changed,
        ] == [0; 8]
    }
}

/// What to erase, when and why.
#[derive(Clone)]
pub struct ForgetRequest<'a> {
    /// The pages and hosts to forget.
    pub removal: &'a RemovalSelection,
    /// The time to write into the tombstones.
    pub at: Timestamp,
    /// The reason to write into the tombstones. Must not name an erased page or host.
    pub reason: &'a str,
    /// The text of `crawl.toml` without the erased names. `None` if the file contains no such
    /// names.
    pub config_text: Option<&'a str>,
    /// Signs the list of files to replace with the user's key. Returns the signature; `None` if the
    /// user has no key. [`finish_forget`] verifies the signature after a crash.
    pub sign: &'a dyn Fn(&[u8]) -> Option<String>,
}

impl fmt::Debug for ForgetRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ForgetRequest");
        shown.field("removal", &self.removal).field("at", &self.at);
        shown.field("reason", &self.reason).finish_non_exhaustive()
    }
}

/// The derived files of a crawl that an erasure removed, and that the caller must create again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedDerivedFiles {
    /// Whether `report.json` was removed, with `report.html` and `hosts.jsonl`.
    pub report: bool,
    /// Whether the search index was removed.
    pub index: bool,
}

/// Finishes an erasure that a crash interrupted. Returns the derived files that the erasure
/// removed; `None` if no erasure was interrupted. The list of files to replace is signed: `is_ours`
/// gets the signed bytes and the signature, and returns whether this user's key signed them.
///
/// # Errors
/// [`EngineError::ForeignForget`] if the list is not this user's or names a file that [`forget`]
/// does not change; [`EngineError::OutputInUse`]; an I/O error.
pub fn finish_forget(
    dir: &Path,
    is_ours: &dyn Fn(&[u8], Option<&str>) -> bool,
) -> Result<Option<RemovedDerivedFiles>, EngineError> {
    // Check the directory first, because `examine` refuses links in place of files.
    if dir.join(LIST).symlink_metadata().is_ok() {
        examine(dir)?;
    }
    let finished = file_swap::resume(dir, is_ours, &may_change)?;
    Ok(finished.map(|swap| {
        let is_removed = |file: &str| swap.remove.iter().any(|name| name == file);
        RemovedDerivedFiles {
            report: is_removed(REPORT),
            index: is_removed(INDEX_FOLDER),
        }
    }))
}

/// Removes the new files of an erasure that was interrupted before it changed the crawl. Returns
/// false if there are no such files.
///
/// # Errors
/// [`EngineError::OutputInUse`] if another process uses the crawl;
/// [`EngineError::UnfinishedForget`] if the erasure changed the crawl; an I/O error.
pub fn undo_forget(dir: &Path) -> Result<bool, EngineError> {
    file_swap::recover(dir)
}

/// Returns whether [`forget`] may replace or remove the file or folder of this name.
fn may_change(name: &str) -> bool {
    if let Some(file) = name.strip_prefix("archive/") {
        return !file.contains('/') && crawl_archive::is_of_archive(file);
    }
    DERIVED.contains(&name)
        || ROW_FILES.iter().any(|file| file.name() == name)
        || name == TOMBSTONES
        || name == CONFIG
        || name == STORE
        || name == LAST_RUN_ROWS_NEW
        || name
            .strip_prefix("state/")
            .is_some_and(|name| name == LOG || JOURNALS.contains(&name))
}

const CONFIG: &str = "crawl.toml";
const REPORT: &str = "report.json";
const STORE: &str = "state/store";
/// The files of the reading journal in `state/`, which contain URLs that were being read.
const JOURNALS: [&str; 2] = ["reading", "reading.new"];

/// Counts what [`forget`] would erase, without changing anything.
///
/// # Errors
/// Same as [`forget`].
pub fn count_forgotten(
    dir: &Path,
    removal: &RemovalSelection,
) -> Result<ErasedRecordCounts, EngineError> {
    let frontier = open_at_rest(dir)?;
    let marks = frontier.marks()?;
    let archive = rewrite_archive(dir, None, removal, &marks)?;
    let mut counts = ErasureProgress::new(&archive);
    let mut waiting = 0;
    frontier.each_pending(&mut |found| {
        if removal.holds(found.url) {
            waiting += 1;
            let origin = found.url.origin().to_string();
            *counts.pending.entry(origin).or_default() += 1;
        }
        ControlFlow::Continue(())
    })?;
    frontier.each_deferred(&mut |found| {
        waiting += u64::from(removal.holds(found.url));
        ControlFlow::Continue(())
    })?;
    // The rows of `waiting.jsonl` have the number of pending URLs.
    for file in ROW_FILES {
        rewrite_file(file, dir, None, removal, &archive, &marks, &mut counts)?;
    }
    let stored_key = frontier.meta(META_TOMBSTONE_KEY)?;
    let older = Tombstones::read(dir, stored_key.clone())?;
    let key = TombstoneHmacKey::of(stored_key)?;
    Ok(ErasedRecordCounts {
        waiting,
        tombstones: new_digests(removal, &key, &older).len() as u64,
        ..counts.done
    })
}

/// Returns the tombstone of a page, or else of its host, in the crawl in `dir`. The tombstone
/// states when and why the page or host was forgotten. `None` if neither the page nor its host was
/// forgotten.
///
/// # Errors
/// [`EngineError`] if `dir` contains no crawl, another process uses it, or the tombstones can't be
/// read.
pub fn find_tombstone(dir: &Path, url: &CanonicalUrl) -> Result<Option<TombstoneRow>, EngineError> {
    if !dir.join(TOMBSTONES).is_file() {
        return Ok(None);
    }
    let frontier = open_at_rest(dir)?;
    tombstone_of(dir, frontier.meta(META_TOMBSTONE_KEY)?, url)
}

/// Returns the reason why [`forget`] would remove the search index of the crawl in `dir` instead of
/// rewriting it. `None` if the index can be rewritten or doesn't exist.
///
/// # Errors
/// Same as [`forget`].
pub fn why_index_is_removed(dir: &Path) -> Result<Option<String>, EngineError> {
    let frontier = open_at_rest(dir)?;
    why_not(dir, frontier.meta(META_INDEX)?, &frontier.marks()?)
}

/// Erases pages and hosts from the crawl in `dir`. Rewrites the search index; an index that can't
/// be rewritten is removed (see [`why_index_is_removed`]). Also removes the other derived files
/// (`report.json`, `report.html`, `hosts.jsonl`, and the digests of files). The caller must create
/// removed files again.
///
/// # Errors
/// [`EngineError`] if `dir` contains no crawl, another process uses it, records can't be read, or
/// writing fails. Afterwards the crawl is unchanged, or the next start finishes the erasure.
pub fn forget(dir: &Path, order: &ForgetRequest<'_>) -> Result<ErasedRecordCounts, EngineError> {
    let forgotten = erase(dir, order);
    if forgotten.is_err() {
        // Free the disk space of the new files. If that fails too, the next start removes them.
        let _ = file_swap::recover(dir);
    }
    forgotten
}

fn erase(dir: &Path, order: &ForgetRequest<'_>) -> Result<ErasedRecordCounts, EngineError> {
    if !examine(dir)? {
        return Err(EngineError::NothingToDo {
            dir: dir.to_path_buf(),
        });
    }
    file_swap::recover(dir)?;
    if dir.join(NEW_EXTRACTS).symlink_metadata().is_ok() {
        // Opening the state finishes or undoes the interrupted replacement of the rows.
        drop(open_at_rest(dir)?);
    }
    let state = dir.join("state");
    let resting = open_resting(dir, &state)?;
    let open_error = |source| EngineError::Open {
        dir: state.clone(),
        source,
    };
    let marks = resting.marks().map_err(open_error)?;
    let stored_key = resting.meta(META_TOMBSTONE_KEY).map_err(open_error)?;
    let follows = resting.meta(META_INDEX).map_err(open_error)?;
    let staging = file_swap::begin(dir)?;
    let removal = order.removal;

    let archive = rewrite_archive(dir, Some(&staging), removal, &marks)?;
    let mut counts = ErasureProgress::new(&archive);
    let older = Tombstones::read(dir, stored_key.clone())?;
    let key = TombstoneHmacKey::of(stored_key)?;
    counts.done.tombstones = write_tombstones(dir, &staging, order, &key, &older)?;
    counts.swap.replace.push(TOMBSTONES.to_owned());

    let mut new_marks = marks.clone();
    new_marks.retain(|name, _| !is_of_archive(name) && name != LOG);
    new_marks.extend(archive.marks.clone());
    let mut more = BTreeMap::from([(META_TOMBSTONE_KEY.to_owned(), key.bytes())]);
    // Rewrite the file of pending URLs last, because it contains the number of URLs that remain.
    let (waiting, others) = ROW_FILES.split_last().unwrap_or((&ROW_FILES[0], &[]));
    for file in others {
        let to = Some(staging.as_path());
        let length = rewrite_file(*file, dir, to, removal, &archive, &marks, &mut counts)?;
        if let Some(mark) = new_marks.get_mut(file.name()) {
            *mark = length;
        }
    }
    make_folder(&staging.join("state"))?;
    if follows.is_some() {
        more.insert(META_INDEX.to_owned(), Vec::new());
    }
    let index = rewrite_index(dir, &staging, removal, follows, &marks)?;
    if let Some((number, bytes)) = index.as_ref().and_then(RewrittenIndex::log) {
        more.insert(META_INDEX.to_owned(), number.to_be_bytes().to_vec());
        new_marks.insert(LOG.to_owned(), bytes);
    }
    let store = staging.join("state").join("store");
    let left_out = resting
        .copy_without(
            &store,
            &StoredStateRemovalFilter(removal),
            &new_marks,
            &more,
        )
        .map_err(open_error)?;
    counts.done.waiting = left_out.pending.values().sum::<u64>() + left_out.deferred;
    counts.pending = left_out.pending;
    let to = Some(staging.as_path());
    rewrite_file(*waiting, dir, to, removal, &archive, &marks, &mut counts)?;
    counts.swap.replace.push(STORE.to_owned());

    let mut changes = counts.swap;
    of_archive(dir, &staging, &archive, &mut changes)?;
    if let Some(text) = order.config_text {
        write_synced(&staging.join(CONFIG), text.as_bytes())?;
        changes.replace.push(CONFIG.to_owned());
    }
    of_derived(dir, index.as_ref(), &mut changes);
    file_swap::commit(dir, &changes, order.sign)?;
    file_swap::finish(dir, &changes, &mut || Ok(()))?;
    Ok(counts.done)
}

/// Files derived from rows and archive, to be removed because they may contain erased names. The
/// index is replaced if it can be rewritten.
const DERIVED: [&str; 11] = [
    INDEX_FOLDER,
    OLD_FOLDER,
    NEW_FOLDER,
    REPORT,
    "report.json.new",
    "report.html",
    "report.html.new",
    "hosts.jsonl",
    "hosts.jsonl.new",
    DIGESTS,
    TEMPORARY_DIGESTS,
];

/// The records erased so far, by kind, and the files to replace.
struct ErasureProgress {
    done: ErasedRecordCounts,
    swap: FileSwapList,
    /// The number of erased pending URLs, by origin.
    pending: BTreeMap<String, u64>,
}

impl ErasureProgress {
    fn new(archive: &RewrittenArchive) -> ErasureProgress {
        ErasureProgress {
            done: ErasedRecordCounts {
                records: archive.dropped,
                changed: archive.changed,
                ..ErasedRecordCounts::default()
            },
            swap: FileSwapList::default(),
            pending: BTreeMap::new(),
        }
    }
}

fn is_of_archive(mark: &str) -> bool {
    mark.strip_prefix(FOLDER)
        .is_some_and(|name| name.starts_with('/'))
}

/// Adds the rewritten archive files to `changes`. Rebuilds the archive's index if there is one.
fn of_archive(
    dir: &Path,
    staging: &Path,
    archive: &RewrittenArchive,
    changes: &mut FileSwapList,
) -> Result<(), EngineError> {
    let path = |name: &str| format!("{FOLDER}/{name}");
    for (old, new) in archive.renamed() {
        changes.replace.push(path(new));
        if old != new {
            changes.remove.push(path(old));
        }
    }
    if let Some(length) = archive.marks.get(&path(CAPTURES)) {
        changes.replace.push(path(CAPTURES));
        if dir.join(FOLDER).join(INDEX).exists() {
            write_index(staging, *length)?;
            changes.replace.push(path(INDEX));
        }
    }
    Ok(())
}

/// Adds the index and its log, the other derived files and temporary files to `changes`.
fn of_derived(dir: &Path, index: Option<&RewrittenIndex>, changes: &mut FileSwapList) {
    let log = format!("state/{LOG}");
    match index.and_then(RewrittenIndex::log) {
        Some(_) => changes.replace.push(log),
        None => changes.remove.push(log),
    }
    changes
        .replace
        .extend(index.map(|_| INDEX_FOLDER.to_owned()));
    // List only files that exist, so that `finish_forget` knows which ones were removed.
    let is_removed = |name: &&str| {
        let is_replaced = *name == INDEX_FOLDER && index.is_some();
        !is_replaced && dir.join(name).symlink_metadata().is_ok()
    };
    let derived = DERIVED.into_iter().filter(is_removed);
    changes.remove.extend(derived.map(str::to_owned));
    let journals = JOURNALS.map(|name| format!("state/{name}"));
    changes.remove.extend(journals);
    // This file exists only if a start was killed while it copied rows of `excluded.jsonl`.
    changes.remove.push(LAST_RUN_ROWS_NEW.to_owned());
}

/// Writes the existing and the new tombstones to the folder of new files. Returns the number of new
/// ones.
fn write_tombstones(
    dir: &Path,
    staging: &Path,
    order: &ForgetRequest<'_>,
    key: &TombstoneHmacKey,
    older: &Tombstones,
) -> Result<u64, EngineError> {
    let path = staging.join(TOMBSTONES);
    let mut text = match fs::read_to_string(dir.join(TOMBSTONES)) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.map_err(EngineError::disk(&path))?,
    };
    let new = new_digests(order.removal, key, older);
    let set = new.len() as u64;
    for (kind, digest) in new {
        let row = TombstoneRow {
            at: order.at,
            kind: kind.to_owned(),
            digest,
            reason: order.reason.to_owned(),
        };
        text += &serde_json::to_string(&row).unwrap_or_default();
        text.push('\n');
    }
    write_synced(&path, text.as_bytes())?;
    Ok(set)
}

/// Returns the kind and the digest of each page and host in `removal` that has no tombstone yet.
fn new_digests(
    removal: &RemovalSelection,
    key: &TombstoneHmacKey,
    older: &Tombstones,
) -> Vec<(&'static str, String)> {
    let mut pages: Vec<&str> = removal.pages().collect();
    pages.sort_unstable();
    let pages = pages.into_iter().map(|url| (PAGE, page_digest(key, url)));
    let hosts = removal.hosts().iter();
    let hosts = hosts.map(|host| (HOST, host_digest(key, host)));
    let is_new = |(_, digest): &(_, String)| !older.has_page(digest) && !older.has_host(digest);
    pages.chain(hosts).filter(is_new).collect()
}

fn make_folder(path: &Path) -> Result<(), EngineError> {
    fs::create_dir_all(path).map_err(EngineError::disk(path))
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
    let write = || -> io::Result<()> {
        let mut file = replace_file(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(EngineError::disk(path))
}

/// Selects what to erase from the stored state.
struct StoredStateRemovalFilter<'r>(&'r RemovalSelection);

impl RemovalFilter for StoredStateRemovalFilter<'_> {
    fn holds(&self, url: &CanonicalUrl) -> bool {
        self.0.holds(url)
    }

    fn holds_host(&self, host: &HostKey) -> bool {
        self.0.holds_host(host)
    }

    fn is_named_in(&self, text: &str) -> bool {
        self.0.is_named_in(text)
    }

    fn meta(&self, name: &str, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let removal = self.0;
        match name {
            META_SCOPE_SEEDS => Some(seeds_without(removal, &bytes)),
            META_SEED_TARGETS => Some(targets_without(removal, &bytes)),
            META_PARKED => {
                let hosts: Vec<String> = serde_json::from_slice(&bytes).unwrap_or_default();
                let is_kept = |host: &String| {
                    !HostKey::parse(host).is_ok_and(|host| removal.holds_host(&host))
                };
                let hosts: Vec<_> = hosts.into_iter().filter(is_kept).collect();
                serde_json::to_vec(&hosts).ok()
            }
            META_TRAPS => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let lines = text.split('\n').filter(|line| !removal.is_named_in(line));
                Some(lines.collect::<Vec<_>>().join("\n").into_bytes())
            }
            // Erase the cookies and tokens of an erased host, including its cookies in the session
            // of a parent domain.
            _ if let Some(site) = name.strip_prefix(META_SESSION) => {
                let is_erased = HostKey::parse(site).is_ok_and(|host| removal.holds_host(&host));
                // Compare host names without ports, because cookies apply to all ports of a host.
                let is_of = |domain: &str| removal.hosts().iter().any(|host| host.host() == domain);
                (!is_erased).then(|| SiteSessions::without_cookies(bytes, &is_of))
            }
            _ => without_forgotten(name, bytes, &|url| removal.holds_text(url)),
        }
    }

    fn visit(&self, bytes: Vec<u8>) -> Vec<u8> {
        without_redirect_to(bytes, &|url| self.0.holds_text(url))
    }
}

#[cfg(test)]
mod tests {
    use crawl_archive::RemovalSelection;
    use crawl_fetcher::{CookieFile, SiteSessions};
    use crawl_frontier::RemovalFilter as _;
    use crawl_scheduler::Tick;
    use crawl_weburl::HostKey;

    use super::{META_SESSION, StoredStateRemovalFilter};

    #[test]
    fn cookies_of_an_erased_subdomain_leave_the_session_of_the_domain() {
        let sessions = SiteSessions::new([("example.org", false)]).unwrap();
        let file = "m.example.org\tFALSE\t/\tFALSE\t0\tsid\tof-m\n\
                    example.org\tFALSE\t/\tFALSE\t0\tsid\tof-top\n";
        let now = Tick::from_micros(1);
        sessions.import(&CookieFile::parse(file).unwrap(), "digest", now);
        let stored = sessions.unsaved().remove(0).1;
        let left = |host: &str| {
            let mut removal = RemovalSelection::default();
            removal.add_host(HostKey::parse(host).unwrap());
            let name = format!("{META_SESSION}example.org");
            let remaining = StoredStateRemovalFilter(&removal).meta(&name, stored.clone());
            remaining.map(|remaining| {
                let text = String::from_utf8(remaining).unwrap();
                (text.contains("of-m"), text.contains("of-top"))
            })
        };
        assert_eq!(left("m.example.org"), Some((false, true)));
        assert_eq!(left("www.example.org"), Some((true, true)));
        assert_eq!(left("example.org"), None);
    }
}
