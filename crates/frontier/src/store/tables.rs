//! The tables on disk and how they are read.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | layout, fingerprint key, counters, file lengths, the caller's own |
//! | `origins` | origin | its number, URLs queued |
//! | `seen` | 64-bit hash of the origin, fingerprint | state, depth, status or exclusion |
//! | `queue` | origin number, round, priority, depth, sequence | URL, via, attempt, .. |
//! | `deferred` | as `seen` | URL, via, depth, exclusion |
//! | `hosts` | host | wake time, bytes |
//! | `robots` | origin | bytes |
//!
//! Origins get their numbers in the order they are met, so two never share a queue. In
//! `seen` the hash only brings the URLs of one origin together, so that the links of a
//! page touch few blocks; the fingerprint alone tells URLs apart, and two origins of
//! equal hash do no harm.

use std::ops::Bound;
use std::path::PathBuf;

use crawl_weburl::{CanonicalUrl, Origin};
use fjall::{Database, Iter, Keyspace, Readable, Snapshot, UserValue};

use super::codec::{RANK_OCTETS, State, decode_line};
use crate::error::FrontierError;
use crate::fingerprint::{Fingerprint, FingerprintKey};
use crate::state::{Deferred, Place, Queued, Rank};

/// The key of a URL in `seen` and `deferred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SeenKey {
    place: u64,
    pub(super) fingerprint: Fingerprint,
}

/// The value of a pending URL as it stands in `queue`.
pub(super) type QueueValue = Box<[u8]>;

pub(super) struct Tables {
    pub(super) dir: PathBuf,
    pub(super) key: FingerprintKey,
    pub(super) db: Database,
    pub(super) meta: Keyspace,
    pub(super) origins: Keyspace,
    pub(super) seen: Keyspace,
    pub(super) queue: Keyspace,
    pub(super) deferred: Keyspace,
    pub(super) hosts: Keyspace,
    pub(super) robots: Keyspace,
}

impl SeenKey {
    pub(super) fn octets(self) -> [u8; 24] {
        let mut out = [0; 24];
        out[..8].copy_from_slice(&self.place.to_be_bytes());
        out[8..].copy_from_slice(&self.fingerprint.as_u128().to_be_bytes());
        out
    }
}

impl Tables {
    pub(super) fn seen_key(&self, url: &CanonicalUrl) -> SeenKey {
        SeenKey {
            place: self.key.place(url),
            fingerprint: self.key.fingerprint(url),
        }
    }

    /// A view that no commit changes. A plain read may see half of a commit that is
    /// being applied, so whoever does not hold the writer's lock reads through this.
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

    pub(super) fn state(
        &self,
        from: &Snapshot,
        key: SeenKey,
    ) -> Result<Option<State>, FrontierError> {
        self.get(from, &self.seen, &key.octets())?
            .map(|octets| State::decode(&octets).ok_or_else(|| self.corrupt("a record in seen")))
            .transpose()
    }

    /// An origin's number and how many URLs it has queued.
    pub(super) fn line(
        &self,
        from: &Snapshot,
        origin: &Origin,
    ) -> Result<Option<(u64, u64)>, FrontierError> {
        self.get(from, &self.origins, origin.as_str().as_bytes())?
            .map(|octets| {
                let corrupt = || self.corrupt(&format!("the record of origin {origin}"));
                decode_line(&octets).ok_or_else(corrupt)
            })
            .transpose()
    }

    /// The queue's entry at a rank, as stored.
    pub(super) fn queue_value(
        &self,
        from: &Snapshot,
        id: u64,
        rank: Rank,
    ) -> Result<Option<QueueValue>, FrontierError> {
        let value = self.get(from, &self.queue, &queue_key(id, rank))?;
        Ok(value.map(|octets| octets.as_ref().into()))
    }

    pub(super) fn queued(
        &self,
        origin: &Origin,
        rank: Rank,
        value: &[u8],
    ) -> Result<Queued, FrontierError> {
        Queued::decode(origin, rank, value)
            .ok_or_else(|| self.corrupt(&format!("a queued URL of {origin}")))
    }

    /// The whole entry of a URL that is pending at `place`.
    pub(super) fn pending(
        &self,
        from: &Snapshot,
        url: &CanonicalUrl,
        place: Place,
    ) -> Result<Queued, FrontierError> {
        let origin = url.origin();
        let value = match self.line(from, &origin)? {
            Some((id, _)) => self.queue_value(from, id, place.rank())?,
            None => None,
        };
        let value = value.ok_or_else(|| self.corrupt(&format!("`{url}` is not in its queue")))?;
        self.queued(&origin, place.rank(), &value)
    }

    /// The wake time and bytes kept for a host.
    pub(super) fn host_value(
        &self,
        host: &str,
        octets: &[u8],
    ) -> Result<(u64, Vec<u8>), FrontierError> {
        let Some((wake, bytes)) = octets.split_first_chunk() else {
            return Err(self.corrupt(&format!("the record of host {host}")));
        };
        Ok((u64::from_be_bytes(*wake), bytes.to_vec()))
    }

    pub(super) fn deferred(
        &self,
        from: &Snapshot,
        key: SeenKey,
    ) -> Result<Option<Deferred>, FrontierError> {
        self.get(from, &self.deferred, &key.octets())?
            .map(|octets| self.decode_deferred(&octets))
            .transpose()
    }

    pub(super) fn decode_deferred(&self, octets: &[u8]) -> Result<Deferred, FrontierError> {
        Deferred::decode(octets).ok_or_else(|| self.corrupt("a deferred URL"))
    }

    /// An origin's queue behind a rank.
    pub(super) fn queue_after(
        &self,
        from: &Snapshot,
        id: u64,
        after: Option<Rank>,
    ) -> impl Iterator<Item = Result<(Rank, QueueValue), FrontierError>> {
        let start = match after {
            None => Bound::Included(id.to_be_bytes().to_vec()),
            Some(rank) => Bound::Excluded(queue_key(id, rank).to_vec()),
        };
        let end = Bound::Excluded(id.saturating_add(1).to_be_bytes().to_vec());
        let rows: Iter = from.range(&self.queue, (start, end));
        rows.map(|row| {
            let (key, value) = row.into_inner().map_err(|why| self.failed(why))?;
            let rank = key.get(8..).and_then(Rank::from_octets);
            let rank = rank.ok_or_else(|| self.corrupt("a key in queue"))?;
            // Copied: a slice of the store's block would keep the whole block.
            Ok((rank, value.as_ref().into()))
        })
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

pub(super) fn queue_key(id: u64, rank: Rank) -> [u8; 8 + RANK_OCTETS] {
    let mut out = [0; 8 + RANK_OCTETS];
    out[..8].copy_from_slice(&id.to_be_bytes());
    out[8..].copy_from_slice(&rank.octets());
    out
}

/// What is damaged, where the store's error says that something is.
pub(super) fn damage(why: &fjall::Error) -> Option<String> {
    use fjall::{Error, LsmError};
    match why {
        Error::Io(_) | Error::Poisoned | Error::Locked | Error::KeyspaceDeleted => None,
        Error::Storage(LsmError::Io(_)) => None,
        Error::Storage(inner) => Some(inner.to_string()),
        other => Some(other.to_string()),
    }
}
