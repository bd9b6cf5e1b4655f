//! A frontier that several workers share: the states of a crawl's URLs in PostgreSQL.
//!
//! Sites are divided into buckets by a keyed hash. A worker owns buckets for as long as its
//! heartbeats reach the database server in time. Only the server's clock counts. Only the owner
//! changes what is stored about the hosts of a bucket. [`SharedFrontier`] implements
//! [`Frontier`](crawl_frontier::Frontier) and
//! [`WorkerFrontier`](crawl_frontier::worker_frontier::WorkerFrontier) for the hosts of its
//! buckets. The next URLs to lease are in memory. A commit is one transaction and takes one round
//! trip. Each commit is fenced: its transaction fails as a whole if another worker has taken over
//! one of its buckets.
//!
//! A crawl may be spread over several server groups. A server group is a primary database server
//! with its standbys, and serves some of the buckets. A worker works in one group, its home. No
//! transaction spans two groups. See [`SharedFrontier::open_groups`] and [`move_buckets`].
//!
//! The crate never contacts a host and knows nothing about politeness. Calls block. Connections are
//! served on a separate thread, so callers need no async runtime. Connections to other machines are
//! encrypted, and the database server's certificate is verified. The crate reads no environment
//! variables: the password is in [`SharedFrontierOptions`].

mod bucket_ownership;
mod commit_statements;
mod connection;
mod connection_string;
mod crawl_database_client;
mod crawl_exporter;
mod crawl_overview;
mod database_message_limits;
mod database_password;
mod database_server_groups;
mod error;
mod frontier;
#[cfg(any(test, fuzzing))]
pub mod fuzz_checks;
mod import;
mod lost_worker;
mod move_buckets;
mod open;
mod open_groups;
mod options;
mod recent_urls;
mod row_codec;
mod server_conformance;
mod server_setup;
mod sql_statements;
mod tls;
mod worker_home_groups;

pub use connection_string::ConnectionString;
pub use crawl_exporter::CrawlExporter;
pub use crawl_overview::{CrawlOverview, ServerGroupOverview, WorkerOverview, drain, overview};
pub use database_password::{Password, PasswordSources};
pub use error::SharedCrawlError;
pub use frontier::SharedFrontier;
pub use import::ImportTargetSettings;
pub use lost_worker::{LostDirectoryCounts, reopen};
pub use move_buckets::{
    BucketMoveProgress, BucketMoveResult, BucketsToMove, ServerGroupSelector, move_buckets,
};
pub use options::SharedFrontierOptions;
pub use server_conformance::check_server;
