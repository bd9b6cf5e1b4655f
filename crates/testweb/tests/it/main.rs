//! The web as seen by a client that speaks raw TCP.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod ground_truth_matches_crawl;
mod host_connections_and_log;
mod raw_http_client;
mod scripted_replies;
