//! The shared frontier: reads URLs and leases them.

mod transaction;
mod worker_coordination;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crawl_frontier::parts::{
    AdmitAction, CommittedUrlCounts, CurrentState, LeaseTable, OriginWithQueueId, QueueRank,
    QueueReader as _, StoredVisit, decide_admission,
};
use crawl_frontier::worker_frontier::WorkerTransaction as _;
use crawl_frontier::{
    CommitResult, Fingerprint, Frontier, FrontierError, KnownUrlDetails, LastVisit, Lease,
    Transaction, UnsettledUrl, UrlCounts, UrlToAdmit,
};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use tokio_postgres::Row;

use self::transaction::SharedTransaction;
use crate::commit_statements::CRAWL_META;
use crate::connection::params;
use crate::crawl_database_client::CrawlDatabaseClient;
use crate::recent_urls::RecentUrls;
use crate::row_codec::{ColumnReader, url_at};
use crate::sql_statements::SqlStatement;

/// The number of URLs read at a time when all pending or all deferred URLs are listed.
const PAGE_ROWS: usize = 1_000;

/// A [`Frontier`] with its state in PostgreSQL, for the hosts that this worker owns.
///
/// In memory, the frontier keeps the origins with pending URLs, the first URLs of each origin's
/// queue, and the states of recently seen URLs.
pub struct SharedFrontier {
    pub(crate) tables: CrawlDatabaseClient,
    /// Locked by the open transaction. Acquired before `memory`.
    writer: Mutex<OpenTransactionState>,
    /// Locked only briefly. A thread that holds this lock may read from the database server (to
    /// lease a URL), but never sends a commit.
    memory: Mutex<LeasesAndRecentUrls>,
    /// See [`Frontier::reopenings`].
    pub(crate) reopenings: AtomicU64,
}

/// State that only a transaction uses, as of the last commit.
pub(crate) struct OpenTransactionState {
    /// The sequence number of the last admission.
    pub(crate) seq: u64,
    /// The number of commits by this worker.
    pub(crate) commits: i64,
    /// The number of links sent to other workers by this run of the process.
    pub(crate) links: i64,
    pub(crate) totals: CommittedUrlCounts,
    /// The URLs whose states change in a commit in progress, with their new states. After the
    /// commit, these states are added to `LeasesAndRecentUrls::recent`.
    pub(crate) changed_states: Vec<(Fingerprint, CurrentState)>,
}

/// The state that a shared frontier keeps in memory under one lock: the lease table, and the states
/// of recently seen URLs.
pub(crate) struct LeasesAndRecentUrls {
    pub(crate) leases: LeaseTable,
    pub(crate) recent: RecentUrls,
}

impl SharedFrontier {
    pub(crate) fn new(
        tables: CrawlDatabaseClient,
        writer: OpenTransactionState,
        memory: LeasesAndRecentUrls,
    ) -> SharedFrontier {
        SharedFrontier {
            tables,
            writer: Mutex::new(writer),
            memory: Mutex::new(memory),
            reopenings: AtomicU64::new(0),
        }
    }

    /// Returns how long this worker may still send requests to its hosts if no further heartbeat
    /// succeeds. The time ends when the leases expire by the database server's clock, or a little
    /// earlier.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        let until = self.tables.owned.until();
        until.saturating_duration_since(Instant::now())
    }

    /// Returns the number of buckets that this worker owns.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.tables.owned.count()
    }

    /// Sends a heartbeat now, in addition to the periodic ones.
    ///
    /// # Errors
    /// [`FrontierError`] if the database server can't be reached.
    pub fn renew(&self) -> Result<(), FrontierError> {
        self.tables.renew()
    }

    /// Admits up to `most` links to this worker's hosts that other workers found, and reopens up to
    /// `most` lost URLs, in one transaction. Returns the result of the commit.
    ///
    /// # Errors
    /// [`FrontierError`] if the database server fails.
    pub fn take_links(&self, most: usize) -> Result<CommitResult, FrontierError> {
        let mut transaction = self.transaction()?;
        let links = transaction.take_links(most)?;
        transaction.admit_all(&links)?;
        transaction.reopen_lost(most)?;
        Box::new(transaction).commit()
    }

    fn transaction(&self) -> Result<SharedTransaction<'_>, FrontierError> {
        self.tables.owned.check(Instant::now())?;
        // A panic in another thread leaves the writer's state consistent, because it changes only
        // after a commit, in one step.
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(SharedTransaction::new(self, writer))
    }

    /// Locks the memory. A panic in another thread can't corrupt the memory. In the worst case, a
    /// URL stays leased until the next start, although its lease was lost.
    pub(crate) fn memory(&self) -> MutexGuard<'_, LeasesAndRecentUrls> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last visit of a URL, and the URL's current state (a value of the column
    /// `state`).
    pub(crate) fn stored_visit(
        &self,
        url: &CanonicalUrl,
    ) -> Result<Option<(StoredVisit, i16)>, FrontierError> {
        let tables = &self.tables;
        let key = tables.keys.url(url, tables.fingerprint(url));
        let params = params![tables.owned.crawl, key.b, key.origin, key.fingerprint];
        let rows = tables.read(SqlStatement::Visit, params)?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let stored = ColumnReader::new(row).visit();
        let (_, stored, state) = stored.ok_or_else(|| tables.corrupt("visit"))?;
        Ok((stored.url == *url).then_some((stored, state)))
    }

    /// Reads rows of the buckets that this worker owns.
    fn read_owned(&self, sql: SqlStatement) -> Result<Vec<Row>, FrontierError> {
        let owned = &self.tables.owned;
        self.tables.read(sql, params![owned.crawl, owned.buckets()])
    }

    /// Passes the pending URLs of one origin to `visit`, except the leased ones, whose ranks are in
    /// `leased`.
    fn each_of_origin(
        &self,
        queue: OriginWithQueueId<'_>,
        leased: &BTreeSet<QueueRank>,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, FrontierError> {
        let mut after = None;
        loop {
            let part = self.tables.read_behind(queue, after, leased, PAGE_ROWS)?;
            for (_, queued) in &part.entries {
                if visit(queued.waiting()).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            after = part.last;
            if after.is_none() {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}

impl Frontier for SharedFrontier {
    fn lease(&self, origin: &Origin) -> Result<Option<Lease>, FrontierError> {
        self.tables.owned.check(Instant::now())?;
        self.memory().leases.lease(&self.tables, origin)
    }

    fn release(&self, lease: Lease) {
        let key = self.tables.fingerprint(&lease.url);
        self.memory().leases.give_back(key);
    }

    fn pending(&self, origin: &Origin) -> u64 {
        self.memory().leases.pending(origin)
    }

    fn origins(&self) -> Vec<(Origin, u64)> {
        let mut origins = self.memory().leases.origins();
        origins.sort_unstable();
        origins
    }

    fn counts(&self) -> UrlCounts {
        self.memory().leases.counts()
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        Ok(Box::new(self.transaction()?))
    }

    fn known(&self, url: &CanonicalUrl) -> Result<Option<KnownUrlDetails>, FrontierError> {
        let key = self.tables.fingerprint(url);
        let records = self.tables.records(&[self.tables.keys.url(url, key)])?;
        let is_leased = self.memory().leases.is_leased(key);
        Ok(records
            .first()
            .and_then(Option::as_ref)
            .map(|record| record.known(is_leased)))
    }

    fn drop_known(
        &self,
        links: &mut Vec<UrlToAdmit>,
        settled: &mut dyn FnMut(&CanonicalUrl),
    ) -> Option<u64> {
        let keys: Vec<_> = links
            .iter()
            .map(|link| self.tables.fingerprint(&link.url))
            .collect();
        let mut memory = self.memory();
        let mut keys = keys.into_iter();
        links.retain(|link| {
            let Some(key) = keys.next() else { return true };
            let state = match memory.leases.is_leased(key) {
                true => Some(CurrentState::Leased),
                false => memory.recent.get(key),
            };
            let Some(state) = state else { return true };
            if matches!(state, CurrentState::Settled) {
                settled(&link.url);
            }
            decide_admission(state, link) != AdmitAction::Stay
        });
        Some(memory.leases.commit)
    }

    fn reopenings(&self) -> u64 {
        self.reopenings.load(Ordering::Acquire)
    }

    fn visit(&self, url: &CanonicalUrl) -> Result<Option<LastVisit>, FrontierError> {
        let stored = self.stored_visit(url)?;
        Ok(stored.map(|(stored, _)| stored.visit))
    }

    fn found_on(&self, url: &CanonicalUrl) -> Result<Option<CanonicalUrl>, FrontierError> {
        match self.known(url)?.and_then(|known| known.via) {
            Some(via) => Ok(Some(via)),
            None => Ok(self.stored_visit(url)?.and_then(|(stored, _)| stored.via)),
        }
    }

    fn next_due(&self, after: u32) -> Result<Option<u32>, FrontierError> {
        let owned = &self.tables.owned;
        let params = params![owned.crawl, owned.buckets(), i64::from(after)];
        let rows = self.tables.read(SqlStatement::NextDue, params)?;
        let due = rows.first().and_then(|row| ColumnReader::new(row).next());
        let due: Option<i64> = due.ok_or_else(|| self.tables.corrupt("visit"))?;
        Ok(due.and_then(|due| due.try_into().ok()))
    }

    fn robots(&self, origin: &Origin) -> Result<Option<Vec<u8>>, FrontierError> {
        let (keys, owned) = (self.tables.keys, &self.tables.owned);
        let b = keys.bucket(&origin.site());
        let params = params![owned.crawl, b, keys.number(origin.as_str())];
        let rows = self.tables.read(SqlStatement::Robots, params)?;
        Ok(rows.first().and_then(|row| ColumnReader::new(row).next()?))
    }

    fn host(&self, host: &HostKey) -> Result<Option<(u64, Vec<u8>)>, FrontierError> {
        let (keys, owned) = (self.tables.keys, &self.tables.owned);
        let params = params![
            owned.crawl,
            keys.bucket(&host.site()),
            keys.number(host.as_str())
        ];
        let rows = self.tables.read(SqlStatement::Host, params)?;
        let host_state = |row| {
            let mut reader = ColumnReader::new(row);
            let wake: i64 = reader.next()?;
            Some((wake as u64, reader.next()?))
        };
        Ok(rows.first().and_then(host_state))
    }

    fn hosts(&self) -> Result<Vec<(HostKey, u64, Vec<u8>)>, FrontierError> {
        let mut hosts = Vec::new();
        for row in self.read_owned(SqlStatement::Hosts)? {
            let mut reader = ColumnReader::new(&row);
            let host = reader
                .next()
                .and_then(|name: &str| HostKey::parse(name).ok());
            let host_state: (Option<i64>, Option<Vec<u8>>) = (reader.next(), reader.next());
            let (Some(host), (Some(wake), Some(bytes))) = (host, host_state) else {
                return Err(self.tables.corrupt("host"));
            };
            hosts.push((host, wake as u64, bytes));
        }
        hosts.sort_unstable();
        Ok(hosts)
    }

    fn marks(&self) -> Result<BTreeMap<String, u64>, FrontierError> {
        let owned = &self.tables.owned;
        let params = params![owned.crawl, owned.worker.clone()];
        let rows = self.tables.read(SqlStatement::Marks, params)?;
        let mark = |row| {
            let mut reader = ColumnReader::new(row);
            let file = reader.next()?;
            let length: i64 = reader.next()?;
            Some((file, length as u64))
        };
        let marks: Option<BTreeMap<_, _>> = rows.iter().map(mark).collect();
        marks.ok_or_else(|| self.tables.corrupt("row_file"))
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError> {
        let owned = &self.tables.owned;
        let worker = match name.starts_with(CRAWL_META) {
            true => String::new(),
            false => owned.worker.clone(),
        };
        let params = params![owned.crawl, worker, name.to_owned()];
        let rows = self.tables.read(SqlStatement::Meta, params)?;
        Ok(rows.first().and_then(|row| ColumnReader::new(row).next()))
    }

    fn each_deferred(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let owned = &self.tables.owned;
        let mut after = (-1, 0, 0);
        loop {
            let (b, origin, fingerprint) = after;
            let buckets = owned.buckets();
            let limit = PAGE_ROWS as i64;
            let params = params![owned.crawl, buckets, b, origin, fingerprint, limit];
            let rows = self.tables.read(SqlStatement::Deferred, params)?;
            for row in &rows {
                let mut reader = ColumnReader::new(row);
                let key = reader.url_key();
                let origin = reader
                    .next()
                    .and_then(|name: &str| Origin::parse(name).ok());
                let url = origin.and_then(|origin| url_at(&origin, reader.next()?));
                let (Some(key), Some(url), Some(record)) = (key, url, reader.record()) else {
                    return Err(self.tables.corrupt("url"));
                };
                if visit(record.waiting(&url)).is_break() {
                    return Ok(());
                }
                after = (key.b, key.origin, key.fingerprint);
            }
            if rows.len() < PAGE_ROWS {
                return Ok(());
            }
        }
    }

    fn each_pending(
        &self,
        visit: &mut dyn FnMut(UnsettledUrl<'_>) -> ControlFlow<()>,
    ) -> Result<(), FrontierError> {
        let mut queues = self.memory().leases.queues();
        queues.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (origin, id, leased) in queues {
            let queue = OriginWithQueueId {
                origin: &origin,
                id,
            };
            if self.each_of_origin(queue, &leased, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
