//! The shared frontier keeps the contract, and does what the one in memory does.

use crawl_frontier::conformance::check;
use proptest::prelude::*;

use crate::bench::OnEngine;
use crate::postgres::Served;
use crate::random_steps::{a_step, run};

#[test]
#[ignore = "needs PostgreSQL"]
fn the_shared_frontier_conforms() {
    let _served = Served::new();
    check(&|| Box::new(OnEngine::new()));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn the_engine_does_what_memory_does() {
    let _served = Served::new();
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    };
    proptest!(config, |(steps in prop::collection::vec(a_step(), 1..60))| {
        prop_assert_eq!(run(steps, &mut OnEngine::new()), 0);
    });
}
