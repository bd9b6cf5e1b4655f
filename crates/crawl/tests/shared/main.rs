//! Crawls shared by several processes through a private PostgreSQL server, compared with the log of
//! the web server they fetch from.
//!
//! All tests are ignored by default. `cargo xtask test --step debian-packages --step
//! test-with-servers` fetches PostgreSQL and runs them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod concurrent_workers;
mod database_server_groups;
mod export_to_directory;
mod import_from_directory;
mod lost_directory;
mod shared_crawl_harness;
mod worker_error_messages;
mod worker_failover;

#[path = "../../../shared-frontier/tests/shared/postgres_server.rs"]
#[expect(
    dead_code,
    reason = "tests of the library query the database themselves"
)]
mod postgres;
