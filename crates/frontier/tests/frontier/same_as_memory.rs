//! Checks that the frontier on disk behaves like the frontier in memory, even if the disk fails.

use proptest::prelude::*;

use crate::crash_harness::{Moved, OnDisk};
use crate::memory_workers::OneWorker;
use crate::random_operations::{all_urls, run, step};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_frontier_on_disk_equals_the_one_in_memory(steps in prop::collection::vec(step(), 1..60)) {
        prop_assert_eq!(run(steps, &mut OnDisk::failing(Vec::new())), 0);
    }

    #[test]
    fn the_frontier_of_a_worker_equals_the_one_in_memory(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        prop_assert_eq!(run(steps, &mut OneWorker::new()), 0);
    }

    #[test]
    fn a_moved_frontier_continues_elsewhere(
        steps in prop::collection::vec(step(), 20..60),
    ) {
        let mut moved = Moved { urls: all_urls(), on_disk: OnDisk::new() };
        prop_assert_eq!(run(steps, &mut moved), 0);
    }

    #[test]
    fn a_failing_disk_loses_no_commit(
        steps in prop::collection::vec(step(), 20..80),
        faults in prop::collection::vec(0_u64..40, 10..30),
    ) {
        run(steps, &mut OnDisk::failing(faults));
    }
}
