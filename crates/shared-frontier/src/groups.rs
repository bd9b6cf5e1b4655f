//! The groups of engines that a crawl lies in, as a worker of one of them sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use crawl_frontier::FrontierError;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::commit::CommitBatch;
use crate::connection::{
    Asked, EngineConfig, EngineThread, Param, RECONNECT_INTERVAL, Session, is_cut,
};
use crate::ownership::Ownership;
use crate::sql::Sql;

/// The most groups of a crawl. The number of a worker is a multiple of it, and its group's number:
/// so it is unique over all groups.
pub(crate) const MAX_GROUPS: usize = 64;

/// The groups of a crawl.
pub(crate) struct Groups {
    /// The number of the group that this worker works in: its home.
    pub(crate) own: i32,
    /// All others, in the order of their numbers.
    pub(crate) others: Vec<OtherGroup>,
    map: RwLock<Arc<BucketMap>>,
}

/// The groups that serve the buckets, as the home of this worker has it: another may know better.
#[derive(Debug, Default)]
pub(crate) struct BucketMap {
    /// How often it changed.
    pub(crate) version: i64,
    /// By bucket. Empty where there is one group.
    homes: Vec<i32>,
}

impl BucketMap {
    pub(crate) fn new(version: i64, homes: Vec<i32>) -> BucketMap {
        BucketMap { version, homes }
    }

    /// The group that serves a bucket; none where there is one group.
    fn home(&self, b: i32) -> Option<i32> {
        self.homes.get(usize::try_from(b).ok()?).copied()
    }

    /// The number of buckets that each group serves.
    pub(crate) fn served(&self) -> BTreeMap<i32, u64> {
        let mut served = BTreeMap::new();
        for home in &self.homes {
            *served.entry(*home).or_insert(0) += 1;
        }
        served
    }

    /// The buckets that other groups serve than this one.
    pub(crate) fn foreign_to(&self, group: i32) -> Vec<i32> {
        let all = (0..).zip(&self.homes);
        let foreign = all.filter(|(_, home)| **home != group);
        foreign.map(|(b, _)| b).collect()
    }
}

impl Groups {
    pub(crate) fn new(own: i32, others: Vec<OtherGroup>, map: BucketMap) -> Groups {
        Groups {
            own,
            others,
            map: RwLock::new(Arc::new(map)),
        }
    }

    /// The number of groups.
    pub(crate) fn count(&self) -> usize {
        self.others.len() + 1
    }

    /// Another group than the home, by its number.
    pub(crate) fn other(&self, number: i32) -> Option<&OtherGroup> {
        self.others.iter().find(|group| group.number == number)
    }

    /// The other group that serves a bucket; none where it is the home, or one that is not known.
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

    /// Puts the links of a commit into the groups that serve their hosts, and what is kept of the
    /// crawl into all. It is done before the commit: a worker that dies between does it again, and a
    /// link that is admitted twice is known the second time.
    ///
    /// A group that can't be reached is asked again for as long as a lease lasts.
    pub(crate) fn send_ahead(
        &self,
        batch: &Arc<CommitBatch>,
        owned: &Arc<Ownership>,
    ) -> Result<(), FrontierError> {
        let groups = self.others.iter().filter(|it| batch.is_for(it.number));
        // All at once: the slowest alone is waited for.
        let asked: Vec<_> = groups
            .map(|group| (group, group.put(batch, owned)))
            .collect();
        for (group, mut asked) in asked {
            let ends_at = Instant::now() + owned.term;
            while let Err(why) = group.answer(asked) {
                let is_cut = is_cut(why.as_ref());
                let error = group.thread.failed(why);
                if !is_cut || Instant::now() >= ends_at {
                    return Err(error);
                }
                tracing::warn!(%error, "links wait for another group of the frontier");
                std::thread::sleep(RECONNECT_INTERVAL);
                owned.check(Instant::now())?;
                asked = group.put(batch, owned);
            }
        }
        Ok(())
    }
}

/// A group that is not the home of this worker.
pub(crate) struct OtherGroup {
    pub(crate) number: i32,
    /// The crawl's number there.
    pub(crate) crawl: i32,
    pub(crate) thread: EngineThread,
    config: EngineConfig,
    /// None where it was closed. Each statement is a transaction of its own, so several callers
    /// share it.
    session: Mutex<Option<Arc<Session>>>,
}

/// A question on its way, and the connection that it was asked over.
pub(crate) type AskedOver<T> = Asked<(Arc<Session>, T)>;

impl OtherGroup {
    pub(crate) fn new(
        number: i32,
        crawl: i32,
        thread: EngineThread,
        config: EngineConfig,
    ) -> OtherGroup {
        OtherGroup {
            number,
            crawl,
            thread,
            config,
            session: Mutex::default(),
        }
    }

    /// The thread and the settings of its connections.
    pub(crate) fn into_parts(self) -> (EngineThread, EngineConfig) {
        (self.thread, self.config)
    }

    /// Reads rows, or changes some, by one statement; over a new connection where the last one was
    /// closed. The statement may be sent twice.
    pub(crate) fn read(&self, sql: Sql, params: Vec<Param>) -> Result<Vec<Row>, FrontierError> {
        let params = Arc::new(params);
        self.wait(self.query(sql, &params), sql, &params)
    }

    /// Waits for rows that were asked for; asks once more where the connection was closed.
    pub(crate) fn wait(
        &self,
        asked: AskedOver<Vec<Row>>,
        sql: Sql,
        params: &Arc<Vec<Param>>,
    ) -> Result<Vec<Row>, FrontierError> {
        let mut rows = self.answer(asked);
        if rows.as_ref().is_err_and(|why| is_cut(why.as_ref())) {
            rows = self.answer(self.query(sql, params));
        }
        rows.map_err(|why| self.thread.failed(why))
    }

    /// Asks without waiting for the answer.
    pub(crate) fn query(&self, sql: Sql, params: &Arc<Vec<Param>>) -> AskedOver<Vec<Row>> {
        let (session, config) = (self.current(), self.config.clone());
        let params = Arc::clone(params);
        self.thread.ask(async move {
            let session = open(session, &config).await?;
            let refs = params.iter().map(|value| &**value as &(dyn ToSql + Sync));
            let rows = session.query(sql, &refs.collect::<Vec<_>>()).await?;
            Ok((session, rows))
        })
    }

    /// Puts what a commit has for this group, without waiting for the answer.
    fn put(&self, batch: &Arc<CommitBatch>, owned: &Arc<Ownership>) -> AskedOver<()> {
        let (session, config) = (self.current(), self.config.clone());
        let (batch, owned) = (Arc::clone(batch), Arc::clone(owned));
        let (group, crawl) = (self.number, self.crawl);
        self.thread.ask(async move {
            let session = open(session, &config).await?;
            batch.send_ahead(&session, group, crawl, &owned).await?;
            Ok((session, ()))
        })
    }

    /// Waits for an answer. A connection that was closed is used no more.
    fn answer<T>(&self, asked: AskedOver<T>) -> Result<T, Option<tokio_postgres::Error>> {
        let answer = asked.answer();
        let (session, answer) = match answer {
            Ok((session, answer)) => (Some(session), Ok(answer)),
            Err(why) if is_cut(why.as_ref()) => (None, Err(why)),
            Err(why) => return Err(why),
        };
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        answer
    }

    fn current(&self) -> Option<Arc<Session>> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone().filter(|it| !it.client().is_closed())
    }
}

async fn open(
    session: Option<Arc<Session>>,
    config: &EngineConfig,
) -> Result<Arc<Session>, tokio_postgres::Error> {
    match session {
        Some(session) => Ok(session),
        None => Session::open_lazily(config).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_tells_who_serves_what() {
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
