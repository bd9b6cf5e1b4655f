//! A frontier on disk, in a fjall store.

mod codec;
mod desk;
mod heads;
mod names;
mod octets;
mod open;
mod tables;
mod transaction;

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{PersistMode, Readable, Snapshot};

use self::codec::{Sequence, State};
use self::desk::Desk;
use self::tables::{SeenKey, Tables};
use self::transaction::FjallTransaction;
use crate::error::{FrontierError, OpenError};
use crate::fingerprint::FingerprintKey;
use crate::frontier::Frontier;
use crate::known::{Counts, Known, KnownState, Waiting};
use crate::lease::Lease;
use crate::transaction::Transaction;

/// How a [`FjallFrontier`] uses memory and disk.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for blocks read from disk, in octets. The default, 128 MiB, holds the
    /// filters of some 10^8 URLs (10 bits each), so that a new link is mostly known to
    /// be new without a read.
    pub cache_octets: u64,
    /// How many queue entries are held ready in memory, over all origins; a queue is read
    /// from disk in steps of 1/1024 of this, of 2 at least and 64 at most. The default,
    /// 65,536, is about 20 MB, and 64 entries for each of a thousand hosts at work.
    pub head_entries: usize,
    /// What a commit that returned has survived.
    pub durability: Durability,
}

/// What a commit that returned will survive.
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
            cache_octets: 128 << 20,
            head_entries: 65_536,
            durability: Durability::PowerCut,
        }
    }
}

/// The [`Frontier`] that outlives the process: a fjall store in a directory.
///
/// A commit is one atomic batch of the store, synced as [`Options::durability`] says. A
/// torn tail of the store's journal, as a kill leaves it, is cut off on opening. Memory
/// is bounded but for about 200 octets for each origin that has URLs queued.
pub struct FjallFrontier {
    // The order matters: the store closes before the lock goes.
    tables: Tables,
    /// Held by the one transaction that is open. Taken before `desk`.
    writer: Mutex<Sequence>,
    /// Taken for a moment only; a lease may read the disk under it, a commit may not
    /// write under it.
    desk: Mutex<Desk>,
    persist: PersistMode,
    _lock: File,
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
        open::open(dir, options)
    }

    /// The key of this crawl's fingerprints.
    #[must_use]
    pub fn fingerprint_key(&self) -> FingerprintKey {
        self.tables.key
    }

    /// A panic elsewhere leaves the desk whole enough: at worst a lease is noted that
    /// nobody holds, and its URL waits for the next start.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A state, with what is kept beside it.
    fn tell(
        &self,
        from: &Snapshot,
        key: SeenKey,
        url: &CanonicalUrl,
        state: State,
    ) -> Result<Known, FrontierError> {
        let tables = &self.tables;
        let (state, depth, via) = match state {
            State::Pending(place) => {
                let queued = tables.pending(from, url, place)?;
                let attempt = queued.attempt;
                let state = if self.desk().is_leased(key.fingerprint) {
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
                (
                    KnownState::Deferred(deferred.exclusion),
                    depth,
                    deferred.via,
                )
            }
            State::Fetched { depth, status } => (KnownState::Fetched { status }, depth, None),
            State::Failed { depth, why } => (KnownState::Failed { why }, depth, None),
            State::Excluded { depth, exclusion } => (KnownState::Excluded(exclusion), depth, None),
        };
        Ok(Known { state, depth, via })
    }
}

impl Frontier for FjallFrontier {
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError> {
        self.desk().lease(&self.tables, origin)
    }

    fn release(&self, lease: Lease) {
        let key = self.tables.seen_key(&lease.url);
        self.desk().give_back(&self.tables, key);
    }

    fn pending(&self, origin: &Origin) -> u64 {
        self.desk().pending(origin)
    }

    fn origins(&self) -> Vec<(Origin, u64)> {
        self.desk().origins()
    }

    fn counts(&self) -> Counts {
        self.desk().counts()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        // The counters change only after a commit, in one step: no panic leaves them torn.
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(FjallTransaction::new(self, writer)))
    }

    fn known(&self, url: &CanonicalUrl) -> Result<Option<Known>, FrontierError> {
        let tables = &self.tables;
        let key = tables.seen_key(url);
        let snapshot = tables.snapshot();
        let Some(state) = tables.state(&snapshot, key)? else {
            return Ok(None);
        };
        self.tell(&snapshot, key, url, state).map(Some)
    }

    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError> {
        let tables = &self.tables;
        let key = origin.as_str().as_bytes();
        let value = tables.get(&tables.snapshot(), &tables.robots, key)?;
        Ok(value.map(|octets| octets.to_vec()))
    }

    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError> {
        let tables = &self.tables;
        let key = host.as_str().as_bytes();
        tables
            .get(&tables.snapshot(), &tables.hosts, key)?
            .map(|octets| tables.host_value(host.as_str(), &octets))
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
        for row in tables.snapshot().prefix(&tables.meta, names::MARK) {
            let (key, value) = row.into_inner().map_err(|why| tables.failed(why))?;
            let file = std::str::from_utf8(key.get(names::MARK.len()..).unwrap_or_default());
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
        let key = names::of(names::CALLER, name);
        let value = tables.get(&tables.snapshot(), &tables.meta, &key)?;
        Ok(value.map(|octets| octets.to_vec()))
    }

    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(Waiting<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let tables = &self.tables;
        for row in tables.snapshot().iter(&tables.deferred) {
            let octets = row.value().map_err(|why| tables.failed(why))?;
            let deferred = tables.decode_deferred(&octets)?;
            let waiting = Waiting {
                url: &deferred.url,
                depth: deferred.depth,
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
        visit: &mut dyn FnMut(Waiting<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let tables = &self.tables;
        let queues = self.desk().queues();
        let snapshot = tables.snapshot();
        for (origin, id, leased) in queues {
            for row in tables.queue_after(&snapshot, id, None) {
                let (rank, value) = row?;
                if leased.contains(&rank) {
                    continue;
                }
                let queued = tables.queued(&origin, rank, &value)?;
                let waiting = Waiting {
                    url: &queued.url,
                    depth: queued.place.depth,
                    via: queued.via.as_ref(),
                    exclusion: None,
                };
                if visit(waiting).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
