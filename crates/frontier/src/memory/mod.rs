//! A frontier in memory.

mod transaction;
mod url_records;
mod workers;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crawl_weburl::{CanonicalUrl, HostKey, Origin, Site};
use foldhash::{HashMap, HashSet};

use self::transaction::MemoryTransaction;
use self::url_records::MemoryUrlRecords;
pub use self::workers::{MemoryCrawl, MemoryWorker};
use crate::admit_rule::{AdmitAction, CurrentState, QueueRank, QueuedUrl, decide_admission};
use crate::error::FrontierError;
use crate::frontier::Frontier;
use crate::last_visit::{LastVisit, StoredVisit};
use crate::lease::Lease;
use crate::transaction::Transaction;
use crate::url_record::UrlRecord;
use crate::url_state::{KnownUrlDetails, UnsettledUrl, UrlCounts};
use crate::url_to_admit::UrlToAdmit;

/// A [`Frontier`] that lives as long as the process.
///
/// Meets the whole contract except durability. Simulations use this frontier because it is fast,
/// and tests compare other frontiers with it. [`MemoryFrontier::restarted`] shows the state after a
/// crash and a restart.
#[derive(Debug, Default)]
pub struct MemoryFrontier {
    /// Locked by the open transaction. Holds the next sequence number.
    writer: Mutex<u64>,
    /// The committed state and the leases. Acquired after `writer`, and held only briefly.
    shared: Mutex<SharedTables>,
}

#[derive(Clone, Debug, Default)]
struct SharedTables {
    records: MemoryUrlRecords,
    /// The pending URLs of each origin, in queue order. Empty queues are removed.
    queues: BTreeMap<Origin, BTreeMap<QueueRank, CanonicalUrl>>,
    leased: HashSet<CanonicalUrl>,
    visits: HashMap<CanonicalUrl, StoredVisit>,
    hosts: BTreeMap<HostKey, (u64, Vec<u8>)>,
    robots: HashMap<Origin, Vec<u8>>,
    marks: BTreeMap<String, u64>,
    meta: BTreeMap<String, Vec<u8>>,
    reopenings: u64,
    /// The number of the last commit.
    commit: u64,
    /// The number of URLs in each state. Here `pending` includes the leased URLs, and `leased`
    /// stays 0.
    counts: UrlCounts,
}

impl MemoryFrontier {
    /// Creates an empty frontier.
    #[must_use]
    pub fn new() -> MemoryFrontier {
        MemoryFrontier::default()
    }

    /// Returns the frontier after a crash and a restart: everything committed remains, and leased
    /// URLs are pending again at their old places.
    #[must_use]
    pub fn restarted(self) -> MemoryFrontier {
        let mut shared = self.shared();
        shared.commit = 0;
        for url in std::mem::take(&mut shared.leased) {
            shared.queue(&url);
        }
        drop(shared);
        self
    }

    /// Returns a copy of the committed state without leases. Several runs may continue from copies
    /// of the same state.
    #[must_use]
    pub fn forked(&self) -> MemoryFrontier {
        // While this lock is held, no transaction can begin.
        let seq = lock(&self.writer);
        let mut shared = self.shared();
        shared.records.share();
        let copy = MemoryFrontier {
            writer: Mutex::new(*seq),
            shared: Mutex::new(shared.clone()),
        };
        drop(shared);
        copy.restarted()
    }

    fn shared(&self) -> MutexGuard<'_, SharedTables> {
        lock(&self.shared)
    }

    /// Releases the leases of the URLs for which `is_released` returns true.
    fn release_where(&self, is_released: impl Fn(&CanonicalUrl) -> bool) {
        let mut shared = self.shared();
        let leased = shared.leased.iter().filter(|url| is_released(url));
        let released: Vec<CanonicalUrl> = leased.cloned().collect();
        for url in released {
            shared.leased.remove(&url);
            shared.queue(&url);
        }
    }

    fn leased_urls(&self) -> Vec<CanonicalUrl> {
        self.shared().leased.iter().cloned().collect()
    }

    /// Returns the site of each pending or leased URL.
    fn pending_sites(&self) -> Vec<Site> {
        let shared = self.shared();
        let queued = shared.queues.values().flat_map(BTreeMap::values);
        queued
            .chain(&shared.leased)
            .map(CanonicalUrl::site)
            .collect()
    }

    /// Counts the URLs for which `is_counted` returns true, by state.
    fn counts_where(&self, is_counted: impl Fn(&CanonicalUrl) -> bool) -> UrlCounts {
        let shared = self.shared();
        let mut counts = UrlCounts::default();
        for (url, record) in shared.records.all().filter(|(url, _)| is_counted(url)) {
            counts.known += 1;
            match shared.leased.contains(url) {
                true => counts.leased += 1,
                false => *record.counter(&mut counts) += 1,
            }
        }
        counts
    }

    /// Returns the earliest time later than `after` at which the visit of a settled URL is due.
    /// Considers only URLs for which `is_own` returns true.
    fn next_due_where(&self, after: u32, is_own: impl Fn(&CanonicalUrl) -> bool) -> Option<u32> {
        let shared = self.shared();
        let settled = shared.visits.values();
        let settled = settled.filter(|kept| kept.is_settled && is_own(&kept.url));
        let due = settled.map(|kept| kept.visit.due);
        due.filter(|due| *due > after).min()
    }
}

impl SharedTables {
    /// Inserts a URL into the queue of its origin, if the URL is pending. The URL must not be
    /// leased.
    fn queue(&mut self, url: &CanonicalUrl) {
        if let Some(rank) = self.records.get(url).and_then(UrlRecord::rank) {
            self.queues
                .entry(url.origin())
                .or_default()
                .insert(rank, url.clone());
        }
    }

    /// Removes a pending URL from its queue, if the queue contains it.
    fn unqueue(&mut self, url: &CanonicalUrl) {
        let Some(rank) = self.records.get(url).and_then(UrlRecord::rank) else {
            return;
        };
        let origin = url.origin();
        if let Some(queue) = self.queues.get_mut(&origin) {
            queue.remove(&rank);
            if queue.is_empty() {
                self.queues.remove(&origin);
            }
        }
    }

    fn pending(&self, origin: &Origin) -> u64 {
        self.queues
            .get(origin)
            .map_or(0, |queue| queue.len() as u64)
    }

    fn lease(&mut self, origin: &Origin) -> Option<Lease> {
        let queue = self.queues.get_mut(origin)?;
        let (_, url) = queue.pop_first()?;
        if queue.is_empty() {
            self.queues.remove(origin);
        }
        self.leased.insert(url.clone());
        let record = self.records.get(&url)?;
        let queued = QueuedUrl {
            place: record.place,
            attempt: record.attempt(),
            url,
            via: record.via.clone(),
        };
        Some(Lease::new(origin.clone(), queued, self.commit))
    }
}

impl Frontier for MemoryFrontier {
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError> {
        Ok(self.shared().lease(origin))
    }

    fn release(&self, lease: Lease) {
        let mut shared = self.shared();
        if shared.leased.remove(&lease.url) {
            shared.queue(&lease.url);
        }
    }

    fn pending(&self, origin: &Origin) -> u64 {
        self.shared().pending(origin)
    }

    fn origins(&self) -> Vec<(Origin, u64)> {
        let shared = self.shared();
        let queues = shared.queues.iter();
        queues
            .map(|(origin, queue)| (origin.clone(), queue.len() as u64))
            .collect()
    }

    fn counts(&self) -> UrlCounts {
        let shared = self.shared();
        let leased = shared.leased.len() as u64;
        UrlCounts {
            pending: shared.counts.pending - leased,
            leased,
            ..shared.counts
        }
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        Ok(Box::new(MemoryTransaction::new(self)))
    }

    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrlDetails>, FrontierError> {
        let shared = self.shared();
        let leased = shared.leased.contains(url);
        Ok(shared.records.get(url).map(|record| record.known(leased)))
    }

    fn drop_known(
        &self,
        links: &mut Vec<UrlToAdmit>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64> {
        let shared = self.shared();
        links.retain(|link| {
            let leased = shared.leased.contains(&link.url);
            let Some(record) = shared.records.get(&link.url) else {
                return true;
            };
            let state = record.now(leased);
            if matches!(state, CurrentState::Settled) {
                settled(&link.url);
            }
            decide_admission(state, link) != AdmitAction::Stay
        });
        Some(shared.commit)
    }

    fn reopenings(&self) -> u64 {
        self.shared().reopenings
    }

    fn visit(&self, url: &CanonicalUrl) -> Result<Option<LastVisit>, FrontierError> {
        let shared = self.shared();
        Ok(shared.visits.get(url).map(|kept| kept.visit.clone()))
    }

    fn found_on(&self, url: &CanonicalUrl) -> Result<Option<CanonicalUrl>, FrontierError> {
        let via = self.known(url)?.and_then(|known| known.via);
        let shared = self.shared();
        let stored = || shared.visits.get(url).and_then(|stored| stored.via.clone());
        Ok(via.or_else(stored))
    }

    fn next_due(&self, after: u32) -> Result<Option<u32>, FrontierError> {
        Ok(self.next_due_where(after, |_| true))
    }

    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError> {
        Ok(self.shared().robots.get(origin).cloned())
    }

    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError> {
        Ok(self.shared().hosts.get(host).cloned())
    }

    fn hosts(&self) -> Result<Vec<(HostKey, u64, Vec<u8>)>, FrontierError> {
        let shared = self.shared();
        let hosts = shared.hosts.iter();
        Ok(hosts
            .map(|(host, (wake, bytes))| (host.clone(), *wake, bytes.clone()))
            .collect())
    }

    fn marks(&self) -> Result<BTreeMap<String, u64>, FrontierError> {
        Ok(self.shared().marks.clone())
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError> {
        Ok(self.shared().meta.get(name).cloned())
    }

    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        // Copy the records first, because `visit` may call the frontier, which would deadlock.
        let records = self.shared().records.clone();
        for (url, record) in records.deferred() {
            if visit(record.waiting(url)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn each_pending(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let mut pending: Vec<(CanonicalUrl, UrlRecord)> = Vec::new();
        let shared = self.shared();
        for url in shared.queues.values().flat_map(BTreeMap::values) {
            if let Some(record) = shared.records.get(url) {
                pending.push((url.clone(), record.clone()));
            }
        }
        drop(shared);
        show(&pending, visit);
        Ok(())
    }
}

fn show(
    pending: &[(CanonicalUrl, UrlRecord)],
    visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
) {
    for (url, record) in pending {
        if visit(record.waiting(url)).is_break() {
            break;
        }
    }
}

/// Locks a mutex. A panic in another thread leaves the contents consistent, because they change
/// only in steps that can't panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
