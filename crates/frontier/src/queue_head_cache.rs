//! The queue head cache, which holds the first entries of recently leased queues in memory.

use std::collections::BTreeMap;

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt};

use crate::admit_rule::QueueRank;

/// A refill of a queue head (the cached first entries of a queue) reads at most the cache's limit
/// divided by this number. With the default limit, this is 32 entries, enough for half a minute at
/// one request per second.
const HEAD_SHARE: usize = 1024;

/// A cache of the first entries of recently leased queues.
pub(crate) struct QueueHeadCache<V> {
    heads: HashMap<Origin, QueueHead<V>>,
    /// The number of cached entries, plus one for each queue head.
    weight: usize,
    /// The maximum `weight`.
    limit: usize,
    /// The maximum number of entries in one refill. A head also grows when URLs are admitted. If a
    /// head has more than four times this number of entries, and more than half of the cache's
    /// limit is in use, the head is truncated to this number. The dropped entries remain on disk.
    refill: usize,
    /// The minimum number of entries in a refill, if the maximum allows it.
    least: usize,
    uses: u64,
}

/// The first entries of one queue. Invariant: `entries` has all entries of the queue up to
/// `covered`, except leased ones.
struct QueueHead<V> {
    entries: BTreeMap<QueueRank, V>,
    covered: CoveredRanks,
    refills: u32,
    used: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CoveredRanks {
    Nothing,
    UpTo(QueueRank),
    All,
}

/// The result of [`QueueHeadCache::take_first`].
pub(crate) enum FirstEntryLookup<V> {
    Entry(QueueRank, V),
    /// No entry is in memory. The store may have entries after this rank, or at any rank if the
    /// value is `None`.
    Unknown(Option<QueueRank>),
    /// The queue has no unleased entry.
    Nothing,
}

impl<V> QueueHead<V> {
    fn covers(&self, rank: QueueRank) -> bool {
        match self.covered {
            CoveredRanks::Nothing => false,
            CoveredRanks::UpTo(last) => rank <= last,
            CoveredRanks::All => true,
        }
    }

    fn weight(&self) -> usize {
        1 + self.entries.len()
    }
}

impl<V> QueueHeadCache<V> {
    /// Creates a cache of about `limit` entries. A refill reads at least `least` entries, unless
    /// that is too many for the cache.
    pub(crate) fn new(limit: usize, least: usize) -> QueueHeadCache<V> {
        let refill = (limit / HEAD_SHARE).clamp(2, 64);
        QueueHeadCache {
            heads: HashMap::new(),
            weight: 0,
            // `shrink` drops heads until half of the limit is free. The limit is large enough for
            // the largest head to fit into the other half.
            limit: limit.max(10 * refill),
            refill,
            least,
            uses: 0,
        }
    }

    /// Returns how many entries to read from the store for the next [`QueueHeadCache::refill`] of a
    /// head. The first refill is small, and each further one is four times as large, up to a
    /// maximum.
    pub(crate) fn wanted(&self, origin: &Origin) -> usize {
        let refills = self.heads.get(origin).map_or(0, |head| head.refills.min(8));
        (2 << (2 * refills)).max(self.least).min(self.refill)
    }

    pub(crate) fn take_first(&mut self, origin: &Origin) -> FirstEntryLookup<V> {
        self.uses += 1;
        let Some(head) = self.heads.get_mut(origin) else {
            return FirstEntryLookup::Unknown(None);
        };
        head.used = self.uses;
        if let Some((rank, value)) = head.entries.pop_first() {
            self.weight -= 1;
            return FirstEntryLookup::Entry(rank, value);
        }
        match head.covered {
            CoveredRanks::Nothing => FirstEntryLookup::Unknown(None),
            CoveredRanks::UpTo(rank) => FirstEntryLookup::Unknown(Some(rank)),
            CoveredRanks::All => FirstEntryLookup::Nothing,
        }
    }

    /// Adds entries read from the store to the head of a queue. `entries` must start right after
    /// the rank that the head covers, and have all entries up to `last`, or up to the end of the
    /// queue if `last` is `None`.
    pub(crate) fn refill(
        &mut self,
        origin: &Origin,
        entries: Vec<(QueueRank, V)>,
        last: Option<QueueRank>,
    ) {
        let (uses, count) = (self.uses, entries.len());
        let head = self.heads.entry(origin.clone()).or_insert_with(|| {
            self.weight += 1;
            QueueHead {
                entries: BTreeMap::new(),
                covered: CoveredRanks::Nothing,
                refills: 0,
                used: uses,
            }
        });
        let before = head.entries.len();
        head.used = uses;
        head.refills = head.refills.saturating_add(1);
        head.entries.extend(entries);
        head.covered = last.map_or(CoveredRanks::All, CoveredRanks::UpTo);
        debug_assert_eq!(head.entries.len(), before + count);
        self.weight += head.entries.len() - before;
        self.shrink();
    }

    /// Adds an entry to the cached head of its queue, if the head covers the entry's rank. The
    /// entry's URL must not be leased.
    pub(crate) fn offer(&mut self, origin: &Origin, rank: QueueRank, value: V) {
        let Some(head) = self.heads.get_mut(origin) else {
            return;
        };
        if !head.covers(rank) {
            return;
        }
        self.weight -= head.entries.len();
        head.entries.insert(rank, value);
        let weight = self.weight + head.entries.len();
        if head.entries.len() > 4 * self.refill && weight > self.limit / 2 {
            // Entries from `rest` on are dropped from memory, and remain on disk.
            let rest = head.entries.keys().nth(self.refill).copied();
            if let Some(rest) = rest {
                head.entries.split_off(&rest);
            }
            if let Some((&last, _)) = head.entries.last_key_value() {
                head.covered = CoveredRanks::UpTo(last);
            }
        }
        self.weight += head.entries.len();
        self.shrink();
    }

    /// Removes an entry that the queue no longer has.
    pub(crate) fn remove(&mut self, origin: &Origin, rank: QueueRank) {
        if let Some(head) = self.heads.get_mut(origin)
            && head.entries.remove(&rank).is_some()
        {
            self.weight -= 1;
        }
    }

    /// Drops the cached head of `origin`. The entries remain on disk.
    pub(crate) fn forget(&mut self, origin: &Origin) {
        if let Some(head) = self.heads.remove(origin) {
            self.weight -= head.weight();
        }
    }

    /// If the cache is over its limit, drops the least recently used heads until half of the limit
    /// is free. Dropping many heads in one call makes the walk over all heads rare.
    fn shrink(&mut self) {
        if self.weight <= self.limit {
            return;
        }
        let heads = self.heads.iter();
        let mut by_use: Vec<(u64, Origin)> = heads
            .map(|(origin, head)| (head.used, origin.clone()))
            .collect();
        by_use.sort_unstable_by_key(|&(used, _)| used);
        for (_, origin) in by_use {
            if self.weight <= self.limit / 2 {
                break;
            }
            self.forget(&origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::Origin;

    use super::{FirstEntryLookup, QueueHeadCache};
    use crate::admit_rule::QueueRank;

    fn rank(seq: u64) -> QueueRank {
        QueueRank {
            round: 0,
            priority: 0,
            depth: 0,
            seq,
        }
    }

    fn origin(n: usize) -> Origin {
        Origin::parse(&format!("http://h{n}.example/")).unwrap()
    }

    #[test]
    fn heads_are_bounded_and_the_least_recently_used_are_dropped_first() {
        let mut heads: QueueHeadCache<()> = QueueHeadCache::new(2560, 2);
        let wanted = heads.refill as u64;
        for n in 0..1000 {
            let entries = (0..wanted).map(|seq| (rank(seq), ()));
            assert!(matches!(
                heads.take_first(&origin(n)),
                FirstEntryLookup::Unknown(None)
            ));
            heads.refill(&origin(n), entries.collect(), None);
            assert!(heads.weight <= heads.limit);
        }
        assert!(matches!(
            heads.take_first(&origin(0)),
            FirstEntryLookup::Unknown(None)
        ));
        assert!(matches!(
            heads.take_first(&origin(999)),
            FirstEntryLookup::Entry(first, _) if first == rank(0)
        ));
        for n in 0..1000 {
            heads.forget(&origin(n));
        }
        assert_eq!(heads.weight, 0);
    }

    #[test]
    fn a_head_that_grows_is_cut_and_covers_less_once_half_of_the_limit_is_in_use() {
        let mut heads: QueueHeadCache<()> = QueueHeadCache::new(65_536, 2);
        for wanted in [2, 8, 32, 64, 64] {
            assert_eq!(heads.wanted(&origin(0)), wanted);
            heads.refill(&origin(0), Vec::new(), None);
        }
        // The weight of these entries and of the head itself is half of the limit.
        for seq in 0..32_767 {
            heads.offer(&origin(0), rank(seq), ());
        }
        assert_eq!(heads.weight, 32_768);
        heads.offer(&origin(0), rank(32_767), ());
        assert_eq!(heads.weight, 65);
        for seq in 0..64 {
            let FirstEntryLookup::Entry(first, _) = heads.take_first(&origin(0)) else {
                panic!("entry {seq} is missing");
            };
            assert_eq!(first, rank(seq));
        }
        let last = rank(63);
        assert!(
            matches!(heads.take_first(&origin(0)), FirstEntryLookup::Unknown(Some(rank)) if rank == last)
        );
        assert_eq!(heads.weight, 1);
    }
}
