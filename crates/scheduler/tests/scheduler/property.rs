//! Drawn worlds: no rule is ever broken, and all work gets done.

use std::time::Duration;

use crawl_scheduler::Politeness;
use proptest::prelude::*;

use crate::world::{Plan, World};

prop_compose! {
    fn politeness()(
        delays in (0..1500u64, 0..4u32, 0..800u64, 0..800u64),
        per in (1..4u32, 1..4u32, prop::option::of(1..4u32), 1..12u32),
        rate in prop::option::of(0.5..50.0f64),
        gates in any::<(bool, bool)>(),
        jitter in 0.0..0.02f64,
        fails_in_a_row in 1..6u32,
    ) -> Politeness {
        Politeness {
            delay: Duration::from_millis(delays.0),
            delay_factor: f64::from(delays.1),
            per_host: per.0,
            per_address: per.1,
            address_delay: Duration::from_millis(if gates.0 { delays.2 } else { 0 }),
            per_site: per.2,
            site_delay: Duration::from_millis(if gates.1 { delays.3 } else { 0 }),
            max_rate: rate,
            concurrency: per.3,
            jitter,
            fails_in_a_row,
            max_retry_after: Duration::from_secs(60),
            wait_max: Duration::from_secs(600),
            ..Politeness::default()
        }
    }
}

prop_compose! {
    fn plan()(
        seed in any::<u64>(),
        sizes in (1..12u32, 1..5u8, 1..4u32, 1..12u32),
        trouble in 0..35u32,
        churn in 0..30u32,
        politeness in politeness(),
    ) -> Plan {
        Plan {
            seed,
            hosts: sizes.0,
            addresses: sizes.1,
            sites: sizes.2,
            urls: sizes.3,
            trouble,
            churn,
            politeness,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn ours_no_rule_is_broken_and_all_work_gets_done(plan in plan()) {
        World::new(plan).run();
    }

    #[test]
    fn ours_same_seed_same_calls_same_permits(plan in plan()) {
        let mut worlds = [World::new(plan.clone()), World::new(plan)];
        worlds.iter_mut().for_each(World::run);
        prop_assert_eq!(&worlds[0].log, &worlds[1].log);
        prop_assert_eq!(worlds[0].pages, worlds[1].pages);
    }
}
