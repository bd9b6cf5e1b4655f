//! A frontier on disk: a sieve (the set of all known URLs) with the states of URLs, and a fjall
//! store with everything else.

mod crawl_transfer;
mod due_visit_rows;
mod erasing_copy;
mod failure_or_exclusion_note_ids;
#[cfg(any(test, fuzzing))]
pub mod fuzz_checks;
mod meta_keys;
mod open;
mod queue_block;
mod record_codec;
mod record_primitives;
mod stored_visits;
mod tables;
mod torn_journal;
mod transaction;
mod url_changes;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{Readable, Snapshot};

pub use self::erasing_copy::{ErasedUrlCounts, OfflineFrontier, RemovalFilter};

use self::failure_or_exclusion_note_ids::FailureOrExclusionNoteIds;
use self::record_codec::{FailureOrExclusionNote, SieveUrlState, StoreCounters};
use self::tables::StoreTables;
use self::transaction::FjallTransaction;
use crate::admit_rule::{AdmitAction, CurrentState, decide_admission};
use crate::error::{DiskOpenError, FrontierError};
use crate::file_lock::FileLock;
use crate::fingerprint::Fingerprint;
use crate::frontier::Frontier;
use crate::last_visit::{LastVisit, StoredVisit};
use crate::lease::Lease;
use crate::lease_table::LeaseTable;
use crate::sieve::{BlockCache, RunDisk, Sieve, SieveSnapshot, SystemDisk};
use crate::transaction::Transaction;
use crate::url_state::{KnownState, KnownUrlDetails, UnsettledUrl, UrlCounts};
use crate::url_to_admit::{UrlToAdmit, depth_and_hops};

/// Limits on the memory of a [`FjallFrontier`], and the durability of its commits.
#[derive(Clone, Debug)]
pub struct FjallFrontierOptions {
    /// Memory for caches of blocks read from disk, in bytes; 32 MiB by default. A quarter of it
    /// caches blocks of sorted runs, which hold the states of URLs.
    pub cache_bytes: u64,
    /// Maximum number of queue entries cached in memory, over all origins. Each read from disk adds
    /// up to 1/1024 of this number to a queue (at least 2, at most 64). The default, 32,768, takes
    /// about 10 MB: 32 entries for each of a thousand active hosts.
    pub head_entries: usize,
    /// The number of new or changed URLs collected in memory before they are written to disk as a
    /// sorted run. During that write, up to three times as many may be in memory. The default,
    /// 200,000, takes 9 MB.
    pub gather: usize,
    /// The failures that a commit survives after it has returned.
    pub durability: Durability,
}

/// The failures that a commit survives after it has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A commit survives a power cut: `commit` returns once the data is on disk (fdatasync).
    #[default]
    PowerCut,
    /// A commit survives the death of the process, but not a power cut: `commit` returns once the
    /// data has been handed to the system. For simulations and tests.
    ProcessDeath,
}

impl Default for FjallFrontierOptions {
    fn default() -> FjallFrontierOptions {
        FjallFrontierOptions {
            cache_bytes: 32 << 20,
            head_entries: 32_768,
            gather: 200_000,
            durability: Durability::PowerCut,
        }
    }
}

/// The durable [`Frontier`]: a directory with a fjall store, and sorted runs with the state of each
/// URL.
///
/// A commit is one atomic batch of the store, synced according to
/// [`FjallFrontierOptions::durability`]. A torn end of the store's journal, after a kill or a power
/// cut, is cut off on opening. Runs are written from committed records, and are listed in the store
/// once they are complete and on disk. Memory is bounded, except for about 150 bytes per origin
/// with queued URLs and 11 bits per URL.
pub struct FjallFrontier {
    // The drop order matters: first the sieve's threads end, then the store closes, then the lock
    // is released.
    sieve: Sieve,
    tables: Arc<StoreTables>,
    /// Locked by the open transaction. Acquired before the sieve's view and `leases`.
    writer: Mutex<Writer>,
    /// Locked only briefly. A thread that holds this lock may read the disk (to lease a URL), but
    /// must not write to it.
    leases: Mutex<LeaseTable>,
    /// See [`Frontier::reopenings`].
    reopenings: AtomicU64,
    /// The number ([`Transaction::number`]) of the last commit that the sieve contains, or 0 if
    /// there was no commit since opening.
    number: AtomicU64,
    _lock: FileLock,
}

/// State that only the writer needs.
struct Writer {
    /// The committed counters.
    sequence: StoreCounters,
    cache: BlockCache,
    note_ids: FailureOrExclusionNoteIds,
    /// No visit is due before this time, in seconds since the Unix epoch, so scans of the table
    /// `due` begin here. A scan from the start of the table would walk over the tombstones of all
    /// removed rows.
    due_from: u32,
    /// The number of URLs that the last transaction changed. The next transaction reserves memory
    /// for the same number.
    last_changes: usize,
    /// The number of URLs that the last transaction settled. The next transaction reserves memory
    /// for the same number.
    last_settled: usize,
}

/// Returns whether the file with this path in a frontier's directory is never changed once written:
/// a table file of the store, or a sorted run. Such a file can only be removed. Any other file may
/// change when the frontier is opened.
#[must_use]
pub fn is_write_once(path: &str) -> bool {
    path.contains("/tables/") || path.ends_with(".run")
}

impl FjallFrontier {
    /// Opens the frontier in `dir`, or creates one if `dir` is empty or missing.
    ///
    /// Creation is atomic: if the process dies during creation, the next opening finds either an
    /// empty directory or a frontier.
    ///
    /// # Errors
    /// [`DiskOpenError`] gives the reason. Foreign files are never changed.
    pub fn open(
        dir: &Path,
        options: &FjallFrontierOptions,
    ) -> Result<FjallFrontier, DiskOpenError> {
        FjallFrontier::open_on(dir, options, Arc::new(SystemDisk))
    }

    /// Like [`FjallFrontier::open`], but writes sorted runs through `disk`.
    ///
    /// # Errors
    /// Same as [`FjallFrontier::open`].
    pub fn open_on(
        dir: &Path,
        options: &FjallFrontierOptions,
        disk: Arc<dyn RunDisk>,
    ) -> Result<FjallFrontier, DiskOpenError> {
        open::open(dir, options, disk)
    }

    /// Returns the state of the URL with fingerprint `key`, or `None` if the URL is unknown.
    fn state(
        &self,
        view: &SieveSnapshot,
        key: Fingerprint,
        cache: &mut BlockCache,
    ) -> Result<Option<SieveUrlState>, FrontierError> {
        use crate::sieve::RunListStore as _;
        let packed = view
            .get(key, cache)
            .map_err(|error| self.tables.run_failed(error))?;
        let state = packed
            .map(|packed| SieveUrlState::from_packed(packed).ok_or(packed))
            .transpose();
        state.map_err(|packed| self.tables.corrupt(&format!("the record {packed:02x?}")))
    }

    /// Locks the lease table. A panic in another thread can't corrupt the table. In the worst case,
    /// a URL stays leased until the next start, although its lease was lost.
    fn leases(&self) -> MutexGuard<'_, LeaseTable> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored_visit(&self, url: &CanonicalUrl) -> Result<Option<StoredVisit>, FrontierError> {
        let tables = &self.tables;
        let stored = tables.stored_visit(&tables.snapshot(), tables.key.fingerprint(url))?;
        Ok(stored.filter(|stored| stored.url == *url))
    }

    /// Converts the `state` of `url` in the sieve to the form that [`Frontier::known`] returns.
    /// Reads the rest from the tables.
    fn known_url(
        &self,
        from: &Snapshot,
        key: Fingerprint,
        url: &CanonicalUrl,
        state: SieveUrlState,
    ) -> Result<KnownUrlDetails, FrontierError> {
        let tables = &self.tables;
        let noted = |number| match tables.note(from, number)? {
            FailureOrExclusionNote::Why(why) => Ok(KnownState::Failed { why }),
            FailureOrExclusionNote::Exclusion(exclusion) => Ok(KnownState::Excluded(exclusion)),
        };
        let (state, depth, via) = match state {
            SieveUrlState::Pending(place) => {
                let queued = tables.pending(from, url, place)?;
                let attempt = queued.attempt;
                let state = if self.leases().is_leased(key) {
                    KnownState::Leased { attempt }
                } else {
                    KnownState::Pending { attempt }
                };
                (state, place.depth, queued.via)
            }
            SieveUrlState::Deferred { depth, .. } => {
                let deferred = tables.deferred(from, key)?;
                let missing = || tables.corrupt(&format!("`{url}` is not among the deferred"));
                let deferred = deferred.ok_or_else(missing)?;
                let state = KnownState::Deferred(deferred.exclusion);
                (state, depth, deferred.via)
            }
            SieveUrlState::Fetched { depth, status } => {
                (KnownState::Fetched { status }, depth, None)
            }
            SieveUrlState::Failed { depth, note } | SieveUrlState::Excluded { depth, note } => {
                (noted(note)?, depth, None)
            }
        };
        let (depth, hops_off) = depth_and_hops(depth);
        Ok(KnownUrlDetails {
            state,
            depth,
            hops_off,
            via,
        })
    }
}

impl Frontier for FjallFrontier {
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError> {
        self.leases().lease(&*self.tables, origin)
    }

    fn release(&self, lease: Lease) {
        let key = self.tables.key.fingerprint(&lease.url);
        self.leases().give_back(key);
    }

    fn pending(&self, origin: &Origin) -> u64 {
        self.leases().pending(origin)
    }

    fn origins(&self) -> Vec<(Origin, u64)> {
        // Sort after the lease table is unlocked, because sorting a million origins takes a while.
        let mut origins = self.leases().origins();
        origins.sort_unstable();
        origins
    }

    fn counts(&self) -> UrlCounts {
        self.leases().counts()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        // The writer's state changes only after a commit, in one step. So a panic in another
        // transaction leaves it consistent, and a poisoned lock can be ignored.
        self.sieve.make_room()?;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(FjallTransaction::new(self, writer)))
    }

    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrlDetails>, FrontierError> {
        let tables = &self.tables;
        let key = tables.key.fingerprint(url);
        // While the view is held, no commit can take effect before the snapshot is taken.
        let view = self.sieve.view();
        let snapshot = tables.snapshot();
        let state = self.state(&view, key, &mut BlockCache::new(0))?;
        drop(view);
        state
            .map(|state| self.known_url(&snapshot, key, url, state))
            .transpose()
    }

    fn drop_known(
        &self,
        links: &mut Vec<UrlToAdmit>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64> {
        let urls = links.iter().map(|link| &link.url);
        let keys: Vec<_> = self.tables.key.fingerprints(urls).collect();
        // Don't call `view` here: it would wait for a commit in progress, and so for the disk.
        let view = self.sieve.view_at_once()?;
        // The number can't change now: a commit changes it only while it has the view locked.
        let number = self.number.load(Ordering::Acquire);
        let mut keys = keys.into_iter();
        links.retain(|link| {
            let held = keys.next().and_then(|key| view.held(key));
            let Some(state) = held
                .and_then(SieveUrlState::from_packed)
                .map(SieveUrlState::current)
            else {
                return true;
            };
            if matches!(state, CurrentState::Settled) {
                settled(&link.url);
            }
            // A leased URL is checked like a pending one. So the link may be kept although it can't
            // change the URL.
            decide_admission(state, link) != AdmitAction::Stay
        });
        Some(number)
    }

    fn reopenings(&self) -> u64 {
        self.reopenings.load(Ordering::Acquire)
    }

    fn visit(&self, url: &CanonicalUrl) -> Result<Option<LastVisit>, FrontierError> {
        Ok(self.stored_visit(url)?.map(|stored| stored.visit))
    }

    fn found_on(&self, url: &CanonicalUrl) -> Result<Option<CanonicalUrl>, FrontierError> {
        match self.known(url)?.and_then(|known| known.via) {
            Some(via) => Ok(Some(via)),
            None => Ok(self.stored_visit(url)?.and_then(|stored| stored.via)),
        }
    }

    fn next_due(&self, after: u32) -> Result<Option<u32>, FrontierError> {
        self.tables.next_due(&self.tables.snapshot(), after)
    }

    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError> {
        let tables = &self.tables;
        let key = origin.as_str().as_bytes();
        let value = tables.get(&tables.snapshot(), &tables.robots, key)?;
        Ok(value.map(|bytes| bytes.to_vec()))
    }

    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError> {
        let tables = &self.tables;
        let key = host.as_str().as_bytes();
        tables
            .get(&tables.snapshot(), &tables.hosts, key)?
            .map(|bytes| tables.host_value(host.as_str(), &bytes))
            .transpose()
    }

    fn hosts(&self) -> Result<Vec<(HostKey, u64, Vec<u8>)>, FrontierError> {
        let tables = &self.tables;
        let mut hosts = Vec::new();
        for row in tables.snapshot().iter(&tables.hosts) {
            let (key, value) = row.into_inner().map_err(|why| tables.failed(why))?;
            let host = std::str::from_utf8(&key)
                .ok()
                .and_then(|text| HostKey::parse(text).ok())
                .ok_or_else(|| tables.corrupt("a key in hosts"))?;
            let (wake, bytes) = tables.host_value(host.as_str(), &value)?;
            hosts.push((host, wake, bytes));
        }
        Ok(hosts)
    }

    fn marks(&self) -> Result<BTreeMap<String, u64>, FrontierError> {
        let tables = &self.tables;
        let mut marks = BTreeMap::new();
        for row in tables.snapshot().prefix(&tables.meta, meta_keys::MARK) {
            let (key, value) = row.into_inner().map_err(|why| tables.failed(why))?;
            let file = std::str::from_utf8(key.get(meta_keys::MARK.len()..).unwrap_or_default());
            let length = <[u8; 8]>::try_from(value.as_ref());
            let (Ok(file), Ok(length)) = (file, length) else {
                return Err(tables.corrupt("the committed length of a file"));
            };
            marks.insert(file.to_owned(), u64::from_be_bytes(length));
        }
        Ok(marks)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError> {
        let tables = &self.tables;
        let key = meta_keys::of(meta_keys::CALLER, name);
        let value = tables.get(&tables.snapshot(), &tables.meta, &key)?;
        Ok(value.map(|bytes| bytes.to_vec()))
    }

    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let tables = &self.tables;
        for row in tables.snapshot().iter(&tables.deferred) {
            let bytes = row.value().map_err(|why| tables.failed(why))?;
            let deferred = tables.decode_deferred(&bytes)?;
            let (depth, hops_off) = depth_and_hops(deferred.depth);
            let waiting = UnsettledUrl {
                url: &deferred.url,
                depth,
                hops_off,
                via: deferred.via.as_ref(),
                exclusion: Some(&deferred.exclusion),
            };
            if visit(waiting).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn each_pending(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let tables = &self.tables;
        let mut queues = self.leases().queues();
        queues.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let snapshot = tables.snapshot();
        for (origin, id, leased) in queues {
            let walk = tables.walk_queue(&snapshot, (&origin, id), None, |rank, read| {
                if leased.contains(&rank) {
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(visit(read()?.waiting()))
            });
            if walk?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
