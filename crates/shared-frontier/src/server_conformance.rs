//! Checks whether a database server works as a shared frontier requires.

use crawl_frontier::conformance::{RestartableFrontier, broken_clauses};
use crawl_frontier::worker_frontier::WorkerFrontier as _;
use crawl_frontier::{Frontier, FrontierError};

use crate::crawl_overview::remove;
use crate::database_password::PasswordSources;
use crate::error::SharedCrawlError;
use crate::frontier::SharedFrontier;
use crate::options::SharedFrontierOptions;

/// Checks the clauses of the frontier contract on the database server at `url`, with crawls that
/// are removed afterwards. Returns the number of clauses and the names of the broken ones.
///
/// # Errors
/// [`SharedCrawlError`] gives the reason.
pub fn check_server(
    url: &str,
    credentials: &PasswordSources,
) -> Result<(usize, Vec<&'static str>), SharedCrawlError> {
    // Open a frontier once before the checks, so that a failure is reported as an error. Otherwise
    // every check would fail for the same reason.
    RestartableWorker::new(url, credentials)?;
    let (clauses, broken) = broken_clauses(&|| match RestartableWorker::new(url, credentials) {
        Ok(bench) => Box::new(bench),
        // If a clause's frontier can't be opened, panic. The clause then counts as broken.
        Err(why) => std::panic::panic_any(why.to_string()),
    });
    Ok((clauses, broken))
}

/// A separate crawl with one worker, which can crash and restart.
struct RestartableWorker {
    url: String,
    options: SharedFrontierOptions,
    frontier: Option<SharedFrontier>,
}

impl RestartableWorker {
    fn new(
        url: &str,
        credentials: &PasswordSources,
    ) -> Result<RestartableWorker, SharedCrawlError> {
        let crawl = format!("crawl frontier check {}", uuid::Uuid::new_v4());
        let options = SharedFrontierOptions {
            buckets: 4,
            // The limits are minimal, so that even the few URLs of a check exceed them.
            head_entries: 0,
            recent_urls: 4,
            credentials: credentials.clone(),
            ..SharedFrontierOptions::new(&crawl, "check")
        };
        let frontier = SharedFrontier::open(url, &options)?;
        Ok(RestartableWorker {
            url: url.to_owned(),
            options,
            frontier: Some(frontier),
        })
    }

    fn give_up(&mut self) -> Result<(), FrontierError> {
        self.frontier
            .take()
            .map_or(Ok(()), |frontier| frontier.give_up())
    }
}

impl RestartableFrontier for RestartableWorker {
    fn frontier(&self) -> &dyn Frontier {
        match &self.frontier {
            Some(frontier) => frontier,
            None => std::panic::panic_any("it did not start again".to_owned()),
        }
    }

    fn die(&mut self) {
        // Instead of crashing, the worker gives up its leases. The state is the same as after a
        // crash, but the restart doesn't have to wait for the leases to expire.
        let ended = self.give_up();
        let opened = ended.map_err(SharedCrawlError::from);
        let opened = opened.and_then(|()| SharedFrontier::open(&self.url, &self.options));
        match opened {
            Ok(frontier) => self.frontier = Some(frontier),
            Err(why) => std::panic::panic_any(why.to_string()),
        }
    }
}

impl Drop for RestartableWorker {
    fn drop(&mut self) {
        let _ = self.give_up();
        if let Err(why) = remove(&self.url, &self.options.credentials, &self.options.crawl) {
            tracing::warn!(error = %why, crawl = self.options.crawl, "the crawl of a check is left");
        }
    }
}
