//! The frontier on disk does what the one in memory does, whatever the disk does.

use proptest::prelude::*;

use crate::bench::{Moved, OnDisk};
use crate::random_steps::{a_step, all_urls, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_disk_does_what_memory_does(steps in prop::collection::vec(a_step(), 1..60)) {
        prop_assert_eq!(run(steps, &mut OnDisk::failing(Vec::new())), 0);
    }

    #[test]
    fn what_is_moved_elsewhere_goes_on_there(
        steps in prop::collection::vec(a_step(), 20..60),
    ) {
        let mut moved = Moved { urls: all_urls(), on_disk: OnDisk::new() };
        prop_assert_eq!(run(steps, &mut moved), 0);
    }

    #[test]
    fn a_disk_that_fails_loses_no_commit(
        steps in prop::collection::vec(a_step(), 20..80),
        faults in prop::collection::vec(0_u64..40, 10..30),
    ) {
        run(steps, &mut OnDisk::failing(faults));
    }
}
