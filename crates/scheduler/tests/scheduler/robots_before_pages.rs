//! Tests that robots.txt is fetched before pages, and tests queued requests and permits given back.

use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, PaceFromRobots, Politeness, PollOutcome, RequestPurpose, RobotsState,
};

use crate::scheduler_harness::{SECOND, Stage, origin};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

#[test]
fn rfc9309_2_3_robots_come_before_pages() {
    let mut stage = Stage::new(Politeness {
        per_host: 4,
        ..Politeness::default()
    });
    let origin = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &origin, 10);
    let permit = stage.issue();
    assert_eq!(
        permit.purpose(),
        &RequestPurpose::Robots {
            origin: origin.clone()
        }
    );
    // No other request is issued until `set_robots` reports what the answer for robots.txt means.
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    stage.end(permit.spend(), ANSWERED);
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    stage.open("http://example.org", 10);
    assert_eq!(stage.wait().0.purpose(), &RequestPurpose::Page { origin });
}

#[test]
fn rfc9309_2_3_each_origin_has_its_own_robots() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 10);
    let https_origin = origin("https://example.org");
    stage.scheduler.set_pending(stage.now, &https_origin, 10);
    let mut purposes = Vec::new();
    for _ in 0..3 {
        let (permit, _) = stage.wait();
        purposes.push(permit.purpose().clone());
        stage.end(permit.spend(), ANSWERED);
    }
    let robots = RequestPurpose::Robots {
        origin: https_origin,
    };
    assert_eq!(
        purposes
            .iter()
            .filter(|purpose| **purpose == robots)
            .count(),
        1
    );
}

#[test]
fn rfc9309_2_4_stale_rules_are_fetched_again_before_the_next_page() {
    let mut stage = Stage::new(Politeness::default());
    let origin = origin("http://example.org");
    let state = |until| RobotsState::InForce {
        pace: PaceFromRobots::default(),
        until,
    };
    stage
        .scheduler
        .set_robots(stage.now, &origin, state(stage.now + 3 * SECOND));
    stage.scheduler.set_pending(stage.now, &origin, 10);
    let mut pages = 0;
    let robots = loop {
        let (permit, _) = stage.wait();
        if matches!(permit.purpose(), RequestPurpose::Robots { .. }) {
            break permit;
        }
        pages += 1;
        stage.end(permit.spend(), ANSWERED);
    };
    assert_eq!(pages, 3);
    stage.end(robots.spend(), ANSWERED);
    stage
        .scheduler
        .set_robots(stage.now, &origin, state(stage.now + 60 * SECOND));
    assert_eq!(stage.wait().0.purpose(), &RequestPurpose::Page { origin });
}

#[test]
fn rules_that_hold_for_less_than_the_gap_serve_one_page() {
    const HOUR: Duration = Duration::from_secs(3_600);
    // Rules that are no longer fresh allow one page, unless the gap is longer than a day.
    for (delay, serve) in [(SECOND, true), (23 * HOUR, true), (25 * HOUR, false)] {
        let purposes = purposes_under_rules_that_are_stale_at_once(delay);
        let expected = [false, serve, false, serve, false, serve];
        assert_eq!(purposes, expected, "{delay:?}");
    }
}

/// Returns which of six permits in a row are for pages.
fn purposes_under_rules_that_are_stale_at_once(delay: Duration) -> Vec<bool> {
    let mut stage = Stage::new(Politeness {
        delay,
        ..Politeness::default()
    });
    let origin = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &origin, 10);
    let mut purposes = Vec::new();
    for _ in 0..6 {
        let (permit, _) = stage.wait();
        let is_page = matches!(permit.purpose(), RequestPurpose::Page { .. });
        purposes.push(is_page);
        stage.end(permit.spend(), ANSWERED);
        if !is_page {
            let state = RobotsState::InForce {
                pace: PaceFromRobots::default(),
                until: stage.now,
            };
            stage.scheduler.set_robots(stage.now, &origin, state);
        }
    }
    purposes
}

#[test]
fn a_kept_copy_allows_no_page_once_it_is_stale() {
    let mut stage = Stage::new(Politeness::default());
    let origin = origin("http://example.org");
    // This state comes from a stored copy, such as that of an evicted host, not from an answer.
    let state = RobotsState::InForce {
        pace: PaceFromRobots::default(),
        until: stage.now + SECOND,
    };
    stage.scheduler.set_robots(stage.now, &origin, state);
    stage.now = stage.now + 2 * SECOND;
    stage.scheduler.set_pending(stage.now, &origin, 10);
    assert_eq!(stage.wait().0.purpose(), &RequestPurpose::Robots { origin });
}

#[test]
fn rfc9309_2_3_1_4_unreachable_robots_bar_all_pages_until_the_retry() {
    let mut stage = Stage::new(Politeness::default());
    let origin = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &origin, 10);
    stage.exchange(OutcomeKind::UrlFailed);
    let retry_at = stage.now + 600 * SECOND;
    stage
        .scheduler
        .set_robots(stage.now, &origin, RobotsState::Unreachable { retry_at });
    // robots.txt is fetched again only if URLs are pending.
    stage.scheduler.set_pending(stage.now, &origin, 0);
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    stage.scheduler.set_pending(stage.now, &origin, 1);
    let (permit, waited) = stage.wait();
    assert_eq!(waited, 600 * SECOND);
    assert!(matches!(permit.purpose(), RequestPurpose::Robots { .. }));
}

#[test]
fn rfc9309_2_3_1_2_hops_go_before_pages_and_cost_a_gap() {
    let mut stage = Stage::new(Politeness::default());
    let of = origin("http://other.example");
    let page = stage.open("http://example.org", 10);
    stage.exchange(ANSWERED);
    let hop = RequestPurpose::Hop { of };
    stage
        .scheduler
        .queue_request(stage.now, &page.host_key(), hop.clone());
    let (permit, waited) = stage.wait();
    assert_eq!((permit.purpose(), waited), (&hop, SECOND));
    // A redirect hop that is given back is issued again, unless it is cancelled.
    stage.scheduler.give_back(stage.now, permit);
    let permit = stage.issue();
    assert_eq!(permit.purpose(), &hop);
    stage.scheduler.give_back(stage.now, permit);
    stage
        .scheduler
        .cancel_request(stage.now, &page.host_key(), &hop);
    assert_eq!(
        stage.issue().purpose(),
        &RequestPurpose::Page { origin: page }
    );
}

#[test]
fn robots_can_be_queued_without_urls_but_pages_cannot() {
    let mut stage = Stage::new(Politeness::default());
    let origin = origin("http://example.org");
    let (host, now) = (origin.host_key(), stage.now);
    let page = RequestPurpose::Page {
        origin: origin.clone(),
    };
    stage.scheduler.queue_request(now, &host, page);
    assert!(matches!(stage.scheduler.poll(now), PollOutcome::Idle));
    let robots = RequestPurpose::Robots { origin };
    stage.scheduler.queue_request(now, &host, robots.clone());
    assert_eq!(stage.issue().purpose(), &robots);
}

#[test]
fn a_robots_permit_given_back_is_issued_again() {
    let mut stage = Stage::new(Politeness::default());
    let origin = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &origin, 1);
    let permit = stage.issue();
    stage.scheduler.give_back(stage.now, permit);
    assert_eq!(stage.issue().purpose(), &RequestPurpose::Robots { origin });
}

#[test]
fn page_permits_count_against_the_pending_urls() {
    let mut stage = Stage::new(Politeness {
        per_host: 4,
        ..Politeness::default()
    });
    let origin = stage.open("http://example.org", 2);
    let (first, _second) = (stage.issue(), stage.issue());
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    // A permit that is given back makes its URL pending again.
    stage.scheduler.give_back(stage.now, first);
    let third = stage.issue();
    // No URL was left for the permit `third`.
    stage.scheduler.set_pending(stage.now, &origin, 0);
    stage.scheduler.give_back(stage.now, third);
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
}

#[test]
fn a_permit_given_back_spends_no_gap() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 10);
    stage.exchange(ANSWERED);
    let (permit, _) = stage.wait();
    let before = stage.scheduler.snapshot(&origin.host_key());
    stage.now = stage.now + SECOND;
    stage.scheduler.give_back(stage.now, permit);
    let permit = stage.issue();
    assert_eq!(permit.gap(), SECOND);
    // After the permit is issued again, the state is the same as before it was given back.
    assert_eq!(stage.scheduler.snapshot(&origin.host_key()), before);
    assert_eq!(stage.scheduler.in_flight(), 1);
}
