//! `crawl serve` as seen by its clients: every route, error and header field, over loopback.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod api;
mod control;
mod embedding;
mod limits;
mod numbers;
mod openapi;
mod pages;
mod server;
mod site;
mod start;
