//! A transaction: collects changes, and sends them as one commit.

mod commit_rows;
mod reopen_lost;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crawl_frontier::parts::{
    AdmitAction, CurrentState, PendingUrlFields, QueueRank, QueueReader as _, QueuedUrl,
    StoredVisit, UrlRecord, UrlRecordState, decide_admission,
};
use crawl_frontier::worker_frontier::{ReopenLostResult, WorkerTransaction};
use crawl_frontier::{
    AdmissionResult, CommitResult, Fingerprint, FrontierError, LastVisit, Lease, LeaseOutcome,
    RequestedState, Transaction, UrlToAdmit,
};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use self::commit_rows::CommitRows;
use super::{OpenTransactionState, SharedFrontier};
use crate::connection::{StatementParameter, params};
use crate::row_codec::{
    BucketReopenProgress, ColumnReader, LinkFromWorkerKey, UrlKey, state_columns,
};
use crate::sql_statements::SqlStatement;

/// A transaction of the shared frontier. Collects changes until the commit.
pub(super) struct SharedTransaction<'f> {
    frontier: &'f SharedFrontier,
    /// The writer's state. Holding its lock makes this transaction the only writer of this process.
    writer: MutexGuard<'f, OpenTransactionState>,
    seq: u64,
    changed: HashMap<Fingerprint, UrlChange>,
    settled: HashSet<Fingerprint>,
    visits: HashMap<Fingerprint, StoredVisit>,
    /// Links to hosts of other workers, each with its bucket.
    links: Vec<(i32, UrlToAdmit)>,
    sent_states: HashMap<Fingerprint, CurrentState>,
    /// The committed records that were prefetched for admissions and not used yet. An unknown URL
    /// has `None`.
    read: HashMap<Fingerprint, Option<UrlRecord>>,
    /// Keys of the links from other workers that this transaction admits.
    taken: Vec<LinkFromWorkerKey>,
    /// Whether this transaction gives a settled URL another state.
    reopens: bool,
    /// The progress of reopening lost URLs in each bucket. A URL is lost if the worker that settled
    /// it has lost its directory.
    to_reopen: Vec<BucketReopenProgress>,
    /// Keys of reopened URLs whose visits are dropped.
    dropped_visits: Vec<UrlKey>,
    dropped_robots: BTreeSet<(i32, i64)>,
    hosts: BTreeMap<HostKey, (u64, Vec<u8>)>,
    robots: BTreeMap<Origin, Vec<u8>>,
    marks: BTreeMap<String, u64>,
    meta: BTreeMap<String, Vec<u8>>,
    /// See [`Transaction::number`].
    number: Option<u64>,
    /// See [`WorkerTransaction::note_spent`].
    spent: Option<(u64, u64)>,
}

struct UrlChange {
    url: CanonicalUrl,
    key: UrlKey,
    /// The parts of the committed record that the counts of URLs depend on. `None` if the URL was
    /// unknown.
    before: Option<CountedStateBefore>,
    now: UrlRecord,
}

/// The parts of a committed record that the counts of URLs depend on.
#[derive(Clone, Copy)]
struct CountedStateBefore {
    /// The state, as a value of the column `state`.
    state: i16,
    rank: Option<QueueRank>,
}

impl CountedStateBefore {
    fn of(record: &UrlRecord) -> CountedStateBefore {
        CountedStateBefore {
            state: state_columns(&record.state).state,
            rank: record.rank(),
        }
    }
}

/// The record of a URL as this transaction sees it.
struct UrlRecordView {
    before: Option<CountedStateBefore>,
    record: UrlRecord,
}

impl<'f> SharedTransaction<'f> {
    pub(super) fn new(
        frontier: &'f SharedFrontier,
        writer: MutexGuard<'f, OpenTransactionState>,
    ) -> SharedTransaction<'f> {
        SharedTransaction {
            frontier,
            seq: writer.seq,
            writer,
            changed: HashMap::new(),
            settled: HashSet::new(),
            visits: HashMap::new(),
            links: Vec::new(),
            sent_states: HashMap::new(),
            read: HashMap::new(),
            taken: Vec::new(),
            reopens: false,
            to_reopen: Vec::new(),
            dropped_visits: Vec::new(),
            dropped_robots: BTreeSet::new(),
            hosts: BTreeMap::new(),
            robots: BTreeMap::new(),
            marks: BTreeMap::new(),
            meta: BTreeMap::new(),
            number: None,
            spent: None,
        }
    }

    fn take_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint {
        self.frontier.tables.fingerprint(url)
    }

    /// Returns the committed queue entry of a leased URL, or `None` if the URL is not leased or
    /// this transaction has settled it.
    fn leased(&self, key: Fingerprint) -> Option<QueuedUrl> {
        match self.settled.contains(&key) {
            true => None,
            false => self.frontier.memory().leases.leased(key).cloned(),
        }
    }

    /// Adds a changed record. `before` is ignored if this transaction has already changed the URL.
    fn put(
        &mut self,
        key: Fingerprint,
        url: CanonicalUrl,
        before: Option<CountedStateBefore>,
        now: UrlRecord,
    ) {
        if let Some(change) = self.changed.get_mut(&key) {
            change.now = now;
            return;
        }
        let change = UrlChange {
            key: self.frontier.tables.keys.url(&url, key),
            url,
            before,
            now,
        };
        self.changed.insert(key, change);
    }

    /// Returns the state of a URL as an admission finds it, or `None` if the state is not in
    /// memory.
    fn state_in_memory(&self, key: Fingerprint) -> Option<CurrentState> {
        let mut memory = self.frontier.memory();
        let is_leased = !self.settled.contains(&key) && memory.leases.is_leased(key);
        match self.changed.get(&key) {
            Some(change) => Some(change.now.now(is_leased)),
            None if is_leased => Some(CurrentState::Leased),
            None => memory.recent.get(key),
        }
    }

    /// Sends a link to the owner of its host, unless the link would change nothing there.
    fn send_link(&mut self, b: i32, key: Fingerprint, admission: &UrlToAdmit) -> AdmissionResult {
        let known_state = match self.sent_states.get(&key) {
            Some(state) => Some(*state),
            None => self.frontier.memory().recent.get(key),
        };
        let sent_state =
            match decide_admission(known_state.unwrap_or(CurrentState::Unknown), admission) {
                AdmitAction::Stay => return AdmissionResult::Known,
                AdmitAction::Improve { place, .. } => CurrentState::Pending(place),
                // If the owner has deferred the URL, this excluded link does not change it. Remember
                // the URL as deferred on the longest possible path, so that every later link that is
                // not excluded is sent.
                _ if matches!(admission.state, RequestedState::Excluded(_)) => {
                    CurrentState::Deferred {
                        depth: u32::MAX,
                        redirects: u8::MAX,
                    }
                }
                AdmitAction::Enter | AdmitAction::Revive | AdmitAction::DeferNearer => {
                    UrlRecord::admitted(admission.clone(), 0).now(false)
                }
            };
        self.sent_states.insert(key, sent_state);
        self.links.push((b, admission.clone()));
        match admission.state {
            // Only the host's owner writes the row of an excluded URL in `excluded.jsonl`, so don't
            // report the URL as new.
            RequestedState::Excluded(_) => AdmissionResult::Known,
            _ => AdmissionResult::New,
        }
    }

    /// Returns a URL as this transaction sees it. Reads its record if necessary.
    fn find(
        &mut self,
        key: Fingerprint,
        url: &CanonicalUrl,
    ) -> Result<Option<UrlRecordView>, FrontierError> {
        if let Some(change) = self.changed.get(&key) {
            return Ok(Some(UrlRecordView {
                before: change.before,
                record: change.now.clone(),
            }));
        }
        let record = match self.read.remove(&key) {
            Some(record) => record,
            None => {
                let tables = &self.frontier.tables;
                let records = tables.records(&[tables.keys.url(url, key)])?;
                records.into_iter().next().flatten()
            }
        };
        Ok(record.map(|record| UrlRecordView {
            before: Some(CountedStateBefore::of(&record)),
            record,
        }))
    }

    /// Prefetches the records that admissions need and that are not in memory, in one round trip.
    fn look_up<'a>(
        &mut self,
        admissions: impl Iterator<Item = &'a UrlToAdmit>,
    ) -> Result<(), FrontierError> {
        let tables = &self.frontier.tables;
        let mut wanted: Vec<(UrlKey, Fingerprint)> = Vec::new();
        let mut seeds: BTreeMap<i32, Vec<(UrlKey, Fingerprint)>> = BTreeMap::new();
        for admission in admissions {
            let key = self.fingerprint(&admission.url);
            if let Some(b) = tables.foreign_bucket(&admission.url) {
                if admission.is_seed && !self.sent_states.contains_key(&key) {
                    let group = tables.groups.elsewhere(b).unwrap_or(tables.groups.own);
                    let key = (tables.keys.url(&admission.url, key), key);
                    seeds.entry(group).or_default().push(key);
                }
                continue;
            }
            let is_decided = match self.state_in_memory(key) {
                Some(state) => decide_admission(state, admission) == AdmitAction::Stay,
                None => false,
            };
            if !is_decided && !self.changed.contains_key(&key) && !self.read.contains_key(&key) {
                wanted.push((tables.keys.url(&admission.url, key), key));
            }
        }
        // Sort the keys in the order of the table's rows, which also brings duplicates together.
        wanted.sort_unstable();
        wanted.dedup();
        let keys: Vec<UrlKey> = wanted.iter().map(|(key, _)| *key).collect();
        let records = tables.records(&keys)?;
        let mut memory = self.frontier.memory();
        for ((_, key), record) in wanted.into_iter().zip(records) {
            if let Some(record) = &record {
                memory.recent.put(key, record.now(false));
            }
            self.read.insert(key, record);
        }
        drop(memory);
        self.look_up_seeds(seeds);
        Ok(())
    }

    /// Reads the records of seeds on hosts of other workers, from the server groups that serve
    /// these hosts. Every start admits all seeds again. A known seed must not be sent as a link,
    /// because the link would wait forever once the other workers have ended.
    fn look_up_seeds(&mut self, seeds: BTreeMap<i32, Vec<(UrlKey, Fingerprint)>>) {
        for (group, seeds) in seeds {
            let keys: Vec<UrlKey> = seeds.iter().map(|(key, _)| *key).collect();
            // Ignore an error of this read. The seeds are then sent as links, and sending waits
            // until the server group can be reached.
            let records = self.frontier.tables.records_in(group, &keys);
            let records = records.unwrap_or_default().into_iter();
            for ((_, key), record) in seeds.into_iter().zip(records) {
                if let Some(record) = record {
                    self.sent_states.insert(key, record.now(false));
                }
            }
        }
    }

    fn admit_one(&mut self, admission: &UrlToAdmit) -> Result<AdmissionResult, FrontierError> {
        let key = self.fingerprint(&admission.url);
        if let Some(b) = self.frontier.tables.foreign_bucket(&admission.url) {
            return Ok(self.send_link(b, key, admission));
        }
        let state = self.state_in_memory(key);
        if state.is_some_and(|state| decide_admission(state, admission) == AdmitAction::Stay) {
            return Ok(AdmissionResult::Known);
        }
        let view = self.find(key, &admission.url)?;
        let now = match &view {
            Some(view) => view.record.now(self.leased(key).is_some()),
            None => CurrentState::Unknown,
        };
        let (before, record) = match view {
            Some(UrlRecordView { before, record }) => (before, Some(record)),
            None => (None, None),
        };
        let url = admission.url.clone();
        let admitted = match (decide_admission(now, admission), record) {
            (AdmitAction::Improve { place, nearer }, Some(record)) => {
                let record = self.improved(record, place, nearer, admission);
                self.put(key, url, before, record);
                return Ok(AdmissionResult::Known);
            }
            (AdmitAction::Enter, _) => AdmissionResult::New,
            (AdmitAction::Revive, _) => AdmissionResult::Revived,
            (AdmitAction::DeferNearer, _) => AdmissionResult::Known,
            (AdmitAction::Stay | AdmitAction::Improve { .. }, _) => {
                return Ok(AdmissionResult::Known);
            }
        };
        let record = UrlRecord::admitted(admission.clone(), self.take_seq());
        self.put(key, url, before, record);
        Ok(admitted)
    }

    fn improved(
        &mut self,
        mut record: UrlRecord,
        place: PendingUrlFields,
        nearer: bool,
        admission: &UrlToAdmit,
    ) -> UrlRecord {
        let has_moved = place.rank() != record.place.rank();
        record.place = place;
        if has_moved {
            record.place.seq = self.take_seq();
        }
        if nearer {
            record.via.clone_from(&admission.via);
        }
        record
    }

    /// Makes a settled URL pending again. `kept` is the URL's last visit.
    fn revisit(
        &mut self,
        key: Fingerprint,
        mut kept: StoredVisit,
        before: Option<CountedStateBefore>,
    ) {
        let queued = kept.queued(self.take_seq());
        let record = UrlRecord {
            state: UrlRecordState::Pending { attempt: 1 },
            place: queued.place,
            via: queued.via,
        };
        kept.is_settled = false;
        self.reopens = true;
        self.put(key, queued.url, before, record);
        self.visits.insert(key, kept);
    }

    /// Makes up to `most` settled URLs pending again, the earliest due first. The candidates are
    /// the URLs whose stored visits `sql` returns, and the URLs whose visits in this transaction
    /// satisfy `is_due`.
    fn revisit_all(
        &mut self,
        (sql, params): (SqlStatement, Vec<StatementParameter>),
        most: usize,
        is_due: impl Fn(&LastVisit) -> bool,
    ) -> Result<usize, FrontierError> {
        let mut due: Vec<(Fingerprint, StoredVisit, Option<CountedStateBefore>)> = Vec::new();
        let tables = &self.frontier.tables;
        for row in tables.read(sql, params)? {
            let stored = ColumnReader::new(&row).visit();
            let (_, stored, state) = stored.ok_or_else(|| tables.corrupt("visit"))?;
            let key = self.fingerprint(&stored.url);
            if !self.visits.contains_key(&key) {
                due.push((key, stored, Some(CountedStateBefore { state, rank: None })));
            }
        }
        let own = self.visits.iter();
        let own = own.filter(|(_, stored)| stored.is_settled && is_due(&stored.visit));
        due.extend(own.map(|(key, stored)| (*key, stored.clone(), None)));
        due.sort_by(|(_, a, _), (_, b, _)| (a.visit.due, &a.url).cmp(&(b.visit.due, &b.url)));
        due.truncate(most);
        let count = due.len();
        for (key, stored, before) in due {
            self.revisit(key, stored, before);
        }
        Ok(count)
    }

    /// Returns the number of stored visits to read: more than `most`, because this transaction may
    /// have replaced some of the stored visits.
    fn limit(&self, most: usize) -> i64 {
        let limit = most.saturating_add(self.visits.len());
        i64::try_from(limit).unwrap_or(i64::MAX)
    }
}

impl Transaction for SharedTransaction<'_> {
    fn settle(&mut self, lease: Lease, outcome: LeaseOutcome) -> Result<(), FrontierError> {
        let key = self.fingerprint(&lease.url);
        let Some(queued) = self.leased(key) else {
            return Err(FrontierError::NotLeased { url: lease.url });
        };
        let committed = UrlRecord {
            state: UrlRecordState::Pending {
                attempt: queued.attempt,
            },
            place: queued.place,
            via: queued.via,
        };
        let before = Some(CountedStateBefore::of(&committed));
        let record = match self.changed.get(&key) {
            Some(change) => change.now.clone(),
            None => committed,
        };
        self.settled.insert(key);
        // Only a retry gets a new sequence number, because only a retry moves in the queue.
        let seq = match outcome {
            LeaseOutcome::Retry => self.take_seq(),
            _ => record.place.seq,
        };
        self.put(key, lease.url, before, record.ended(outcome, seq));
        Ok(())
    }

    fn settle_until(
        &mut self,
        lease: Lease,
        outcome: LeaseOutcome,
        visit: LastVisit,
    ) -> Result<(), FrontierError> {
        let is_settled = !matches!(outcome, LeaseOutcome::Retry | LeaseOutcome::Deferred(_));
        let key = self.fingerprint(&lease.url);
        let stored = StoredVisit::new(&lease, visit);
        self.settle(lease, outcome)?;
        if is_settled {
            self.visits.insert(key, stored);
        }
        Ok(())
    }

    fn visit_due(&mut self, until: u32, most: usize) -> Result<usize, FrontierError> {
        let owned = &self.frontier.tables.owned;
        let (buckets, limit) = (owned.buckets(), self.limit(most));
        let params = params![owned.crawl, buckets, i64::from(until), limit];
        self.revisit_all((SqlStatement::VisitsDue, params), most, |visit| {
            visit.due <= until
        })
    }

    fn visit_misdated(
        &mut self,
        now: u32,
        longest: Option<u32>,
        most: usize,
    ) -> Result<usize, FrontierError> {
        let owned = &self.frontier.tables.owned;
        let (buckets, limit) = (owned.buckets(), self.limit(most));
        let latest = i64::from(now.saturating_add(longest.unwrap_or(0)));
        // Without `longest`, only visits dated after `now` can be wrong. With the maximum term, the
        // statement finds no others.
        let (from, term) = (
            i64::from(now),
            longest.map_or(i64::from(u32::MAX), i64::from),
        );
        let params = params![owned.crawl, buckets, latest, from, term, limit];
        self.revisit_all((SqlStatement::VisitsMisdated, params), most, |visit| {
            visit.is_misdated(now, longest)
        })
    }

    fn visit_again(&mut self, url: &CanonicalUrl, before: u32) -> Result<bool, FrontierError> {
        let key = self.fingerprint(url);
        let (stored, state) = match self.visits.get(&key) {
            Some(stored) => (stored.clone(), None),
            None => match self.frontier.stored_visit(url)? {
                Some((stored, state)) => (stored, Some(CountedStateBefore { state, rank: None })),
                None => return Ok(false),
            },
        };
        let is_older = stored.is_settled && stored.visit.at < before;
        if is_older {
            self.revisit(key, stored, state);
        }
        Ok(is_older)
    }

    fn readmit(&mut self, admission: UrlToAdmit) -> Result<bool, FrontierError> {
        let url = &admission.url;
        if self.frontier.tables.foreign_bucket(url).is_some() {
            return Ok(false);
        }
        let key = self.fingerprint(url);
        let Some(UrlRecordView { before, record }) = self.find(key, url)? else {
            return Ok(false);
        };
        let is_excluded = matches!(record.state, UrlRecordState::Excluded(_));
        if !is_excluded
            || self.visits.contains_key(&key)
            || self.frontier.stored_visit(url)?.is_some()
        {
            return Ok(false);
        }
        self.reopens = true;
        let url = url.clone();
        let record = UrlRecord::admitted(admission, self.take_seq());
        self.put(key, url, before, record);
        Ok(true)
    }

    fn admit(&mut self, admission: UrlToAdmit) -> Result<AdmissionResult, FrontierError> {
        self.admit_one(&admission)
    }

    fn admit_all(
        &mut self,
        admissions: &[UrlToAdmit],
    ) -> Result<Vec<AdmissionResult>, FrontierError> {
        self.look_up(admissions.iter())?;
        let each = admissions.iter();
        each.map(|admission| self.admit_one(admission)).collect()
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
        self.writer.changed_states.clear();
        let CommitRows { batch, merge } = self.rows();
        let totals = merge.totals;
        if !batch.is_empty() {
            let number = batch.number;
            self.frontier.tables.commit(batch)?;
            self.writer.commits = number;
        }
        self.writer.seq = self.seq;
        self.writer.totals = totals;
        if self.reopens {
            self.frontier.reopenings.fetch_add(1, Ordering::Release);
        }
        self.settled.clear();
        let mut memory = self.frontier.memory();
        for (key, state) in self.writer.changed_states.drain(..) {
            memory.recent.put(key, state);
        }
        let mut origins = memory.leases.merge(merge);
        memory.leases.commit = self.number.unwrap_or(memory.leases.commit);
        drop(memory);
        origins.sort_unstable();
        Ok(CommitResult { origins })
    }
}

impl WorkerTransaction for SharedTransaction<'_> {
    fn expect(
        &mut self,
        admissions: &mut dyn Iterator<Item = &UrlToAdmit>,
    ) -> Result<(), FrontierError> {
        self.look_up(admissions)
    }

    fn take_links(&mut self, most: usize) -> Result<Vec<UrlToAdmit>, FrontierError> {
        let tables = &self.frontier.tables;
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let params = params![tables.owned.crawl, tables.owned.buckets(), limit];
        let rows = tables.read(SqlStatement::Links, params)?;
        let links = rows.iter().map(|row| ColumnReader::new(row).link());
        let links: Option<Vec<_>> = links.collect();
        let links = links.ok_or_else(|| tables.corrupt("link"))?;
        let (taken, admissions): (Vec<_>, Vec<_>) = links.into_iter().unzip();
        self.taken = taken;
        Ok(admissions)
    }

    fn reopen_lost(&mut self, most: usize) -> Result<ReopenLostResult, FrontierError> {
        self.look_for_lost(most)
    }

    fn note_spent(&mut self, pages: u64, bytes: u64) {
        self.spent = Some((pages, bytes));
    }
}

impl Drop for SharedTransaction<'_> {
    fn drop(&mut self) {
        // `settled` is empty if the transaction was committed.
        if !self.settled.is_empty() {
            let mut memory = self.frontier.memory();
            for &key in &self.settled {
                memory.leases.give_back(key);
            }
        }
    }
}
