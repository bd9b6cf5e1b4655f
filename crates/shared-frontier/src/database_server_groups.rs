//! The server groups of a crawl, as seen by a worker that works in one group. A server group is a
//! primary database server with its standbys, and serves some of the crawl's buckets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use crawl_frontier::FrontierError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::bucket_ownership::BucketOwnership;
use crate::commit_statements::TransactionColumns;
use crate::connection::{
    DatabaseServerConfig, DatabaseSession, DatabaseThread, PendingDatabaseResult,
    RECONNECT_INTERVAL, StatementParameter, is_cut,
};
use crate::sql_statements::SqlStatement;

/// Maximum number of server groups of a crawl. A worker's number is a multiple of this maximum plus
/// the number of the worker's group, so workers' numbers are unique over all groups.
/// Beyond the limit: refused.
pub(crate) const MAX_GROUPS: usize = 64;

/// The server groups of a crawl.
pub(crate) struct ServerGroups {
    /// The number of this worker's own server group, its home.
    pub(crate) own: i32,
    /// All other server groups, sorted by number.
    pub(crate) others: Vec<OtherServerGroup>,
    map: RwLock<Arc<BucketMap>>,
}

/// The map of buckets: which server group serves each bucket. This is the version that the worker's
/// home group stores, and another group may have a newer version.
#[derive(Debug, Default)]
pub(crate) struct BucketMap {
    /// The version: how often the map has changed.
    pub(crate) version: i64,
    /// The number of each bucket's server group, indexed by bucket. Empty if there is only one
    /// group.
    homes: Vec<i32>,
}

impl BucketMap {
    pub(crate) fn new(version: i64, homes: Vec<i32>) -> BucketMap {
        BucketMap { version, homes }
    }

    /// Returns the server group that serves a bucket, or `None` if there is only one group.
    fn home(&self, b: i32) -> Option<i32> {
        self.homes.get(usize::try_from(b).ok()?).copied()
    }

    /// Returns the number of buckets that each server group serves.
    pub(crate) fn served(&self) -> BTreeMap<i32, u64> {
        let mut served = BTreeMap::new();
        for home in &self.homes {
            *served.entry(*home).or_insert(0) += 1;
        }
        served
    }

    /// Returns the buckets that server groups other than `group` serve.
    pub(crate) fn foreign_to(&self, group: i32) -> Vec<i32> {
        let all = (0..).zip(&self.homes);
        let foreign = all.filter(|(_, home)| **home != group);
        foreign.map(|(b, _)| b).collect()
    }
}

impl ServerGroups {
    pub(crate) fn new(own: i32, others: Vec<OtherServerGroup>, map: BucketMap) -> ServerGroups {
        ServerGroups {
            own,
            others,
            map: RwLock::new(Arc::new(map)),
        }
    }

    /// Returns the number of server groups.
    pub(crate) fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns the server group with this number, or `None` if it is the home or is unknown.
    pub(crate) fn other(&self, number: i32) -> Option<&OtherServerGroup> {
        self.others.iter().find(|group| group.number == number)
    }

    /// Returns the number of the server group that serves a bucket. Returns `None` if the home
    /// group serves it, or if this worker does not know its group.
    pub(crate) fn elsewhere(&self, b: i32) -> Option<i32> {
        let home = self.map().home(b)?;
        self.other(home).map(|group| group.number)
    }

    pub(crate) fn map(&self) -> Arc<BucketMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn learn(&self, map: BucketMap) {
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
    }

    /// Sends the links of a commit to the server groups that serve their hosts, and the commit's
    /// values for the whole crawl to all groups. Must be called before the commit itself. If the
    /// worker dies before the commit, its pages are fetched again and their links are sent again.
    /// This is harmless, because admitting a link twice has no further effect.
    ///
    /// If a group can't be reached, retries for the duration of a lease.
    pub(crate) fn send_ahead(
        &self,
        batch: &Arc<TransactionColumns>,
        owned: &Arc<BucketOwnership>,
    ) -> Result<(), FrontierError> {
        let groups = self
            .others
            .iter()
            .filter(|group| batch.is_for(group.number));
        // Send to all server groups concurrently, so that the wait is only as long as that of the
        // slowest group.
        let requests: Vec<_> = groups
            .map(|group| (group, group.put(batch, owned)))
            .collect();
        for (group, mut request) in requests {
            let ends_at = Instant::now() + owned.term;
            while let Err(why) = group.answer(request) {
                let is_cut = is_cut(why.as_ref());
                let error = group.thread.failed(why);
                if !is_cut || Instant::now() >= ends_at {
                    return Err(error);
                }
                tracing::warn!(%error, "links wait for another group of the frontier");
                std::thread::sleep(RECONNECT_INTERVAL);
                owned.check(Instant::now())?;
                request = group.put(batch, owned);
            }
        }
        Ok(())
    }
}

/// A server group that is not this worker's home.
pub(crate) struct OtherServerGroup {
    pub(crate) number: i32,
    /// The crawl's number in that server group.
    pub(crate) crawl: i32,
    pub(crate) thread: DatabaseThread,
    config: DatabaseServerConfig,
    /// The connection, or `None` if it was closed. Several callers can use the connection at the
    /// same time, because each statement is a separate transaction.
    session: Mutex<Option<Arc<DatabaseSession>>>,
}

/// A request in flight, and the connection that it was sent over.
pub(crate) type InFlightGroupRequest<T> = PendingDatabaseResult<(Arc<DatabaseSession>, T)>;

impl OtherServerGroup {
    pub(crate) fn new(
        number: i32,
        crawl: i32,
        thread: DatabaseThread,
        config: DatabaseServerConfig,
    ) -> OtherServerGroup {
        OtherServerGroup {
            number,
            crawl,
            thread,
            config,
            session: Mutex::default(),
        }
    }

    /// Returns the thread of the server group's connections, and their configuration.
    pub(crate) fn into_parts(self) -> (DatabaseThread, DatabaseServerConfig) {
        (self.thread, self.config)
    }

    /// Executes one statement that reads or changes rows. If the connection was closed, executes
    /// the statement again over a new connection, so the statement may take effect twice.
    pub(crate) fn read(
        &self,
        sql: SqlStatement,
        params: Vec<StatementParameter>,
    ) -> Result<Vec<Row>, FrontierError> {
        let params = Arc::new(params);
        self.wait(self.query(sql, &params), sql, &params)
    }

    /// Waits for the rows of a request. If the connection was closed, sends the request once more.
    pub(crate) fn wait(
        &self,
        request: InFlightGroupRequest<Vec<Row>>,
        sql: SqlStatement,
        params: &Arc<Vec<StatementParameter>>,
    ) -> Result<Vec<Row>, FrontierError> {
        let mut rows = self.answer(request);
        if rows.as_ref().is_err_and(|why| is_cut(why.as_ref())) {
            rows = self.answer(self.query(sql, params));
        }
        rows.map_err(|why| self.thread.failed(why))
    }

    /// Sends a request without waiting for the reply.
    pub(crate) fn query(
        &self,
        sql: SqlStatement,
        params: &Arc<Vec<StatementParameter>>,
    ) -> InFlightGroupRequest<Vec<Row>> {
        let (session, config) = (self.current(), self.config.clone());
        let params = Arc::clone(params);
        self.thread.spawn(async move {
            let session = open(session, &config).await?;
            let refs = params.iter().map(|value| &**value as &(dyn ToSql + Sync));
            let rows = session.query(sql, &refs.collect::<Vec<_>>()).await?;
            Ok((session, rows))
        })
    }

    /// Sends the rows of a commit that this server group must store. Does not wait for the reply.
    fn put(
        &self,
        batch: &Arc<TransactionColumns>,
        owned: &Arc<BucketOwnership>,
    ) -> InFlightGroupRequest<()> {
        let (session, config) = (self.current(), self.config.clone());
        let (batch, owned) = (Arc::clone(batch), Arc::clone(owned));
        let (group, crawl) = (self.number, self.crawl);
        self.thread.spawn(async move {
            let session = open(session, &config).await?;
            batch.send_ahead(&session, group, crawl, &owned).await?;
            Ok((session, ()))
        })
    }

    /// Waits for a reply. Drops the connection if it was closed.
    fn answer<T>(
        &self,
        request: InFlightGroupRequest<T>,
    ) -> Result<T, Option<tokio_postgres::Error>> {
        let answer = request.answer();
        let (session, answer) = match answer {
            Ok((session, answer)) => (Some(session), Ok(answer)),
            Err(why) if is_cut(why.as_ref()) => (None, Err(why)),
            Err(why) => return Err(why),
        };
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        answer
    }

    fn current(&self) -> Option<Arc<DatabaseSession>> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session
            .clone()
            .filter(|session| !session.client().is_closed())
    }
}

async fn open(
    session: Option<Arc<DatabaseSession>>,
    config: &DatabaseServerConfig,
) -> Result<Arc<DatabaseSession>, tokio_postgres::Error> {
    match session {
        Some(session) => Ok(session),
        None => DatabaseSession::open_lazily(config).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_has_the_home_of_each_bucket() {
        let map = BucketMap::new(3, vec![0, 1, 0, 2, 1]);
        let served: Vec<_> = map.served().into_iter().collect();
        assert_eq!(served, [(0, 2), (1, 2), (2, 1)]);
        assert_eq!(map.foreign_to(0), [1, 3, 4]);
        assert_eq!(
            (map.home(3), map.home(5), map.home(-1)),
            (Some(2), None, None)
        );
        let alone = BucketMap::default();
        assert_eq!((alone.home(0), alone.foreign_to(0)), (None, vec![]));
    }
}
