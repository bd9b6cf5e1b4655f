//! `crawl serve` as seen by its clients: every route, error and header field, over loopback.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod api;
mod client_rate_limits;
mod consistent_counts;
mod control;
mod embedded_search_box;
mod html_pages;
mod indexed_crawl_directory;
mod openapi;
mod server_harness;
mod server_start_and_stop;
