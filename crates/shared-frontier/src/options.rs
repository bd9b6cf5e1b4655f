//! What a shared frontier is opened with.

use std::path::PathBuf;
use std::time::Duration;

use crate::credentials::Password;

/// What a shared frontier is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the crawl, by which crawls of one engine are told apart.
    pub crawl: String,
    /// The name of this worker. One process at a time has it.
    pub worker: String,
    /// The number of buckets that hosts are divided into, when the crawl is begun. Later it is
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
    pub password: Option<Password>,
    /// The file in which one is looked for where there is none yet, in libpq's format. Its user
    /// alone may be able to read it.
    pub password_file: Option<PathBuf>,
}

impl Options {
    /// The usual ones, for a crawl and a worker.
    #[must_use]
    pub fn new(crawl: &str, worker: &str) -> Options {
        Options {
            crawl: crawl.to_owned(),
            worker: worker.to_owned(),
            buckets: 1024,
            most_buckets: u16::MAX,
            lease: Duration::from_secs(30),
            heartbeat: Duration::from_secs(10),
            head_entries: 65_536,
            read_ahead: 50,
            recent_urls: 500_000,
            password: None,
            password_file: None,
        }
    }
}
