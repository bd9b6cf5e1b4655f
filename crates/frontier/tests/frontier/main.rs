//! Tests for every implementation of a frontier, and tests for the frontier on disk.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

mod contract_conformance;
mod crash_harness;
mod disk_frontier;
mod lease_while_settling;
mod memory_workers;
mod power_cut;
mod random_operations;
mod same_as_memory;
