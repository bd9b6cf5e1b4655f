//! A transaction on the frontier on disk.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{OwnedWriteBatch, Snapshot};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::FjallFrontier;
use super::codec::{Sequence, State, encode_line};
use super::desk::{Merge, Move};
use super::names;
use super::tables::{SeenKey, queue_key};
use crate::admission::{Admission, Admitted, Standing};
use crate::error::FrontierError;
use crate::lease::{Lease, Outcome};
use crate::state::{Deferred, Meeting, Now, Place, Queued, capped, capped_exclusion, meet};
use crate::transaction::{Committed, Transaction};

/// The changes wait here until the commit writes them as one batch.
pub(super) struct FjallTransaction<'f> {
    frontier: &'f FjallFrontier,
    /// Committed counters; holding them makes this the one writer.
    committed: MutexGuard<'f, Sequence>,
    sequence: Sequence,
    /// The committed state that this transaction began from. No one else writes.
    base: Snapshot,
    /// What `admit_all` looked up ahead.
    looked_up: HashMap<SeenKey, Option<State>>,
    changes: HashMap<SeenKey, Change>,
    settled: HashSet<SeenKey>,
    hosts: BTreeMap<HostKey, Vec<u8>>,
    robots: BTreeMap<Origin, Vec<u8>>,
    meta: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What becomes of one URL.
struct Change {
    origin: Origin,
    /// As committed.
    before: Option<State>,
    now: Standpoint,
}

/// A state with all that is kept beside it.
enum Standpoint {
    Pending(Queued),
    Deferred(Deferred),
    Settled(State),
}

impl Standpoint {
    fn state(&self) -> State {
        match self {
            Standpoint::Pending(queued) => State::Pending(queued.place),
            Standpoint::Deferred(deferred) => State::Deferred {
                depth: deferred.depth,
                redirects: deferred.redirects,
            },
            Standpoint::Settled(state) => state.clone(),
        }
    }
}

impl<'f> FjallTransaction<'f> {
    pub(super) fn new(
        frontier: &'f FjallFrontier,
        committed: MutexGuard<'f, Sequence>,
    ) -> FjallTransaction<'f> {
        FjallTransaction {
            frontier,
            sequence: *committed,
            committed,
            base: frontier.tables.snapshot(),
            looked_up: HashMap::new(),
            changes: HashMap::new(),
            settled: HashSet::new(),
            hosts: BTreeMap::new(),
            robots: BTreeMap::new(),
            meta: BTreeMap::new(),
        }
    }

    /// A URL's state as this transaction sees it.
    fn state(&self, key: SeenKey) -> Result<Option<State>, FrontierError> {
        if let Some(change) = self.changes.get(&key) {
            return Ok(Some(change.now.state()));
        }
        match self.looked_up.get(&key) {
            Some(state) => Ok(state.clone()),
            None => self.frontier.tables.state(&self.base, key),
        }
    }

    fn is_leased(&self, key: SeenKey) -> bool {
        !self.settled.contains(&key) && self.frontier.desk().is_leased(key.fingerprint)
    }

    /// The whole entry of a URL that is pending at `place`.
    fn queued(
        &self,
        key: SeenKey,
        url: &CanonicalUrl,
        place: Place,
    ) -> Result<Queued, FrontierError> {
        if let Some(Change {
            now: Standpoint::Pending(queued),
            ..
        }) = self.changes.get(&key)
        {
            return Ok(queued.clone());
        }
        self.frontier.tables.pending(&self.base, url, place)
    }

    fn take_seq(&mut self) -> u64 {
        self.sequence.next_seq += 1;
        self.sequence.next_seq
    }

    /// `was` is the state that this transaction saw.
    fn change(&mut self, key: SeenKey, origin: Origin, was: Option<State>, now: Standpoint) {
        match self.changes.get_mut(&key) {
            Some(change) => change.now = now,
            None => {
                let before = was;
                let change = Change {
                    origin,
                    before,
                    now,
                };
                self.changes.insert(key, change);
            }
        }
    }

    fn enter(&mut self, key: SeenKey, was: Option<State>, admission: Admission) {
        let origin = admission.url.origin();
        let now = match admission.standing.clone() {
            Standing::Pending => {
                let seq = self.take_seq();
                Standpoint::Pending(Queued::new(admission, seq))
            }
            Standing::Deferred(why) => Standpoint::Deferred(Deferred::new(admission, why)),
            Standing::Excluded(why) => Standpoint::Settled(State::Excluded {
                depth: admission.depth,
                exclusion: capped_exclusion(why),
            }),
        };
        self.change(key, origin, was, now);
    }

    fn improve(
        &mut self,
        key: SeenKey,
        old: Place,
        place: Place,
        nearer: bool,
        admission: Admission,
    ) -> Result<(), FrontierError> {
        let origin = admission.url.origin();
        let mut queued = self.queued(key, &admission.url, old)?;
        queued.place = place;
        if place.rank() != old.rank() {
            queued.place.seq = self.take_seq();
        }
        if nearer {
            queued.via = admission.via;
        }
        let was = Some(State::Pending(old));
        self.change(key, origin, was, Standpoint::Pending(queued));
        Ok(())
    }

    /// What a lease's outcome makes of its URL.
    fn end(
        &mut self,
        key: SeenKey,
        origin: Origin,
        url: &CanonicalUrl,
        outcome: Outcome,
    ) -> Result<(), FrontierError> {
        let was = self.state(key)?;
        let Some(State::Pending(place)) = was else {
            let tables = &self.frontier.tables;
            return Err(tables.corrupt(&format!("`{url}` is leased and not pending")));
        };
        let depth = place.depth;
        let now = match outcome {
            Outcome::Retry => {
                let queued = self.queued(key, url, place)?;
                Standpoint::Pending(queued.retry(self.take_seq()))
            }
            Outcome::Fetched { status } => Standpoint::Settled(State::Fetched { depth, status }),
            Outcome::Failed { why } => {
                let why = capped(why);
                Standpoint::Settled(State::Failed { depth, why })
            }
            Outcome::Excluded(exclusion) => {
                let exclusion = capped_exclusion(exclusion);
                Standpoint::Settled(State::Excluded { depth, exclusion })
            }
        };
        self.change(key, origin, was, now);
        Ok(())
    }
}

impl Transaction for FjallTransaction<'_> {
    fn settle(&mut self, lease: Lease, outcome: Outcome) -> Result<(), FrontierError> {
        let tables = &self.frontier.tables;
        let Lease { url, origin, .. } = lease;
        let key = tables.seen_key(&url);
        if !self.is_leased(key) {
            return Err(FrontierError::NotLeased { url });
        }
        let ended = self.end(key, origin, &url, outcome);
        match ended {
            // From here on this transaction answers for the lease.
            Ok(()) => {
                self.settled.insert(key);
            }
            Err(_) => self.frontier.desk().give_back(tables, key),
        }
        ended
    }

    fn admit(&mut self, admission: Admission) -> Result<Admitted, FrontierError> {
        let key = self.frontier.tables.seen_key(&admission.url);
        let was = self.state(key)?;
        let now = match was {
            None => Now::Unknown,
            Some(State::Pending(_)) if self.is_leased(key) => Now::Leased,
            Some(State::Pending(place)) => Now::Pending(place),
            Some(State::Deferred { depth, redirects }) => Now::Deferred { depth, redirects },
            Some(_) => Now::Settled,
        };
        Ok(match (meet(now, &admission), was) {
            (Meeting::Enter, was) => {
                self.enter(key, was, admission);
                Admitted::New
            }
            (Meeting::Revive, was) => {
                self.enter(key, was, admission);
                Admitted::Revived
            }
            (Meeting::DeferNearer, was) => {
                self.enter(key, was, admission);
                Admitted::Known
            }
            (Meeting::Improve { place, nearer }, Some(State::Pending(old))) => {
                self.improve(key, old, place, nearer, admission)?;
                Admitted::Known
            }
            (Meeting::Stay | Meeting::Improve { .. }, _) => Admitted::Known,
        })
    }

    fn admit_all(&mut self, admissions: Vec<Admission>) -> Result<Vec<Admitted>, FrontierError> {
        // In the order of their keys the look-ups touch each block of the table once.
        let tables = &self.frontier.tables;
        let mut keys: Vec<SeenKey> = admissions
            .iter()
            .map(|admission| tables.seen_key(&admission.url))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            if !self.changes.contains_key(&key) {
                let state = tables.state(&self.base, key)?;
                self.looked_up.insert(key, state);
            }
        }
        let admitted = admissions
            .into_iter()
            .map(|admission| self.admit(admission))
            .collect();
        self.looked_up.clear();
        admitted
    }

    fn keep_host(&mut self, host: &HostKey, wake: u64, bytes: &[u8]) {
        let value = [&wake.to_be_bytes(), bytes].concat();
        self.hosts.insert(host.clone(), value);
    }

    fn keep_robots(&mut self, origin: &Origin, bytes: &[u8]) {
        self.robots.insert(origin.clone(), bytes.to_vec());
    }

    fn mark(&mut self, file: &str, length: u64) {
        let value = length.to_be_bytes().to_vec();
        self.meta.insert(names::of(names::MARK, file), value);
    }

    fn keep_meta(&mut self, name: &str, bytes: &[u8]) {
        self.meta
            .insert(names::of(names::CALLER, name), bytes.to_vec());
    }

    fn commit(mut self: Box<Self>) -> Result<Committed, FrontierError> {
        let frontier = self.frontier;
        let tables = &frontier.tables;
        let mut batch = tables.db.batch().durability(Some(frontier.persist));
        let merge = self.write(&mut batch)?;
        // The desk is not locked here: a commit may take long, and a lease may not wait.
        batch.commit().map_err(|why| tables.failed(why))?;
        *self.committed = self.sequence;
        self.settled.clear();
        let mut origins: Vec<Origin> = Vec::with_capacity(merge.lines.len());
        origins.extend(merge.lines.iter().map(|(origin, ..)| origin.clone()));
        let mut desk = frontier.desk();
        desk.merge(merge);
        let pending = |origin| {
            let pending = desk.pending(&origin);
            (origin, pending)
        };
        Ok(Committed {
            origins: origins.into_iter().map(pending).collect(),
        })
    }
}

impl FjallTransaction<'_> {
    /// Writes all changes to a batch, and says what the desk must learn of them.
    fn write(&mut self, batch: &mut OwnedWriteBatch) -> Result<Merge, FrontierError> {
        let tables = &self.frontier.tables;
        let mut changes: Vec<_> = std::mem::take(&mut self.changes).into_iter().collect();
        changes.sort_unstable_by_key(|&(key, _)| key);
        let changed = !changes.is_empty();
        let mut lines = BTreeMap::new();
        let mut moves = Vec::new();
        for (key, change) in changes {
            moves.extend(self.write_change(batch, &mut lines, key, change)?);
        }
        for (origin, &(id, queued)) in &lines {
            let value = encode_line(id, queued);
            batch.insert(&tables.origins, origin.as_str(), value);
        }
        for (host, value) in std::mem::take(&mut self.hosts) {
            batch.insert(&tables.hosts, host.as_str(), value);
        }
        for (origin, value) in std::mem::take(&mut self.robots) {
            batch.insert(&tables.robots, origin.as_str(), value);
        }
        for (name, value) in std::mem::take(&mut self.meta) {
            batch.insert(&tables.meta, name, value);
        }
        if changed {
            batch.insert(&tables.meta, names::SEQUENCE, self.sequence.encode());
        }
        let lines = lines.into_iter();
        Ok(Merge {
            settled: self.settled.iter().map(|key| key.fingerprint).collect(),
            moves,
            lines: lines
                .map(|(origin, (id, queued))| (origin, id, queued))
                .collect(),
            totals: self.sequence.totals,
        })
    }

    fn write_change(
        &mut self,
        batch: &mut OwnedWriteBatch,
        lines: &mut BTreeMap<Origin, (u64, u64)>,
        key: SeenKey,
        change: Change,
    ) -> Result<Option<Move>, FrontierError> {
        self.write_state(batch, key, &change);
        let old = match change.before {
            Some(State::Pending(place)) => Some(place.rank()),
            _ => None,
        };
        let new = match &change.now {
            Standpoint::Pending(queued) => Some((queued.place.rank(), queued.encode())),
            _ => None,
        };
        if old.is_none() && new.is_none() {
            return Ok(None);
        }
        let (id, queued) = match lines.get(&change.origin) {
            Some(&line) => line,
            None => self.line_or_new(&change.origin)?,
        };
        let queued = (queued + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some()));
        lines.insert(change.origin.clone(), (id, queued));
        let queue = &self.frontier.tables.queue;
        // A batch may name a key once.
        if let Some(rank) = old.filter(|&old| new.as_ref().is_none_or(|&(new, _)| new != old)) {
            batch.remove(queue, queue_key(id, rank));
        }
        if let Some((rank, value)) = &new {
            batch.insert(queue, queue_key(id, *rank), value.as_slice());
        }
        Ok(Some(Move {
            origin: change.origin,
            fingerprint: key.fingerprint,
            old,
            new: new.map(|(rank, value)| (rank, value.into_boxed_slice())),
        }))
    }

    /// Writes what is kept under a URL's own key, and counts it.
    fn write_state(&mut self, batch: &mut OwnedWriteBatch, key: SeenKey, change: &Change) {
        let tables = &self.frontier.tables;
        let state = change.now.state();
        batch.insert(&tables.seen, key.octets(), state.encode());
        if let Some(before) = &change.before {
            self.sequence.totals.leave(before);
        }
        self.sequence.totals.enter(&state);
        if let Standpoint::Deferred(deferred) = &change.now {
            batch.insert(&tables.deferred, key.octets(), deferred.encode());
        } else if let Some(State::Deferred { .. }) = change.before {
            batch.remove(&tables.deferred, key.octets());
        }
    }

    fn line_or_new(&mut self, origin: &Origin) -> Result<(u64, u64), FrontierError> {
        let line = self.frontier.desk().line(origin);
        if let Some(line) = line {
            return Ok(line);
        }
        let line = self.frontier.tables.line(&self.base, origin)?;
        Ok(line.unwrap_or_else(|| {
            self.sequence.next_origin += 1;
            (self.sequence.next_origin, 0)
        }))
    }
}

impl Drop for FjallTransaction<'_> {
    fn drop(&mut self) {
        // Empty after a commit.
        if !self.settled.is_empty() {
            let mut desk = self.frontier.desk();
            for &key in &self.settled {
                desk.give_back(&self.frontier.tables, key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
