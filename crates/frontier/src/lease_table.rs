//! The lease table, in memory: for each origin, the length of its queue, its leased URLs, and the
//! first entries of its queue (the queue head).

use std::collections::BTreeSet;
use std::fmt;

use crawl_weburl::{CanonicalUrl, Origin};
use foldhash::{HashMap, HashMapExt};

use crate::admit_rule::{QueueRank, QueuedUrl};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::lease::Lease;
use crate::queue_head_cache::{FirstEntryLookup, QueueHeadCache};
use crate::url_state::UrlCounts;

/// Reads the stored queues that a [`LeaseTable`] leases from.
pub trait QueueReader {
    /// Returns the fingerprint of `url` under the crawl's key.
    fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint;

    /// Reads up to `wanted` committed entries of a queue, in order, starting after the rank
    /// `after`. Skips the entries whose ranks are in `leased`.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    fn read_behind(
        &self,
        queue: OriginWithQueueId<'_>,
        after: Option<QueueRank>,
        leased: &BTreeSet<QueueRank>,
        wanted: usize,
    ) -> Result<QueueReadResult, FrontierError>;
}

/// An origin and the number of its queue in the store.
#[derive(Clone, Copy, Debug)]
pub struct OriginWithQueueId<'a> {
    /// The origin.
    pub origin: &'a Origin,
    /// The number of the origin's queue.
    pub id: u64,
}

/// Consecutive entries of a queue.
#[derive(Debug, Default)]
pub struct QueueReadResult {
    /// The entries, in the order of their ranks.
    pub entries: Vec<(QueueRank, QueuedUrl)>,
    /// The rank of the last entry read, or `None` at the end of the queue.
    pub last: Option<QueueRank>,
}

/// The number of URLs in each committed state. Leases are not committed, so leased URLs count as
/// pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommittedUrlCounts {
    /// Waiting to be fetched, or leased.
    pub pending: u64,
    /// Deferred.
    pub deferred: u64,
    /// Settled with a response.
    pub fetched: u64,
    /// Settled without a response.
    pub failed: u64,
    /// Settled without being fetched.
    pub excluded: u64,
}

impl fmt::Display for CommittedUrlCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pending, {} fetched, {} failed, {} excluded, {} put aside",
            self.pending, self.fetched, self.failed, self.excluded, self.deferred
        )
    }
}

/// The current leases, and the queues that URLs are leased from.
///
/// The table is guarded by one mutex, which is never held while a commit writes or syncs. A commit
/// changes the tables of the store first and this table a moment later ([`LeaseTable::merge`]). So
/// this table may lag behind the store, but is never ahead of it.
pub struct LeaseTable {
    /// The origins with queued URLs.
    queues: HashMap<Origin, OriginQueue>,
    leased: HashMap<Fingerprint, LeasedUrl>,
    heads: QueueHeadCache<QueuedUrl>,
    totals: CommittedUrlCounts,
    /// The number of the last commit.
    pub commit: u64,
}

/// A leased URL and its committed queue entry.
struct LeasedUrl {
    origin: Origin,
    queued: QueuedUrl,
}

struct OriginQueue {
    id: u64,
    /// The number of URLs in the stored queue, including leased ones.
    queued: u64,
    /// The ranks of the leased URLs.
    leased: BTreeSet<QueueRank>,
}

/// The changes that one commit makes to the lease table.
#[derive(Debug, Default)]
pub struct LeaseChanges {
    /// The URLs whose leases the commit ended.
    pub settled: Vec<Fingerprint>,
    /// The queues in which entries were added, removed or moved.
    pub queues: Vec<OriginQueueChanges>,
    /// The number of URLs in each state after the commit.
    pub totals: CommittedUrlCounts,
}

/// The changes of one commit in one origin's queue.
#[derive(Debug)]
pub struct OriginQueueChanges {
    /// The origin.
    pub origin: Origin,
    /// The number of the origin's queue in the store.
    pub id: u64,
    /// The number of URLs in the queue after the commit, including leased ones.
    pub queued: u64,
    /// The entries that changed.
    pub moves: Vec<QueueEntryChange>,
}

/// An entry of a queue that was added, removed or moved.
#[derive(Debug)]
pub struct QueueEntryChange {
    /// The URL's fingerprint.
    pub fingerprint: Fingerprint,
    /// The URL's rank before the commit, or `None` if the URL was not queued.
    pub old: Option<QueueRank>,
    /// The URL's entry after the commit, or `None` if the URL is no longer queued.
    pub new: Option<QueuedUrl>,
}

impl OriginQueue {
    fn pending(&self) -> u64 {
        self.queued.saturating_sub(self.leased.len() as u64)
    }
}

impl LeaseTable {
    /// Creates a table. `queues` has each origin, the number of its queue, and the number of URLs
    /// in its queue. The table caches about `limit` entries in memory, and reads at least `least`
    /// entries of a queue at a time if there is room.
    #[must_use]
    pub fn new(
        queues: Vec<(Origin, u64, u64)>,
        totals: CommittedUrlCounts,
        limit: usize,
        least: usize,
    ) -> LeaseTable {
        let mut leases = LeaseTable {
            queues: HashMap::with_capacity(queues.len()),
            leased: HashMap::new(),
            heads: QueueHeadCache::new(limit, least),
            totals,
            commit: 0,
        };
        for (origin, id, queued) in queues {
            leases.set_origin_queue(&origin, id, queued);
        }
        leases
    }

    /// Adds the queues of origins that another worker owned until now. `totals` replaces the totals
    /// of the table.
    pub fn join(&mut self, queues: Vec<(Origin, u64, u64)>, totals: CommittedUrlCounts) {
        for (origin, id, queued) in queues {
            self.set_origin_queue(&origin, id, queued);
        }
        self.totals = totals;
    }

    /// Removes the queues of the origins for which `is_gone` returns true, because another worker
    /// owns them now. The origins must have no leased URLs. `totals` replaces the totals of the
    /// table.
    pub fn leave(&mut self, is_gone: impl Fn(&Origin) -> bool, totals: CommittedUrlCounts) {
        let removed: Vec<Origin> = self
            .queues
            .keys()
            .filter(|origin| is_gone(origin))
            .cloned()
            .collect();
        for origin in removed {
            self.queues.remove(&origin);
            self.heads.forget(&origin);
        }
        self.totals = totals;
    }

    /// Returns the origins of the leased URLs.
    pub fn leased_origins(&self) -> impl Iterator<Item = &Origin> {
        self.leased.values().map(|leased| &leased.origin)
    }

    /// Returns the number of an origin's queue in the store and the number of URLs in the queue, or
    /// `None` if the queue is empty.
    #[must_use]
    pub fn origin_queue(&self, origin: &Origin) -> Option<(u64, u64)> {
        self.queues
            .get(origin)
            .map(|queue| (queue.id, queue.queued))
    }

    /// Returns the committed queue entry of a leased URL, or `None` if the URL is not leased.
    #[must_use]
    pub fn leased(&self, fingerprint: Fingerprint) -> Option<&QueuedUrl> {
        let leased = self.leased.get(&fingerprint);
        leased.map(|leased| &leased.queued)
    }

    /// Returns whether the URL is leased.
    #[must_use]
    pub fn is_leased(&self, fingerprint: Fingerprint) -> bool {
        self.leased.contains_key(&fingerprint)
    }

    /// Returns the number of URLs of an origin that are pending and not leased.
    #[must_use]
    pub fn pending(&self, origin: &Origin) -> u64 {
        self.queues.get(origin).map_or(0, OriginQueue::pending)
    }

    /// Returns the origins with pending URLs and the number of pending URLs of each, in no order.
    #[must_use]
    pub fn origins(&self) -> Vec<(Origin, u64)> {
        let queues = self.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.pending()))
            .filter(|&(_, pending)| pending > 0)
            .collect()
    }

    /// Returns each origin with queued URLs, its queue number and its leased ranks, in no order.
    #[must_use]
    pub fn queues(&self) -> Vec<(Origin, u64, BTreeSet<QueueRank>)> {
        let queues = self.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.id, queue.leased.clone()))
            .collect()
    }

    /// Returns the number of URLs in each state.
    #[must_use]
    pub fn counts(&self) -> UrlCounts {
        let CommittedUrlCounts {
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

    /// Leases the first pending URL of an origin, if there is one. Entries that are not in memory
    /// are read from `store`.
    ///
    /// # Errors
    /// [`FrontierError`] if the store fails.
    pub fn lease(
        &mut self,
        store: &impl QueueReader,
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
                FirstEntryLookup::Entry(rank, queued) => (rank, queued),
                FirstEntryLookup::Nothing => return Ok(None),
                FirstEntryLookup::Unknown(after) => {
                    let wanted = self.heads.wanted(origin);
                    let id = OriginWithQueueId {
                        origin,
                        id: queue.id,
                    };
                    let part = store.read_behind(id, after, &queue.leased, wanted)?;
                    self.heads.refill(origin, part.entries, part.last);
                    continue;
                }
            };
            let fingerprint = store.fingerprint(&queued.url);
            // A commit changes the store before its merge changes this table. In between, the store
            // has this leased URL at its new place, but this table still has the URL at its old
            // place. Skip the URL here: the merge will move the lease.
            if self.leased.contains_key(&fingerprint) {
                continue;
            }
            queue.leased.insert(rank);
            let leased = LeasedUrl {
                origin: origin.clone(),
                queued: queued.clone(),
            };
            self.leased.insert(fingerprint, leased);
            return Ok(Some(Lease::new(origin.clone(), queued, self.commit)));
        }
    }

    /// Releases the lease of a URL, which is then pending again.
    pub fn give_back(&mut self, key: Fingerprint) {
        let Some(LeasedUrl { origin, queued }) = self.leased.remove(&key) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&origin) else {
            return;
        };
        // A commit may already have moved the URL to another rank. If so, the commit's merge
        // corrects the entry.
        let rank = queued.place.rank();
        queue.leased.remove(&rank);
        self.heads.offer(&origin, rank, queued);
    }

    /// Applies the changes of a commit to this table. Returns each changed origin with the number
    /// of its pending URLs.
    pub fn merge(&mut self, merge: LeaseChanges) -> Vec<(Origin, u64)> {
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
            let pending_count = self.pending(&origin);
            pending.push((origin, pending_count));
        }
        pending
    }

    /// Drops the heads of all queues from memory. Tests use this to simulate a full cache.
    #[cfg(test)]
    pub(crate) fn forget_heads(&mut self) {
        for origin in self.queues.keys() {
            self.heads.forget(origin);
        }
    }

    fn apply(&mut self, origin: &Origin, moved: QueueEntryChange) {
        if let Some(rank) = moved.old {
            self.heads.remove(origin, rank);
        }
        let Some(queued) = moved.new else {
            return;
        };
        let rank = queued.place.rank();
        match self.leased.get_mut(&moved.fingerprint) {
            // The URL was leased before the commit that moves it to another rank. The URL keeps its
            // lease.
            Some(leased) => {
                let old = std::mem::replace(&mut leased.queued, queued).place.rank();
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
        if let Some(leased) = self.leased.remove(&fingerprint)
            && let Some(queue) = self.queues.get_mut(&leased.origin)
        {
            queue.leased.remove(&leased.queued.place.rank());
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
