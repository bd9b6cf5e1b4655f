//! Where leases are given out: what is queued, leased and at the head, in memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crawl_weburl::Origin;
use foldhash::{HashMap, HashMapExt};

use super::codec::Totals;
use super::heads::{First, Heads};
use super::tables::Tables;
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::known::Counts;
use crate::lease::Lease;
use crate::state::{Queued, Rank};

/// Guarded by one mutex that is never held while a commit writes or syncs. A commit
/// changes the tables first and the desk a moment later ([`Desk::merge`]); in between,
/// the desk may know less than the tables, never more.
pub(super) struct Desk {
    /// The origins with queued URLs.
    lines: HashMap<Origin, Line>,
    leased: HashMap<Fingerprint, (Origin, Rank)>,
    heads: Heads<Queued>,
    totals: Totals,
}

struct Line {
    id: u64,
    /// URLs in the queue on disk, leased ones among them.
    queued: u64,
    /// The ranks of those that are leased.
    leased: BTreeSet<Rank>,
}

/// What a commit changed.
#[derive(Default)]
pub(super) struct Merge {
    pub(super) settled: Vec<Fingerprint>,
    pub(super) queues: Vec<QueueChange>,
    pub(super) totals: Totals,
}

/// What a commit changed in an origin's queue.
pub(super) struct QueueChange {
    pub(super) origin: Origin,
    pub(super) id: u64,
    /// URLs that it has queued now.
    pub(super) queued: u64,
    pub(super) moves: Vec<Move>,
}

/// A queue's entry that came, went or moved.
pub(super) struct Move {
    pub(super) fingerprint: Fingerprint,
    pub(super) old: Option<Rank>,
    pub(super) new: Option<Queued>,
}

impl Line {
    fn pending(&self) -> u64 {
        self.queued.saturating_sub(self.leased.len() as u64)
    }
}

impl Desk {
    pub(super) fn new(lines: Vec<(Origin, u64, u64)>, totals: Totals, limit: usize) -> Desk {
        let mut desk = Desk {
            lines: HashMap::with_capacity(lines.len()),
            leased: HashMap::new(),
            heads: Heads::new(limit),
            totals,
        };
        for (origin, id, queued) in lines {
            desk.set_line(&origin, id, queued);
        }
        desk
    }

    /// An origin's number and how many URLs it has queued, if it has any.
    pub(super) fn line(&self, origin: &Origin) -> Option<(u64, u64)> {
        self.lines.get(origin).map(|line| (line.id, line.queued))
    }

    pub(super) fn is_leased(&self, fingerprint: Fingerprint) -> bool {
        self.leased.contains_key(&fingerprint)
    }

    pub(super) fn pending(&self, origin: &Origin) -> u64 {
        self.lines.get(origin).map_or(0, Line::pending)
    }

    /// The origins with pending URLs, in no order.
    pub(super) fn origins(&self) -> Vec<(Origin, u64)> {
        let lines = self.lines.iter();
        lines
            .map(|(origin, line)| (origin.clone(), line.pending()))
            .filter(|&(_, pending)| pending > 0)
            .collect()
    }

    /// Each origin with queued URLs, its number and the ranks that are leased, in no order.
    pub(super) fn queues(&self) -> Vec<(Origin, u64, BTreeSet<Rank>)> {
        let lines = self.lines.iter();
        lines
            .map(|(origin, line)| (origin.clone(), line.id, line.leased.clone()))
            .collect()
    }

    pub(super) fn counts(&self) -> Counts {
        let Totals {
            pending,
            deferred,
            fetched,
            failed,
            excluded,
        } = self.totals;
        let leased = self.leased.len() as u64;
        Counts {
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
            let Some(line) = self.lines.get_mut(origin).filter(|line| line.pending() > 0) else {
                return Ok(None);
            };
            let (rank, queued) = match self.heads.take_first(origin) {
                First::Entry(rank, queued) => (rank, queued),
                First::Nothing => return Ok(None),
                First::Unknown(after) => {
                    let wanted = self.heads.wanted(origin);
                    let (entries, last) = read_behind(tables, origin, line, after, wanted)?;
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
            line.leased.insert(rank);
            self.leased.insert(fingerprint, (origin.clone(), rank));
            return Ok(Some(Lease::new(origin.clone(), queued)));
        }
    }

    /// A leased URL is pending again.
    pub(super) fn give_back(&mut self, tables: &Tables, key: Fingerprint) {
        let Some((origin, rank)) = self.leased.remove(&key) else {
            return;
        };
        let Some(line) = self.lines.get_mut(&origin) else {
            return;
        };
        line.leased.remove(&rank);
        match tables.entry(&tables.snapshot(), &origin, line.id, rank) {
            Ok(Some(queued)) => self.heads.offer(&origin, rank, queued),
            // Moved by a commit that is about to be merged, or the disk fails: then the
            // next lease reads it there, or says so.
            Ok(None) | Err(_) => self.heads.forget(&origin),
        }
    }

    /// Takes in what a commit changed in the tables; says what each queue has pending.
    pub(super) fn merge(&mut self, merge: Merge) -> Vec<(Origin, u64)> {
        for fingerprint in merge.settled {
            self.unlease(fingerprint);
        }
        self.totals = merge.totals;
        let mut pending = Vec::with_capacity(merge.queues.len());
        for change in merge.queues {
            let origin = change.origin;
            self.set_line(&origin, change.id, change.queued);
            for moved in change.moves {
                self.apply(&origin, moved);
            }
            if change.queued == 0 {
                self.lines.remove(&origin);
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
        for origin in self.lines.keys() {
            self.heads.forget(origin);
        }
    }

    fn apply(&mut self, origin: &Origin, moved: Move) {
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
                if let Some(line) = self.lines.get_mut(origin) {
                    line.leased.remove(&old);
                    line.leased.insert(rank);
                }
            }
            None => self.heads.offer(origin, rank, queued),
        }
    }

    fn unlease(&mut self, fingerprint: Fingerprint) {
        if let Some((origin, rank)) = self.leased.remove(&fingerprint)
            && let Some(line) = self.lines.get_mut(&origin)
        {
            line.leased.remove(&rank);
        }
    }

    fn set_line(&mut self, origin: &Origin, id: u64, queued: u64) {
        match self.lines.get_mut(origin) {
            Some(line) => line.queued = queued,
            None => {
                let leased = BTreeSet::new();
                self.lines
                    .insert(origin.clone(), Line { id, queued, leased });
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
    line: &Line,
    after: Option<Rank>,
    wanted: usize,
) -> Result<(Entries, Option<Rank>), FrontierError> {
    let mut entries = Vec::with_capacity(wanted);
    let mut last = None;
    let queue = (origin, line.id);
    let walk = tables.walk_queue(&tables.snapshot(), queue, after, |rank, read| {
        if !line.leased.contains(&rank) {
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
