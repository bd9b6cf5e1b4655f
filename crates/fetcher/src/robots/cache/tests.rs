use std::time::Duration;

use bytes::Bytes;
use crawl_scheduler::{DailyHours, RobotsRequestRate};

use super::*;
use crate::exchange::Validators;
use crate::robots::copy::RobotsRulesState;

fn compiled(origin: &str, state: RobotsRulesState, body: &'static [u8]) -> Arc<CompiledRobots> {
    let origin = Origin::parse(origin).unwrap();
    let copy = RobotsCopy {
        url: origin.robots_url(),
        origin,
        status: Some(200),
        fetched_at: Tick::from_micros(0),
        expires: Tick::from_micros(1000),
        lasts: Duration::from_millis(1),
        body: Bytes::from_static(body),
        good_at: (state == RobotsRulesState::Rules).then_some(Tick::from_micros(0)),
        state,
        validators: Validators::default(),
        tdmrep: TdmReservationCopy::NotAsked,
    };
    let agent = ProductToken::new("crawl").unwrap();
    Arc::new(CompiledRobots::new(copy, &agent, RobotsProfile::Rfc9309))
}

fn out() -> RobotsRulesState {
    RobotsRulesState::Unreachable {
        why: "timeout".to_owned(),
        tries: 1,
    }
}

#[test]
fn a_copy_is_found_by_its_origin_and_replaced() {
    let cache = RobotsCache::new(1 << 20);
    let origin = Origin::parse("http://a.example").unwrap();
    assert!(cache.get(&origin).is_none());
    cache.insert(compiled("http://a.example", RobotsRulesState::None, b""));
    cache.insert(compiled(
        "http://a.example",
        RobotsRulesState::Rules,
        b"User-agent: *\n",
    ));
    let copy = cache.get(&origin).unwrap();
    assert_eq!(copy.copy.state, RobotsRulesState::Rules);
    assert!(
        cache
            .get(&Origin::parse("https://a.example").unwrap())
            .is_none()
    );
}

#[test]
fn memory_is_bounded_by_bytes() {
    let cache = RobotsCache::new(100_000);
    for n in 0..1000 {
        cache.insert(compiled(
            &format!("http://h{n}.example"),
            RobotsRulesState::None,
            b"",
        ));
    }
    cache.copies.run_pending_tasks();
    assert!(cache.copies.weighted_size() <= 100_000);
    assert!(cache.copies.entry_count() > 10);
}

#[test]
fn the_state_for_the_scheduler_matches_the_rules_in_force() {
    let times = RobotsTimeLimits::default();
    let file =
        b"User-agent: *\nCrawl-delay: 3\nRequest-rate: 1/60 0600-0845\nVisit-time: 2200-0559\n";
    let state = |compiled: &CompiledRobots, now| compiled.state(Tick::from_micros(now), &times);
    let fresh = compiled("http://a.example", RobotsRulesState::Rules, file);
    let pace = PaceFromRobots {
        crawl_delay: Some(Duration::from_secs(3)),
        request_rates: vec![RobotsRequestRate {
            requests: 1,
            per: Duration::from_secs(60),
            during: Some(DailyHours::new(6 * 60, 8 * 60 + 46)),
        }],
        visit_times: vec![DailyHours::new(22 * 60, 6 * 60)],
    };
    let until = Tick::from_micros(1000);
    assert_eq!(state(&fresh, 999), RobotsState::InForce { pace, until });
    assert!(matches!(state(&fresh, 1000), RobotsState::Unknown));
    let lost = compiled("http://a.example", out(), b"");
    assert!(matches!(
        state(&lost, 0),
        RobotsState::Unreachable { retry_at } if retry_at.as_micros() == 1000
    ));
}

#[test]
fn unknown_rules_bar_everything() {
    let barred = |compiled: &CompiledRobots| {
        let path = crawl_policy::RequestPath::new("/a").unwrap();
        !compiled.robots.judge_path(&path).is_allowed()
    };
    assert!(barred(&compiled("http://a.example", out(), b"")));
    assert!(!barred(&compiled(
        "http://a.example",
        RobotsRulesState::None,
        b""
    )));
    assert!(!barred(&compiled(
        "http://a.example",
        RobotsRulesState::Rules,
        b""
    )));
}
