//! Tests for every implementation of a frontier, and tests for the frontier on disk.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by a panic")]

mod bench;
mod conforms;
mod disk;
mod model;
mod random_steps;
mod threads;
mod torn;
mod workers;
