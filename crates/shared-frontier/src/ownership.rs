//! Which buckets this life of the process owns, and until when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crawl_frontier::FrontierError;
use foldhash::HashMap;

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
    /// How long a lease is after each heartbeat.
    pub(crate) term: Duration,
    /// In their order.
    pub(crate) buckets: Vec<i32>,
    epochs: HashMap<i32, i64>,
    held: Mutex<Held>,
}

struct Held {
    until: Instant,
    /// How it is known that they are another's, or may be.
    lost: Option<String>,
}

impl Ownership {
    /// Owns buckets, each with its epoch, by a message that was sent at `asked`.
    pub(crate) fn new(
        crawl: i32,
        (worker, owner): (String, String),
        epochs: HashMap<i32, i64>,
        term: Duration,
        asked: Instant,
    ) -> Ownership {
        let mut buckets: Vec<i32> = epochs.keys().copied().collect();
        buckets.sort_unstable();
        Ownership {
            crawl,
            worker,
            owner,
            term,
            buckets,
            epochs,
            held: Mutex::new(Held {
                until: asked + term,
                lost: None,
            }),
        }
    }

    /// The epoch of a bucket; none where it is not owned.
    pub(crate) fn epoch(&self, b: i32) -> Option<i64> {
        self.epochs.get(&b).copied()
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

    /// Notes that buckets are another's; the error to end with.
    pub(crate) fn lose(&self, why: &str) -> FrontierError {
        self.held().lost.get_or_insert_with(|| why.to_owned());
        self.lost(why.to_owned())
    }

    fn lost(&self, why: String) -> FrontierError {
        let worker = self.worker.clone();
        FrontierError::LeaseLost { worker, why }
    }

    /// Sends a heartbeat, and notes the answer.
    pub(crate) async fn renew(&self, session: &Session) -> Answer<()> {
        let asked = Instant::now();
        let term = self.term.as_millis() as i64;
        let epochs: Vec<i64> = self.buckets.iter().map(|b| self.epochs[b]).collect();
        let name = session
            .execute(
                Sql::RenewName,
                &[&self.crawl, &self.worker, &self.owner, &term],
            )
            .await?;
        let renewed = session
            .query(
                Sql::RenewBuckets,
                &[&self.crawl, &self.owner, &term, &self.buckets, &epochs],
            )
            .await?;
        if name == 0 || renewed.len() < self.buckets.len() {
            let lost = self.buckets.len() - renewed.len();
            let _ = self.lose(&format!(
                "the leases of {lost} of {} buckets ended before a heartbeat came",
                self.buckets.len()
            ));
        } else {
            self.held().until = asked + self.term;
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends heartbeats over a connection of their own, which waits for no commit, until the frontier is
/// gone or its buckets are lost.
pub(crate) async fn beat(owned: std::sync::Weak<Ownership>, config: EngineConfig, every: Duration) {
    let mut session: Option<Arc<Session>> = None;
    loop {
        tokio::time::sleep(every).await;
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
        let names = ("w1".to_owned(), "w1-life".to_owned());
        let term = Duration::from_secs(30);
        let owned = Ownership::new(1, names, [(3, 7)].into_iter().collect(), term, asked);
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
