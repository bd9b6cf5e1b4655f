//! The buckets that this process owns, and the time until which it owns them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use crawl_frontier::FrontierError;
use crawl_frontier::worker_frontier::SharedFrontierError;
use foldhash::{HashMap, HashSet};
use tokio::time::MissedTickBehavior;
use tokio_postgres::types::ToSql;

use crate::connection::{DatabaseResult, DatabaseServerConfig, DatabaseSession};
use crate::sql_statements::SqlStatement;

/// The buckets owned by one process of a worker.
///
/// Only the database server's clock decides when a lease expires. This process counts the duration
/// of a lease from the time before it sends the heartbeat, so it considers its leases expired a
/// little too early, never too late.
pub(crate) struct BucketOwnership {
    pub(crate) crawl: i32,
    /// The worker's name, which all runs of the worker share.
    pub(crate) worker: String,
    /// The unique id of this run of the worker's process.
    pub(crate) owner: String,
    /// The number of the worker's directory, which is stored with each URL that the worker settles.
    pub(crate) number: i32,
    /// The duration of a lease after each heartbeat.
    pub(crate) term: Duration,
    held: Mutex<OwnershipState>,
    /// The owned buckets, which change only while no transaction is open. The map has a separate
    /// lock from `held`, because it is read for each link.
    buckets: RwLock<HashMap<i32, OwnedBucket>>,
}

/// The ownership of one bucket: its epoch (the number of times it was taken), and when it was
/// requested and taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedBucket {
    pub(crate) epoch: i64,
    /// When the request for the bucket was sent.
    pub(crate) sent_at: Instant,
    /// When the reply to the request for the bucket arrived.
    pub(crate) taken: Instant,
}

/// The identity of a worker's current process: the worker's name and number, and the id of the run.
pub(crate) struct WorkerProcessIdentity {
    /// See [`BucketOwnership::worker`].
    pub(crate) worker: String,
    /// See [`BucketOwnership::owner`].
    pub(crate) owner: String,
    /// See [`BucketOwnership::number`].
    pub(crate) number: i32,
}

struct OwnershipState {
    until: Instant,
    /// Why the buckets are lost: another worker owns them, or may own them. `None` if they are not
    /// lost.
    lost: Option<String>,
}

impl BucketOwnership {
    /// Creates an ownership without buckets. The lease on the worker's name counts from `sent_at`,
    /// when the request for the name was sent.
    pub(crate) fn new(
        crawl: i32,
        life: WorkerProcessIdentity,
        term: Duration,
        sent_at: Instant,
    ) -> BucketOwnership {
        BucketOwnership {
            crawl,
            worker: life.worker,
            owner: life.owner,
            number: life.number,
            term,
            held: Mutex::new(OwnershipState {
                until: sent_at + term,
                lost: None,
            }),
            buckets: RwLock::default(),
        }
    }

    /// Adds buckets. Their leases count from `sent_at`, when the request for the buckets was sent.
    pub(crate) fn add(&self, taken: HashMap<i32, OwnedBucket>, sent_at: Instant) {
        self.owned_mut().extend(taken);
        let mut held = self.held();
        // A heartbeat that was sent after the request did not cover these buckets, so their leases
        // may end before `held.until`.
        held.until = held.until.min(sent_at + self.term);
    }

    /// Removes buckets.
    pub(crate) fn remove(&self, buckets: &[i32]) {
        let mut owned = self.owned_mut();
        for b in buckets {
            owned.remove(b);
        }
    }

    /// Returns the owned buckets, in ascending order.
    pub(crate) fn buckets(&self) -> Vec<i32> {
        let mut buckets: Vec<i32> = self.owned().keys().copied().collect();
        buckets.sort_unstable();
        buckets
    }

    /// Returns the owned buckets, each with its epoch.
    pub(crate) fn epochs(&self) -> BTreeMap<i32, i64> {
        let owned = self.owned();
        owned.iter().map(|(b, owned)| (*b, owned.epoch)).collect()
    }

    /// Returns the number of owned buckets.
    pub(crate) fn count(&self) -> usize {
        self.owned().len()
    }

    /// Returns a bucket, or `None` if this worker does not own it.
    pub(crate) fn bucket(&self, b: i32) -> Option<OwnedBucket> {
        self.owned().get(&b).copied()
    }

    /// Returns the epoch of a bucket (the number of times it was taken), or `None` if this worker
    /// does not own the bucket.
    pub(crate) fn epoch(&self, b: i32) -> Option<i64> {
        self.bucket(b).map(|bucket| bucket.epoch)
    }

    /// Returns the time at which the leases expire unless a heartbeat extends them.
    pub(crate) fn until(&self) -> Instant {
        self.held().until
    }

    /// Fails if the leases expired or another worker took buckets over.
    pub(crate) fn check(&self, now: Instant) -> Result<(), FrontierError> {
        let held = self.held();
        let ended = || "heartbeats did not reach the database server in time".to_owned();
        let reason = match &held.lost {
            Some(reason) => reason.clone(),
            None if now >= held.until => ended(),
            None => return Ok(()),
        };
        drop(held);
        Err(self.lost(reason))
    }

    /// Returns whether this worker has lost its buckets. Either it released them, or another worker
    /// may own some of them.
    pub(crate) fn is_lost(&self) -> bool {
        self.held().lost.is_some()
    }

    /// Records why the buckets are lost. The first reason is kept. Returns the error that the
    /// worker has to end with.
    pub(crate) fn lose(&self, why: &str) -> FrontierError {
        self.held().lost.get_or_insert_with(|| why.to_owned());
        self.lost(why.to_owned())
    }

    fn lost(&self, why: String) -> FrontierError {
        let worker = self.worker.clone();
        FrontierError::Shared(SharedFrontierError::LeaseLost { worker, why })
    }

    /// Sends a heartbeat and records the reply.
    pub(crate) async fn renew(&self, session: &DatabaseSession) -> DatabaseResult<()> {
        let sent_at = Instant::now();
        let term = self.term.as_millis() as i64;
        let owned = self.epochs();
        let (buckets, epochs): (Vec<i32>, Vec<i64>) = owned.iter().unzip();
        let names: [&(dyn ToSql + Sync); 4] = [&self.crawl, &self.worker, &self.owner, &term];
        let leases: [&(dyn ToSql + Sync); 5] = [&self.crawl, &self.owner, &term, &buckets, &epochs];
        // Send both statements without waiting in between. The new lease counts from the moment
        // before sending, so waiting for a distant server between the two statements would shorten
        // the lease.
        let (name, renewed) = tokio::join!(
            biased;
            session.execute(SqlStatement::RenewName, &names),
            session.query(SqlStatement::RenewBuckets, &leases),
        );
        let (name, renewed) = (name?, renewed?);
        let renewed: HashSet<i32> = renewed
            .iter()
            .filter_map(|row| row.try_get(0).ok())
            .collect();
        // Don't count buckets that were handed over while the heartbeat was in flight.
        let lost_count = owned
            .iter()
            .filter(|(b, epoch)| !renewed.contains(b) && self.epoch(**b) == Some(**epoch));
        let lost_count = lost_count.count();
        if name == 0 || lost_count > 0 {
            let _ = self.lose(&format!(
                "the leases of {lost_count} of {} buckets ended before a heartbeat arrived",
                buckets.len()
            ));
            return Ok(());
        }
        let renewed: HashSet<i32> = buckets.into_iter().collect();
        let mut held = self.held();
        // Buckets that were added while this heartbeat was in flight were not renewed. Their leases
        // may end earlier than the renewed ones, so use the earliest end.
        let owned = self.owned();
        let new = owned.iter().filter(|(b, _)| !renewed.contains(b));
        let first = new.map(|(_, bucket)| bucket.sent_at).min();
        held.until = first.map_or(sent_at, |first| first.min(sent_at)) + self.term;
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, OwnershipState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned(&self) -> RwLockReadGuard<'_, HashMap<i32, OwnedBucket>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned_mut(&self) -> RwLockWriteGuard<'_, HashMap<i32, OwnedBucket>> {
        self.buckets.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends heartbeats until the frontier is dropped or its buckets are lost. The heartbeats have a
/// separate connection, so that they never wait for a commit.
pub(crate) async fn beat(
    owned: std::sync::Weak<BucketOwnership>,
    config: DatabaseServerConfig,
    every: Duration,
) {
    let mut session: Option<Arc<DatabaseSession>> = None;
    let mut ticks = tokio::time::interval(every);
    // If a reply was late, send the next heartbeat at its scheduled time, not a full interval after
    // the reply.
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
    owned: &BucketOwnership,
    config: &DatabaseServerConfig,
    session: &mut Option<Arc<DatabaseSession>>,
) -> DatabaseResult<()> {
    let session = match session {
        Some(session) => session,
        none => none.insert(DatabaseSession::open(config).await?),
    };
    owned.renew(session).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_over_when_no_heartbeat_came() {
        let sent_at = Instant::now();
        let life = WorkerProcessIdentity {
            worker: "w1".to_owned(),
            owner: "w1-life".to_owned(),
            number: 1,
        };
        let term = Duration::from_secs(30);
        let owned = BucketOwnership::new(1, life, term, sent_at);
        let bucket = |epoch, sent_at| OwnedBucket {
            epoch,
            sent_at,
            taken: sent_at,
        };
        owned.add([(3, bucket(7, sent_at))].into_iter().collect(), sent_at);
        assert_eq!((owned.epoch(3), owned.epoch(4)), (Some(7), None));
        assert!(owned.check(sent_at).is_ok());
        let over = owned.check(sent_at + term).unwrap_err().to_string();
        assert!(
            over.contains("`w1`") && over.contains("heartbeats did not"),
            "{over}"
        );
        let _ = owned.lose("another took bucket 3");
        let lost = owned.check(sent_at).unwrap_err().to_string();
        assert!(lost.contains("another took bucket 3"), "{lost}");
    }
}
