//! All implementations of a frontier fulfil the contract.

use crawl_frontier::conformance::{MemoryFrontierHarness, check};

use crate::crash_harness::OnDisk;
use crate::memory_workers::OneWorker;

#[test]
fn the_frontier_in_memory_conforms() {
    check(&|| Box::new(MemoryFrontierHarness::default()));
}

#[test]
fn the_frontier_on_disk_conforms() {
    check(&|| Box::new(OnDisk::new()));
}

#[test]
fn the_frontier_of_a_worker_in_memory_conforms() {
    check(&|| Box::new(OneWorker::new()));
}
