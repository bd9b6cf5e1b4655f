//! Tests random worlds: no rule is ever broken, and all work gets done.

use std::time::Duration;

use crawl_scheduler::{DailyHours, Politeness, PolitenessOverride};
use proptest::prelude::*;

use crate::world::{Plan, World};

prop_compose! {
    fn politeness()(
        delays in (0..1500u64, 0..4u32, 0..800u64, 0..800u64),
        per in (1..4u32, 1..4u32, prop::option::of(1..4u32), 1..12u32, 0..6u32),
        rate in prop::option::of(0.5..50.0f64),
        gates in any::<(bool, bool)>(),
        jitter in 0.0..0.02f64,
        fails_in_a_row in 1..6u32,
        quiet in quiet(),
    ) -> Politeness {
        Politeness {
            delay: Duration::from_millis(delays.0),
            delay_factor: f64::from(delays.1),
            per_host: per.0,
            per_address: per.1,
            address_delay: Duration::from_millis(if gates.0 { delays.2 } else { 0 }),
            address_rate: (delays.2 > 0).then(|| 1000.0 / delays.2 as f64),
            per_site: per.2,
            site_delay: Duration::from_millis(if gates.1 { delays.3 } else { 0 }),
            max_rate: rate,
            concurrency: per.3,
            look_ups: per.4,
            jitter,
            fails_in_a_row,
            max_retry_after: Duration::from_secs(60),
            wait_max: Duration::from_secs(600),
            quiet: quiet.unwrap_or_default(),
            ..Politeness::default()
        }
    }
}

prop_compose! {
    /// Quiet hours that begin or end near the time of day at which worlds start.
    fn quiet()(
        has in prop::bool::weighted(0.3),
        from in 14 * 60 + 10..14 * 60 + 20u16,
        minutes in 1..10u16,
    ) -> Option<Vec<DailyHours>> {
        has.then(|| vec![DailyHours::new(from, from + minutes)])
    }
}

prop_compose! {
    fn terms()(
        delay in prop::option::of(0..3000u64),
        delay_factor in prop::option::of(0.0..4.0f64),
        per_host in prop::option::of(1..4u32),
        quiet in quiet(),
    ) -> PolitenessOverride {
        PolitenessOverride {
            delay: delay.map(Duration::from_millis),
            delay_factor,
            per_host,
            quiet,
            ..PolitenessOverride::default()
        }
    }
}

prop_compose! {
    fn plan()(
        seed in any::<u64>(),
        sizes in (1..12u32, 1..5u32, 1..4u32, 1..12u32),
        asking in prop_oneof![Just(0), Just(30), Just(100)],
        limited in prop_oneof![Just(0), Just(40)],
        trouble in 0..350u32,
        churn in 0..30u32,
        politeness in politeness(),
        overrides in prop::collection::vec((pattern(), terms()), 0..3),
        reloads in prop_oneof![Just(0), 0..40u32],
        other in politeness(),
        other_overrides in prop::collection::vec((pattern(), terms()), 0..3),
    ) -> Plan {
        // Limit sites under both politeness settings or under neither. Requests that are in flight
        // when a site gets its first limit are not counted at the site, so they could exceed the
        // limit.
        let other = match politeness.per_site.is_some() || !politeness.site_delay.is_zero() {
            true => Politeness {
                site_delay: other.site_delay.max(Duration::from_millis(1)),
                ..other
            },
            false => Politeness {
                per_site: None,
                site_delay: Duration::ZERO,
                ..other
            },
        };
        Plan {
            reloads,
            other,
            other_overrides,
            seed,
            hosts: sizes.0,
            addresses: sizes.1,
            sites: sizes.2,
            urls: sizes.3,
            second_origins: 30,
            asking,
            limited,
            trouble,
            churn,
            logged: true,
            politeness,
            overrides,
        }
    }
}

fn pattern() -> impl Strategy<Value = String> {
    const PATTERNS: [&str; 4] = ["example", "s0.example", "h0.s0.example", "h1.s1.example"];
    proptest::sample::select(&PATTERNS[..]).prop_map(str::to_owned)
}

/// Runs a world to its end.
fn run(plan: Plan) -> World {
    let mut world = World::new(plan);
    let end = world.run();
    assert_eq!(world.check.first_breaches, Vec::<String>::new());
    end.unwrap();
    world
}

proptest! {
    #[test]
    fn no_rule_is_broken_and_all_work_gets_done(plan in plan()) {
        run(plan);
    }

    #[test]
    fn same_seed_same_calls_same_permits(plan in plan()) {
        let worlds = [run(plan.clone()), run(plan)];
        prop_assert_eq!(&worlds[0].log, &worlds[1].log);
        prop_assert_eq!(worlds[0].tally, worlds[1].tally);
    }
}
