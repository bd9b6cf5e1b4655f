//! Tests of the pace set by a robots.txt: request rates and visit times.

use std::time::Duration;

use crawl_scheduler::{
    DailyHours, GapReason, OutcomeKind, PaceFromRobots, PauseReason, Politeness, RequestPurpose,
    RobotsRequestRate, Tick,
};

use crate::scheduler_harness::{ANSWER, SECOND, Stage, origin};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;
const MINUTE: Duration = Duration::from_secs(60);

/// Returns the tick at this time of day, on the day of the test.
pub(crate) fn clock(stage: &Stage, hour: u64, minute: u64) -> Tick {
    let day = 86_400_000_000;
    let midnight = stage.now.as_micros() / day * day;
    Tick::from_micros(midnight + (hour * 60 + minute) * 60_000_000)
}

pub(crate) fn rate(requests: u32, seconds: u64, during: Option<(u16, u16)>) -> RobotsRequestRate {
    RobotsRequestRate {
        requests,
        per: Duration::from_secs(seconds),
        during: during.map(|(from, until)| DailyHours::new(from * 60, until * 60)),
    }
}

pub(crate) fn rates(rates: &[RobotsRequestRate]) -> PaceFromRobots {
    PaceFromRobots {
        request_rates: rates.to_vec(),
        ..PaceFromRobots::default()
    }
}

fn visits(hours: &[(u16, u16)]) -> PaceFromRobots {
    let hours = hours
        .iter()
        .map(|(from, until)| DailyHours::new(from * 60, until * 60));
    PaceFromRobots {
        visit_times: hours.collect(),
        ..PaceFromRobots::default()
    }
}

#[test]
fn conner1996_request_rate_is_a_gap() {
    let mut stage = Stage::new(Politeness {
        per_host: 3,
        ..Politeness::default()
    });
    stage.open_with_pace("http://example.org", 10, rates(&[rate(3, 60, None)]));
    stage.exchange(ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.gap()), (20 * SECOND, 20 * SECOND));
    assert_eq!(permit.why(), GapReason::RequestRate);
    assert_eq!(permit.why().to_string(), "request-rate");
    // The gap applies to the host, so its other slots are closed too.
    stage.assert_closed();
}

#[test]
fn the_longest_of_crawl_delay_and_request_rates_counts() {
    let mut stage = Stage::new(Politeness::default());
    let pace = PaceFromRobots {
        crawl_delay: Some(30 * SECOND),
        ..rates(&[rate(1, 5, None), rate(1, 7, Some((0, 24)))])
    };
    stage.open_with_pace("http://example.org", 10, pace);
    stage.exchange(ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.why()), (30 * SECOND, GapReason::CrawlDelay));
}

#[test]
fn conner1996_request_rate_counts_in_its_hours_only() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 5, 59) + 58 * SECOND;
    let pace = rates(&[rate(1, 600, Some((6, 7)))]);
    stage.open_with_pace("http://example.org", 100, pace);
    // The first gap is the default of one second, because this gap ends before six o'clock. From
    // six on the rate applies.
    stage.exchange(ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.why()), (SECOND, GapReason::Delay));
    stage.end(permit.spend(), ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!(waited, 10 * MINUTE);
    assert_eq!(permit.why(), GapReason::RequestRate);
    stage.end(permit.spend(), ANSWERED);
    // From seven o'clock on the gap is a second again, whatever applied before.
    stage.now = clock(&stage, 6, 55);
    stage.exchange(ANSWERED);
    let (permit, _) = stage.wait();
    assert_eq!(stage.now, clock(&stage, 7, 0));
    assert_eq!(permit.why(), GapReason::RequestRate);
    stage.end(permit.spend(), ANSWERED);
    assert_eq!(stage.exchange(ANSWERED).0, SECOND);
}

#[test]
fn each_rate_counts_in_its_own_hours_alone() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 6, 0);
    let pace = rates(&[rate(1, 600, Some((6, 7))), rate(1, 3600, Some((20, 21)))]);
    stage.open_with_pace("http://example.org", 100, pace);
    stage.exchange(ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!(
        (waited, permit.why()),
        (10 * MINUTE, GapReason::RequestRate)
    );
    stage.end(permit.spend(), ANSWERED);
    stage.now = clock(&stage, 20, 0);
    stage.exchange(ANSWERED);
    assert_eq!(stage.wait().1, 60 * MINUTE - ANSWER);
}

/// If the hour changes while a host waits for free capacity, the pace of the new hour applies to
/// it.
#[test]
fn a_rate_that_begins_while_a_host_waits_for_room_is_kept() {
    let mut stage = Stage::new(Politeness {
        concurrency: 1,
        ..Politeness::default()
    });
    stage.now = clock(&stage, 5, 59);
    let pace = rates(&[rate(1, 600, Some((6, 7)))]);
    stage.open_with_pace("http://slow.example", 100, pace);
    stage.exchange(ANSWERED);
    let end = stage.now;
    stage.open("http://other.example", 1);
    let second = stage.issue();
    stage.now = clock(&stage, 6, 3);
    stage.end(second.spend(), ANSWERED);
    let _next = stage.wait();
    assert_eq!(stage.now, end + 10 * MINUTE);
}

#[test]
fn rates_that_cover_the_whole_day_still_end() {
    let mut stage = Stage::new(Politeness::default());
    let year = 365 * 86_400;
    let pace = rates(&[
        rate(1, 9 * year, Some((0, 12))),
        rate(1, year, Some((12, 0))),
    ]);
    stage.open_with_pace("http://example.org", 10, pace);
    stage.exchange(ANSWERED);
    let end = stage.now;
    let _next = stage.wait();
    assert_eq!(stage.now, end + Duration::from_secs(9 * year));
}

#[test]
fn conner1996_visit_time_bars_pages_but_not_robots() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 9, 0);
    let origin = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &origin, 5);
    let robots = stage.issue();
    assert!(matches!(robots.purpose(), RequestPurpose::Robots { .. }));
    stage.end(robots.spend(), ANSWERED);
    stage.open_with_pace("http://example.org", 5, visits(&[(12, 13), (22, 2)]));
    let resting = stage.scheduler.host_summary(stage.now + SECOND);
    assert_eq!(resting.ready + resting.waiting_hosts, 1);
    let end = stage.now;
    let (permit, _) = stage.wait();
    assert_eq!(stage.now, clock(&stage, 12, 0));
    assert_eq!(
        (permit.why(), permit.gap()),
        (GapReason::VisitTime, stage.now.since(end))
    );
    // Pages are issued until the end of the hour, then none until the next visit time.
    stage.end(permit.spend(), ANSWERED);
    stage.now = clock(&stage, 12, 59) + 59 * SECOND;
    let spent = stage.issue().spend();
    stage.now = stage.now + SECOND / 2;
    stage.end(spent, ANSWERED);
    stage.now = stage.now + SECOND;
    stage.assert_closed();
    let paused = stage.scheduler.host_summary(stage.now).paused;
    assert_eq!(paused.len(), 1);
    assert_eq!(paused[0].why, PauseReason::VisitTime);
    assert_eq!(paused[0].until, clock(&stage, 22, 0));
    // Visit times apply only to pages, so a queued request is issued.
    let robots = RequestPurpose::Robots {
        origin: origin.clone(),
    };
    let (host, now) = (origin.host_key(), stage.now);
    stage.scheduler.queue_request(now, &host, robots.clone());
    assert_eq!(stage.issue().purpose(), &robots);
}

#[test]
fn visit_times_apply_to_their_origin_only() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 9, 0);
    stage.open_with_pace("http://example.org", 5, visits(&[(12, 13)]));
    let https_origin = stage.open("https://example.org", 3);
    for _ in 0..3 {
        let (permit, waited) = stage.wait();
        assert!(waited <= SECOND);
        let page = RequestPurpose::Page {
            origin: https_origin.clone(),
        };
        assert_eq!(permit.purpose(), &page);
        stage.end(permit.spend(), ANSWERED);
    }
    let _next = stage.wait();
    assert_eq!(stage.now, clock(&stage, 12, 0));
}

#[test]
fn new_rules_lift_a_closed_visit_time() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 9, 0);
    stage.open_with_pace("http://example.org", 5, visits(&[(12, 13)]));
    stage.assert_closed();
    stage.open_with_pace("http://example.org", 5, visits(&[(12, 13), (8, 10)]));
    let _page = stage.issue();
}

#[test]
fn a_rate_repeated_many_times_counts_in_its_hours_only() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 8, 0);
    let pace = rates(&[rate(1, 600, Some((6, 7))); 40]);
    stage.open_with_pace("http://example.org", 100, pace);
    stage.exchange(ANSWERED);
    assert_eq!(stage.wait().1, SECOND);
}

#[test]
fn a_permit_reports_the_gap_that_applies_at_its_own_hour() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 5, 58);
    let pace = rates(&[rate(1, 600, Some((6, 7)))]);
    stage.open_with_pace("http://example.org", 100, pace);
    stage.exchange(ANSWERED);
    // The gap of a second was over before six o'clock, but the scheduler was not polled then.
    stage.now = clock(&stage, 6, 30);
    let permit = stage.issue();
    assert_eq!(
        (permit.gap(), permit.why()),
        (10 * MINUTE, GapReason::RequestRate)
    );
}

#[test]
fn a_robots_pace_binds_all_requests_to_its_host_even_before_its_pages() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 10);
    let pace = PaceFromRobots {
        crawl_delay: Some(30 * SECOND),
        ..PaceFromRobots::default()
    };
    let https_origin = origin("https://example.org");
    stage
        .scheduler
        .set_robots_pace(stage.now, &https_origin, &pace);
    stage.exchange(ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.why()), (30 * SECOND, GapReason::CrawlDelay));
}
