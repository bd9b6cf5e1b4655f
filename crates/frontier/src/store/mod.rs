//! A frontier on disk: what is known in a sieve, all else in a fjall store.

mod contents;
mod due_rows;
mod journal;
mod meta_keys;
mod notes;
mod open;
mod primitives;
mod queue_block;
mod record_codec;
mod rewrite;
mod tables;
mod transaction;
mod url_changes;
mod visits;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{Readable, Snapshot};

pub use self::rewrite::{LeftOut, RestingFrontier, StoreRemoval};

use self::notes::Notes;
use self::record_codec::{Note, Sequence, State};
use self::tables::Tables;
use self::transaction::FjallTransaction;
use crate::admission::{Admission, depth_and_hops};
use crate::admit_rule::{AdmitAction, CurrentState, meet};
use crate::error::{FrontierError, OpenError};
use crate::fingerprint::Fingerprint;
use crate::frontier::Frontier;
use crate::lease::Lease;
use crate::lease_table::LeaseTable;
use crate::sieve::{BlockCache, Disk, Sieve, SieveSnapshot, SystemDisk};
use crate::transaction::Transaction;
use crate::url_state::{KnownState, KnownUrl, UrlCounts, WaitingUrl};
use crate::visit::Visit;

/// The memory and disk that a [`FjallFrontier`] uses.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for blocks read from disk, in bytes; 32 MiB by default. A quarter is for
    /// what is known of links that were met lately.
    pub cache_bytes: u64,
    /// The number of queue entries that are held ready in memory, over all origins; a queue is read
    /// from disk in steps of 1/1024 of this, of 2 at least and 64 at most. The default,
    /// 32,768, is about 10 MB, and 32 entries for each of a thousand hosts at work.
    pub head_entries: usize,
    /// The number of new or changed URLs that gather in memory before they are written as a sorted
    /// run; up to three times as many may be held while one is written. The default, 200,000, is
    /// 9 MB a time.
    pub gather: usize,
    /// The failures that a commit that returned has survived.
    pub durability: Durability,
}

/// The failures that a commit that returned will survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: the data are on disk (fdatasync).
    #[default]
    PowerCut,
    /// The death of the process: the system has the data. For simulations and tests.
    ProcessDeath,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache_bytes: 32 << 20,
            head_entries: 32_768,
            gather: 200_000,
            durability: Durability::PowerCut,
        }
    }
}

/// The [`Frontier`] that outlives the process: a directory with a fjall store, and
/// sorted runs of what is known of each URL.
///
/// A commit is one atomic batch of the store, synced as [`Options::durability`] says. A
/// torn tail of the store's journal, as a kill or a power cut leaves it, is cut off on
/// opening. Runs are
/// written from what was committed, and listed in the store when they are whole and on
/// disk. Memory is bounded but for about 150 bytes for each origin that has URLs queued
/// and 11 bits for each URL.
pub struct FjallFrontier {
    // The order matters: the sieve's threads end, the store closes, then the lock goes.
    sieve: Sieve,
    tables: Arc<Tables>,
    /// Held by the one transaction that is open. Taken before the sieve's view and `leases`.
    writer: Mutex<Writer>,
    /// Taken for a moment only; a lease may read the disk under it, a commit may not
    /// write under it.
    leases: Mutex<LeaseTable>,
    /// See [`Frontier::reopenings`].
    reopenings: AtomicU64,
    /// The number of the last commit of this life that the sieve has.
    number: AtomicU64,
    _lock: File,
}

/// The state that only the one writer needs.
struct Writer {
    /// As committed.
    sequence: Sequence,
    cache: BlockCache,
    notes: Notes,
    /// Nothing is due before it, in seconds since the Unix epoch. What was due leaves tombstones,
    /// which would be walked over again and again.
    due_from: u32,
    /// URLs that the last transaction changed.
    last_changes: usize,
    /// URLs that it settled.
    last_settled: usize,
}

impl FjallFrontier {
    /// Opens the frontier in `dir`, or begins one where `dir` is empty or missing.
    ///
    /// Beginning is atomic: a death in the midst of it leaves an empty directory or a
    /// frontier, as the next opening sees it.
    ///
    /// # Errors
    /// [`OpenError`] says what stands in the way. Nothing that is not ours is changed.
    pub fn open(dir: &Path, options: &Options) -> Result<FjallFrontier, OpenError> {
        FjallFrontier::open_on(dir, options, Arc::new(SystemDisk))
    }

    /// As [`FjallFrontier::open`], with runs written through `disk`.
    ///
    /// # Errors
    /// As [`FjallFrontier::open`].
    pub fn open_on(
        dir: &Path,
        options: &Options,
        disk: Arc<dyn Disk>,
    ) -> Result<FjallFrontier, OpenError> {
        open::open(dir, options, disk)
    }

    /// The state of a URL, by its fingerprint.
    fn state(
        &self,
        view: &SieveSnapshot,
        key: Fingerprint,
        cache: &mut BlockCache,
    ) -> Result<Option<State>, FrontierError> {
        use crate::sieve::RunListStore as _;
        let packed = view
            .get(key, cache)
            .map_err(|why| self.tables.run_failed(why))?;
        let state = packed
            .map(|packed| State::from_packed(packed).ok_or(packed))
            .transpose();
        state.map_err(|packed| self.tables.corrupt(&format!("the record {packed:02x?}")))
    }

    /// A panic elsewhere leaves the lease table whole enough: at worst a lease is noted that
    /// nobody holds, and its URL waits for the next start.
    fn leases(&self) -> MutexGuard<'_, LeaseTable> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A state, with what is kept beside it.
    fn tell(
        &self,
        from: &Snapshot,
        key: Fingerprint,
        url: &CanonicalUrl,
        state: State,
    ) -> Result<KnownUrl, FrontierError> {
        let tables = &self.tables;
        let noted = |number| match tables.note(from, number)? {
            Note::Why(why) => Ok(KnownState::Failed { why }),
            Note::Exclusion(exclusion) => Ok(KnownState::Excluded(exclusion)),
        };
        let (state, depth, via) = match state {
            State::Pending(place) => {
                let queued = tables.pending(from, url, place)?;
                let attempt = queued.attempt;
                let state = if self.leases().is_leased(key) {
                    KnownState::Leased { attempt }
                } else {
                    KnownState::Pending { attempt }
                };
                (state, place.depth, queued.via)
            }
            State::Deferred { depth, .. } => {
                let deferred = tables.deferred(from, key)?;
                let missing = || tables.corrupt(&format!("`{url}` is not among the deferred"));
                let deferred = deferred.ok_or_else(missing)?;
                let state = KnownState::Deferred(deferred.exclusion);
                (state, depth, deferred.via)
            }
            State::Fetched { depth, status } => (KnownState::Fetched { status }, depth, None),
            State::Failed { depth, note } | State::Excluded { depth, note } => {
                (noted(note)?, depth, None)
            }
        };
        let (depth, hops_off) = depth_and_hops(depth);
        Ok(KnownUrl {
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
        // Sorted when the lease table is free again: a million take a moment.
        let mut origins = self.leases().origins();
        origins.sort_unstable();
        origins
    }

    fn counts(&self) -> UrlCounts {
        self.leases().counts()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        // It changes only after a commit, in one step: no panic leaves it torn.
        self.sieve.make_room()?;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(FjallTransaction::new(self, writer)))
    }

    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrl>, FrontierError> {
        let tables = &self.tables;
        let key = tables.key.fingerprint(url);
        // No commit comes between the two.
        let view = self.sieve.view();
        let snapshot = tables.snapshot();
        let state = self.state(&view, key, &mut BlockCache::new(0))?;
        drop(view);
        state
            .map(|state| self.tell(&snapshot, key, url, state))
            .transpose()
    }

    fn leave_out_known(
        &self,
        links: &mut Vec<Admission>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64> {
        let urls = links.iter().map(|link| &link.url);
        let keys: Vec<_> = self.tables.key.fingerprints(urls).collect();
        // A commit may hold it for as long as the disk takes.
        let view = self.sieve.view_at_once()?;
        // It changes only under the lock that the view holds.
        let number = self.number.load(Ordering::Acquire);
        let mut keys = keys.into_iter();
        links.retain(|link| {
            let held = keys.next().and_then(|key| view.held(key));
            let Some(state) = held.and_then(State::from_packed).map(State::current) else {
                return true;
            };
            if matches!(state, CurrentState::Settled) {
                settled(&link.url);
            }
            // Of one that is leased nothing changes either.
            meet(state, link) != AdmitAction::Stay
        });
        Some(number)
    }

    fn reopenings(&self) -> u64 {
        self.reopenings.load(Ordering::Acquire)
    }

    fn visit(&self, url: &CanonicalUrl) -> Result<Option<Visit>, FrontierError> {
        let tables = &self.tables;
        let kept = tables.kept(&tables.snapshot(), tables.key.fingerprint(url))?;
        Ok(kept.filter(|kept| kept.url == *url).map(|kept| kept.visit))
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
        visit: &mut dyn FnMut(WaitingUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let tables = &self.tables;
        for row in tables.snapshot().iter(&tables.deferred) {
            let bytes = row.value().map_err(|why| tables.failed(why))?;
            let deferred = tables.decode_deferred(&bytes)?;
            let (depth, hops_off) = depth_and_hops(deferred.depth);
            let waiting = WaitingUrl {
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
        visit: &mut dyn FnMut(WaitingUrl<'_>) -> ControlFlow<()>,
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
