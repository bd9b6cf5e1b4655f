//! Reads from and commits to the tables of one crawl.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crawl_frontier::parts::{
    OriginWithQueueId, QueueRank, QueueReadResult, QueueReader, UrlRecord,
};
use crawl_frontier::{Fingerprint, FrontierError};
use crawl_weburl::CanonicalUrl;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::bucket_ownership::BucketOwnership;
use crate::commit_statements::TransactionColumns;
use crate::connection::{
    DatabaseResult, DatabaseServerConfig, DatabaseSession, DatabaseThread, RECONNECT_INTERVAL,
    StatementParameter, is_cut, params,
};
use crate::database_server_groups::ServerGroups;
use crate::row_codec::{ColumnReader, RowKeyBuilder, UrlKey, place_of};
use crate::sql_statements::SqlStatement;

/// Reads from and commits to the tables of one crawl, over connections to its server groups.
pub(crate) struct CrawlDatabaseClient {
    pub(crate) thread: DatabaseThread,
    pub(crate) config: DatabaseServerConfig,
    pub(crate) keys: RowKeyBuilder,
    pub(crate) owned: Arc<BucketOwnership>,
    pub(crate) groups: ServerGroups,
    /// The connection for reads. Readers share this connection, and several statements may be in
    /// flight on it at the same time.
    reader: Mutex<Arc<DatabaseSession>>,
    /// The connection for commits, separate so that no read waits for a commit.
    writer: Mutex<Arc<DatabaseSession>>,
}

impl CrawlDatabaseClient {
    pub(crate) fn new(
        thread: DatabaseThread,
        config: DatabaseServerConfig,
        keys: RowKeyBuilder,
        owned: Arc<BucketOwnership>,
        groups: ServerGroups,
        [reader, writer]: [Arc<DatabaseSession>; 2],
    ) -> CrawlDatabaseClient {
        CrawlDatabaseClient {
            thread,
            config,
            keys,
            owned,
            groups,
            reader: Mutex::new(reader),
            writer: Mutex::new(writer),
        }
    }

    /// Reads rows over the connection for reads. Connects again if that connection was closed, and
    /// retries until the worker's leases expire.
    pub(crate) fn read(
        &self,
        sql: SqlStatement,
        params: Vec<StatementParameter>,
    ) -> Result<Vec<Row>, FrontierError> {
        let params = Arc::new(params);
        let query = |session| self.query(session, sql, Arc::clone(&params));
        let session = current(&self.reader);
        let (rows, _) = self.retry_if_cut(session, &self.reader, query)?;
        Ok(rows)
    }

    /// Executes `statement` with `session`. If the connection is cut, connects again and retries
    /// until the worker's leases expire. Also returns the last session.
    fn retry_if_cut<T>(
        &self,
        mut session: Arc<DatabaseSession>,
        place: &Mutex<Arc<DatabaseSession>>,
        statement: impl Fn(Arc<DatabaseSession>) -> Result<T, Option<tokio_postgres::Error>>,
    ) -> Result<(T, Arc<DatabaseSession>), FrontierError> {
        let mut ends_at = None;
        loop {
            match statement(Arc::clone(&session)) {
                // `ends_at` is the end of the leases as of the first failure. Later heartbeats
                // extend the leases, but must not prolong the retries: a statement that always
                // breaks its connection would be retried forever.
                Err(why)
                    if is_cut(why.as_ref()) && ends_at.is_none_or(|at| Instant::now() < at) =>
                {
                    if ends_at.is_some() {
                        std::thread::sleep(RECONNECT_INTERVAL);
                    }
                    ends_at.get_or_insert_with(|| self.owned.until());
                    session = self.reconnect_in_time(place)?;
                }
                Err(why) => return Err(self.thread.failed(why)),
                Ok(result) => return Ok((result, session)),
            }
        }
    }

    /// Executes one statement, whose first parameter is the crawl's number, in the server group
    /// `group`.
    pub(crate) fn read_in(
        &self,
        group: i32,
        sql: SqlStatement,
        params: impl FnOnce(i32) -> Vec<StatementParameter>,
    ) -> Result<Vec<Row>, FrontierError> {
        match self.groups.other(group) {
            Some(other) => other.read(sql, params(other.crawl)),
            None => self.read(sql, params(self.owned.crawl)),
        }
    }

    fn query(
        &self,
        session: Arc<DatabaseSession>,
        sql: SqlStatement,
        params: Arc<Vec<StatementParameter>>,
    ) -> Result<Vec<Row>, Option<tokio_postgres::Error>> {
        self.thread.try_run(async move {
            let refs = params.iter().map(|value| &**value as &(dyn ToSql + Sync));
            session.query(sql, &refs.collect::<Vec<_>>()).await
        })
    }

    fn reconnect(
        &self,
        place: &Mutex<Arc<DatabaseSession>>,
    ) -> Result<Arc<DatabaseSession>, FrontierError> {
        let config = self.config.clone();
        let session = self
            .thread
            .run(async move { DatabaseSession::open(&config).await })?;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&session);
        Ok(session)
    }

    /// Returns the connection for commits. Connects again if it was closed, and retries until the
    /// worker's leases expire.
    pub(crate) fn writing_session(&self) -> Result<Arc<DatabaseSession>, FrontierError> {
        let session = current(&self.writer);
        match session.client().is_closed() {
            true => self.reconnect_in_time(&self.writer),
            false => Ok(session),
        }
    }

    /// Opens a new connection for reads or for commits. Retries until the worker's leases expire.
    fn reconnect_in_time(
        &self,
        place: &Mutex<Arc<DatabaseSession>>,
    ) -> Result<Arc<DatabaseSession>, FrontierError> {
        loop {
            match self.reconnect(place) {
                Err(why) if Instant::now() + RECONNECT_INTERVAL < self.owned.until() => {
                    tracing::warn!(error = %why, "trying to connect to the frontier again");
                    std::thread::sleep(RECONNECT_INTERVAL);
                }
                session => return session,
            }
        }
    }

    /// Commits a batch. If the connection is cut before the reply, checks whether the commit took
    /// effect, and sends the batch again if it did not.
    pub(crate) fn commit(&self, batch: TransactionColumns) -> Result<(), FrontierError> {
        self.owned.check(Instant::now())?;
        let number = batch.number;
        let batch = Arc::new(batch);
        self.groups.send_ahead(&batch, &self.owned)?;
        let mut session = current(&self.writer);
        loop {
            let sent = {
                let (batch, owned) = (Arc::clone(&batch), Arc::clone(&self.owned));
                let session = Arc::clone(&session);
                self.thread
                    .try_run(async move { batch.send(&session, &owned).await })
            };
            let error = match sent {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let is_fenced = is_fenced(error.as_ref());
            if is_cut(error.as_ref()) {
                session = self.reconnect_in_time(&self.writer)?;
            } else if !is_fenced {
                return Err(self.thread.failed(error));
            }
            let commits;
            (commits, session) =
                self.retry_if_cut(session, &self.writer, |session| self.commits(&session))?;
            if commits == Some(number) {
                return Ok(());
            }
            if is_fenced {
                return Err(self.owned.lose("another worker took over some of them"));
            }
        }
    }

    /// Returns the number of the last commit by this run of the process, or `None` if another
    /// process has taken the worker's name.
    fn commits(
        &self,
        session: &Arc<DatabaseSession>,
    ) -> Result<Option<i64>, Option<tokio_postgres::Error>> {
        let (session, owned) = (Arc::clone(session), Arc::clone(&self.owned));
        self.thread.try_run(async move {
            let params: [&(dyn ToSql + Sync); 3] = [&owned.crawl, &owned.worker, &owned.owner];
            let rows = session.query(SqlStatement::Commits, &params).await?;
            rows.first().map(|row| row.try_get(0)).transpose()
        })
    }

    /// Returns the records of URLs, in the order of `keys`. An unknown URL has `None`.
    pub(crate) fn records(&self, keys: &[UrlKey]) -> Result<Vec<Option<UrlRecord>>, FrontierError> {
        self.records_in(self.groups.own, keys)
    }

    /// Like [`CrawlDatabaseClient::records`], but returns the records that the server group `group`
    /// stores.
    pub(crate) fn records_in(
        &self,
        group: i32,
        keys: &[UrlKey],
    ) -> Result<Vec<Option<UrlRecord>>, FrontierError> {
        let mut records = vec![None; keys.len()];
        if keys.is_empty() {
            return Ok(records);
        }
        let b: Vec<i32> = keys.iter().map(|key| key.b).collect();
        let origins: Vec<i64> = keys.iter().map(|key| key.origin).collect();
        let fingerprints: Vec<i64> = keys.iter().map(|key| key.fingerprint).collect();
        let of = |crawl: i32| params![crawl, b, origins, fingerprints];
        for row in self.read_in(group, SqlStatement::Records, of)? {
            let mut reader = ColumnReader::new(&row);
            let at: Option<i64> = reader.next();
            let place = at.and_then(|at| records.get_mut((at - 1) as usize));
            match (place, reader.record()) {
                (Some(place), Some(record)) => *place = Some(record),
                _ => return Err(self.corrupt("url")),
            }
        }
        Ok(records)
    }

    /// Returns the number of buckets that this worker's home group serves.
    pub(crate) fn served_buckets(&self) -> u64 {
        match self.groups.count() {
            1 => u64::try_from(self.keys.buckets).unwrap_or(1),
            _ => {
                let served = self.groups.map().served();
                served.get(&self.groups.own).copied().unwrap_or(0)
            }
        }
    }

    /// Returns the number of the bucket that a URL's host is in, or `None` if this worker owns the
    /// bucket.
    pub(crate) fn foreign_bucket(&self, url: &CanonicalUrl) -> Option<i32> {
        let b = self.keys.bucket(&url.site());
        self.owned.epoch(b).is_none().then_some(b)
    }

    /// Returns the error for a row that this program would not write.
    pub(crate) fn corrupt(&self, table: &str) -> FrontierError {
        self.thread
            .corrupt(&format!("a row of crawl_frontier.{table}"))
    }

    /// Gives up all leases, so that other workers may take the buckets immediately.
    pub(crate) fn end_leases(&self) -> Result<(), FrontierError> {
        let (session, owned) = (self.writing_session()?, Arc::clone(&self.owned));
        let ended = self.thread.run(async move {
            let buckets: [&(dyn ToSql + Sync); 2] = [&owned.crawl, &owned.owner];
            session.execute(SqlStatement::EndBuckets, &buckets).await?;
            let name: [&(dyn ToSql + Sync); 3] = [&owned.crawl, &owned.worker, &owned.owner];
            session.execute(SqlStatement::EndName, &name).await
        });
        let _ = self.owned.lose("this worker released them");
        ended.map(drop)
    }

    /// Sends a heartbeat now.
    pub(crate) fn renew(&self) -> Result<(), FrontierError> {
        let (session, owned) = (current(&self.writer), Arc::clone(&self.owned));
        self.thread
            .run(async move { renew(&owned, &session).await })
    }
}

async fn renew(owned: &BucketOwnership, session: &DatabaseSession) -> DatabaseResult<()> {
    owned.renew(session).await
}

fn current(place: &Mutex<Arc<DatabaseSession>>) -> Arc<DatabaseSession> {
    Arc::clone(&place.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns whether a failed fence caused the error. A failed fence divides by zero.
fn is_fenced(why: Option<&tokio_postgres::Error>) -> bool {
    use tokio_postgres::error::SqlState;
    why.and_then(tokio_postgres::Error::code) == Some(&SqlState::DIVISION_BY_ZERO)
}

impl QueueReader for CrawlDatabaseClient {
    fn fingerprint(&self, url: &CanonicalUrl) -> Fingerprint {
        self.keys.key.fingerprint(url)
    }

    fn read_behind(
        &self,
        queue: OriginWithQueueId<'_>,
        after: Option<QueueRank>,
        leased: &BTreeSet<QueueRank>,
        wanted: usize,
    ) -> Result<QueueReadResult, FrontierError> {
        // Read more rows than wanted, because the first rows of the queue may belong to leased
        // URLs.
        let limit = wanted + leased.len();
        let (place, seq) = after.map_or((-1, -1), place_of);
        let b = self.keys.bucket(&queue.origin.site());
        let params = params![
            self.owned.crawl,
            b,
            queue.id as i64,
            place,
            seq,
            limit as i64
        ];
        let rows = self.read(SqlStatement::Queue, params)?;
        let mut part = QueueReadResult::default();
        for row in &rows {
            let entry = ColumnReader::new(row).queued(queue.origin);
            let (rank, queued) = entry.ok_or_else(|| self.corrupt("url"))?;
            part.last = Some(rank);
            if !leased.contains(&rank) {
                part.entries.push((rank, queued));
            }
        }
        if rows.len() < limit {
            part.last = None;
        }
        Ok(part)
    }
}
