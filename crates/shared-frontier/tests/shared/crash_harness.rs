//! A test harness for the shared frontier, whose worker can crash and restart.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crawl_frontier::conformance::RestartableFrontier;
use crawl_frontier::worker_frontier::WorkerFrontier as _;
use crawl_frontier::{Frontier, FrontierError, Transaction, UrlToAdmit};
use crawl_shared_frontier::{SharedFrontier, SharedFrontierOptions};

use crate::postgres_server::{Served, execute};

pub(crate) struct RestartableWorker {
    frontier: Option<SharedFrontier>,
    options: SharedFrontierOptions,
    served: Served,
}

/// Returns options of a worker whose heartbeats are only sent by the test. The limits for queue
/// heads and recent URLs are minimal, so that a few URLs exceed these limits.
pub(crate) fn options(crawl: &str, worker: &str) -> SharedFrontierOptions {
    SharedFrontierOptions {
        buckets: 4,
        heartbeat: Duration::from_secs(3600),
        lease: Duration::from_secs(7200),
        head_entries: 0,
        recent_urls: 4,
        ..SharedFrontierOptions::new(crawl, worker)
    }
}

impl RestartableWorker {
    pub(crate) fn new() -> RestartableWorker {
        let mut bench = RestartableWorker {
            frontier: None,
            options: options(&new_crawl(), "w1"),
            served: Served::new(),
        };
        bench.die();
        bench
    }
}

/// Returns a unique name for a crawl.
pub(crate) fn new_crawl() -> String {
    static CRAWLS: AtomicU32 = AtomicU32::new(0);
    format!("crawl {}", CRAWLS.fetch_add(1, Ordering::Relaxed))
}

/// Ends all leases of a crawl, as if they had expired.
pub(crate) fn end_leases(url: &str, crawl: &str) {
    let end = |table| {
        format!(
            "UPDATE crawl_frontier.{table} SET lease_until = '-infinity' FROM crawl_frontier.crawl c
            WHERE crawl = c.number AND c.name = '{crawl}';"
        )
    };
    execute(url, &(end("bucket") + &end("worker")));
}

impl RestartableFrontier for RestartableWorker {
    fn frontier(&self) -> &dyn Frontier {
        self.frontier.as_ref().unwrap()
    }

    fn begin_expecting(
        &self,
        expected: &mut dyn Iterator<Item = &UrlToAdmit>,
    ) -> Result<Box<dyn Transaction + '_>, FrontierError> {
        let mut transaction = self.frontier.as_ref().unwrap().begin_worker()?;
        transaction.expect(expected)?;
        Ok(transaction)
    }

    fn die(&mut self) {
        if self.frontier.take().is_some() {
            end_leases(&self.served.url, &self.options.crawl);
        }
        let opened = SharedFrontier::open(&self.served.url, &self.options);
        self.frontier = Some(opened.unwrap());
    }
}
