//! Tests of politeness overrides, quiet hours, and priorities.

use std::time::Duration;

use crawl_scheduler::{
    DailyHours, GapReason, OutcomeKind, PauseReason, Politeness, PolitenessOverride,
    PolitenessOverrides, PollOutcome, RequestPurpose, Tick,
};

use crate::robots_pace::clock;
use crate::scheduler_harness::{ANSWER, SECOND, Stage};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

fn with(pairs: &[(&str, PolitenessOverride)]) -> Politeness {
    let mut sites = PolitenessOverrides::default();
    for (pattern, terms) in pairs {
        sites.insert(pattern, terms.clone()).unwrap();
    }
    Politeness {
        sites,
        ..Politeness::default()
    }
}

fn delay(seconds: u64) -> PolitenessOverride {
    PolitenessOverride {
        delay: Some(Duration::from_secs(seconds)),
        ..PolitenessOverride::default()
    }
}

fn gap(politeness: &Politeness, origin: &str, crawl_delay: Option<Duration>) -> Duration {
    let mut stage = Stage::new(politeness.clone());
    stage.open_with(origin, 10, crawl_delay);
    stage.exchange(ANSWERED);
    stage.wait().1
}

#[test]
fn a_host_has_the_delay_of_its_longest_pattern() {
    let politeness = with(&[("example.org", delay(10)), ("www.example.org", delay(3))]);
    assert_eq!(gap(&politeness, "http://example.org", None), 10 * SECOND);
    assert_eq!(gap(&politeness, "http://a.example.org", None), 10 * SECOND);
    assert_eq!(gap(&politeness, "http://www.example.org", None), 3 * SECOND);
    assert_eq!(gap(&politeness, "http://example.com", None), SECOND);
}

#[test]
fn an_override_never_shortens_a_crawl_delay() {
    let politeness = with(&[("example.org", delay(0))]);
    let crawl_delay = Some(5 * SECOND);
    assert_eq!(
        gap(&politeness, "http://example.org", crawl_delay),
        5 * SECOND
    );
    assert_eq!(gap(&politeness, "http://example.org", None), 2 * ANSWER);
}

#[test]
fn slots_and_factor_can_be_overridden_too() {
    let terms = PolitenessOverride {
        per_host: Some(2),
        delay_factor: Some(50.0),
        ..PolitenessOverride::default()
    };
    let politeness = with(&[("example.org", terms)]);
    let mut stage = Stage::new(politeness);
    stage.open("http://example.org", 10);
    stage.open("http://example.com", 10);
    let permits = [stage.issue(), stage.issue(), stage.issue()];
    stage.assert_closed();
    for permit in permits {
        let host = permit.host().to_string();
        let seconds = if host == "example.org" { 5 } else { 1 };
        let learned = stage.end(permit.spend(), ANSWERED);
        assert_eq!(learned.next_at, stage.now + seconds * SECOND, "{host}");
    }
}

#[test]
fn a_single_site_can_be_limited() {
    let terms = PolitenessOverride {
        site_delay: Some(4 * SECOND),
        ..PolitenessOverride::default()
    };
    let mut stage = Stage::new(with(&[("example.org", terms)]));
    for host in [
        "a.example.org",
        "b.example.org",
        "a.other.com",
        "b.other.com",
    ] {
        stage.open(&format!("http://{host}"), 10);
    }
    let _three = (stage.issue(), stage.issue(), stage.issue());
    assert_eq!(stage.wait().1, 4 * SECOND);
}

#[test]
fn a_site_may_have_fewer_requests_in_flight() {
    let terms = PolitenessOverride {
        per_site: Some(1),
        ..PolitenessOverride::default()
    };
    let mut stage = Stage::new(with(&[("example.org", terms)]));
    for host in [
        "a.example.org",
        "b.example.org",
        "c.example.org",
        "a.other.com",
    ] {
        stage.open(&format!("http://{host}"), 10);
    }
    let permits = [stage.issue(), stage.issue()];
    let hosts = permits.each_ref().map(|permit| permit.host().as_str());
    assert_eq!(hosts, ["a.example.org", "a.other.com"]);
    stage.assert_closed();
}

#[test]
fn quiet_hours_bar_all_requests() {
    let quiet = PolitenessOverride {
        quiet: Some(vec![DailyHours::new(22 * 60, 6 * 60)]),
        ..PolitenessOverride::default()
    };
    let mut stage = Stage::new(with(&[("example.org", quiet)]));
    stage.now = clock(&stage, 21, 59) + 59 * SECOND;
    let origin = stage.open("http://example.org", 10);
    stage.exchange(ANSWERED);
    let end = stage.now;
    let robots = RequestPurpose::Robots {
        origin: origin.clone(),
    };
    stage
        .scheduler
        .queue_request(end, &origin.host_key(), robots);
    let six = clock(&stage, 24 + 6, 0);
    let paused = stage.scheduler.host_summary(stage.now + 2 * SECOND).paused;
    assert_eq!(
        (paused[0].why, paused[0].until),
        (PauseReason::QuietHours, six)
    );
    let (permit, _) = stage.wait();
    assert_eq!(stage.now, six);
    assert_eq!(
        (permit.why(), permit.gap()),
        (GapReason::QuietHours, six.since(end))
    );
}

#[test]
fn a_day_of_quiet_hours_never_ends() {
    let mut stage = Stage::new(Politeness {
        quiet: vec![DailyHours::new(0, 720), DailyHours::new(720, 0)],
        ..Politeness::default()
    });
    stage.open("http://example.org", 10);
    let outcome = stage.scheduler.poll(stage.now);
    assert!(matches!(outcome, PollOutcome::SleepUntil(Tick::NEVER)));
    let summary = stage.scheduler.host_summary(stage.now);
    assert_eq!(summary.paused[0].why, PauseReason::QuietHours);
    assert_eq!(summary.soonest, Some(Tick::NEVER));
}

/// Hosts that became ready in the same millisecond are ordered by priority. Otherwise the host that
/// has been ready longest comes first.
#[test]
fn waiting_time_precedes_priority() {
    let mut stage = Stage::new(Politeness {
        concurrency: 1,
        ..Politeness::default()
    });
    let blocker = stage.open("http://blocker.example", 1);
    let blocking = stage.issue();
    let mut open = |host: &str, priority: u8, micros: u64| {
        stage.now = stage.now + Duration::from_micros(micros);
        let origin = stage.open(&format!("http://{host}.example"), 1);
        let (now, host) = (stage.now, origin.host_key());
        stage.scheduler.prioritize(now, &host, priority);
    };
    open("c", 2, 0);
    open("a", 0, 300);
    open("b", 1, 300);
    open("d", 0, 5000);
    let mut sequence = String::new();
    stage.end(blocking.spend(), ANSWERED);
    for _ in 0..4 {
        let permit = stage.issue();
        sequence.push_str(&permit.host().as_str()[..1]);
        stage.end(permit.spend(), ANSWERED);
    }
    assert_eq!(sequence, "abcd");
    stage.scheduler.set_pending(stage.now, &blocker, 0);
}

#[test]
fn waiting_at_a_gate_loses_no_time() {
    let mut stage = Stage::new(Politeness {
        concurrency: 3,
        per_address: 1,
        address_rate: None,
        ..Politeness::default()
    });
    let mut open = |host: &str, address: u8| {
        let origin = stage.open(&format!("http://{host}.example"), 1);
        let (now, host) = (stage.now, origin.host_key());
        let address = [192, 0, 2, address].into();
        stage.scheduler.set_address(now, &host, address);
        stage.now = stage.now + SECOND;
    };
    open("first", 1);
    open("parked", 1);
    open("x", 2);
    open("y", 3);
    open("z", 4);
    let first = stage.issue();
    let x = stage.issue();
    let _y = stage.issue();
    assert_eq!(x.host().as_str(), "x.example");
    stage.end(first.spend(), ANSWERED);
    assert_eq!(stage.issue().host().as_str(), "parked.example");
}
