//! A transaction on the frontier on disk.

mod commit_batch;

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use fjall::{Snapshot, UserKey};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use self::commit_batch::CommitBatch;
use super::record_codec::{FailureOrExclusionNote, SieveUrlState, StoreCounters};
use super::url_changes::{FullUrlState, TransactionUrlChanges, UrlStateChange};
use super::{FjallFrontier, Writer, meta_keys};
use crate::admit_rule::{
    AdmitAction, CurrentState, DeferredUrl, PendingUrlFields, QueuedUrl, capped, capped_exclusion,
    decide_admission,
};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
use crate::last_visit::{LastVisit, StoredVisit};
use crate::lease::{Lease, LeaseOutcome};
use crate::transaction::{CommitResult, Transaction};
use crate::url_to_admit::{AdmissionResult, RequestedState, UrlToAdmit};

/// Maximum number of URLs for which a transaction reserves memory at its beginning.
const MAX_EXPECTED: usize = 4096;

/// A transaction on the frontier on disk. Collects changes until the commit writes them as one
/// batch.
pub(super) struct FjallTransaction<'f> {
    pub(super) frontier: &'f FjallFrontier,
    /// The writer's state. Holding its lock makes this transaction the only writer.
    pub(super) writer: MutexGuard<'f, Writer>,
    pub(super) sequence: StoreCounters,
    /// The committed state at the beginning of this transaction. The snapshot stays current,
    /// because only this transaction can write.
    pub(super) base: Snapshot,
    pub(super) changes: TransactionUrlChanges,
    pub(super) settled: HashSet<Fingerprint>,
    pub(super) visits: HashMap<Fingerprint, StoredVisit>,
    /// Whether a settled URL gets another state in this transaction.
    pub(super) reopens: bool,
    /// The value that [`Writer::due_from`] gets when this transaction is committed.
    pub(super) due_from: u32,
    /// The rows of the table `due` from which this transaction has taken entries, each with the
    /// entries that remain.
    pub(super) due_left: BTreeMap<UserKey, Vec<Fingerprint>>,
    /// The number of provisional sequence numbers that were assigned to new queue entries. The
    /// commit replaces them by the final ones, which depend on the queue blocks that it puts the
    /// entries into.
    order: u64,
    pub(super) hosts: BTreeMap<HostKey, Vec<u8>>,
    pub(super) robots: BTreeMap<Origin, Vec<u8>>,
    pub(super) meta: BTreeMap<Vec<u8>, Vec<u8>>,
    /// See [`Transaction::number`].
    number: Option<u64>,
}

impl<'f> FjallTransaction<'f> {
    pub(super) fn new(
        frontier: &'f FjallFrontier,
        writer: MutexGuard<'f, Writer>,
    ) -> FjallTransaction<'f> {
        // Reserve as much memory as the last transaction needed, because a hash table that grows
        // has to move all its entries.
        let [changes, settled] =
            [writer.last_changes, writer.last_settled].map(|n| n.min(MAX_EXPECTED));
        FjallTransaction {
            frontier,
            sequence: writer.sequence,
            due_from: writer.due_from,
            due_left: BTreeMap::new(),
            writer,
            base: frontier.tables.snapshot(),
            changes: TransactionUrlChanges::with_capacity(changes),
            settled: HashSet::with_capacity(settled),
            visits: HashMap::with_capacity(settled),
            reopens: false,
            order: 0,
            hosts: BTreeMap::new(),
            robots: BTreeMap::new(),
            meta: BTreeMap::new(),
            number: None,
        }
    }

    /// Returns a URL's state as this transaction sees it.
    pub(super) fn state(
        &mut self,
        key: Fingerprint,
    ) -> Result<Option<SieveUrlState>, FrontierError> {
        match self.changes.get(key) {
            Some(change) => Ok(Some(change.now.state())),
            None => {
                let view = self.frontier.sieve.view();
                self.frontier.state(&view, key, &mut self.writer.cache)
            }
        }
    }

    fn is_leased(&self, key: Fingerprint) -> bool {
        !self.settled.contains(&key) && self.frontier.leases().is_leased(key)
    }

    /// Returns the queue entry of a URL that is pending at `place`, as this transaction sees it.
    fn queued(
        &self,
        key: Fingerprint,
        url: &CanonicalUrl,
        place: PendingUrlFields,
    ) -> Result<QueuedUrl, FrontierError> {
        match self.changes.get(key).map(|change| &change.now) {
            Some(FullUrlState::Pending(queued)) => Ok(queued.clone()),
            _ => self.frontier.tables.pending(&self.base, url, place),
        }
    }

    /// Returns a provisional sequence number. It is higher than any number in a stored block, so
    /// new entries are sorted last.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.order += 1;
        (1 << 62) + self.order
    }

    fn enter(&mut self, key: Fingerprint, before: Option<SieveUrlState>, admission: UrlToAdmit) {
        let origin = admission.url.origin();
        let now = match admission.state.clone() {
            RequestedState::Pending => {
                let sequence = self.next_sequence();
                FullUrlState::Pending(QueuedUrl::new(admission, sequence))
            }
            RequestedState::Deferred(why) => {
                FullUrlState::Deferred(DeferredUrl::new(admission, why))
            }
            RequestedState::Excluded(why) => FullUrlState::Noted {
                depth: admission.distance(),
                note: FailureOrExclusionNote::Exclusion(capped_exclusion(why)),
            },
        };
        self.changes.put(UrlStateChange {
            key,
            origin,
            before,
            now,
        });
    }

    fn improve(
        &mut self,
        key: Fingerprint,
        old: PendingUrlFields,
        place: PendingUrlFields,
        nearer: bool,
        admission: &UrlToAdmit,
    ) -> Result<(), FrontierError> {
        let origin = admission.url.origin();
        let mut queued = self.queued(key, &admission.url, old)?;
        queued.place = place;
        if place.rank() != old.rank() {
            queued.place.seq = self.next_sequence();
        }
        if nearer {
            queued.via.clone_from(&admission.via);
        }
        let before = Some(SieveUrlState::Pending(old));
        let now = FullUrlState::Pending(queued);
        self.changes.put(UrlStateChange {
            key,
            origin,
            before,
            now,
        });
        Ok(())
    }

    /// Like [`FjallTransaction::queued`] for a leased URL, but takes the entry from `lease` if
    /// neither a commit nor this transaction has changed the entry since the lease began.
    fn queued_of(
        &self,
        key: Fingerprint,
        lease: &Lease,
        place: PendingUrlFields,
    ) -> Result<QueuedUrl, FrontierError> {
        let is_changed = self.changes.get(key).is_some();
        match lease.queued_at(place).filter(|_| !is_changed) {
            Some(queued) => Ok(queued),
            None => self.queued(key, &lease.url, place),
        }
    }

    /// Sets the new state of a URL whose lease ends with `outcome`.
    fn end(
        &mut self,
        key: Fingerprint,
        lease: Lease,
        outcome: LeaseOutcome,
    ) -> Result<(), FrontierError> {
        let before = self.state(key)?;
        let Some(SieveUrlState::Pending(place)) = before else {
            let (tables, url) = (&self.frontier.tables, &lease.url);
            return Err(tables.corrupt(&format!("`{url}` is leased and not pending")));
        };
        let depth = place.depth;
        let noted = |note| FullUrlState::Noted { depth, note };
        let now = match outcome {
            LeaseOutcome::Retry => {
                let queued = self.queued_of(key, &lease, place)?;
                FullUrlState::Pending(queued.retry(self.next_sequence()))
            }
            LeaseOutcome::Fetched { status } => FullUrlState::Fetched { depth, status },
            LeaseOutcome::Failed { why } => noted(FailureOrExclusionNote::Why(capped(why))),
            LeaseOutcome::Excluded(exclusion) => noted(FailureOrExclusionNote::Exclusion(
                capped_exclusion(exclusion),
            )),
            LeaseOutcome::Deferred(exclusion) => {
                FullUrlState::Deferred(self.queued_of(key, &lease, place)?.deferred(exclusion))
            }
        };
        self.changes.put(UrlStateChange {
            key,
            origin: lease.origin,
            before,
            now,
        });
        Ok(())
    }

    fn settle_key(
        &mut self,
        key: Fingerprint,
        lease: Lease,
        outcome: LeaseOutcome,
    ) -> Result<(), FrontierError> {
        if !self.is_leased(key) {
            return Err(FrontierError::NotLeased { url: lease.url });
        }
        let ended = self.end(key, lease, outcome);
        match ended {
            // From now on this transaction holds the lease, and releases it if dropped without a
            // commit.
            Ok(()) => {
                self.settled.insert(key);
            }
            Err(_) => self.frontier.leases().give_back(key),
        }
        ended
    }

    /// Admits a URL whose state in this transaction is `was`.
    fn admit_to(
        &mut self,
        key: Fingerprint,
        was: Option<SieveUrlState>,
        admission: &UrlToAdmit,
    ) -> Result<AdmissionResult, FrontierError> {
        let now = match was {
            None => CurrentState::Unknown,
            Some(SieveUrlState::Pending(_)) if self.is_leased(key) => CurrentState::Leased,
            Some(state) => state.current(),
        };
        let admitted = match (decide_admission(now, admission), was) {
            (AdmitAction::Enter, _) => AdmissionResult::New,
            (AdmitAction::Revive, _) => AdmissionResult::Revived,
            (AdmitAction::DeferNearer, _) => AdmissionResult::Known,
            (AdmitAction::Improve { place, nearer }, Some(SieveUrlState::Pending(old))) => {
                self.improve(key, old, place, nearer, admission)?;
                return Ok(AdmissionResult::Known);
            }
            (AdmitAction::Stay | AdmitAction::Improve { .. }, _) => {
                return Ok(AdmissionResult::Known);
            }
        };
        self.enter(key, was, admission.clone());
        Ok(admitted)
    }

    /// Looks up the committed states of URLs that this transaction has not changed. If there are
    /// sorted runs, looks them up in key order, because the URLs of one origin are in the same
    /// blocks.
    fn look_up(
        &mut self,
        admissions: &[UrlToAdmit],
    ) -> Result<Vec<(Fingerprint, Option<SieveUrlState>)>, FrontierError> {
        let urls = admissions.iter().map(|admission| &admission.url);
        let keys = self.frontier.tables.key.fingerprints(urls);
        let mut states: Vec<_> = keys.map(|key| (key, None)).collect();
        let mut order: Vec<usize> = (0..states.len()).collect();
        let view = self.frontier.sieve.view();
        if view.has_runs() {
            order.sort_unstable_by_key(|at| states[*at].0);
        }
        for at in order {
            let (key, state) = &mut states[at];
            if self.changes.get(*key).is_none() {
                *state = self.frontier.state(&view, *key, &mut self.writer.cache)?;
            }
        }
        Ok(states)
    }
}

impl Transaction for FjallTransaction<'_> {
    fn settle(&mut self, lease: Lease, outcome: LeaseOutcome) -> Result<(), FrontierError> {
        let key = self.frontier.tables.key.fingerprint(&lease.url);
        self.settle_key(key, lease, outcome)
    }

    fn settle_until(
        &mut self,
        lease: Lease,
        outcome: LeaseOutcome,
        visit: LastVisit,
    ) -> Result<(), FrontierError> {
        let is_settled = !matches!(outcome, LeaseOutcome::Retry | LeaseOutcome::Deferred(_));
        let key = self.frontier.tables.key.fingerprint(&lease.url);
        let stored = StoredVisit::new(&lease, visit);
        self.settle_key(key, lease, outcome)?;
        if is_settled {
            self.visits.insert(key, stored);
        }
        Ok(())
    }

    fn visit_due(&mut self, until: u32, most: usize) -> Result<usize, FrontierError> {
        let due = self.due(until, most)?;
        self.revisit_all(due)
    }

    fn visit_misdated(
        &mut self,
        now: u32,
        longest: Option<u32>,
        most: usize,
    ) -> Result<usize, FrontierError> {
        let misdated = self.misdated(now, longest, most)?;
        self.revisit_all(misdated)
    }

    fn visit_again(&mut self, url: &CanonicalUrl, before: u32) -> Result<bool, FrontierError> {
        self.revisit_older(url, before)
    }

    fn readmit(&mut self, admission: UrlToAdmit) -> Result<bool, FrontierError> {
        let key = self.frontier.tables.key.fingerprint(&admission.url);
        let was = self.state(key)?;
        let is_excluded = matches!(was, Some(SieveUrlState::Excluded { .. }));
        if !is_excluded || self.stored_visit(key)?.is_some() {
            return Ok(false);
        }
        self.reopens = true;
        self.enter(key, was, admission);
        Ok(true)
    }

    fn admit(&mut self, admission: UrlToAdmit) -> Result<AdmissionResult, FrontierError> {
        let key = self.frontier.tables.key.fingerprint(&admission.url);
        let was = self.state(key)?;
        self.admit_to(key, was, &admission)
    }

    fn admit_all(
        &mut self,
        admissions: &[UrlToAdmit],
    ) -> Result<Vec<AdmissionResult>, FrontierError> {
        let states = self.look_up(admissions)?;
        let mut admitted = Vec::with_capacity(states.len());
        for (admission, (key, committed)) in admissions.iter().zip(states) {
            let changed = self.changes.get(key).map(|change| change.now.state());
            admitted.push(self.admit_to(key, changed.or(committed), admission)?);
        }
        Ok(admitted)
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
        self.meta
            .insert(meta_keys::of(meta_keys::MARK, file), value);
    }

    fn keep_meta(&mut self, name: &str, bytes: &[u8]) {
        self.meta
            .insert(meta_keys::of(meta_keys::CALLER, name), bytes.to_vec());
    }

    fn number(&mut self, number: u64) {
        self.number = Some(number);
    }

    fn commit(mut self: Box<Self>) -> Result<CommitResult, FrontierError> {
        let frontier = self.frontier;
        let tables = &frontier.tables;
        let CommitBatch {
            batch,
            records,
            notes,
            merge,
        } = self.write()?;
        let sequence = self.sequence;
        // Don't lock the lease table here: leasing must not wait for a commit, which may take long.
        let number = self.number;
        frontier.sieve.commit(sequence.commit, &records, || {
            batch.commit().map_err(|why| tables.failed(why))?;
            if let Some(number) = number {
                frontier.number.store(number, Ordering::Release);
            }
            Ok(())
        })?;
        self.writer.sequence = sequence;
        self.writer.due_from = self.due_from;
        self.writer.note_ids.keep(notes);
        self.writer.last_changes = records.len();
        self.writer.last_settled = self.settled.len();
        if self.reopens {
            frontier.reopenings.fetch_add(1, Ordering::Release);
        }
        self.settled.clear();
        let mut leases = frontier.leases();
        let mut origins = leases.merge(merge);
        leases.commit = self.number.unwrap_or(leases.commit);
        drop(leases);
        origins.sort_unstable();
        Ok(CommitResult { origins })
    }
}

impl Drop for FjallTransaction<'_> {
    fn drop(&mut self) {
        // After a commit, `settled` is empty, so only an uncommitted transaction gives leases back.
        if !self.settled.is_empty() {
            let mut leases = self.frontier.leases();
            for &key in &self.settled {
                leases.give_back(key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
