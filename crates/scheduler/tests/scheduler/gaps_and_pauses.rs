//! Tests of the gap between requests, and of waits that hosts request.

use std::time::Duration;

use crawl_scheduler::{
    GapReason, OutcomeKind, PauseReason, Politeness, PollOutcome, RequestOutcome, RequestPurpose,
    RobotsState, Tick,
};

use crate::scheduler_harness::{ANSWER, SECOND, START, Stage, asked_to_wait, origin, origin_of};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

#[test]
fn the_first_request_does_not_wait() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 1);
    let permit = stage.issue();
    assert_eq!(
        (permit.gap(), permit.why()),
        (Duration::ZERO, GapReason::First)
    );
    assert_eq!(permit.issued(), START);
}

#[test]
fn gap_is_from_end_to_start() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 5);
    stage.exchange(ANSWERED);
    for _ in 0..4 {
        let (waited, _) = stage.exchange(ANSWERED);
        assert_eq!(waited, SECOND);
    }
}

#[test]
fn poll_host_issues_for_one_host_and_keeps_its_gap() {
    let mut stage = Stage::new(Politeness::default());
    let hosts = ["http://a.example", "http://b.example"];
    for host in hosts {
        stage.open(host, 5);
    }
    let [a, b] = hosts.map(|host| origin(host).host_key());
    let unknown = origin("http://c.example").host_key();
    // Host `a` has been ready longer, but `poll_host` ignores it.
    let PollOutcome::Issue(permit) = stage.scheduler.poll_host(stage.now, &b) else {
        panic!("no permit");
    };
    assert_eq!(*permit.host(), b);
    assert!(matches!(
        stage.scheduler.poll_host(stage.now, &b),
        PollOutcome::Idle
    ));
    stage.end(permit.spend(), ANSWERED);
    let next = stage.now + SECOND;
    let poll = stage.scheduler.poll_host(stage.now, &b);
    assert!(matches!(poll, PollOutcome::SleepUntil(at) if at == next));
    assert!(matches!(
        stage.scheduler.poll_host(stage.now, &unknown),
        PollOutcome::Idle
    ));
    assert!(matches!(
        stage.scheduler.poll_host(stage.now, &a),
        PollOutcome::Issue(_)
    ));
    assert!(matches!(
        stage.scheduler.poll_host(next, &b),
        PollOutcome::Issue(_)
    ));
}

#[test]
fn one_request_in_flight_per_host_whatever_the_scheme() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 5);
    stage.open("https://example.org:8443", 5);
    let first = stage.issue();
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    stage.now = stage.now + 60 * SECOND;
    assert!(matches!(stage.scheduler.poll(stage.now), PollOutcome::Idle));
    stage.end(first.spend(), ANSWERED);
    let (second, waited) = stage.wait();
    assert_eq!(waited, SECOND);
    assert_eq!((second.gap(), second.why()), (SECOND, GapReason::Delay));
}

#[test]
fn the_largest_rule_makes_the_gap() {
    let check = |factor: f64, crawl_delay: Option<u64>, gap: Duration, why: GapReason| {
        let mut stage = Stage::new(Politeness {
            delay_factor: factor,
            ..Politeness::default()
        });
        let crawl_delay = crawl_delay.map(Duration::from_secs);
        stage.open_with("http://example.org", 5, crawl_delay);
        stage.exchange(ANSWERED);
        let (permit, waited) = stage.wait();
        assert_eq!((waited, permit.gap(), permit.why()), (gap, gap, why));
    };
    check(2.0, None, SECOND, GapReason::Delay);
    check(30.0, None, 30 * ANSWER, GapReason::DelayFactor);
    check(30.0, Some(5), 5 * SECOND, GapReason::CrawlDelay);
    check(30.0, Some(0), 30 * ANSWER, GapReason::DelayFactor);
    check(0.0, Some(3600), 3600 * SECOND, GapReason::CrawlDelay);
    check(f64::NAN, None, SECOND, GapReason::Delay);
    check(-1.0, None, SECOND, GapReason::Delay);
}

#[test]
fn a_crawl_delay_counts_from_the_robots_request_itself() {
    let mut stage = Stage::new(Politeness::default());
    let origin = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &origin, 1);
    stage.exchange(ANSWERED);
    stage.open_with("http://example.org", 1, Some(10 * SECOND));
    assert_eq!(stage.wait().1, 10 * SECOND);
}

#[test]
fn each_slot_keeps_the_gap() {
    let mut stage = Stage::new(Politeness {
        per_host: 3,
        ..Politeness::default()
    });
    stage.open("http://example.org", 100);
    let permits = [stage.issue(), stage.issue(), stage.issue()];
    stage.assert_closed();
    for permit in permits {
        stage.now = stage.now + ANSWER;
        stage.end(permit.spend(), ANSWERED);
    }
    // The requests ended 100 ms apart, so their slots become free 100 ms apart.
    assert_eq!(stage.wait().1, SECOND - 2 * ANSWER);
    assert_eq!(stage.wait().1, ANSWER);
    assert_eq!(stage.wait().1, ANSWER);
    stage.assert_closed();
}

#[test]
fn under_a_crawl_delay_one_slot_serves() {
    let mut stage = Stage::new(Politeness {
        per_host: 3,
        ..Politeness::default()
    });
    stage.open_with("http://example.org", 100, Some(4 * SECOND));
    stage.exchange(ANSWERED);
    let (permit, waited) = stage.wait();
    assert_eq!(waited, 4 * SECOND);
    stage.assert_closed();
    stage.end(permit.spend(), ANSWERED);
    assert_eq!(stage.wait().1, 4 * SECOND);
}

#[test]
fn the_response_time_is_smoothed_over_answers_only() {
    let mut stage = Stage::new(Politeness {
        delay: Duration::ZERO,
        delay_factor: 1.0,
        ..Politeness::default()
    });
    stage.open("http://example.org", 100);
    let mut gap_after = |millis: u64, kind: OutcomeKind| {
        let (permit, _) = stage.wait();
        let signal = RequestOutcome {
            end: stage.now,
            response_time: Duration::from_millis(millis),
            address: None,
            kind,
            rate_limit: None,
            url: None,
        };
        let learned = stage.scheduler.done(stage.now, permit.spend(), signal);
        learned.next_at.since(stage.now).as_millis()
    };
    assert_eq!(gap_after(100, ANSWERED), 100);
    assert_eq!(gap_after(500, ANSWERED), 200);
    assert_eq!(gap_after(60_000, OutcomeKind::UrlFailed), 200);
    assert_eq!(gap_after(200, ANSWERED), 200);
    assert_eq!(gap_after(0, ANSWERED), 150);
}

#[test]
fn jitter_only_lengthens_and_by_a_hundredth_at_most() {
    let mut stage = Stage::new(Politeness {
        jitter: 0.5,
        ..Politeness::default()
    });
    stage.open("http://example.org", 1000);
    stage.exchange(ANSWERED);
    let gaps: Vec<_> = (0..200).map(|_| stage.exchange(ANSWERED).0).collect();
    assert!(
        gaps.iter()
            .all(|gap| (SECOND..=SECOND * 101 / 100).contains(gap))
    );
    assert!(gaps.iter().any(|gap| *gap > SECOND * 1005 / 1000));
}

#[test]
fn rfc9110_10_2_3_retry_after_is_waited_exactly() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 10);
    for seconds in [3600, 7, 1, 86_400] {
        let (_, learned) = stage.exchange(asked_to_wait(Some(seconds)));
        assert_eq!(learned.wait_asked, Some(Duration::from_secs(seconds)));
        let (permit, waited) = stage.wait();
        assert_eq!(waited, Duration::from_secs(seconds));
        assert_eq!((permit.gap(), learned.next_at), (waited, stage.now));
        let reason = if seconds > 1 {
            GapReason::RetryAfter
        } else {
            GapReason::Delay
        };
        assert_eq!(permit.why(), reason);
        stage.end(permit.spend(), ANSWERED);
    }
}

#[test]
fn retry_after_is_cut_and_never_shortens_the_gap() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 10);
    let (_, learned) = stage.exchange(asked_to_wait(Some(u64::MAX)));
    assert_eq!(learned.wait_asked, Some(24 * 3600 * SECOND));
    assert_eq!(stage.exchange(asked_to_wait(Some(0))).0, 24 * 3600 * SECOND);
    assert_eq!(stage.wait().1, SECOND);
}

#[test]
fn without_a_retry_after_the_wait_doubles_up_to_a_day() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 100);
    let waits: Vec<_> = (0..13)
        .map(|_| {
            stage
                .exchange(asked_to_wait(None))
                .1
                .wait_asked
                .unwrap()
                .as_secs()
                / 60
        })
        .collect();
    assert_eq!(
        waits,
        [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440]
    );
}

#[test]
fn a_second_retry_after_of_zero_in_a_row_counts_as_none() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 100);
    let minute = 60 * SECOND;
    let zero = asked_to_wait(Some(0));
    for (kind, wait) in [
        (zero, Some(Duration::ZERO)),
        (ANSWERED, None),
        (zero, Some(Duration::ZERO)),
        (zero, Some(minute)),
        (zero, Some(2 * minute)),
        (asked_to_wait(Some(5)), Some(5 * SECOND)),
        (zero, Some(Duration::ZERO)),
        (zero, Some(4 * minute)),
    ] {
        assert_eq!(stage.exchange(kind).1.wait_asked, wait);
    }
}

#[test]
fn the_doubling_is_forgotten_after_quiet() {
    let check = |quiet: Duration, minutes: u32| {
        let mut stage = Stage::new(Politeness::default());
        stage.open("http://example.org", 100);
        for _ in 0..3 {
            stage.exchange(asked_to_wait(None));
        }
        stage.exchange(ANSWERED);
        stage.now = stage.now + quiet;
        let (_, learned) = stage.exchange(asked_to_wait(None));
        assert_eq!(learned.wait_asked, Some(minutes * 60 * SECOND));
    };
    check(Duration::ZERO, 8);
    check(29 * 60 * SECOND, 8);
    check(30 * 60 * SECOND, 1);
}

#[test]
fn concurrent_requests_count_as_one_wait() {
    let mut stage = Stage::new(Politeness {
        per_host: 4,
        ..Politeness::default()
    });
    stage.open("http://example.org", 100);
    let permits: Vec<_> = (0..4).map(|_| stage.issue()).collect();
    for permit in permits {
        let learned = stage.end(permit.spend(), asked_to_wait(None));
        assert_eq!(learned.wait_asked, Some(60 * SECOND));
    }
    assert_eq!(stage.wait().1, 60 * SECOND);
}

#[test]
fn a_failed_url_changes_nothing_for_the_host() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 100);
    for round in 0..5 {
        for _ in 0..19 {
            let (waited, learned) = stage.exchange(OutcomeKind::UrlFailed);
            assert!(waited <= SECOND, "{round}");
            assert_eq!(learned.paused, None);
        }
        stage.exchange(ANSWERED);
    }
}

#[test]
fn twenty_failures_in_a_row_pause_the_host() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 100);
    for _ in 0..19 {
        stage.exchange(OutcomeKind::UrlFailed);
    }
    let (_, learned) = stage.exchange(OutcomeKind::UrlFailed);
    assert_eq!(learned.paused, Some(stage.now + 10 * SECOND));
    // A failed probe doubles the pause, up to a day.
    let mut pauses = Vec::new();
    for _ in 0..15 {
        let (waited, learned) = stage.exchange(OutcomeKind::UrlFailed);
        assert!(learned.paused.is_some());
        pauses.push(waited.as_secs());
    }
    let expected = [
        10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240, 20_480, 40_960,
    ];
    assert_eq!(pauses[..13], expected);
    assert_eq!(pauses[13..], [81_920, 86_400]);
    // An answer ends the pause, and the restart is slow: the gap halves with each answer.
    let (_, learned) = stage.exchange(ANSWERED);
    assert_eq!(learned.paused, None);
    let gaps: Vec<_> = (0..5).map(|_| stage.exchange(ANSWERED).0).collect();
    let millis: Vec<_> = gaps.iter().map(Duration::as_millis).collect();
    assert_eq!(millis, [5000, 2500, 1250, 1000, 1000]);
}

#[test]
fn repeated_failures_of_a_url_count_once() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 1000);
    let mut fail = |url: u32| {
        let (permit, _) = stage.wait();
        let signal = RequestOutcome {
            end: stage.now,
            response_time: ANSWER,
            address: None,
            kind: OutcomeKind::UrlFailed,
            rate_limit: None,
            url: None,
        };
        let signal = signal.with_url(&format!("http://example.org/{url}"));
        let learned = stage.scheduler.done(stage.now, permit.spend(), signal);
        learned.paused.is_some()
    };
    assert!(!(0..100).any(|round| fail(round % 19)));
    assert!(fail(19));
}

#[test]
fn no_connection_pauses_at_once_for_at_least_five_seconds() {
    let mut stage = Stage::new(Politeness {
        delay: Duration::ZERO,
        ..Politeness::default()
    });
    stage.open("http://example.org", 100);
    stage.exchange(OutcomeKind::NoConnection);
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.why()), (5 * SECOND, GapReason::Pause));
}

#[test]
fn an_origin_without_a_listener_does_not_pause_the_other() {
    let mut stage = Stage::new(Politeness {
        delay: Duration::ZERO,
        ..Politeness::default()
    });
    let refused = origin("https://example.org");
    let fails = |stage: &mut Stage| {
        let (permit, _) = stage.wait();
        let robots = RequestPurpose::Robots {
            origin: refused.clone(),
        };
        assert_eq!(permit.purpose(), &robots);
        let learned = stage.end(permit.spend(), OutcomeKind::NoConnection);
        let retry_at = stage.now + 300 * SECOND;
        let state = RobotsState::Unreachable { retry_at };
        stage.scheduler.set_robots(stage.now, &refused, state);
        learned.paused
    };
    // Add the refused origin first, so that its robots.txt is requested first.
    stage.scheduler.set_pending(stage.now, &refused, 3);
    let plain = origin("http://example.org");
    stage.scheduler.set_pending(stage.now, &plain, 3);
    assert_eq!(fails(&mut stage), None);
    stage.open("http://example.org", 3);
    for _ in 0..3 {
        let (permit, waited) = stage.wait();
        assert_eq!(origin_of(permit.purpose()), &plain);
        assert!(waited < 5 * SECOND, "{waited:?}");
        stage.end(permit.spend(), ANSWERED);
    }
    // The rules of `plain` are known, although none of its URLs is pending.
    assert_eq!(fails(&mut stage), None);
    let summary = stage.scheduler.host_summary(stage.now);
    let paused = &summary.paused[0];
    assert_eq!(paused.why, PauseReason::Robots);
    // A failed connection for a page shows that the server is gone.
    stage.scheduler.set_pending(stage.now, &plain, 1);
    let (permit, _) = stage.wait();
    let learned = stage.end(permit.spend(), OutcomeKind::NoConnection);
    assert!(learned.paused.is_some());
}

#[test]
fn a_host_without_any_answer_pauses_for_each_of_its_origins() {
    let mut stage = Stage::new(Politeness::default());
    let origins = ["http://example.org", "https://example.org"].map(origin);
    for origin in &origins {
        stage.scheduler.set_pending(stage.now, origin, 1);
    }
    let ends = [false, true].map(|is_last| {
        let (permit, _) = stage.wait();
        let origin = origin_of(permit.purpose()).clone();
        let learned = stage.end(permit.spend(), OutcomeKind::NoConnection);
        let retry_at = stage.now + 300 * SECOND;
        let state = RobotsState::Unreachable { retry_at };
        stage.scheduler.set_robots(stage.now, &origin, state);
        assert_eq!(learned.paused.is_some(), is_last);
        origin
    });
    assert_ne!(ends[0], ends[1]);
}

#[test]
fn after_a_pause_only_one_probe_is_sent_until_an_answer_arrives() {
    let mut stage = Stage::new(Politeness {
        per_host: 3,
        ..Politeness::default()
    });
    stage.open("http://example.org", 100);
    let permits = [stage.issue(), stage.issue(), stage.issue()];
    for permit in permits {
        // Requests in flight together cause one pause, not three.
        let learned = stage.end(permit.spend(), OutcomeKind::NoConnection);
        assert_eq!(learned.paused, Some(stage.now + 10 * SECOND));
    }
    let (probe, waited) = stage.wait();
    assert_eq!(waited, 10 * SECOND);
    stage.now = stage.now + 30 * SECOND;
    stage.assert_closed();
    stage.end(probe.spend(), ANSWERED);
    let (second, waited) = stage.wait();
    assert_eq!((waited, second.why()), (5 * SECOND, GapReason::SlowRestart));
    stage.assert_closed();
    stage.end(second.spend(), ANSWERED);
    for waited in [2500, 1250] {
        assert_eq!(stage.exchange(ANSWERED).0, Duration::from_millis(waited));
    }
    // The slow restart is over, so all slots are used again.
    let _other_slots = (stage.issue(), stage.issue());
    stage.assert_closed();
}

#[test]
fn a_late_now_does_not_turn_time_back() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 10);
    stage.exchange(ANSWERED);
    assert!(matches!(
        stage.scheduler.poll(Tick::ZERO),
        PollOutcome::SleepUntil(_)
    ));
    stage.now = stage.now + SECOND;
    let permit = stage.issue();
    // A request's end that is earlier than its start is ignored.
    let signal = RequestOutcome {
        end: Tick::ZERO,
        response_time: ANSWER,
        address: None,
        kind: ANSWERED,
        rate_limit: None,
        url: None,
    };
    let learned = stage.scheduler.done(Tick::ZERO, permit.spend(), signal);
    assert_eq!(learned.next_at, stage.now + SECOND);
}

/// The smoothed response time moves a quarter of the way to each new response time.
#[test]
fn the_gap_follows_the_answers_slowly_in_both_directions() {
    let mut stage = Stage::new(Politeness {
        delay: Duration::ZERO,
        delay_factor: 1.0,
        ..Politeness::default()
    });
    stage.open("http://a.example", 100);
    let seconds = |seconds: u64| Duration::from_secs(seconds);
    for (took, gap) in [(8, 8), (24, 12), (4, 10), (2, 8), (8, 8)] {
        let permit = stage.wait().0;
        stage.now = stage.now + seconds(took);
        let signal = RequestOutcome {
            end: stage.now,
            response_time: seconds(took),
            address: None,
            kind: OutcomeKind::Answered,
            rate_limit: None,
            url: None,
        };
        let learned = stage.scheduler.done(stage.now, permit.spend(), signal);
        assert_eq!(learned.next_at.since(stage.now), seconds(gap), "{took}");
    }
}
