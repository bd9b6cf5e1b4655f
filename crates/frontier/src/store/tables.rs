//! The tables of the store, and functions that read them.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | layout, fingerprint key, counters, runs, file lengths, the caller's values |
//! | `origins` | hash of the origin | its number, URLs queued, its text |
//! | `fresh` | commit number | records for the sieve, until a run contains them |
//! | `queue` | origin number, round, priority, depth, sequence | a block of entries |
//! | `notes` | number | why URLs failed or were excluded |
//! | `deferred` | fingerprint | URL, via, depth, exclusion |
//! | `hosts` | host | wake time, bytes |
//! | `robots` | origin | bytes |
//! | `visits` | fingerprint | the last visit of a URL |
//! | `due` | due time, commit number | fingerprints of URLs that the commit settled |
//!
//! Each origin has its own number, which starts the keys of its queue, so two origins never share
//! a queue.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::PathBuf;

use crawl_weburl::{CanonicalUrl, Origin};
use fjall::{Database, Keyspace, PersistMode, Readable, Snapshot, UserValue};

use super::meta_keys;
use super::queue_block::{QueueBlock, row_of};
use super::record_codec::{FailureOrExclusionNote, RANK_BYTES, decode_origin};
use crate::admit_rule::{DeferredUrl, PendingUrlFields, QueueRank, QueuedUrl};
use crate::error::FrontierError;
use crate::fingerprint::{Fingerprint, FingerprintKey};
use crate::lease_table::{OriginWithQueueId, QueueReadResult, QueueReader};
use crate::sieve::{RunListStore, RunManifest, SortedRunError};

/// The maximum number of rows of `fresh` (one per commit) that are removed in one batch.
const FORGET_STEP: usize = 1000;

/// The result of a function that is called for each row: whether to continue, or an error.
pub(super) type ScanControl = Result<ControlFlow<()>, FrontierError>;

/// The tables of an open store.
pub(super) struct StoreTables {
    pub(super) dir: PathBuf,
    pub(super) key: FingerprintKey,
    pub(super) persist: PersistMode,
    pub(super) db: Database,
    pub(super) meta: Keyspace,
    pub(super) origins: Keyspace,
    pub(super) fresh: Keyspace,
    pub(super) queue: Keyspace,
    pub(super) notes: Keyspace,
    pub(super) deferred: Keyspace,
    pub(super) hosts: Keyspace,
    pub(super) robots: Keyspace,
    pub(super) visits: Keyspace,
    pub(super) due: Keyspace,
}

impl StoreTables {
    /// Returns a view that no commit changes. Callers that don't hold the writer's lock must read
    /// through a snapshot, because a plain read may see half of a commit that is being applied.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.db.snapshot()
    }

    pub(super) fn get(
        &self,
        from: &Snapshot,
        table: &Keyspace,
        key: &[u8],
    ) -> Result<Option<UserValue>, FrontierError> {
        from.get(table, key).map_err(|why| self.failed(why))
    }

    /// Returns an origin's number and the number of its queued URLs.
    pub(super) fn origin_queue(
        &self,
        from: &Snapshot,
        origin: &Origin,
    ) -> Result<Option<(u64, u64)>, FrontierError> {
        let Some(bytes) = self.get(from, &self.origins, &self.key.origin(origin))? else {
            return Ok(None);
        };
        match decode_origin(&bytes) {
            Some((id, queued, text)) if text == origin.as_str() => Ok(Some((id, queued))),
            _ => Err(self.corrupt(&format!("the record of origin {origin}"))),
        }
    }

    /// Returns the encoded queue block that contains the entry at `rank` in queue number `id`, or
    /// `None` if there is no such block.
    pub(super) fn block(
        &self,
        from: &Snapshot,
        id: u64,
        rank: QueueRank,
    ) -> Result<Option<UserValue>, FrontierError> {
        self.get(from, &self.queue, &queue_key(id, row_of(rank)))
    }

    /// Returns the entry at `rank` in queue number `id`, which is the queue of `origin`.
    pub(super) fn entry(
        &self,
        from: &Snapshot,
        origin: &Origin,
        id: u64,
        rank: QueueRank,
    ) -> Result<Option<QueuedUrl>, FrontierError> {
        let Some(bytes) = self.block(from, id, rank)? else {
            return Ok(None);
        };
        Ok(QueueBlock::parse(&bytes).and_then(|block| block.entry(&origin.url("/"), rank)))
    }

    /// Returns the queue entry of a URL that is pending at `place`. Fails if there is none.
    pub(super) fn pending(
        &self,
        from: &Snapshot,
        url: &CanonicalUrl,
        place: PendingUrlFields,
    ) -> Result<QueuedUrl, FrontierError> {
        let origin = url.origin();
        let entry = match self.origin_queue(from, &origin)? {
            Some((id, _)) => self.entry(from, &origin, id, place.rank())?,
            None => None,
        };
        entry
            .filter(|queued| queued.url == *url)
            .ok_or_else(|| self.corrupt(&format!("`{url}` is not in its queue")))
    }

    /// Splits the stored value of a host into its wake time (in microseconds since the Unix epoch)
    /// and its opaque bytes.
    pub(super) fn host_value(
        &self,
        host: &str,
        value: &[u8],
    ) -> Result<(u64, Vec<u8>), FrontierError> {
        let Some((wake, bytes)) = value.split_first_chunk() else {
            return Err(self.corrupt(&format!("the record of host {host}")));
        };
        Ok((u64::from_be_bytes(*wake), bytes.to_vec()))
    }

    pub(super) fn deferred(
        &self,
        from: &Snapshot,
        key: Fingerprint,
    ) -> Result<Option<DeferredUrl>, FrontierError> {
        self.get(from, &self.deferred, &key.bytes())?
            .map(|bytes| self.decode_deferred(&bytes))
            .transpose()
    }

    pub(super) fn decode_deferred(&self, bytes: &[u8]) -> Result<DeferredUrl, FrontierError> {
        DeferredUrl::decode(bytes).ok_or_else(|| self.corrupt("a deferred URL"))
    }

    pub(super) fn note(
        &self,
        from: &Snapshot,
        number: u64,
    ) -> Result<FailureOrExclusionNote, FrontierError> {
        self.get(from, &self.notes, &number.to_be_bytes())?
            .and_then(|bytes| FailureOrExclusionNote::decode(&bytes))
            .ok_or_else(|| self.corrupt(&format!("note {number}")))
    }

    /// Calls `visit` for the entries of an origin's queue after the rank `after`, in order, until
    /// `visit` breaks. `visit` gets the rank and a function that parses the entry.
    pub(super) fn walk_queue(
        &self,
        from: &Snapshot,
        (origin, id): (&Origin, u64),
        after: Option<QueueRank>,
        mut visit: impl FnMut(QueueRank, &dyn Fn() -> Result<QueuedUrl, FrontierError>) -> ScanControl,
    ) -> ScanControl {
        let start = match after {
            None => queue_start(id).to_vec(),
            Some(rank) => queue_key(id, row_of(rank)).to_vec(),
        };
        let end = queue_start(id + 1).to_vec();
        let damaged = || self.corrupt(&format!("queued URLs of {origin}"));
        let root = origin.url("/");
        for row in from.range(&self.queue, start..end) {
            let (key, value) = row.into_inner().map_err(|why| self.failed(why))?;
            let row = key.get(ID_BYTES..).and_then(QueueRank::from_bytes);
            let row = row.ok_or_else(|| self.corrupt("a key in queue"))?;
            let block = QueueBlock::parse(&value).ok_or_else(damaged)?;
            for entry in block.entries(&root, row) {
                let behind = after.is_none_or(|after| entry.rank > after);
                let read = || entry.read().ok_or_else(damaged);
                if behind && visit(entry.rank, &read)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn failed(&self, why: fjall::Error) -> FrontierError {
        if let Some(what) = damage(&why) {
            return self.corrupt(&what);
        }
        FrontierError::Store {
            dir: self.dir.clone(),
            source: Box::new(why),
        }
    }

    pub(super) fn corrupt(&self, what: &str) -> FrontierError {
        FrontierError::Corrupt {
            dir: self.dir.clone(),
            what: what.to_owned(),
        }
    }
}

impl QueueReader for StoreTables {
    fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint {
        self.key.fingerprint(url)
    }

    fn read_behind(
        &self,
        queue: OriginWithQueueId<'_>,
        after: Option<QueueRank>,
        leased: &BTreeSet<QueueRank>,
        wanted: usize,
    ) -> Result<QueueReadResult, FrontierError> {
        let mut part = QueueReadResult::default();
        let on_disk = (queue.origin, queue.id);
        let walk = self.walk_queue(&self.snapshot(), on_disk, after, |rank, read| {
            if !leased.contains(&rank) {
                part.entries.push((rank, read()?));
            }
            if part.entries.len() < wanted {
                return Ok(ControlFlow::Continue(()));
            }
            part.last = Some(rank);
            Ok(ControlFlow::Break(()))
        });
        walk.map(|_| part)
    }
}

impl RunListStore for StoreTables {
    fn keep(&self, manifest: &RunManifest) -> Result<(), FrontierError> {
        let mut batch = self.db.batch().durability(Some(self.persist));
        batch.insert(&self.meta, meta_keys::RUNS, manifest.encode());
        batch.commit().map_err(|why| self.failed(why))
    }

    fn forget(&self, commits: RangeInclusive<u64>) -> Result<(), FrontierError> {
        let held = self.snapshot();
        let (from, to) = (commits.start().to_be_bytes(), commits.end().to_be_bytes());
        let mut rows = held.range(&self.fresh, from..=to).peekable();
        while rows.peek().is_some() {
            // Sync the batch, because the check for a torn journal assumes that at most one batch
            // is unsynced. The removals alone would need no sync: a row that comes back does no
            // harm.
            let mut batch = self.db.batch().durability(Some(self.persist));
            for row in rows.by_ref().take(FORGET_STEP) {
                batch.remove(&self.fresh, row.key().map_err(|why| self.failed(why))?);
            }
            batch.commit().map_err(|why| self.failed(why))?;
        }
        Ok(())
    }

    fn run_failed(&self, why: SortedRunError) -> FrontierError {
        match why {
            SortedRunError::Damaged { .. } => self.corrupt(&why.to_string()),
            SortedRunError::Io { .. } => FrontierError::Store {
                dir: self.dir.clone(),
                source: Box::new(why),
            },
        }
    }
}

/// The number of bytes of an origin's number (40 bits) in a key of the table `queue`. With it, a
/// key has 16 bytes, short enough for the store to keep it inline.
const ID_BYTES: usize = 5;

pub(super) fn queue_start(id: u64) -> [u8; ID_BYTES] {
    let [_, _, _, bytes @ ..] = id.to_be_bytes();
    bytes
}

pub(super) fn queue_key(id: u64, rank: QueueRank) -> [u8; ID_BYTES + RANK_BYTES] {
    let mut out = [0; ID_BYTES + RANK_BYTES];
    out[..ID_BYTES].copy_from_slice(&queue_start(id));
    out[ID_BYTES..].copy_from_slice(&rank.bytes());
    out
}

/// Returns a description of the damage that a store error reports, or `None` if the error is not
/// about damage.
pub(super) fn damage(why: &fjall::Error) -> Option<String> {
    use fjall::{Error, LsmError};
    match why {
        Error::Io(_) | Error::Poisoned | Error::Locked | Error::KeyspaceDeleted => None,
        Error::Storage(LsmError::Io(_)) => None,
        Error::Storage(inner) => Some(inner.to_string()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use fjall::{Error, LsmError};

    use super::damage;

    #[test]
    fn a_failing_disk_is_not_a_damaged_store() {
        let disk_error = || io::Error::other("no space");
        for why in [
            Error::Io(disk_error()),
            Error::Storage(LsmError::Io(disk_error())),
            Error::Poisoned,
            Error::Locked,
            Error::KeyspaceDeleted,
        ] {
            assert_eq!(damage(&why), None, "{why}");
        }
        for why in [
            Error::Storage(LsmError::InvalidTrailer),
            Error::InvalidTrailer,
            Error::Unrecoverable,
        ] {
            assert!(damage(&why).is_some_and(|what| !what.is_empty()), "{why}");
        }
        let tree_damage = damage(&Error::Storage(LsmError::InvalidHeader("Block")));
        assert!(tree_damage.is_some_and(|what| what.contains("Block")));
    }
}
