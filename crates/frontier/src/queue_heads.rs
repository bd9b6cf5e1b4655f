//! Cache of queue heads: the first entries of the queues, in memory.

use std::collections::BTreeMap;

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt};

use crate::admit_rule::Rank;

/// The share of the limit that one head is filled with at a time. Of the default limit
/// that is 32 entries: one read of the disk serves half a minute of a host asked once a second.
const HEAD_SHARE: usize = 1024;

/// The first entries of the queues that were leased from lately.
pub(crate) struct QueueHeadCache<V> {
    heads: HashMap<Origin, QueueHead<V>>,
    /// Entries held, and one for each head.
    weight: usize,
    /// The most that `weight` may be.
    limit: usize,
    /// The number of entries that a head is filled with at a time, at most. One that grew by
    /// admissions to four times this is cut back to it, once half of the limit is in use: what is
    /// cut off is read again from disk.
    refill: usize,
    /// The number of entries that are read first.
    least: usize,
    uses: u64,
}

/// Invariant: holds every entry of its queue up to `covered` that is not leased.
struct QueueHead<V> {
    entries: BTreeMap<Rank, V>,
    covered: Covered,
    refills: u32,
    used: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Covered {
    Nothing,
    UpTo(Rank),
    All,
}

/// The result of a look at a head.
pub(crate) enum HeadEntry<V> {
    Entry(Rank, V),
    /// Nothing up to this rank; what is behind it stands on disk.
    Unknown(Option<Rank>),
    /// The queue has nothing that is not leased.
    Nothing,
}

impl<V> QueueHead<V> {
    fn covers(&self, rank: Rank) -> bool {
        match self.covered {
            Covered::Nothing => false,
            Covered::UpTo(last) => rank <= last,
            Covered::All => true,
        }
    }

    fn weight(&self) -> usize {
        1 + self.entries.len()
    }
}

impl<V> QueueHeadCache<V> {
    /// Holds at most about `limit` entries, and is filled with `least` or more at a time where they
    /// have room.
    pub(crate) fn new(limit: usize, least: usize) -> QueueHeadCache<V> {
        let refill = (limit / HEAD_SHARE).clamp(2, 64);
        QueueHeadCache {
            heads: HashMap::new(),
            weight: 0,
            // Room for the largest head, also where half of the limit is to be dropped.
            limit: limit.max(10 * refill),
            refill,
            least,
            uses: 0,
        }
    }

    /// The number of entries to read for [`QueueHeadCache::refill`]: few of a queue that was
    /// not leased from lately, and each time four times as many while it goes on.
    pub(crate) fn wanted(&self, origin: &Origin) -> usize {
        let refills = self.heads.get(origin).map_or(0, |head| head.refills.min(8));
        (2 << (2 * refills)).max(self.least).min(self.refill)
    }

    /// Takes the first entry of an origin's queue.
    pub(crate) fn take_first(&mut self, origin: &Origin) -> HeadEntry<V> {
        self.uses += 1;
        let Some(head) = self.heads.get_mut(origin) else {
            return HeadEntry::Unknown(None);
        };
        head.used = self.uses;
        if let Some((rank, value)) = head.entries.pop_first() {
            self.weight -= 1;
            return HeadEntry::Entry(rank, value);
        }
        match head.covered {
            Covered::Nothing => HeadEntry::Unknown(None),
            Covered::UpTo(rank) => HeadEntry::Unknown(Some(rank)),
            Covered::All => HeadEntry::Nothing,
        }
    }

    /// Adds what was read behind the covered part: entries up to `last`, or to the end
    /// of the queue where there is no `last`.
    pub(crate) fn refill(&mut self, origin: &Origin, entries: Vec<(Rank, V)>, last: Option<Rank>) {
        let (uses, count) = (self.uses, entries.len());
        let head = self.heads.entry(origin.clone()).or_insert_with(|| {
            self.weight += 1;
            QueueHead {
                entries: BTreeMap::new(),
                covered: Covered::Nothing,
                refills: 0,
                used: uses,
            }
        });
        let before = head.entries.len();
        head.used = uses;
        head.refills = head.refills.saturating_add(1);
        head.entries.extend(entries);
        head.covered = last.map_or(Covered::All, Covered::UpTo);
        debug_assert_eq!(head.entries.len(), before + count);
        self.weight += head.entries.len() - before;
        self.shrink();
    }

    /// A queue has an entry that is not leased; kept where the head covers its rank.
    pub(crate) fn offer(&mut self, origin: &Origin, rank: Rank, value: V) {
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
            // The rest stands on disk.
            let rest = head.entries.keys().nth(self.refill).copied();
            if let Some(rest) = rest {
                head.entries.split_off(&rest);
            }
            if let Some((&last, _)) = head.entries.last_key_value() {
                head.covered = Covered::UpTo(last);
            }
        }
        self.weight += head.entries.len();
        self.shrink();
    }

    /// A queue no longer has this entry.
    pub(crate) fn remove(&mut self, origin: &Origin, rank: Rank) {
        if let Some(head) = self.heads.get_mut(origin)
            && head.entries.remove(&rank).is_some()
        {
            self.weight -= 1;
        }
    }

    /// Forgets what was read of an origin's queue; the disk knows.
    pub(crate) fn forget(&mut self, origin: &Origin) {
        if let Some(head) = self.heads.remove(origin) {
            self.weight -= head.weight();
        }
    }

    /// Over the limit, drops the heads that were used longest ago, until half is left:
    /// so the walk over all heads is paid for by many refills.
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

    use super::{HeadEntry, QueueHeadCache};
    use crate::admit_rule::Rank;

    fn rank(seq: u64) -> Rank {
        Rank {
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
    fn ours_heads_are_bounded_and_the_oldest_go_first() {
        let mut heads: QueueHeadCache<()> = QueueHeadCache::new(2560, 2);
        let wanted = heads.refill as u64;
        for n in 0..1000 {
            let entries = (0..wanted).map(|seq| (rank(seq), ()));
            assert!(matches!(
                heads.take_first(&origin(n)),
                HeadEntry::Unknown(None)
            ));
            heads.refill(&origin(n), entries.collect(), None);
            assert!(heads.weight <= heads.limit);
        }
        assert!(matches!(
            heads.take_first(&origin(0)),
            HeadEntry::Unknown(None)
        ));
        assert!(matches!(
            heads.take_first(&origin(999)),
            HeadEntry::Entry(first, _) if first == rank(0)
        ));
        for n in 0..1000 {
            heads.forget(&origin(n));
        }
        assert_eq!(heads.weight, 0);
    }

    #[test]
    fn ours_a_head_that_grows_is_cut_where_half_of_the_memory_is_used_and_covers_less() {
        let mut heads: QueueHeadCache<()> = QueueHeadCache::new(65_536, 2);
        for wanted in [2, 8, 32, 64, 64] {
            assert_eq!(heads.wanted(&origin(0)), wanted);
            heads.refill(&origin(0), Vec::new(), None);
        }
        // With the head itself that is half of the limit.
        for seq in 0..32_767 {
            heads.offer(&origin(0), rank(seq), ());
        }
        assert_eq!(heads.weight, 32_768);
        heads.offer(&origin(0), rank(32_767), ());
        assert_eq!(heads.weight, 65);
        for seq in 0..64 {
            let HeadEntry::Entry(first, _) = heads.take_first(&origin(0)) else {
                panic!("entry {seq} is missing");
            };
            assert_eq!(first, rank(seq));
        }
        let last = rank(63);
        assert!(
            matches!(heads.take_first(&origin(0)), HeadEntry::Unknown(Some(rank)) if rank == last)
        );
        assert_eq!(heads.weight, 1);
    }
}
