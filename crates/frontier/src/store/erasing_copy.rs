//! Copies the store of a frontier that no crawl uses, without some URLs and hosts.
//!
//! Rows removed from a store stay in its journal and its older files until compaction. To erase
//! data at once, a new store is written without the data, and then replaces the old one. The
//! sieve's sorted runs stay, because they contain only fingerprints and no text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{Database, Keyspace, OwnedWriteBatch, PersistMode, UserValue};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::FjallFrontierOptions;
use super::due_visit_rows::{DueVisitRow, due_value};
use super::meta_keys;
use super::open::{self, database, guarded, open_resting, store_error, sync_folders};
use super::queue_block::QueueBlock;
use super::record_codec::{
    FailureOrExclusionNote, SieveUrlState, StoreCounters, decode_origin, encode_origin,
};
use super::tables::{StoreTables, queue_start};
use crate::admit_rule::{DeferredUrl, QueueRank};
use crate::error::DiskOpenError;
use crate::file_lock::FileLock;
use crate::fingerprint::Fingerprint;
use crate::last_visit::StoredVisit;
use crate::not_fetched_reason::{NotFetchedReason, Reason};
use crate::sieve::{SieveRecord, SystemDisk};

/// The maximum number of rows written in one batch.
const MAX_BATCH_ROWS: usize = 1024;

/// Decides what a copy of a store leaves out. This can be a URL, a host, a reason that names one of
/// these, or a part of a value of the caller.
pub trait RemovalFilter {
    /// Returns whether to leave a URL out of the copy. A URL that was pending or deferred becomes
    /// settled in the copy.
    fn holds(&self, url: &CanonicalUrl) -> bool;

    /// Returns whether to leave the stored state of a host out of the copy.
    fn holds_host(&self, host: &HostKey) -> bool;

    /// Returns whether `text`, the reason why a URL was excluded or failed, names something that is
    /// left out of the copy.
    fn is_named_in(&self, text: &str) -> bool;

    /// Returns the bytes to store in the copy in place of `bytes`, the caller's value under `name`,
    /// or `None` to drop the value.
    fn meta(&self, name: &str, bytes: Vec<u8>) -> Option<Vec<u8>>;

    /// Returns the bytes to store in the copy in place of `bytes`, the caller's bytes of a visit.
    fn visit(&self, bytes: Vec<u8>) -> Vec<u8>;
}

/// Numbers of URLs that a copy leaves out, because they are erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasedUrlCounts {
    /// The number of pending URLs left out, by origin.
    pub pending: BTreeMap<String, u64>,
    /// The number of deferred URLs left out.
    pub deferred: u64,
}

/// A frontier on disk that no crawl uses. Holds the lock of its directory.
pub struct OfflineFrontier {
    dir: PathBuf,
    options: FjallFrontierOptions,
    tables: StoreTables,
    sequence: StoreCounters,
    _lock: FileLock,
}

impl OfflineFrontier {
    /// Opens the frontier in `dir`. Cuts a torn commit off the store's journal, as
    /// [`FjallFrontier::open`](super::FjallFrontier::open) does.
    ///
    /// # Errors
    /// Same as [`FjallFrontier::open`](super::FjallFrontier::open); [`DiskOpenError::Foreign`] if
    /// there is no frontier.
    pub fn open(
        dir: &Path,
        options: &FjallFrontierOptions,
    ) -> Result<OfflineFrontier, DiskOpenError> {
        let (tables, sequence, lock) = open_resting(dir, options)?;
        Ok(OfflineFrontier {
            dir: dir.to_owned(),
            options: options.clone(),
            tables,
            sequence,
            _lock: lock,
        })
    }

    /// Returns the committed length in bytes of each row file or archive file of the crawl, by name
    /// (see [`Transaction::mark`](crate::Transaction::mark)).
    ///
    /// # Errors
    /// [`DiskOpenError`] if the store fails.
    pub fn marks(&self) -> Result<BTreeMap<String, u64>, DiskOpenError> {
        let mut marks = BTreeMap::new();
        self.each(&self.tables.meta, |key, value| {
            if let Some(name) = key.strip_prefix(meta_keys::MARK.as_bytes()) {
                let length = <[u8; 8]>::try_from(value).map_err(|_| self.corrupt("a length"))?;
                let name = String::from_utf8_lossy(name).into_owned();
                marks.insert(name, u64::from_be_bytes(length));
            }
            Ok(())
        })?;
        Ok(marks)
    }

    /// Returns the bytes that the caller stored under `name`.
    ///
    /// # Errors
    /// [`DiskOpenError`] if the store fails.
    pub fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, DiskOpenError> {
        let value = self.tables.meta.get(meta_keys::of(meta_keys::CALLER, name));
        let value = value.map_err(|why| store_error(&self.dir, why))?;
        Ok(value.map(|bytes| bytes.to_vec()))
    }

    /// Copies this store to the folder `to`, without what `removal` leaves out. The copy has
    /// `marks` as the committed lengths of files, and the additional values `more`, by name. When
    /// this returns, the copy is on disk. The caller then replaces the folder `store` with `to`,
    /// before dropping this frontier and its lock.
    ///
    /// # Errors
    /// [`DiskOpenError`] if a store fails.
    pub fn copy_without(
        &self,
        to: &Path,
        removal: &dyn RemovalFilter,
        marks: &BTreeMap<String, u64>,
        more: &BTreeMap<String, Vec<u8>>,
    ) -> Result<ErasedUrlCounts, DiskOpenError> {
        guarded(&self.dir, || {
            let db = database(&self.dir, to, &self.options)?;
            let mut copy = StoreCopy::begin(self, db, removal)?;
            copy.settled_origins()?;
            copy.deferred()?;
            copy.notes()?;
            copy.hosts()?;
            copy.visits()?;
            copy.fresh()?;
            copy.meta(marks, more)?;
            let persisted = copy.db.persist(PersistMode::SyncAll);
            persisted.map_err(|why| store_error(&self.dir, why))?;
            Ok(copy.left_out)
        })
        .and_then(|left_out| {
            let synced = sync_folders(to, &SystemDisk);
            synced.map_err(|source| DiskOpenError::Io {
                path: to.to_owned(),
                source,
            })?;
            Ok(left_out)
        })
    }

    fn each(
        &self,
        table: &Keyspace,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), DiskOpenError>,
    ) -> Result<(), DiskOpenError> {
        for row in table.iter() {
            let (key, value): (UserValue, UserValue) = row
                .into_inner()
                .map_err(|why| store_error(&self.dir, why))?;
            visit(&key, &value)?;
        }
        Ok(())
    }

    fn corrupt(&self, what: &str) -> DiskOpenError {
        open::corrupt(&self.dir, what.to_owned())
    }
}

/// A copy of a store, while it is being created.
struct StoreCopy<'f> {
    from: &'f OfflineFrontier,
    removal: &'f dyn RemovalFilter,
    db: Database,
    tables: HashMap<&'static str, Keyspace>,
    batch: OwnedWriteBatch,
    rows: usize,
    sequence: StoreCounters,
    /// Pending and deferred URLs that are left out of the copy, which records these URLs as
    /// settled. Each comes with its depth.
    forgotten: Vec<(Fingerprint, u32)>,
    left_out: ErasedUrlCounts,
}

impl<'f> StoreCopy<'f> {
    fn begin(
        from: &'f OfflineFrontier,
        db: Database,
        removal: &'f dyn RemovalFilter,
    ) -> Result<StoreCopy<'f>, DiskOpenError> {
        let failed = |why| store_error(&from.dir, why);
        let mut tables = HashMap::new();
        for (name, memory) in open::TABLES {
            let table = db.keyspace(name, || open::table_options(name, memory));
            tables.insert(name, table.map_err(failed)?);
        }
        Ok(StoreCopy {
            batch: db.batch(),
            from,
            removal,
            db,
            tables,
            rows: 0,
            sequence: from.sequence,
            forgotten: Vec::new(),
            left_out: ErasedUrlCounts::default(),
        })
    }

    fn put(&mut self, table: &str, key: &[u8], value: &[u8]) -> Result<(), DiskOpenError> {
        self.batch.insert(&self.tables[table], key, value);
        self.rows += 1;
        match self.rows >= MAX_BATCH_ROWS {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), DiskOpenError> {
        self.rows = 0;
        let mut batch = std::mem::replace(&mut self.batch, self.db.batch());
        // Write `meta` with each batch. On opening, a table that is newer than `meta` means that
        // the journal has lost a commit.
        let sequence = self.sequence.encode();
        batch.insert(&self.tables["meta"], meta_keys::SEQUENCE, sequence);
        let committed = batch.commit();
        committed.map_err(|why| store_error(&self.from.dir, why))
    }

    /// Copies the origins, each with its queue.
    fn settled_origins(&mut self) -> Result<(), DiskOpenError> {
        let from = self.from;
        from.each(&from.tables.origins, |key, value| {
            let record = decode_origin(value)
                .and_then(|(id, queued, text)| Some((id, queued, Origin::parse(text).ok()?)));
            let (id, queued, origin) = record.ok_or_else(|| from.corrupt("an origin"))?;
            let removed = self.queue(&origin, id)?;
            let remaining = queued.saturating_sub(removed);
            if removed > 0 {
                self.left_out.pending.insert(origin.to_string(), removed);
            }
            if self.removal.holds_host(&origin.host_key()) {
                return Ok(());
            }
            self.put(
                "origins",
                key,
                &encode_origin(id, remaining, origin.as_str()),
            )
        })
    }

    /// Copies the queue of an origin. Returns how many of its URLs `removal` left out.
    fn queue(&mut self, origin: &Origin, id: u64) -> Result<u64, DiskOpenError> {
        let (from, removal) = (self.from, self.removal);
        let damaged = || from.corrupt("queued URLs");
        let mut removed = 0;
        let root = origin.url("/");
        let range = queue_start(id).to_vec()..queue_start(id + 1).to_vec();
        for row in from.tables.queue.range(range) {
            let (key, value) = row
                .into_inner()
                .map_err(|why| store_error(&from.dir, why))?;
            let rank = key
                .get(queue_start(id).len()..)
                .and_then(QueueRank::from_bytes);
            let rank = rank.ok_or_else(damaged)?;
            let block = QueueBlock::parse(&value).ok_or_else(damaged)?;
            // The block is rebuilt, because it may contain vias (pages that URLs were found on)
            // that no entry uses any more.
            let mut remaining = QueueBlock::default();
            for entry in block.entries(&root, rank) {
                let mut queued = entry.read().ok_or_else(damaged)?;
                if removal.holds(&queued.url) {
                    let fingerprint = from.tables.key.fingerprint(&queued.url);
                    self.forgotten.push((fingerprint, queued.place.depth));
                    self.sequence
                        .totals
                        .decrement(&SieveUrlState::Pending(queued.place));
                    removed += 1;
                    continue;
                }
                queued.via = queued.via.filter(|via| !removal.holds(via));
                remaining.put(&queued);
            }
            if !remaining.is_empty() {
                self.put("queue", &key, &remaining.encode())?;
            }
        }
        Ok(removed)
    }

    fn deferred(&mut self) -> Result<(), DiskOpenError> {
        let (from, removal) = (self.from, self.removal);
        from.each(&from.tables.deferred, |key, value| {
            let deferred = DeferredUrl::decode(value);
            let mut deferred = deferred.ok_or_else(|| from.corrupt("a deferred URL"))?;
            if removal.holds(&deferred.url) {
                let fingerprint = from.tables.key.fingerprint(&deferred.url);
                self.forgotten.push((fingerprint, deferred.depth));
                self.sequence.totals.decrement(&SieveUrlState::Deferred {
                    depth: deferred.depth,
                    redirects: deferred.redirects,
                });
                self.left_out.deferred += 1;
                return Ok(());
            }
            deferred.via = deferred.via.filter(|via| !removal.holds(via));
            deferred.exclusion = self.without_names(deferred.exclusion);
            self.put("deferred", key, &deferred.encode())
        })
    }

    fn without_names(&self, exclusion: NotFetchedReason) -> NotFetchedReason {
        NotFetchedReason {
            rule: exclusion
                .rule
                .filter(|rule| !self.removal.is_named_in(rule)),
            ..exclusion
        }
    }

    fn notes(&mut self) -> Result<(), DiskOpenError> {
        let from = self.from;
        from.each(&from.tables.notes, |key, value| {
            let note = match FailureOrExclusionNote::decode(value)
                .ok_or_else(|| from.corrupt("a note"))?
            {
                FailureOrExclusionNote::Why(why) if self.removal.is_named_in(&why) => {
                    FailureOrExclusionNote::Why(String::new())
                }
                FailureOrExclusionNote::Why(why) => FailureOrExclusionNote::Why(why),
                FailureOrExclusionNote::Exclusion(exclusion) => {
                    FailureOrExclusionNote::Exclusion(self.without_names(exclusion))
                }
            };
            self.put("notes", key, &note.encode())
        })
    }

    /// Copies the stored state of hosts, and the stored copies of robots.txt files.
    fn hosts(&mut self) -> Result<(), DiskOpenError> {
        let (from, removal) = (self.from, self.removal);
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        from.each(&from.tables.hosts, |key, value| {
            let host = HostKey::parse(&text(key));
            match host.is_ok_and(|host| removal.holds_host(&host)) {
                true => Ok(()),
                false => self.put("hosts", key, value),
            }
        })?;
        from.each(&from.tables.robots, |key, value| {
            let origin = Origin::parse(&text(key));
            match origin.is_ok_and(|origin| removal.holds_host(&origin.host_key())) {
                true => Ok(()),
                false => self.put("robots", key, value),
            }
        })
    }

    fn visits(&mut self) -> Result<(), DiskOpenError> {
        let (from, removal) = (self.from, self.removal);
        let mut removed = HashSet::new();
        from.each(&from.tables.visits, |key, value| {
            let visit = StoredVisit::decode(value);
            let mut visit = visit.ok_or_else(|| from.corrupt("what is kept of a visit"))?;
            if removal.holds(&visit.url) {
                removed.insert(key.to_vec());
                return Ok(());
            }
            visit.via = visit.via.filter(|via| !removal.holds(via));
            visit.visit.bytes = removal.visit(visit.visit.bytes);
            self.put("visits", key, &visit.encode())
        })?;
        from.each(&from.tables.due, |key, value| {
            let row = DueVisitRow::parse(key, value).ok_or_else(|| from.corrupt("a row of due"))?;
            let is_gone = |url: &Fingerprint| removed.contains(&url.bytes()[..]);
            if !row.urls.iter().any(is_gone) {
                return self.put("due", key, value);
            }
            let remaining: Vec<_> = row.urls.into_iter().filter(|url| !is_gone(url)).collect();
            match remaining.is_empty() {
                true => Ok(()),
                false => self.put("due", key, &due_value(&remaining)),
            }
        })
    }

    /// Copies the sieve's records that no sorted run contains yet. Adds records that settle the
    /// URLs in `forgotten`.
    fn fresh(&mut self) -> Result<(), DiskOpenError> {
        let from = self.from;
        from.each(&from.tables.fresh, |key, value| {
            self.put("fresh", key, value)
        })?;
        if self.forgotten.is_empty() {
            return Ok(());
        }
        self.sequence.note += 1;
        let note = FailureOrExclusionNote::Exclusion(NotFetchedReason::of(Reason::Forgotten));
        let number = self.sequence.note;
        self.put("notes", &number.to_be_bytes(), &note.encode())?;
        for urls in std::mem::take(&mut self.forgotten).chunks(MAX_BATCH_ROWS) {
            let mut records = Vec::new();
            for (key, depth) in urls {
                let state = SieveUrlState::Excluded {
                    depth: *depth,
                    note: number,
                };
                self.sequence.totals.increment(&state);
                let record = SieveRecord {
                    key: *key,
                    state: state.packed(),
                };
                record.put(&mut records);
            }
            self.sequence.commit += 1;
            let commit = self.sequence.commit.to_be_bytes();
            self.put("fresh", &commit, &records)?;
        }
        Ok(())
    }

    fn meta(
        &mut self,
        marks: &BTreeMap<String, u64>,
        more: &BTreeMap<String, Vec<u8>>,
    ) -> Result<(), DiskOpenError> {
        let (from, removal) = (self.from, self.removal);
        from.each(&from.tables.meta, |key, value| {
            let name = String::from_utf8_lossy(key);
            if name.starts_with(meta_keys::MARK) || name == meta_keys::SEQUENCE {
                return Ok(());
            }
            let value = match name.strip_prefix(meta_keys::CALLER) {
                Some(name) if more.contains_key(name) => None,
                Some(name) => removal.meta(name, value.to_vec()),
                None => Some(value.to_vec()),
            };
            match value {
                Some(value) => self.put("meta", key, &value),
                None => Ok(()),
            }
        })?;
        for (name, length) in marks {
            let key = meta_keys::of(meta_keys::MARK, name);
            self.put("meta", &key, &length.to_be_bytes())?;
        }
        for (name, bytes) in more {
            self.put("meta", &meta_keys::of(meta_keys::CALLER, name), bytes)?;
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests;
