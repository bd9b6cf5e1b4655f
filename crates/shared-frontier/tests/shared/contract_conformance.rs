//! The shared frontier fulfils the contract, and behaves like the frontier in memory.

use crawl_frontier::conformance::check;
use proptest::prelude::*;

use crate::crash_harness::RestartableWorker;
use crate::postgres_server::Served;
use crate::random_steps::{run, step};

#[test]
#[ignore = "needs PostgreSQL"]
fn the_shared_frontier_conforms() {
    let _served = Served::new();
    check(&|| Box::new(RestartableWorker::new()));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_shared_frontier_equals_the_frontier_in_memory() {
    let _served = Served::new();
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..60))| {
        prop_assert_eq!(run(steps, &mut RestartableWorker::new()), 0);
    });
}
