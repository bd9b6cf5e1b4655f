//! The table of leases: for each origin its queue's length, the leased URLs and the head, in
//! memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt};

use super::queue_heads::{HeadEntry, QueueHeadCache};
use super::record_codec::Totals;
use super::tables::Tables;
use crate::admit_rule::{Queued, Rank};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::lease::Lease;
use crate::url_state::UrlCounts;

/// The leases that are out, and the queues that more may be given out of.
///
/// Guarded by one mutex that is never held while a commit writes or syncs. A commit changes
/// the tables of the store first and this a moment later ([`LeaseTable::merge`]); in between,
/// it may know less than the store, never more.
pub(super) struct LeaseTable {
    /// The origins with queued URLs.
    queues: HashMap<Origin, OriginQueue>,
    leased: HashMap<Fingerprint, (Origin, Rank)>,
    heads: QueueHeadCache<Queued>,
    totals: Totals,
    /// The number of the last commit.
    pub(super) commit: u64,
}

struct OriginQueue {
    id: u64,
    /// URLs in the queue on disk, leased ones among them.
    queued: u64,
    /// The ranks of those that are leased.
    leased: BTreeSet<Rank>,
}

/// The changes of a commit.
#[derive(Default)]
pub(super) struct LeaseChanges {
    pub(super) settled: Vec<Fingerprint>,
    pub(super) queues: Vec<QueueChange>,
    pub(super) totals: Totals,
}

/// The changes of a commit in one origin's queue.
pub(super) struct QueueChange {
    pub(super) origin: Origin,
    pub(super) id: u64,
    /// URLs that it has queued now.
    pub(super) queued: u64,
    pub(super) moves: Vec<EntryMove>,
}

/// A queue's entry that came, went or moved.
pub(super) struct EntryMove {
    pub(super) fingerprint: Fingerprint,
    pub(super) old: Option<Rank>,
    pub(super) new: Option<Queued>,
}

impl OriginQueue {
    fn pending(&self) -> u64 {
        self.queued.saturating_sub(self.leased.len() as u64)
    }
}

impl LeaseTable {
    pub(super) fn new(queues: Vec<(Origin, u64, u64)>, totals: Totals, limit: usize) -> LeaseTable {
        let mut leases = LeaseTable {
            queues: HashMap::with_capacity(queues.len()),
            leased: HashMap::new(),
            heads: QueueHeadCache::new(limit),
            totals,
            commit: 0,
        };
        for (origin, id, queued) in queues {
            leases.set_origin_queue(&origin, id, queued);
        }
        leases
    }

    /// An origin's number and how many URLs it has queued, if it has any.
    pub(super) fn origin_queue(&self, origin: &Origin) -> Option<(u64, u64)> {
        self.queues
            .get(origin)
            .map(|queue| (queue.id, queue.queued))
    }

    pub(super) fn is_leased(&self, fingerprint: Fingerprint) -> bool {
        self.leased.contains_key(&fingerprint)
    }

    pub(super) fn pending(&self, origin: &Origin) -> u64 {
        self.queues.get(origin).map_or(0, OriginQueue::pending)
    }

    /// The origins with pending URLs, in no order.
    pub(super) fn origins(&self) -> Vec<(Origin, u64)> {
        let queues = self.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.pending()))
            .filter(|&(_, pending)| pending > 0)
            .collect()
    }

    /// Each origin with queued URLs, its number and the ranks that are leased, in no order.
    pub(super) fn queues(&self) -> Vec<(Origin, u64, BTreeSet<Rank>)> {
        let queues = self.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.id, queue.leased.clone()))
            .collect()
    }

    pub(super) fn counts(&self) -> UrlCounts {
        let Totals {
            pending,
            deferred,
            fetched,
            failed,
            excluded,
        } = self.totals;
        let leased = self.leased.len() as u64;
        UrlCounts {
            known: pending + deferred + fetched + failed + excluded,
            pending: pending.saturating_sub(leased),
            leased,
            fetched,
            failed,
            excluded,
            deferred,
        }
    }

    pub(super) fn lease(
        &mut self,
        tables: &Tables,
        origin: &Origin,
    ) -> Result<Option<Lease>, FrontierError> {
        loop {
            let Some(queue) = self
                .queues
                .get_mut(origin)
                .filter(|queue| queue.pending() > 0)
            else {
                return Ok(None);
            };
            let (rank, queued) = match self.heads.take_first(origin) {
                HeadEntry::Entry(rank, queued) => (rank, queued),
                HeadEntry::Nothing => return Ok(None),
                HeadEntry::Unknown(after) => {
                    let wanted = self.heads.wanted(origin);
                    let (entries, last) = read_behind(tables, origin, queue, after, wanted)?;
                    self.heads.refill(origin, entries, last);
                    continue;
                }
            };
            let fingerprint = tables.key.fingerprint(&queued.url);
            // Read between a commit and its merge, a URL may stand at a new place while
            // its lease is noted at the old one. The merge will put that right.
            if self.leased.contains_key(&fingerprint) {
                continue;
            }
            queue.leased.insert(rank);
            self.leased.insert(fingerprint, (origin.clone(), rank));
            return Ok(Some(Lease::new(origin.clone(), queued, self.commit)));
        }
    }

    /// A leased URL is pending again.
    pub(super) fn give_back(&mut self, tables: &Tables, key: Fingerprint) {
        let Some((origin, rank)) = self.leased.remove(&key) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&origin) else {
            return;
        };
        queue.leased.remove(&rank);
        match tables.entry(&tables.snapshot(), &origin, queue.id, rank) {
            Ok(Some(queued)) => self.heads.offer(&origin, rank, queued),
            // Moved by a commit that is about to be merged, or the disk fails: then the
            // next lease reads it there, or says so.
            Ok(None) | Err(_) => self.heads.forget(&origin),
        }
    }

    /// Takes in what a commit changed in the tables; says what each queue has pending.
    pub(super) fn merge(&mut self, merge: LeaseChanges) -> Vec<(Origin, u64)> {
        for fingerprint in merge.settled {
            self.unlease(fingerprint);
        }
        self.totals = merge.totals;
        let mut pending = Vec::with_capacity(merge.queues.len());
        for change in merge.queues {
            let origin = change.origin;
            self.set_origin_queue(&origin, change.id, change.queued);
            for moved in change.moves {
                self.apply(&origin, moved);
            }
            if change.queued == 0 {
                self.queues.remove(&origin);
                self.heads.forget(&origin);
            }
            let left = self.pending(&origin);
            pending.push((origin, left));
        }
        pending
    }

    /// As if other origins had used up the memory for heads.
    #[cfg(test)]
    pub(super) fn forget_heads(&mut self) {
        for origin in self.queues.keys() {
            self.heads.forget(origin);
        }
    }

    fn apply(&mut self, origin: &Origin, moved: EntryMove) {
        if let Some(rank) = moved.old {
            self.heads.remove(origin, rank);
        }
        let Some(queued) = moved.new else {
            return;
        };
        let rank = queued.place.rank();
        match self.leased.get_mut(&moved.fingerprint) {
            // Leased while the transaction that moves it stood open: it keeps its lease.
            Some((_, leased)) => {
                let old = std::mem::replace(leased, rank);
                self.heads.remove(origin, rank);
                if let Some(queue) = self.queues.get_mut(origin) {
                    queue.leased.remove(&old);
                    queue.leased.insert(rank);
                }
            }
            None => self.heads.offer(origin, rank, queued),
        }
    }

    fn unlease(&mut self, fingerprint: Fingerprint) {
        if let Some((origin, rank)) = self.leased.remove(&fingerprint)
            && let Some(queue) = self.queues.get_mut(&origin)
        {
            queue.leased.remove(&rank);
        }
    }

    fn set_origin_queue(&mut self, origin: &Origin, id: u64, queued: u64) {
        match self.queues.get_mut(origin) {
            Some(queue) => queue.queued = queued,
            None => {
                let leased = BTreeSet::new();
                self.queues
                    .insert(origin.clone(), OriginQueue { id, queued, leased });
            }
        }
    }
}

type Entries = Vec<(Rank, Queued)>;

/// Up to `wanted` entries of a queue behind a rank, without those that are leased, and
/// the last rank that was read; none where that was the queue's end.
fn read_behind(
    tables: &Tables,
    origin: &Origin,
    queue: &OriginQueue,
    after: Option<Rank>,
    wanted: usize,
) -> Result<(Entries, Option<Rank>), FrontierError> {
    let mut entries = Vec::with_capacity(wanted);
    let mut last = None;
    let on_disk = (origin, queue.id);
    let walk = tables.walk_queue(&tables.snapshot(), on_disk, after, |rank, read| {
        if !queue.leased.contains(&rank) {
            entries.push((rank, read()?));
        }
        if entries.len() < wanted {
            return Ok(ControlFlow::Continue(()));
        }
        last = Some(rank);
        Ok(ControlFlow::Break(()))
    });
    walk.map(|_| (entries, last))
}
