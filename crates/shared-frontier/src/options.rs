//! The options of a shared frontier.

use std::time::Duration;

use crate::database_password::PasswordSources;

/// The default number of buckets of a crawl.
pub(crate) const DEFAULT_BUCKETS: u16 = 1_024;

/// The options of a shared frontier.
#[derive(Clone, Debug)]
pub struct SharedFrontierOptions {
    /// The name of the crawl, unique within a database server.
    pub crawl: String,
    /// The name of this worker. Only one process at a time can use it.
    pub worker: String,
    /// The program version, which must be the same for all workers of a crawl.
    pub program: String,
    /// The settings that must be the same for all workers of a crawl, one per line.
    pub settings: String,
    /// The id of this worker's last process ([`SharedFrontier::life`]), if that process is known to
    /// have ended. Opening then ends its leases instead of waiting for them to expire.
    ///
    /// [`SharedFrontier::life`]: crawl_frontier::worker_frontier::WorkerFrontier::life
    pub last_life: Option<String>,
    /// The number of buckets that sites are divided into. The number is fixed when the crawl
    /// begins, and later values are ignored.
    pub buckets: u16,
    /// Maximum number of buckets that this worker takes.
    pub most_buckets: u16,
    /// The duration of a lease after each heartbeat. If a worker dies, other workers can take its
    /// buckets after this time.
    pub lease: Duration,
    /// The interval between heartbeats.
    pub heartbeat: Duration,
    /// Maximum number of pending URLs held in memory over all origins. For each origin, memory
    /// holds the first URLs of its queue.
    pub head_entries: usize,
    /// The number of pending URLs of an origin to read from the database server at a time. Fewer
    /// are read if `head_entries` has no room for them.
    pub read_ahead: usize,
    /// Maximum number of URLs whose states are held in memory.
    pub recent_urls: usize,
    /// The source of the password, if the connection string has none.
    pub credentials: PasswordSources,
}

impl SharedFrontierOptions {
    /// Returns the default options for a crawl and a worker.
    #[must_use]
    pub fn new(crawl: &str, worker: &str) -> SharedFrontierOptions {
        SharedFrontierOptions {
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
            credentials: PasswordSources::default(),
        }
    }
}
