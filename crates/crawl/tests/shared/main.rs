//! Crawls that several processes share, on a PostgreSQL of their own, held against the log of the
//! web server that they ask.
//!
//! They are ignored where no PostgreSQL is fetched: `cargo xtask test --step debian-packages
//! --step test-with-servers` runs them.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod crawl;
mod export;
mod groups;
mod hand_over;
mod import;
mod lost_directory;
mod refusals;
mod together;

#[path = "../../../shared-frontier/tests/shared/postgres.rs"]
#[expect(dead_code, reason = "tests of the library ask the engine themselves")]
mod postgres;
