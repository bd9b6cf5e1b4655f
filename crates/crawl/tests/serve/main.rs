//! `crawl serve` as seen by its clients: every route, error and header field, over loopback.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod api;
mod client_rate_limits;
mod consistent_counts;
mod control;
mod embedding;
mod indexed_crawl_directory;
mod openapi;
mod pages;
mod server_harness;
mod start;
