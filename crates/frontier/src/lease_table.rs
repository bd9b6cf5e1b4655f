//! The table of leases: for each origin its queue's length, the leased URLs and the head, in
//! memory.

use std::collections::BTreeSet;
use std::fmt;

use crawl_weburl::{CanonicalUrl, Origin};
use foldhash::{HashMap, HashMapExt};

use crate::admit_rule::{Queued, Rank};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::lease::Lease;
use crate::queue_heads::{HeadEntry, QueueHeadCache};
use crate::url_state::UrlCounts;

/// The stored queues that a [`LeaseTable`] leases from.
pub trait QueueReader {
    /// The fingerprint of `url` under the crawl's key.
    fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint;

    /// Reads up to `wanted` entries of a queue, as committed, that lie behind the rank `after` and
    /// at no rank in `leased`.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
    fn read_behind(
        &self,
        queue: QueueId<'_>,
        after: Option<Rank>,
        leased: &BTreeSet<Rank>,
        wanted: usize,
    ) -> Result<QueuePart, FrontierError>;
}

/// An origin, and the number that its queue has in the store.
#[derive(Clone, Copy, Debug)]
pub struct QueueId<'a> {
    /// The origin.
    pub origin: &'a Origin,
    /// The number of its queue.
    pub id: u64,
}

/// Neighbouring entries of a queue.
#[derive(Debug, Default)]
pub struct QueuePart {
    /// The entries, in the order of their ranks.
    pub entries: Vec<(Rank, Queued)>,
    /// The last rank that was read; none where the queue ends here.
    pub last: Option<Rank>,
}

/// The number of URLs in each state, as committed: leased ones are pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Waiting for their turn, or being worked on.
    pub pending: u64,
    /// Put aside.
    pub deferred: u64,
    /// Settled with an answer.
    pub fetched: u64,
    /// Settled without an answer.
    pub failed: u64,
    /// Settled and not asked for.
    pub excluded: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pending, {} fetched, {} failed, {} excluded, {} put aside",
            self.pending, self.fetched, self.failed, self.excluded, self.deferred
        )
    }
}

/// The leases that are out, and the queues that more may be given out of.
///
/// Guarded by one mutex that is never held while a commit writes or syncs. A commit changes
/// the tables of the store first and this a moment later ([`LeaseTable::merge`]); in between,
/// it may know less than the store, never more.
pub struct LeaseTable {
    /// The origins with queued URLs.
    queues: HashMap<Origin, OriginQueue>,
    leased: HashMap<Fingerprint, LeasedUrl>,
    heads: QueueHeadCache<Queued>,
    totals: Totals,
    /// The number of the last commit.
    pub commit: u64,
}

/// A leased URL, and its entry as it is committed.
struct LeasedUrl {
    origin: Origin,
    queued: Queued,
}

struct OriginQueue {
    id: u64,
    /// URLs in the queue on disk, leased ones among them.
    queued: u64,
    /// The ranks of those that are leased.
    leased: BTreeSet<Rank>,
}

/// The changes of a commit.
#[derive(Debug, Default)]
pub struct LeaseChanges {
    /// The URLs whose leases ended.
    pub settled: Vec<Fingerprint>,
    /// The queues in which entries came, went or moved.
    pub queues: Vec<QueueChange>,
    /// The number of URLs in each state now.
    pub totals: Totals,
}

/// The changes of a commit in one origin's queue.
#[derive(Debug)]
pub struct QueueChange {
    /// The origin.
    pub origin: Origin,
    /// The number of its queue in the store.
    pub id: u64,
    /// URLs that it has queued now, leased ones among them.
    pub queued: u64,
    /// The entries that changed.
    pub moves: Vec<EntryMove>,
}

/// A queue's entry that came, went or moved.
#[derive(Debug)]
pub struct EntryMove {
    /// The URL's fingerprint.
    pub fingerprint: Fingerprint,
    /// The rank that it had, if it was queued.
    pub old: Option<Rank>,
    /// The entry that it has now, if it is queued.
    pub new: Option<Queued>,
}

impl OriginQueue {
    fn pending(&self) -> u64 {
        self.queued.saturating_sub(self.leased.len() as u64)
    }
}

impl LeaseTable {
    /// A table of queues, each an origin with the number of its queue and how many URLs it has
    /// queued, that holds about `limit` entries of them in memory and reads no fewer than `least`
    /// of one at a time where there is room.
    #[must_use]
    pub fn new(
        queues: Vec<(Origin, u64, u64)>,
        totals: Totals,
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

    /// Takes up queues that others leased from until now, with the number of URLs in each state
    /// that come with them.
    pub fn join(&mut self, queues: Vec<(Origin, u64, u64)>, totals: Totals) {
        for (origin, id, queued) in queues {
            self.set_origin_queue(&origin, id, queued);
        }
        self.totals = totals;
    }

    /// Gives up the queues that `is_gone`, from which nothing is leased; `totals` are those of what
    /// is left.
    pub fn leave(&mut self, is_gone: impl Fn(&Origin) -> bool, totals: Totals) {
        let gone: Vec<Origin> = self
            .queues
            .keys()
            .filter(|origin| is_gone(origin))
            .cloned()
            .collect();
        for origin in gone {
            self.queues.remove(&origin);
            self.heads.forget(&origin);
        }
        self.totals = totals;
    }

    /// The origins of the URLs that are leased.
    pub fn leased_origins(&self) -> impl Iterator<Item = &Origin> {
        self.leased.values().map(|leased| &leased.origin)
    }

    /// An origin's number and how many URLs it has queued, if it has any.
    #[must_use]
    pub fn origin_queue(&self, origin: &Origin) -> Option<(u64, u64)> {
        self.queues
            .get(origin)
            .map(|queue| (queue.id, queue.queued))
    }

    /// The committed entry of a URL, if it is leased.
    #[must_use]
    pub fn leased(&self, fingerprint: Fingerprint) -> Option<&Queued> {
        let leased = self.leased.get(&fingerprint);
        leased.map(|leased| &leased.queued)
    }

    /// True if the URL is leased.
    #[must_use]
    pub fn is_leased(&self, fingerprint: Fingerprint) -> bool {
        self.leased.contains_key(&fingerprint)
    }

    /// The number of URLs of an origin that are pending and not leased.
    #[must_use]
    pub fn pending(&self, origin: &Origin) -> u64 {
        self.queues.get(origin).map_or(0, OriginQueue::pending)
    }

    /// The origins with pending URLs, in no order.
    #[must_use]
    pub fn origins(&self) -> Vec<(Origin, u64)> {
        let queues = self.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.pending()))
            .filter(|&(_, pending)| pending > 0)
            .collect()
    }

    /// Each origin with queued URLs, its number and the ranks that are leased, in no order.
    #[must_use]
    pub fn queues(&self) -> Vec<(Origin, u64, BTreeSet<Rank>)> {
        let queues = self.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.id, queue.leased.clone()))
            .collect()
    }

    /// The number of URLs in each state.
    #[must_use]
    pub fn counts(&self) -> UrlCounts {
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

    /// Leases the first pending URL of an origin, if there is one. What is not in memory is read.
    ///
    /// # Errors
    /// [`FrontierError`] where the store fails.
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
                HeadEntry::Entry(rank, queued) => (rank, queued),
                HeadEntry::Nothing => return Ok(None),
                HeadEntry::Unknown(after) => {
                    let wanted = self.heads.wanted(origin);
                    let id = QueueId {
                        origin,
                        id: queue.id,
                    };
                    let part = store.read_behind(id, after, &queue.leased, wanted)?;
                    self.heads.refill(origin, part.entries, part.last);
                    continue;
                }
            };
            let fingerprint = store.fingerprint(&queued.url);
            // Read between a commit and its merge, a URL may stand at a new place while
            // its lease is noted at the old one. The merge will put that right.
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

    /// A leased URL is pending again.
    pub fn give_back(&mut self, key: Fingerprint) {
        let Some(LeasedUrl { origin, queued }) = self.leased.remove(&key) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&origin) else {
            return;
        };
        // Where a commit that is about to be merged has moved it, the merge will put that right.
        let rank = queued.place.rank();
        queue.leased.remove(&rank);
        self.heads.offer(&origin, rank, queued);
    }

    /// Takes in what a commit changed in the tables; says what each queue has pending.
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
            let left = self.pending(&origin);
            pending.push((origin, left));
        }
        pending
    }

    /// As if other origins had used up the memory for heads.
    #[cfg(test)]
    pub(crate) fn forget_heads(&mut self) {
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
