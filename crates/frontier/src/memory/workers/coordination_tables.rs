//! The tables of a shared crawl that don't hold URLs: buckets, workers and links in transit.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::error::BoxError;
use crate::url_to_admit::UrlToAdmit;
use crate::worker_frontier::SharedCrawlStatus;

/// The buckets, workers and waiting links of a crawl.
pub(super) struct MemoryCoordinationTables {
    buckets: Vec<OwnedHostBucket>,
    workers: BTreeMap<String, WorkerEntry>,
    /// The links that wait for the owners of their hosts, by link number, each with the bucket of
    /// its host.
    pub(super) links: BTreeMap<u64, (i32, UrlToAdmit)>,
    last_link: u64,
    /// The committed lengths of each worker's files, by worker and file name.
    marks: BTreeMap<String, BTreeMap<String, u64>>,
    /// The stored values, by the worker's name and the value's name. The worker's name is empty for
    /// values of the whole crawl.
    meta: BTreeMap<(String, String), Vec<u8>>,
    lives: u64,
}

/// A set of hosts with one owner.
#[derive(Clone, Default)]
struct OwnedHostBucket {
    owner: String,
    epoch: i64,
    /// The end of the owner's lease. `None` if the bucket was handed over or never taken.
    until: Option<Instant>,
}

struct WorkerEntry {
    life: String,
    until: Option<Instant>,
    pages: u64,
    bytes: u64,
    allowed: u64,
    is_idle: bool,
    is_drained: bool,
}

fn is_valid(until: Option<Instant>, now: Instant) -> bool {
    until.is_some_and(|until| until > now)
}

impl MemoryCoordinationTables {
    pub(super) fn new(buckets: u32) -> MemoryCoordinationTables {
        let buckets = buckets.max(1) as usize;
        MemoryCoordinationTables {
            buckets: vec![OwnedHostBucket::default(); buckets],
            workers: BTreeMap::new(),
            links: BTreeMap::new(),
            last_link: 0,
            marks: BTreeMap::new(),
            meta: BTreeMap::new(),
            lives: 0,
        }
    }

    fn numbered(&mut self) -> impl Iterator<Item = (i32, &mut OwnedHostBucket)> {
        (0..).zip(&mut self.buckets)
    }

    /// Registers a new process under a worker's name, and returns a new id for the process. Frees
    /// the buckets of the worker's last process, whose id is `last_life`.
    pub(super) fn take_name(
        &mut self,
        name: &str,
        last_life: Option<&str>,
        now: Instant,
        until: Instant,
    ) -> Result<String, BoxError> {
        if let Some(last) = last_life {
            self.free(last, |_| true);
        }
        let is_used = |worker: &WorkerEntry| {
            is_valid(worker.until, now) && last_life != Some(worker.life.as_str())
        };
        let before = self.workers.get(name);
        if before.is_some_and(is_used) {
            return Err(format!("worker `{name}` is running").into());
        }
        self.lives += 1;
        let life = format!("{name} {}", self.lives);
        let (pages, bytes) = before.map_or((0, 0), |before| (before.pages, before.bytes));
        let worker = WorkerEntry {
            life: life.clone(),
            until: Some(until),
            pages,
            bytes,
            allowed: pages,
            is_idle: false,
            is_drained: false,
        };
        self.workers.insert(name.to_owned(), worker);
        Ok(life)
    }

    fn of_life(&mut self, life: &str) -> Option<&mut WorkerEntry> {
        self.workers.values_mut().find(|worker| worker.life == life)
    }

    pub(super) fn drain(&mut self, name: &str) {
        if let Some(worker) = self.workers.get_mut(name) {
            worker.is_drained = true;
        }
    }

    fn living(&self, now: Instant) -> u64 {
        let workers = self.workers.values();
        let living = workers.filter(|worker| is_valid(worker.until, now) && !worker.is_drained);
        living.count() as u64
    }

    /// Returns the number of buckets that each living worker should have: all buckets divided by
    /// the living workers, rounded up.
    pub(super) fn fair_share(&self, now: Instant) -> u64 {
        (self.buckets.len() as u64).div_ceil(self.living(now).max(1))
    }

    /// Gives the process with the id `life` up to `most` free buckets. Returns the number and the
    /// new epoch of each bucket. An epoch counts how often the bucket was taken.
    pub(super) fn take(
        &mut self,
        life: &str,
        most: u64,
        now: Instant,
        until: Instant,
    ) -> Vec<(i32, i64)> {
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        let free = self
            .numbered()
            .filter(|(_, bucket)| !is_valid(bucket.until, now));
        let epochs = free.take(limit).map(|(b, bucket)| {
            bucket.owner = life.to_owned();
            bucket.epoch += 1;
            bucket.until = Some(until);
            (b, bucket.epoch)
        });
        epochs.collect()
    }

    /// Extends the leases on a worker's name and on its buckets. Returns false if any of these
    /// leases had already ended.
    pub(super) fn renew(
        &mut self,
        name: &str,
        life: &str,
        epochs: &[(i32, i64)],
        now: Instant,
        until: Instant,
    ) -> bool {
        let own = |bucket: &OwnedHostBucket, epoch: i64| {
            bucket.owner == life && bucket.epoch == epoch && is_valid(bucket.until, now)
        };
        let mut renewed = 0;
        for (b, bucket) in self.numbered() {
            if epochs
                .iter()
                .any(|(own_b, epoch)| *own_b == b && own(bucket, *epoch))
            {
                bucket.until = Some(until);
                renewed += 1;
            }
        }
        let worker = self.workers.get_mut(name);
        let worker = worker.filter(|worker| worker.life == life && is_valid(worker.until, now));
        let has_name = worker.is_some();
        if let Some(worker) = worker {
            worker.until = Some(until);
        }
        has_name && renewed == epochs.len()
    }

    /// Frees each bucket that the process with the id `life` owns and that satisfies `is_free`.
    pub(super) fn free(&mut self, life: &str, is_free: impl Fn(i32) -> bool) {
        for (b, bucket) in self.numbered() {
            if bucket.owner == life && is_free(b) {
                bucket.until = None;
            }
        }
    }

    pub(super) fn end_life(&mut self, name: &str, life: &str) {
        self.free(life, |_| true);
        let worker = self.workers.get_mut(name);
        if let Some(worker) = worker.filter(|worker| worker.life == life) {
            worker.until = None;
        }
    }

    /// Returns whether the process with the id `life` owns bucket `b`, and the bucket's epoch is
    /// still `epoch`.
    pub(super) fn is_owner(&self, life: &str, b: i32, epoch: Option<i64>) -> bool {
        let bucket = usize::try_from(b).ok().and_then(|b| self.buckets.get(b));
        bucket.is_some_and(|bucket| bucket.owner == life && Some(bucket.epoch) == epoch)
    }

    /// Returns whether the process with the id `life` is the newest process of the worker `name`.
    pub(super) fn has_name(&self, name: &str, life: &str) -> bool {
        let worker = self.workers.get(name);
        worker.is_some_and(|worker| worker.life == life)
    }

    /// Returns what the process with the id `life` has to know about all workers. `pending` has the
    /// number of pending URLs in each bucket that has any.
    pub(super) fn survey(
        &self,
        life: &str,
        owned: &[i32],
        pending: &BTreeMap<i32, u64>,
        now: Instant,
    ) -> SharedCrawlStatus {
        let is_idle = |bucket: &OwnedHostBucket| {
            let mut workers = self.workers.values();
            is_valid(bucket.until, now)
                && workers.any(|worker| {
                    worker.life == bucket.owner && worker.is_idle && is_valid(worker.until, now)
                })
        };
        let open = (0..)
            .zip(&self.buckets)
            .filter(|(_, bucket)| !is_idle(bucket));
        let pending_open = open.filter_map(|(b, _)| pending.get(&b)).sum();
        let free = self.buckets.iter();
        let free = free.filter(|bucket| !is_valid(bucket.until, now));
        let workers = self.workers.values();
        let elsewhere = workers.clone().filter(|worker| worker.life != life);
        let own = workers.clone().find(|worker| worker.life == life);
        let mut targets = self.links.values().map(|(b, _)| b);
        SharedCrawlStatus {
            living: self.living(now),
            group_living: self.living(now),
            free_buckets: free.count() as u64,
            pending_open,
            has_unqueued_work: !self.links.is_empty(),
            has_own_unqueued_work: targets.any(|b| owned.contains(b)),
            is_drained: own.is_some_and(|worker| worker.is_drained),
            crawl_meta: self.crawl_meta().len() as u64,
            pages: workers.map(|worker| worker.pages).sum(),
            others_bytes: elsewhere.map(|worker| worker.bytes).sum(),
            ..SharedCrawlStatus::default()
        }
    }

    pub(super) fn set_idle(&mut self, life: &str, is_idle: bool, pages: Option<u64>) {
        if let Some(worker) = self.of_life(life) {
            worker.is_idle = is_idle;
            worker.allowed = pages.map_or(worker.allowed, |pages| worker.allowed.min(pages));
        }
    }

    /// Grants up to `more` pages to the process with the id `life`, which has used `pages`, and
    /// returns its new page budget. All workers together get at most `of` pages. For a living
    /// worker, the pages granted to it are counted. For an ended worker, only the pages that it
    /// used are counted. Returns `None` if another process has the worker's name.
    pub(super) fn allow(
        &mut self,
        life: &str,
        (pages, more, of): (u64, u64, u64),
        now: Instant,
    ) -> Option<u64> {
        let workers = self.workers.values().filter(|worker| worker.life != life);
        let used = workers.map(|worker| match is_valid(worker.until, now) {
            true => worker.allowed.max(worker.pages),
            false => worker.pages,
        });
        let available = of.saturating_sub(used.sum());
        let worker = self.of_life(life)?;
        worker.allowed = worker.allowed.max((pages + more).min(available));
        Some(worker.allowed)
    }

    pub(super) fn spend(&mut self, life: &str, pages: u64, bytes: u64) {
        if let Some(worker) = self.of_life(life) {
            (worker.pages, worker.bytes) = (pages, bytes);
        }
    }

    /// Stores a link for the owner of bucket `b`.
    pub(super) fn send(&mut self, b: i32, link: UrlToAdmit) {
        self.last_link += 1;
        self.links.insert(self.last_link, (b, link));
    }

    pub(super) fn marks(&self, worker: &str) -> BTreeMap<String, u64> {
        self.marks.get(worker).cloned().unwrap_or_default()
    }

    pub(super) fn mark(&mut self, worker: &str, marks: BTreeMap<String, u64>) {
        self.marks
            .entry(worker.to_owned())
            .or_default()
            .extend(marks);
    }

    pub(super) fn meta(&self, worker: &str, name: &str) -> Option<Vec<u8>> {
        let key = (worker.to_owned(), name.to_owned());
        self.meta.get(&key).cloned()
    }

    pub(super) fn keep_meta(&mut self, worker: &str, name: String, bytes: Vec<u8>) {
        self.meta.insert((worker.to_owned(), name), bytes);
    }

    /// Returns the values that workers other than `worker` stored under a name.
    pub(super) fn others_meta(&self, worker: &str, name: &str) -> Vec<Vec<u8>> {
        let all = self.meta.iter();
        let values = all.filter(|((by, of), _)| by != worker && !by.is_empty() && of == name);
        values.map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Returns the values that are stored for the whole crawl.
    pub(super) fn crawl_meta(&self) -> Vec<(String, Vec<u8>)> {
        let all = self.meta.iter().filter(|((by, _), _)| by.is_empty());
        all.map(|((_, name), bytes)| (name.clone(), bytes.clone()))
            .collect()
    }
}
