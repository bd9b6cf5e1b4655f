//! Tests of the shared frontier, with PostgreSQL servers that the tests start.
//!
//! The tests are ignored unless PostgreSQL was downloaded: `cargo xtask test --step debian-packages
//! --step test-with-servers` runs them.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

mod bucket_moves;
mod contract_conformance;
mod crash_harness;
mod database_server_groups;
mod export;
mod faulty_proxy;
mod lost_directory;
mod postgres_server;
mod security;
mod several_workers;

#[path = "../../../frontier/tests/frontier/random_operations.rs"]
mod random_steps;
