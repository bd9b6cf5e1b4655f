//! Crawls of real documentation, served by nginx on loopback and compared with an independent walk
//! of the same files.
//!
//! Required variables, set by `cargo xtask test`: `CRAWL_NGINX` (the program),
//! `CRAWL_NGINX_MIME_TYPES`, `CRAWL_JAVA_DOC` and `CRAWL_PYTHON_DOC` (folders of HTML),
//! `CRAWL_PYTHON_BIN` (with warcio, FastWARC and cdxj-indexer).
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod archive_external_check;
mod crawl_harness;
mod expected_files_walk;
mod ipv6_and_http2;
mod killed_and_resumed_crawl;
mod nginx_harness;
mod uninterrupted_crawl;

use std::path::PathBuf;

/// Returns the path in an environment variable.
fn named(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: cargo xtask test sets it"))
        .into()
}
