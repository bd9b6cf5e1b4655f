//! Whether an engine does what a shared frontier needs of it.

use crawl_frontier::conformance::{Bench, broken_clauses};
use crawl_frontier::shared::WorkerFrontier as _;
use crawl_frontier::{Frontier, FrontierError};

use crate::credentials::Credentials;
use crate::error::OpenError;
use crate::frontier::SharedFrontier;
use crate::options::Options;
use crate::overview::remove;

/// Holds the clauses of the contract of frontiers against the engine at a connection string, each
/// with crawls that are removed afterwards. Gives the number of clauses, and those that are broken.
///
/// # Errors
/// [`OpenError`] says what stands in the way.
pub fn check_engine(
    url: &str,
    credentials: &Credentials,
) -> Result<(usize, Vec<&'static str>), OpenError> {
    // What stands in the way of the first stands in the way of all.
    OnEngine::new(url, credentials)?;
    let (clauses, broken) = broken_clauses(&|| match OnEngine::new(url, credentials) {
        Ok(bench) => Box::new(bench),
        // A clause that can't be tried is broken.
        Err(why) => std::panic::panic_any(why.to_string()),
    });
    Ok((clauses, broken))
}

/// A crawl of its own, whose one worker can die and start again.
struct OnEngine {
    url: String,
    options: Options,
    frontier: Option<SharedFrontier>,
}

impl OnEngine {
    fn new(url: &str, credentials: &Credentials) -> Result<OnEngine, OpenError> {
        let crawl = format!("crawl frontier check {}", uuid::Uuid::new_v4());
        let options = Options {
            buckets: 4,
            // So few that those of the clauses are enough to go beyond them.
            head_entries: 0,
            recent_urls: 4,
            credentials: credentials.clone(),
            ..Options::new(&crawl, "check")
        };
        let frontier = SharedFrontier::open(url, &options)?;
        Ok(OnEngine {
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

impl Bench for OnEngine {
    fn frontier(&self) -> &dyn Frontier {
        match &self.frontier {
            Some(frontier) => frontier,
            None => std::panic::panic_any("it did not start again".to_owned()),
        }
    }

    fn die(&mut self) {
        // What a death leaves, and the end of its leases at once.
        let ended = self.give_up();
        let opened = ended.map_err(OpenError::from);
        let opened = opened.and_then(|()| SharedFrontier::open(&self.url, &self.options));
        match opened {
            Ok(frontier) => self.frontier = Some(frontier),
            Err(why) => std::panic::panic_any(why.to_string()),
        }
    }
}

impl Drop for OnEngine {
    fn drop(&mut self) {
        let _ = self.give_up();
        if let Err(why) = remove(&self.url, &self.options.credentials, &self.options.crawl) {
            tracing::warn!(error = %why, crawl = self.options.crawl, "the crawl of a check is left");
        }
    }
}
