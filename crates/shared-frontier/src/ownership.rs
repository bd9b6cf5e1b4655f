//! Which buckets this life of the process owns, and until when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use crawl_frontier::FrontierError;
use crawl_frontier::shared::SharedError;
use foldhash::{HashMap, HashSet};
use tokio::time::MissedTickBehavior;
use tokio_postgres::types::ToSql;

use crate::connection::{Answer, EngineConfig, Session};
use crate::sql::Sql;

/// The buckets of one life of one process.
///
/// The engine's clock alone decides when a lease ends. Here the time is counted from before a
/// heartbeat was sent, so this process takes its leases to be over no later than the engine does.
pub(crate) struct Ownership {
    pub(crate) crawl: i32,
    /// The worker's name, which other lives have too.
    pub(crate) worker: String,
    /// No other life has it.
    pub(crate) owner: String,
    /// The number of the worker's directory: that of all URLs that it settles.
    pub(crate) number: i32,
    /// How long a lease is after each heartbeat.
    pub(crate) term: Duration,
    held: Mutex<Held>,
    /// Asked for each link, so it is apart from `held`. It is changed while no transaction is open.
    buckets: RwLock<HashMap<i32, OwnedBucket>>,
}

/// A bucket that is owned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedBucket {
    pub(crate) epoch: i64,
    /// Before it was asked for, and when it was known to be taken.
    pub(crate) asked: Instant,
    pub(crate) taken: Instant,
}

/// One life of a worker.
pub(crate) struct WorkerLife {
    /// See [`Ownership::worker`].
    pub(crate) worker: String,
    /// See [`Ownership::owner`].
    pub(crate) owner: String,
    /// See [`Ownership::number`].
    pub(crate) number: i32,
}

struct Held {
    until: Instant,
    /// How it is known that they are another's, or may be.
    lost: Option<String>,
}

impl Ownership {
    /// Owns the name of a worker and no bucket yet, by a message that was sent at `asked`.
    pub(crate) fn new(crawl: i32, life: WorkerLife, term: Duration, asked: Instant) -> Ownership {
        Ownership {
            crawl,
            worker: life.worker,
            owner: life.owner,
            number: life.number,
            term,
            held: Mutex::new(Held {
                until: asked + term,
                lost: None,
            }),
            buckets: RwLock::default(),
        }
    }

    /// Owns these buckets too, by a message that was sent at `asked`.
    pub(crate) fn add(&self, taken: HashMap<i32, OwnedBucket>, asked: Instant) {
        self.owned_mut().extend(taken);
        let mut held = self.held();
        // A heartbeat that was sent meanwhile knew nothing of them.
        held.until = held.until.min(asked + self.term);
    }

    /// Owns these buckets no longer.
    pub(crate) fn remove(&self, buckets: &[i32]) {
        let mut owned = self.owned_mut();
        for b in buckets {
            owned.remove(b);
        }
    }

    /// The buckets that are owned, in their order.
    pub(crate) fn buckets(&self) -> Vec<i32> {
        let mut buckets: Vec<i32> = self.owned().keys().copied().collect();
        buckets.sort_unstable();
        buckets
    }

    /// The number of buckets that are owned.
    pub(crate) fn count(&self) -> usize {
        self.owned().len()
    }

    /// A bucket, if it is owned.
    pub(crate) fn bucket(&self, b: i32) -> Option<OwnedBucket> {
        self.owned().get(&b).copied()
    }

    /// The epoch of a bucket; none where it is not owned.
    pub(crate) fn epoch(&self, b: i32) -> Option<i64> {
        self.bucket(b).map(|bucket| bucket.epoch)
    }

    /// The moment at which the leases end, unless a heartbeat comes before.
    pub(crate) fn until(&self) -> Instant {
        self.held().until
    }

    /// Fails where the leases ended, or another took buckets over.
    pub(crate) fn check(&self, now: Instant) -> Result<(), FrontierError> {
        let held = self.held();
        let ended = || "no heartbeat reached the engine in time".to_owned();
        let why = match &held.lost {
            Some(why) => why.clone(),
            None if now >= held.until => ended(),
            None => return Ok(()),
        };
        drop(held);
        Err(self.lost(why))
    }

    /// Returns whether buckets are known to be another's.
    pub(crate) fn is_lost(&self) -> bool {
        self.held().lost.is_some()
    }

    /// Notes that buckets are another's; the error to end with.
    pub(crate) fn lose(&self, why: &str) -> FrontierError {
        self.held().lost.get_or_insert_with(|| why.to_owned());
        self.lost(why.to_owned())
    }

    fn lost(&self, why: String) -> FrontierError {
        let worker = self.worker.clone();
        FrontierError::Shared(SharedError::LeaseLost { worker, why })
    }

    /// Sends a heartbeat, and notes the answer.
    pub(crate) async fn renew(&self, session: &Session) -> Answer<()> {
        let asked = Instant::now();
        let term = self.term.as_millis() as i64;
        let owned: Vec<(i32, i64)> = {
            let owned = self.owned();
            owned.iter().map(|(b, owned)| (*b, owned.epoch)).collect()
        };
        let (buckets, epochs): (Vec<i32>, Vec<i64>) = owned.iter().copied().unzip();
        let names: [&(dyn ToSql + Sync); 4] = [&self.crawl, &self.worker, &self.owner, &term];
        let leases: [&(dyn ToSql + Sync); 5] = [&self.crawl, &self.owner, &term, &buckets, &epochs];
        // Both at once: an engine that is far away answers late, and a lease is counted from here.
        let (name, renewed) = tokio::join!(
            biased;
            session.execute(Sql::RenewName, &names),
            session.query(Sql::RenewBuckets, &leases),
        );
        let (name, renewed) = (name?, renewed?);
        let renewed: HashSet<i32> = renewed
            .iter()
            .filter_map(|row| row.try_get(0).ok())
            .collect();
        // Those that were handed over meanwhile are no loss.
        let lost = owned
            .iter()
            .filter(|(b, epoch)| !renewed.contains(b) && self.epoch(*b) == Some(*epoch));
        let lost = lost.count();
        if name == 0 || lost > 0 {
            let _ = self.lose(&format!(
                "the leases of {lost} of {} buckets ended before a heartbeat came",
                buckets.len()
            ));
            return Ok(());
        }
        let renewed: HashSet<i32> = buckets.into_iter().collect();
        let mut held = self.held();
        // The leases of buckets that came while this heartbeat was under way end sooner than it
        // says. They are renewed by the next.
        let owned = self.owned();
        let new = owned.iter().filter(|(b, _)| !renewed.contains(b));
        let first = new.map(|(_, bucket)| bucket.asked).min();
        held.until = first.map_or(asked, |first| first.min(asked)) + self.term;
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned(&self) -> RwLockReadGuard<'_, HashMap<i32, OwnedBucket>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned_mut(&self) -> RwLockWriteGuard<'_, HashMap<i32, OwnedBucket>> {
        self.buckets.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends heartbeats over a connection of their own, which waits for no commit, until the frontier is
/// gone or its buckets are lost.
pub(crate) async fn beat(owned: std::sync::Weak<Ownership>, config: EngineConfig, every: Duration) {
    let mut session: Option<Arc<Session>> = None;
    let mut ticks = tokio::time::interval(every);
    // An engine that answers late is asked at the next moment of the same row, not a pause later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(owned) = owned.upgrade() else {
            return;
        };
        if owned.held().lost.is_some() {
            return;
        }
        let sent = send(&owned, &config, &mut session).await;
        if let Err(why) = sent {
            tracing::warn!(error = %why, "a heartbeat did not reach the frontier");
            session = None;
        }
    }
}

async fn send(
    owned: &Ownership,
    config: &EngineConfig,
    session: &mut Option<Arc<Session>>,
) -> Answer<()> {
    let session = match session {
        Some(session) => session,
        none => none.insert(Session::open(config).await?),
    };
    owned.renew(session).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_over_when_no_heartbeat_came() {
        let asked = Instant::now();
        let life = WorkerLife {
            worker: "w1".to_owned(),
            owner: "w1-life".to_owned(),
            number: 1,
        };
        let term = Duration::from_secs(30);
        let owned = Ownership::new(1, life, term, asked);
        let bucket = |epoch, asked| OwnedBucket {
            epoch,
            asked,
            taken: asked,
        };
        owned.add([(3, bucket(7, asked))].into_iter().collect(), asked);
        assert_eq!((owned.epoch(3), owned.epoch(4)), (Some(7), None));
        assert!(owned.check(asked).is_ok());
        let over = owned.check(asked + term).unwrap_err().to_string();
        assert!(
            over.contains("`w1`") && over.contains("no heartbeat"),
            "{over}"
        );
        let _ = owned.lose("another took bucket 3");
        let lost = owned.check(asked).unwrap_err().to_string();
        assert!(lost.contains("another took bucket 3"), "{lost}");
    }
}
