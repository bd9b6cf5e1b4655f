//! A frontier in memory that several workers share, for simulations.

mod coordination_tables;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crawl_weburl::{CanonicalUrl, HostKey, Origin, Site};
use foldhash::{HashMap, HashMapExt};

use self::coordination_tables::MemoryCoordinationTables;
use self::transaction::MemoryWorkerTransaction;
use super::{MemoryFrontier, lock};
use crate::admit_rule::CurrentState;
use crate::error::{BoxError, FrontierError, SharedFrontierError};
use crate::frontier::Frontier;
use crate::last_visit::LastVisit;
use crate::lease::Lease;
use crate::transaction::Transaction;
use crate::url_state::{KnownUrlDetails, UnsettledUrl, UrlCounts};
use crate::url_to_admit::UrlToAdmit;
use crate::worker_frontier::{SendDeadline, SharedCrawlStatus, WorkerFrontier, WorkerTransaction};

/// Requests must end a margin before the worker's leases do. The margin is the duration of a lease
/// divided by this number.
const MARGIN_PARTS: u32 = 10;
/// Prefix of the names under which values are stored for the whole crawl, not for one worker.
const CRAWL_META: &str = "crawl ";
/// The name under which a worker stores the buckets whose deferred URLs it has listed in its
/// records.
const LISTED: &str = "listed";

type Clock = dyn Fn() -> Instant + Send + Sync;

/// A crawl that several workers share, in memory: a substitute for the database.
///
/// Meets the contract of [`WorkerFrontier`], including leases, fencing and counts. Simulates one
/// group of database servers, but not the loss of a worker's directory. Takes the clock as an
/// argument, so that simulations can use virtual time.
#[derive(Clone)]
pub struct MemoryCrawl(Arc<SharedWorkerTables>);

struct SharedWorkerTables {
    /// The URLs of all workers. This frontier's `writer` lock is held while a worker's transaction
    /// is open, and while buckets change owners.
    frontier: MemoryFrontier,
    tables: Mutex<MemoryCoordinationTables>,
    /// The number of buckets.
    buckets: u32,
    /// How long a lease lasts after each heartbeat.
    term: Duration,
    clock: Box<Clock>,
}

impl MemoryCrawl {
    /// Creates a crawl without URLs. `term` is the duration of a lease, and `clock` returns the
    /// current time.
    #[must_use]
    pub fn new(
        buckets: u32,
        term: Duration,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> MemoryCrawl {
        MemoryCrawl(Arc::new(SharedWorkerTables {
            frontier: MemoryFrontier::new(),
            tables: Mutex::new(MemoryCoordinationTables::new(buckets)),
            buckets: buckets.max(1),
            term,
            clock: Box::new(clock),
        }))
    }

    /// Opens the crawl as a worker, and takes its fair share of the buckets without an owner.
    /// `last_life` is the id of the worker's last process, which must have ended.
    ///
    /// # Errors
    /// If another process uses the worker's name.
    pub fn open(
        &self,
        worker: &str,
        last_life: Option<&str>,
    ) -> Result<Arc<MemoryWorker>, BoxError> {
        let shared = &self.0;
        let now = (shared.clock)();
        let until = now + shared.term;
        let mut tables = lock(&shared.tables);
        let life = tables.take_name(worker, last_life, now, until)?;
        let fair = tables.fair_share(now);
        drop(tables);
        let worker = Arc::new(MemoryWorker {
            crawl: Arc::clone(shared),
            name: worker.to_owned(),
            life,
            own: Arc::new(Mutex::new(Own {
                buckets: BTreeMap::new(),
                until,
                lost: None,
                is_cut_off: false,
                commit: 0,
                sent: HashMap::new(),
            })),
        });
        worker.take_free(fair)?;
        Ok(worker)
    }

    /// Requests that a worker hand over its hosts and end. The worker sees the request in its next
    /// survey.
    pub fn drain(&self, worker: &str) {
        lock(&self.0.tables).drain(worker);
    }

    /// Returns the frontier with the URLs of all workers.
    #[must_use]
    pub fn all_urls(&self) -> &MemoryFrontier {
        &self.0.frontier
    }

    /// Returns the number of links that wait for the owners of their hosts.
    #[must_use]
    pub fn waiting_links(&self) -> usize {
        lock(&self.0.tables).links.len()
    }
}

impl SharedWorkerTables {
    fn bucket_of(&self, site: &Site) -> i32 {
        let hash = site.as_str().bytes().fold(0_u32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        i32::try_from(hash % self.buckets).unwrap_or_default()
    }
}

/// One run of a worker that shares a [`MemoryCrawl`].
pub struct MemoryWorker {
    crawl: Arc<SharedWorkerTables>,
    name: String,
    life: String,
    own: Arc<Mutex<Own>>,
}

/// What one worker knows: its leases, its last commit and the links that it sent.
struct Own {
    buckets: BTreeMap<i32, OwnedBucket>,
    /// The time at which the leases end if no heartbeat extends them.
    until: Instant,
    /// Why the leases were lost. `None` while the worker has them.
    lost: Option<String>,
    /// Whether the worker can't reach the database.
    is_cut_off: bool,
    /// The number of this worker's last commit.
    commit: u64,
    /// The URLs that this worker sent to other workers as links, each with the state that it will
    /// have when the other worker admits it. A further link to a URL is sent only if it would
    /// change that state. Cleared when this worker takes or hands over buckets.
    sent: HashMap<CanonicalUrl, CurrentState>,
}

#[derive(Clone, Copy)]
struct OwnedBucket {
    epoch: i64,
    taken: Instant,
}

impl MemoryWorker {
    /// Sends a heartbeat, which extends this worker's leases.
    ///
    /// # Errors
    /// [`FrontierError`] if the worker is cut off or its leases ended.
    pub fn renew(&self) -> Result<(), FrontierError> {
        self.reach()?;
        self.check()?;
        let (now, until) = self.time();
        let mut own = lock(&self.own);
        let epochs: Vec<_> = own.buckets.iter().map(|(b, own)| (*b, own.epoch)).collect();
        let renewed = lock(&self.crawl.tables).renew(&self.name, &self.life, &epochs, now, until);
        match renewed {
            true => own.until = until,
            false => own.lost = Some("a heartbeat came after the leases had ended".to_owned()),
        }
        drop(own);
        self.check()
    }

    /// Sets whether this worker can reach the database.
    pub fn cut_off(&self, is_cut_off: bool) {
        lock(&self.own).is_cut_off = is_cut_off;
    }

    /// Returns the current time, and the end of a lease that begins now.
    fn time(&self) -> (Instant, Instant) {
        let now = (self.crawl.clock)();
        (now, now + self.crawl.term)
    }

    fn reach(&self) -> Result<(), FrontierError> {
        match lock(&self.own).is_cut_off {
            false => Ok(()),
            true => Err(FrontierError::Shared(SharedFrontierError::DatabaseServer {
                address: "memory".to_owned(),
                source: "no route to the database".into(),
            })),
        }
    }

    fn lost(&self, why: &str) -> FrontierError {
        FrontierError::Shared(SharedFrontierError::LeaseLost {
            worker: self.name.clone(),
            why: why.to_owned(),
        })
    }

    /// Records why this worker lost its hosts, unless a reason is recorded already. Returns the
    /// error for `why`.
    fn lose(&self, why: &str) -> FrontierError {
        lock(&self.own).lost.get_or_insert_with(|| why.to_owned());
        self.lost(why)
    }

    fn owns_site(&self, site: &Site) -> bool {
        let b = self.crawl.bucket_of(site);
        lock(&self.own).buckets.contains_key(&b)
    }

    /// Returns a function that reports whether this worker owns the host of a URL.
    fn is_own(&self) -> impl Fn(&CanonicalUrl) -> bool + use<'_> {
        let owned: BTreeSet<i32> = self.owned_buckets().into_iter().collect();
        move |url| owned.contains(&self.crawl.bucket_of(&url.site()))
    }

    /// Returns a visitor that passes only URLs of this worker's hosts to `visit`.
    fn only_own<'a>(
        &'a self,
        visit: &'a mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> impl FnMut(UnsettledUrl<'_>) -> ControlFlow<()> + 'a {
        let is_own = self.is_own();
        move |url| match is_own(url.url) {
            true => visit(url),
            false => ControlFlow::Continue(()),
        }
    }

    /// Fails if another process owns bucket `b`, or if the bucket was taken again since this worker
    /// took it.
    fn fence(&self, b: i32) -> Result<(), FrontierError> {
        let epoch = lock(&self.own).buckets.get(&b).map(|own| own.epoch);
        let is_owner = lock(&self.crawl.tables).is_owner(&self.life, b, epoch);
        match is_owner {
            true => Ok(()),
            false => Err(self.lose("another worker took over its hosts")),
        }
    }
}

struct MemorySendDeadline {
    crawl: Arc<SharedWorkerTables>,
    own: Arc<Mutex<Own>>,
}

impl SendDeadline for MemorySendDeadline {
    fn ends_at(&self) -> Instant {
        let own = lock(&self.own);
        let ends_at = own.until - self.crawl.term / MARGIN_PARTS;
        match own.lost {
            Some(_) => ends_at.min((self.crawl.clock)()),
            None => ends_at,
        }
    }

    fn is_over(&self) -> bool {
        (self.crawl.clock)() >= self.ends_at()
    }
}

impl WorkerFrontier for MemoryWorker {
    fn begin_worker(&self) -> Result<Box<dyn WorkerTransaction + '_>, FrontierError> {
        self.check()?;
        Ok(Box::new(MemoryWorkerTransaction::new(self)))
    }

    fn life(&self) -> &str {
        &self.life
    }

    fn send_deadline(&self) -> Arc<dyn SendDeadline> {
        Arc::new(MemorySendDeadline {
            crawl: Arc::clone(&self.crawl),
            own: Arc::clone(&self.own),
        })
    }

    fn check(&self) -> Result<(), FrontierError> {
        let own = lock(&self.own);
        match &own.lost {
            Some(why) => Err(self.lost(why)),
            None if (self.crawl.clock)() >= own.until => {
                Err(self.lost("heartbeats did not reach the database in time"))
            }
            None => Ok(()),
        }
    }

    fn owned_buckets(&self) -> Vec<i32> {
        lock(&self.own).buckets.keys().copied().collect()
    }

    fn bucket_epochs(&self) -> BTreeMap<i32, i64> {
        let own = lock(&self.own);
        own.buckets.iter().map(|(b, own)| (*b, own.epoch)).collect()
    }

    fn served_buckets(&self) -> u64 {
        self.crawl.buckets.into()
    }

    fn bucket_of(&self, host: &HostKey) -> i32 {
        self.crawl.bucket_of(&host.site())
    }

    fn owns(&self, host: &HostKey) -> bool {
        self.owns_site(&host.site())
    }

    fn taken_over_for(&self, host: &HostKey) -> Option<Duration> {
        let own = lock(&self.own);
        let bucket = own.buckets.get(&self.bucket_of(host))?;
        let now = (self.crawl.clock)();
        (bucket.epoch > 1).then(|| now.saturating_duration_since(bucket.taken))
    }

    fn leased_buckets(&self) -> BTreeSet<i32> {
        let leased = self.crawl.frontier.leased_urls();
        let is_own = self.is_own();
        let own = leased.iter().filter(|url| is_own(url));
        own.map(|url| self.crawl.bucket_of(&url.site())).collect()
    }

    fn take_free(&self, most: u64) -> Result<(usize, Vec<(Origin, u64)>), FrontierError> {
        self.reach()?;
        self.check()?;
        let _writer = lock(&self.crawl.frontier.writer);
        let (now, until) = self.time();
        let epochs = lock(&self.crawl.tables).take(&self.life, most, now, until);
        let epochs: BTreeMap<i32, i64> = epochs.into_iter().collect();
        let is_taken = |site: &Site| epochs.contains_key(&self.crawl.bucket_of(site));
        // URLs in these buckets may still be leased to the last owner, whose leases on the buckets
        // have ended. So release the URLs.
        self.crawl
            .frontier
            .release_where(|url| is_taken(&url.site()));
        let mut own = lock(&self.own);
        own.sent.clear();
        own.until = own.until.min(until);
        let buckets = epochs.iter();
        own.buckets.extend(buckets.map(|(b, epoch)| {
            (
                *b,
                OwnedBucket {
                    epoch: *epoch,
                    taken: now,
                },
            )
        }));
        drop(own);
        let mut origins = self.crawl.frontier.origins();
        origins.retain(|(origin, _)| is_taken(&origin.site()));
        Ok((epochs.len(), origins))
    }

    fn hand_over(&self, buckets: &[i32]) -> Result<(), FrontierError> {
        let _writer = lock(&self.crawl.frontier.writer);
        let mut own = lock(&self.own);
        own.sent.clear();
        own.buckets.retain(|b, _| !buckets.contains(b));
        drop(own);
        self.reach()?;
        lock(&self.crawl.tables).free(&self.life, |b| buckets.contains(&b));
        Ok(())
    }

    fn give_up(&self) -> Result<(), FrontierError> {
        self.reach()?;
        let _writer = lock(&self.crawl.frontier.writer);
        lock(&self.crawl.tables).end_life(&self.name, &self.life);
        let mut own = lock(&self.own);
        own.buckets.clear();
        own.lost = Some("the worker gave up its hosts".to_owned());
        Ok(())
    }

    fn survey(&self) -> Result<SharedCrawlStatus, FrontierError> {
        self.reach()?;
        let mut pending: BTreeMap<i32, u64> = BTreeMap::new();
        for site in self.crawl.frontier.pending_sites() {
            *pending.entry(self.crawl.bucket_of(&site)).or_default() += 1;
        }
        let owned = self.owned_buckets();
        let tables = lock(&self.crawl.tables);
        Ok(tables.survey(&self.life, &owned, &pending, (self.crawl.clock)()))
    }

    fn forward_links(&self, _group: i32) -> Result<(), FrontierError> {
        Ok(())
    }

    fn set_idle(&self, is_idle: bool, pages: Option<u64>) -> Result<(), FrontierError> {
        self.reach()?;
        lock(&self.crawl.tables).set_idle(&self.life, is_idle, pages);
        Ok(())
    }

    fn allow(&self, pages: u64, more: u64, of: u64) -> Result<u64, FrontierError> {
        self.reach()?;
        let now = (self.crawl.clock)();
        let allowed = lock(&self.crawl.tables).allow(&self.life, (pages, more, of), now);
        allowed.ok_or_else(|| self.lose("another process uses its name"))
    }

    fn buckets_to_list(&self) -> Result<BTreeSet<i32>, FrontierError> {
        self.take_free(self.served_buckets())?;
        let mut buckets: BTreeSet<i32> = self.owned_buckets().into_iter().collect();
        for bytes in lock(&self.crawl.tables).others_meta(&self.name, LISTED) {
            for bytes in bytes.as_chunks().0 {
                buckets.remove(&i32::from_le_bytes(*bytes));
            }
        }
        Ok(buckets)
    }

    fn note_listed(&self, buckets: &BTreeSet<i32>) -> Result<(), FrontierError> {
        let bytes: Vec<u8> = buckets.iter().flat_map(|b| b.to_le_bytes()).collect();
        let mut transaction = self.begin()?;
        transaction.keep_meta(LISTED, &bytes);
        transaction.commit().map(drop)
    }

    /// Ignores the settings, because this crawl doesn't compare the settings of its workers.
    fn replace_settings(&self, _settings: &str) -> Result<(), FrontierError> {
        self.reach()
    }

    fn crawl_meta(&self) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
        Ok(lock(&self.crawl.tables).crawl_meta())
    }
}

impl Frontier for MemoryWorker {
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError> {
        self.check()?;
        if !self.owns_site(&origin.site()) {
            return Ok(None);
        }
        let lease = self.crawl.frontier.lease(origin)?;
        let after = lock(&self.own).commit;
        Ok(lease.map(|lease| Lease { after, ..lease }))
    }

    fn release(&self, lease: Lease) {
        // Release the URL only if this worker still owns its bucket. A new owner may have leased
        // the same URL.
        if self.fence(self.crawl.bucket_of(&lease.url.site())).is_ok() {
            self.crawl.frontier.release(lease);
        }
    }

    fn pending(&self, origin: &Origin) -> u64 {
        match self.owns_site(&origin.site()) {
            true => self.crawl.frontier.pending(origin),
            false => 0,
        }
    }

    fn origins(&self) -> Vec<(Origin, u64)> {
        let mut origins = self.crawl.frontier.origins();
        origins.retain(|(origin, _)| self.owns_site(&origin.site()));
        origins
    }

    fn counts(&self) -> UrlCounts {
        self.crawl.frontier.counts_where(self.is_own())
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        self.check()?;
        Ok(Box::new(MemoryWorkerTransaction::new(self)))
    }

    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrlDetails>, FrontierError> {
        self.crawl.frontier.known(url)
    }

    fn drop_known(
        &self,
        links: &mut Vec<UrlToAdmit>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64> {
        let is_own = self.is_own();
        links.retain(|link| {
            let mut links = vec![link.clone()];
            if is_own(&link.url) {
                self.crawl.frontier.drop_known(&mut links, settled);
            }
            !links.is_empty()
        });
        Some(lock(&self.own).commit)
    }

    fn reopenings(&self) -> u64 {
        self.crawl.frontier.reopenings()
    }

    fn visit(&self, url: &CanonicalUrl) -> Result<Option<LastVisit>, FrontierError> {
        self.crawl.frontier.visit(url)
    }

    fn found_on(&self, url: &CanonicalUrl) -> Result<Option<CanonicalUrl>, FrontierError> {
        self.crawl.frontier.found_on(url)
    }

    fn next_due(&self, after: u32) -> Result<Option<u32>, FrontierError> {
        Ok(self.crawl.frontier.next_due_where(after, self.is_own()))
    }

    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError> {
        self.crawl.frontier.robots(origin)
    }

    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError> {
        self.crawl.frontier.host(host)
    }

    fn hosts(&self) -> Result<Vec<(HostKey, u64, Vec<u8>)>, FrontierError> {
        let mut hosts = self.crawl.frontier.hosts()?;
        hosts.retain(|(host, ..)| self.owns(host));
        Ok(hosts)
    }

    fn marks(&self) -> Result<BTreeMap<String, u64>, FrontierError> {
        Ok(lock(&self.crawl.tables).marks(&self.name))
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError> {
        let worker = meta_owner(&self.name, name);
        Ok(lock(&self.crawl.tables).meta(worker, name))
    }

    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        self.crawl.frontier.each_deferred(&mut self.only_own(visit))
    }

    fn each_pending(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        self.crawl.frontier.each_pending(&mut self.only_own(visit))
    }
}

/// Returns the worker under whose name a value is stored, or an empty name for a value of the whole
/// crawl.
fn meta_owner<'a>(worker: &'a str, name: &str) -> &'a str {
    match name.starts_with(CRAWL_META) {
        true => "",
        false => worker,
    }
}

/// Locks a worker's view of its leases.
fn own(worker: &MemoryWorker) -> MutexGuard<'_, Own> {
    lock(&worker.own)
}
