//! What a shared frontier is opened with.

use std::time::Duration;

use crate::credentials::Credentials;

/// The number of buckets of a crawl, unless another was asked for.
pub(crate) const DEFAULT_BUCKETS: u16 = 1_024;

/// What a shared frontier is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the crawl, by which crawls of one engine are told apart.
    pub crawl: String,
    /// The name of this worker. One process at a time has it.
    pub worker: String,
    /// The version of the program, which all workers of a crawl have alike.
    pub program: String,
    /// The settings that all workers of a crawl have alike, a line each.
    pub settings: String,
    /// The id of the last life of this worker ([`SharedFrontier::life`]), where it is known to be
    /// over: its leases are ended, and need not be waited for.
    ///
    /// [`SharedFrontier::life`]: crawl_frontier::shared::WorkerFrontier::life
    pub last_life: Option<String>,
    /// The number of buckets that sites are divided into, when the crawl is begun. Later it is
    /// what it was.
    pub buckets: u16,
    /// The most buckets that this worker takes.
    pub most_buckets: u16,
    /// How long a lease is after each heartbeat: a worker that died is missed after it.
    pub lease: Duration,
    /// The pause between two heartbeats.
    pub heartbeat: Duration,
    /// Pending URLs held in memory, over all origins.
    pub head_entries: usize,
    /// Pending URLs of an origin that are read at a time, where `head_entries` has room.
    pub read_ahead: usize,
    /// URLs whose state is held in memory.
    pub recent_urls: usize,
    /// The password for a connection string that has none.
    pub credentials: Credentials,
}

impl Options {
    /// The usual ones, for a crawl and a worker.
    #[must_use]
    pub fn new(crawl: &str, worker: &str) -> Options {
        Options {
            crawl: crawl.to_owned(),
            worker: worker.to_owned(),
            program: String::new(),
            settings: String::new(),
            last_life: None,
            buckets: DEFAULT_BUCKETS,
            most_buckets: u16::MAX,
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            head_entries: 65_536,
            read_ahead: 50,
            recent_urls: 500_000,
            credentials: Credentials::default(),
        }
    }
}
