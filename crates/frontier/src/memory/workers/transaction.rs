//! A transaction of a worker on the shared frontier in memory.

use std::collections::BTreeMap;

use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use foldhash::{HashMap, HashMapExt};

use super::super::transaction::MemoryTransaction;
use super::{MemoryWorker, meta_owner, own};
use crate::admit_rule::{AdmitAction, CurrentState, decide_admission};
use crate::error::FrontierError;
use crate::last_visit::LastVisit;
use crate::lease::{Lease, LeaseOutcome};
use crate::memory::lock;
use crate::transaction::{CommitResult, Transaction};
use crate::url_record::UrlRecord;
use crate::url_to_admit::{AdmissionResult, RequestedState, UrlToAdmit};
use crate::worker_frontier::{ReopenLostResult, WorkerFrontier as _, WorkerTransaction};

/// A worker's transaction. No bucket changes owners while the transaction is open.
pub(super) struct MemoryWorkerTransaction<'f> {
    worker: &'f MemoryWorker,
    base: MemoryTransaction<'f>,
    /// Links to hosts of other workers, each with its bucket.
    links: Vec<(i32, UrlToAdmit)>,
    /// For each URL in `links`, the state that the URL will have once the owner of its host has
    /// admitted these links. A further link to the URL is skipped if it would not change this
    /// state.
    sent: HashMap<CanonicalUrl, CurrentState>,
    /// The numbers of links from other workers that this transaction admits.
    taken: Vec<u64>,
    marks: BTreeMap<String, u64>,
    meta: BTreeMap<String, Vec<u8>>,
    number: Option<u64>,
    spent: Option<(u64, u64)>,
    /// Whether the transaction tried to change a bucket that this worker does not own.
    is_fenced_off: bool,
}

impl<'f> MemoryWorkerTransaction<'f> {
    pub(super) fn new(worker: &'f MemoryWorker) -> MemoryWorkerTransaction<'f> {
        MemoryWorkerTransaction {
            worker,
            base: MemoryTransaction::new(&worker.crawl.frontier),
            links: Vec::new(),
            sent: HashMap::new(),
            taken: Vec::new(),
            marks: BTreeMap::new(),
            meta: BTreeMap::new(),
            number: None,
            spent: None,
            is_fenced_off: false,
        }
    }

    /// Fails if this worker does not own bucket `b`. The commit of this transaction then fails too.
    fn fence(&mut self, b: i32) -> Result<(), FrontierError> {
        let fenced = self.worker.fence(b);
        self.is_fenced_off |= fenced.is_err();
        fenced
    }

    fn bucket(&self, url: &CanonicalUrl) -> i32 {
        self.worker.crawl.bucket_of(&url.site())
    }

    /// Sends a link to the owner of its host, unless the link would change nothing there.
    fn send_link(&mut self, b: i32, link: UrlToAdmit) -> Result<AdmissionResult, FrontierError> {
        let sent = self.sent.get(&link.url).copied();
        let sent = sent.or_else(|| own(self.worker).sent.get(&link.url).copied());
        let state = match sent {
            Some(state) => state,
            // Every start of a worker admits all seeds. If each start sent the seeds to their
            // owners as unknown URLs, the links would wait forever once the other workers have
            // ended. So look up the seed's real state.
            None if link.is_seed => self.base.state(&link.url),
            None => CurrentState::Unknown,
        };
        let sent = match decide_admission(state, &link) {
            AdmitAction::Stay => return Ok(AdmissionResult::Known),
            AdmitAction::Improve { place, .. } => CurrentState::Pending(place),
            // If the owner has deferred the URL, this excluded link does not change it. Remember
            // the URL as deferred on the longest possible path, so that every later link that is
            // not excluded is sent.
            _ if matches!(link.state, RequestedState::Excluded(_)) => CurrentState::Deferred {
                depth: u32::MAX,
                redirects: u8::MAX,
            },
            AdmitAction::Enter | AdmitAction::Revive | AdmitAction::DeferNearer => {
                UrlRecord::admitted(link.clone(), 0).now(false)
            }
        };
        self.sent.insert(link.url.clone(), sent);
        // The host's owner writes the row of an excluded URL in `excluded.jsonl`. So this worker
        // must not count the URL as new.
        let admitted = match link.state {
            RequestedState::Excluded(_) => AdmissionResult::Known,
            _ => AdmissionResult::New,
        };
        self.links.push((b, link));
        Ok(admitted)
    }
}

impl Transaction for MemoryWorkerTransaction<'_> {
    fn settle(&mut self, lease: Lease, outcome: LeaseOutcome) -> Result<(), FrontierError> {
        self.fence(self.bucket(&lease.url))?;
        self.base.settle(lease, outcome)
    }

    fn settle_until(
        &mut self,
        lease: Lease,
        outcome: LeaseOutcome,
        visit: LastVisit,
    ) -> Result<(), FrontierError> {
        self.fence(self.bucket(&lease.url))?;
        self.base.settle_until(lease, outcome, visit)
    }

    fn visit_due(&mut self, until: u32, most: usize) -> Result<usize, FrontierError> {
        let is_own = self.worker.is_own();
        let is_due = |visit: &LastVisit| visit.due <= until;
        Ok(self.base.revisit_where(most, is_due, is_own))
    }

    fn visit_misdated(
        &mut self,
        now: u32,
        longest: Option<u32>,
        most: usize,
    ) -> Result<usize, FrontierError> {
        let is_own = self.worker.is_own();
        let is_due = |visit: &LastVisit| visit.is_misdated(now, longest);
        Ok(self.base.revisit_where(most, is_due, is_own))
    }

    fn visit_again(&mut self, url: &CanonicalUrl, before: u32) -> Result<bool, FrontierError> {
        self.fence(self.bucket(url))?;
        self.base.visit_again(url, before)
    }

    fn readmit(&mut self, admission: UrlToAdmit) -> Result<bool, FrontierError> {
        let b = self.bucket(&admission.url);
        if !own(self.worker).buckets.contains_key(&b) {
            return Ok(false);
        }
        self.fence(b)?;
        self.base.readmit(admission)
    }

    fn admit(&mut self, admission: UrlToAdmit) -> Result<AdmissionResult, FrontierError> {
        let b = self.bucket(&admission.url);
        if !own(self.worker).buckets.contains_key(&b) {
            return self.send_link(b, admission);
        }
        self.fence(b)?;
        self.base.admit(admission)
    }

    fn keep_host(&mut self, host: &HostKey, wake: u64, bytes: &[u8]) {
        // Ignore the error here: after a failed `fence`, the commit fails.
        let _ = self.fence(self.worker.crawl.bucket_of(&host.site()));
        self.base.keep_host(host, wake, bytes);
    }

    fn keep_robots(&mut self, origin: &Origin, bytes: &[u8]) {
        // Don't store the copy if its host was handed over after the fetch.
        if self.worker.owns_site(&origin.site()) {
            let _ = self.fence(self.worker.crawl.bucket_of(&origin.site()));
            self.base.keep_robots(origin, bytes);
        }
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

    fn commit(self: Box<Self>) -> Result<CommitResult, FrontierError> {
        let worker = self.worker;
        worker.reach()?;
        let (name, life) = (&worker.name, &worker.life);
        let has_name = lock(&worker.crawl.tables).has_name(name, life);
        if self.is_fenced_off || !has_name {
            return Err(worker.lose("another worker took over its hosts"));
        }
        let committed = Box::new(self.base).commit()?;
        let mut tables = lock(&worker.crawl.tables);
        for (b, link) in self.links {
            tables.send(b, link);
        }
        for number in self.taken {
            tables.links.remove(&number);
        }
        tables.mark(name, self.marks);
        for (name, bytes) in self.meta {
            tables.keep_meta(meta_owner(&worker.name, &name), name, bytes);
        }
        if let Some((pages, bytes)) = self.spent {
            tables.spend(life, pages, bytes);
        }
        drop(tables);
        let mut own = own(worker);
        own.sent.extend(self.sent);
        own.commit = self.number.unwrap_or(own.commit);
        Ok(committed)
    }
}

impl WorkerTransaction for MemoryWorkerTransaction<'_> {
    fn expect(
        &mut self,
        _admissions: &mut dyn Iterator<Item = &UrlToAdmit>,
    ) -> Result<(), FrontierError> {
        Ok(())
    }

    fn take_links(&mut self, most: usize) -> Result<Vec<UrlToAdmit>, FrontierError> {
        let owned = self.worker.owned_buckets();
        let tables = lock(&self.worker.crawl.tables);
        let links = tables.links.iter();
        let links = links.filter(|(_, (b, _))| owned.contains(b)).take(most);
        let (taken, links): (Vec<_>, Vec<_>) = links
            .map(|(number, (_, link))| (*number, link.clone()))
            .unzip();
        drop(tables);
        self.taken = taken;
        Ok(links)
    }

    fn reopen_lost(&mut self, _most: usize) -> Result<ReopenLostResult, FrontierError> {
        Ok(ReopenLostResult::default())
    }

    fn note_spent(&mut self, pages: u64, bytes: u64) {
        self.spent = Some((pages, bytes));
    }
}
