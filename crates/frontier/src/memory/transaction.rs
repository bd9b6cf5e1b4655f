//! A transaction on the frontier in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::{MemoryFrontier, SharedTables, lock};
use crate::admit_rule::{AdmitAction, CurrentState, PendingUrlFields, decide_admission};
use crate::error::FrontierError;
use crate::last_visit::{LastVisit, StoredVisit};
use crate::lease::{Lease, LeaseOutcome};
use crate::transaction::{CommitResult, Transaction};
use crate::url_record::{UrlRecord, UrlRecordState};
use crate::url_to_admit::{AdmissionResult, UrlToAdmit};

/// A transaction, which collects changes until the commit.
pub(super) struct MemoryTransaction<'f> {
    frontier: &'f MemoryFrontier,
    /// The next sequence number. Holding its lock makes this transaction the only writer.
    seq: MutexGuard<'f, u64>,
    next_seq: u64,
    changed: HashMap<CanonicalUrl, UrlRecord>,
    settled: HashSet<CanonicalUrl>,
    visits: HashMap<CanonicalUrl, StoredVisit>,
    /// Whether a settled URL gets another state in this transaction.
    reopens: bool,
    hosts: BTreeMap<HostKey, (u64, Vec<u8>)>,
    robots: HashMap<Origin, Vec<u8>>,
    marks: BTreeMap<String, u64>,
    meta: BTreeMap<String, Vec<u8>>,
    number: Option<u64>,
}

impl<'f> MemoryTransaction<'f> {
    pub(super) fn new(frontier: &'f MemoryFrontier) -> MemoryTransaction<'f> {
        let seq = lock(&frontier.writer);
        MemoryTransaction {
            frontier,
            next_seq: *seq,
            seq,
            changed: HashMap::new(),
            settled: HashSet::new(),
            visits: HashMap::new(),
            reopens: false,
            hosts: BTreeMap::new(),
            robots: HashMap::new(),
            marks: BTreeMap::new(),
            meta: BTreeMap::new(),
            number: None,
        }
    }

    fn take_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    /// Returns the record of a URL as this transaction sees it, and whether the URL is leased.
    fn record(&self, url: &CanonicalUrl) -> (Option<UrlRecord>, bool) {
        let shared = self.frontier.shared();
        let leased = shared.leased.contains(url) && !self.settled.contains(url);
        let record = self.changed.get(url).or_else(|| shared.records.get(url));
        (record.cloned(), leased)
    }

    fn improve(
        &mut self,
        mut record: UrlRecord,
        place: PendingUrlFields,
        nearer: bool,
        admission: UrlToAdmit,
    ) {
        let moved = place.rank() != record.place.rank();
        record.place = place;
        if moved {
            record.place.seq = self.take_seq();
        }
        if nearer {
            record.via = admission.via;
        }
        self.changed.insert(admission.url, record);
    }

    /// Returns the stored visit of a URL, as this transaction sees it.
    fn stored_visit(&self, url: &CanonicalUrl) -> Option<StoredVisit> {
        let shared = self.frontier.shared();
        let visit = self.visits.get(url).or_else(|| shared.visits.get(url));
        visit.cloned()
    }

    /// Makes a settled URL pending again. `kept` is the URL's stored visit.
    fn revisit(&mut self, mut kept: StoredVisit) {
        let queued = kept.queued(self.take_seq());
        let record = UrlRecord {
            state: UrlRecordState::Pending { attempt: 1 },
            place: queued.place,
            via: queued.via,
        };
        kept.is_settled = false;
        self.reopens = true;
        self.changed.insert(kept.url.clone(), record);
        self.visits.insert(kept.url.clone(), kept);
    }

    /// Sets the record of a URL to the one that `admission` requests.
    fn enter(&mut self, admission: UrlToAdmit) {
        let (url, seq) = (admission.url.clone(), self.take_seq());
        self.changed
            .insert(url, UrlRecord::admitted(admission, seq));
    }

    /// Replaces the committed record of a URL. Returns whether the URL was or is now pending.
    fn apply(shared: &mut SharedTables, url: &CanonicalUrl, record: UrlRecord) -> bool {
        let mut queued = record.rank().is_some();
        shared.unqueue(url);
        *record.counter(&mut shared.counts) += 1;
        match shared.records.insert(url.clone(), record) {
            Some(old) => {
                *old.counter(&mut shared.counts) -= 1;
                queued |= old.rank().is_some();
            }
            None => shared.counts.known += 1,
        }
        // A URL leased while this transaction was open keeps its lease.
        if !shared.leased.contains(url) {
            shared.queue(url);
        }
        queued
    }

    /// Returns the state of a URL as the admission rule needs it.
    pub(super) fn state(&self, url: &CanonicalUrl) -> CurrentState {
        let (record, is_leased) = self.record(url);
        record.map_or(CurrentState::Unknown, |record| record.now(is_leased))
    }

    /// Makes up to `most` settled URLs pending again, the longest overdue first. Takes only URLs
    /// for which `is_own` returns true and whose visit satisfies `is_due`. Returns their number.
    pub(super) fn revisit_where(
        &mut self,
        most: usize,
        is_due: impl Fn(&LastVisit) -> bool,
        is_own: impl Fn(&CanonicalUrl) -> bool,
    ) -> usize {
        let mut urls: Vec<CanonicalUrl> = self.visits.keys().cloned().collect();
        urls.extend(self.frontier.shared().visits.keys().cloned());
        urls.retain(is_own);
        urls.sort_unstable();
        urls.dedup();
        let visits = urls.iter().filter_map(|url| self.stored_visit(url));
        let mut due: Vec<_> = visits
            .filter(|stored| stored.is_settled && is_due(&stored.visit))
            .collect();
        due.sort_by_key(|kept| kept.visit.due);
        due.truncate(most);
        let count = due.len();
        for kept in due {
            self.revisit(kept);
        }
        count
    }
}

impl Transaction for MemoryTransaction<'_> {
    fn settle(&mut self, lease: Lease, outcome: LeaseOutcome) -> Result<(), FrontierError> {
        let Lease { url, .. } = lease;
        let (Some(mut record), true) = self.record(&url) else {
            return Err(FrontierError::NotLeased { url });
        };
        self.settled.insert(url.clone());
        // Only a retry gets a new sequence number, and so a new place in its queue.
        let seq = match outcome {
            LeaseOutcome::Retry => self.take_seq(),
            _ => record.place.seq,
        };
        record = record.ended(outcome, seq);
        self.changed.insert(url, record);
        Ok(())
    }

    fn settle_until(
        &mut self,
        lease: Lease,
        outcome: LeaseOutcome,
        visit: LastVisit,
    ) -> Result<(), FrontierError> {
        let is_settled = !matches!(outcome, LeaseOutcome::Retry | LeaseOutcome::Deferred(_));
        let stored = StoredVisit::new(&lease, visit);
        self.settle(lease, outcome)?;
        if is_settled {
            self.visits.insert(stored.url.clone(), stored);
        }
        Ok(())
    }

    fn visit_due(&mut self, until: u32, most: usize) -> Result<usize, FrontierError> {
        Ok(self.revisit_where(most, |visit| visit.due <= until, |_| true))
    }

    fn visit_misdated(
        &mut self,
        now: u32,
        longest: Option<u32>,
        most: usize,
    ) -> Result<usize, FrontierError> {
        Ok(self.revisit_where(most, |visit| visit.is_misdated(now, longest), |_| true))
    }

    fn visit_again(&mut self, url: &CanonicalUrl, before: u32) -> Result<bool, FrontierError> {
        match self.stored_visit(url) {
            Some(kept) if kept.is_settled && kept.visit.at < before => {
                self.revisit(kept);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn readmit(&mut self, admission: UrlToAdmit) -> Result<bool, FrontierError> {
        let (record, _) = self.record(&admission.url);
        let is_excluded =
            record.is_some_and(|record| matches!(record.state, UrlRecordState::Excluded(_)));
        let is_readmitted = is_excluded && self.stored_visit(&admission.url).is_none();
        if is_readmitted {
            self.reopens = true;
            self.enter(admission);
        }
        Ok(is_readmitted)
    }

    fn admit(&mut self, admission: UrlToAdmit) -> Result<AdmissionResult, FrontierError> {
        let (record, leased) = self.record(&admission.url);
        let now = record
            .as_ref()
            .map_or(CurrentState::Unknown, |record| record.now(leased));
        Ok(match (decide_admission(now, &admission), record) {
            (AdmitAction::Improve { place, nearer }, Some(record)) => {
                self.improve(record, place, nearer, admission);
                AdmissionResult::Known
            }
            (AdmitAction::Enter, _) => {
                self.enter(admission);
                AdmissionResult::New
            }
            (AdmitAction::Revive, _) => {
                self.enter(admission);
                AdmissionResult::Revived
            }
            (AdmitAction::DeferNearer, _) => {
                self.enter(admission);
                AdmissionResult::Known
            }
            (AdmitAction::Stay | AdmitAction::Improve { .. }, _) => AdmissionResult::Known,
        })
    }

    fn keep_host(&mut self, host: &HostKey, wake: u64, bytes: &[u8]) {
        self.hosts.insert(host.clone(), (wake, bytes.to_vec()));
    }

    fn keep_robots(&mut self, origin: &Origin, bytes: &[u8]) {
        self.robots.insert(origin.clone(), bytes.to_vec());
    }

    fn mark(&mut self, file: &str, length: u64) {
        self.marks.insert(file.to_owned(), length);
    }

    fn keep_meta(&mut self, name: &str, bytes: &[u8]) {
        self.meta.insert(name.to_owned(), bytes.to_vec());
    }

    fn number(&mut self, number: u64) {
        self.number = Some(number);
    }

    fn commit(mut self: Box<Self>) -> Result<CommitResult, FrontierError> {
        let mut shared = self.frontier.shared();
        let mut origins = BTreeSet::new();
        for url in std::mem::take(&mut self.settled) {
            shared.leased.remove(&url);
        }
        for (url, record) in std::mem::take(&mut self.changed) {
            if MemoryTransaction::apply(&mut shared, &url, record) {
                origins.insert(url.origin());
            }
        }
        shared.visits.extend(self.visits.drain());
        shared.reopenings += u64::from(self.reopens);
        shared.hosts.append(&mut self.hosts);
        shared.robots.extend(self.robots.drain());
        shared.marks.append(&mut self.marks);
        shared.meta.append(&mut self.meta);
        shared.commit = self.number.unwrap_or(shared.commit);
        *self.seq = self.next_seq;
        let pending = |origin: Origin| {
            let pending = shared.pending(&origin);
            (origin, pending)
        };
        Ok(CommitResult {
            origins: origins.into_iter().map(pending).collect(),
        })
    }
}

impl Drop for MemoryTransaction<'_> {
    fn drop(&mut self) {
        // After a commit, `settled` is empty, so only an uncommitted transaction gives leases back.
        let mut shared = self.frontier.shared();
        for url in &self.settled {
            if shared.leased.remove(url) {
                shared.queue(url);
            }
        }
    }
}
