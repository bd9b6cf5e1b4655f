//! A frontier that several workers share: the states of a crawl's URLs in PostgreSQL.
//!
//! Sites are divided into buckets by a keyed hash. A worker owns buckets for as long as its
//! heartbeats reach the engine, by the engine's clock; it alone changes what is stored of their
//! hosts. [`SharedFrontier`] keeps the contract of [`Frontier`](crawl_frontier::Frontier) for the
//! hosts of its buckets, and that of [`WorkerFrontier`](crawl_frontier::shared::WorkerFrontier): what is leased next is known in memory, and a commit is one round trip
//! and one transaction. Each commit is fenced, within the transaction: where another worker took a
//! bucket over, nothing of the commit takes effect.
//!
//! A crawl may lie in several groups of engines, each of which serves some of the buckets. A worker
//! works in one of them, and no transaction spans two ([`SharedFrontier::open_groups`],
//! [`move_buckets`]).
//!
//! The crate never asks a host and knows nothing of politeness. It waits on threads of its callers
//! and serves its connections on one of its own, so it can be used within a runtime or without.
//! Connections off loopback are encrypted, and the engine's certificate is checked. It reads no
//! environment: a password comes in by [`Options`].

mod check;
mod commit;
mod connection;
mod connection_string;
mod credentials;
mod engine;
mod engine_tables;
mod error;
mod export;
mod frontier;
mod groups;
mod import;
mod message_guard;
mod move_buckets;
mod open;
mod open_groups;
mod options;
mod overview;
mod ownership;
mod recent;
mod reopen;
mod rows;
mod sql;
mod tls;
mod worker_homes;

pub use check::check_engine;
pub use connection_string::ConnectionString;
pub use credentials::{Credentials, Password};
pub use error::OpenError;
pub use export::Export;
pub use frontier::SharedFrontier;
pub use import::ImportTarget;
pub use move_buckets::{BucketChoice, GroupName, MoveStep, MovedBuckets, move_buckets};
pub use options::Options;
pub use overview::{CrawlOverview, GroupOverview, WorkerOverview, drain, overview};
pub use reopen::{LostWorker, reopen};
