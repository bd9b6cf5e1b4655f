//! The pace that rate-limit fields ask for.

use std::time::Duration;

use crawl_scheduler::{
    GapReason, HostWait, OutcomeKind, PauseReason, Politeness, RateLimit, RequestOutcome,
    RestartKind, Scheduler,
};

use crate::stage::{ANSWER, SECOND, Stage};

const MINUTE: Duration = Duration::from_secs(60);

/// So many requests left, for so many seconds.
fn left(requests: u32, seconds: u64) -> Option<RateLimit> {
    let lasts = Duration::from_secs(seconds);
    Some(match requests {
        0 => RateLimit {
            wait: Some(lasts),
            ..RateLimit::default()
        },
        _ => RateLimit {
            gap: Some(lasts / requests),
            lasts,
            wait: None,
        },
    })
}

impl Stage {
    fn answered(&mut self, rate_limit: Option<RateLimit>) -> (Duration, GapReason, HostWait) {
        self.ended(OutcomeKind::Answered, rate_limit)
    }

    fn ended(
        &mut self,
        kind: OutcomeKind,
        rate_limit: Option<RateLimit>,
    ) -> (Duration, GapReason, HostWait) {
        let (permit, waited) = self.wait();
        let why = permit.why();
        self.now = self.now + ANSWER;
        let signal = RequestOutcome {
            end: self.now,
            response_time: ANSWER,
            address: None,
            kind,
            rate_limit,
            url: None,
        };
        let learned = self.scheduler.done(self.now, permit.spend(), signal);
        (waited, why, learned)
    }

    /// The time that the next request waits, and why.
    fn next(&mut self) -> (Duration, GapReason) {
        let (waited, why, _) = self.answered(None);
        (waited, why)
    }
}

fn stage() -> Stage {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 1000);
    stage
}

#[test]
fn ratelimit_what_is_left_is_spread_up_to_the_reset() {
    let mut stage = stage();
    stage.answered(left(4, 20));
    assert_eq!(stage.next(), (5 * SECOND, GapReason::RateLimit));
    // An answer without a word leaves it as it was.
    assert_eq!(stage.next(), (5 * SECOND, GapReason::RateLimit));
    // The third would be 5 s after this end; the reset comes earlier.
    assert_eq!(stage.next(), (5 * SECOND, GapReason::RateLimit));
    let (waited, why) = stage.next();
    assert_eq!(
        (waited, why),
        (
            20 * SECOND - 3 * (5 * SECOND + ANSWER),
            GapReason::RateLimit
        )
    );
    assert_eq!(stage.next(), (SECOND, GapReason::Delay));
}

#[test]
fn ratelimit_nothing_left_waits_for_the_reset() {
    let mut stage = stage();
    let (.., learned) = stage.answered(left(0, 90));
    assert_eq!(learned.wait_asked, Some(90 * SECOND));
    let paused = stage.scheduler.host_summary(stage.now).paused;
    assert_eq!(paused[0].why, PauseReason::RateLimit);
    assert_eq!(stage.next(), (90 * SECOND, GapReason::RateLimit));
    assert_eq!(stage.next(), (SECOND, GapReason::Delay));
}

#[test]
fn ours_a_later_answer_says_otherwise() {
    let mut stage = stage();
    stage.answered(left(2, 20));
    assert_eq!(stage.answered(left(1000, 10)).0, 10 * SECOND);
    assert_eq!(stage.next(), (SECOND, GapReason::Delay));
}

#[test]
fn ours_no_limit_asks_for_more_than_a_retry_after_could() {
    let mut stage = stage();
    stage.answered(left(0, u64::MAX));
    assert_eq!(stage.next().0, 24 * 3600 * SECOND);
    stage.answered(left(1, u64::MAX));
    assert_eq!(stage.next().0, 24 * 3600 * SECOND);
}

#[test]
fn ratelimit_a_retry_after_goes_before() {
    let mut stage = stage();
    let retry_after = Some(30 * SECOND);
    let (.., learned) = stage.ended(OutcomeKind::AskedToWait { retry_after }, left(0, 90));
    assert_eq!(learned.wait_asked, retry_after);
    assert_eq!(stage.next(), (30 * SECOND, GapReason::RetryAfter));
    // Without one the longer of both waits counts.
    let asked = OutcomeKind::AskedToWait { retry_after: None };
    assert_eq!(
        stage.ended(asked, left(0, 90)).2.wait_asked,
        Some(90 * SECOND)
    );
    assert_eq!(stage.ended(asked, left(0, 90)).0, 90 * SECOND);
    assert_eq!(stage.next().0, 2 * MINUTE);
}

#[test]
fn ours_slots_that_would_not_keep_the_limit_rest() {
    let check = |requests: u32, seconds: u64, slots: usize| {
        let mut stage = Stage::new(Politeness {
            per_host: 3,
            ..Politeness::default()
        });
        stage.open("http://example.org", 1000);
        stage.answered(left(requests, seconds));
        stage.now = stage.now + Duration::from_secs(seconds) / requests + SECOND;
        let permits: Vec<_> = (0..slots).map(|_| stage.issue()).collect();
        stage.assert_closed();
        drop(permits);
    };
    check(100, 3600, 1);
    check(10_000, 60, 3);
}

#[test]
fn ours_slots_that_just_keep_the_limit_go_on() {
    let mut stage = Stage::new(Politeness {
        per_host: 2,
        ..Politeness::default()
    });
    stage.open("http://example.org", 1000);
    // Half a second from one request to the next, as two slots with a gap of a second keep it.
    stage.answered(left(20, 10));
    stage.now = stage.now + 2 * SECOND;
    let permits = [stage.issue(), stage.issue()];
    stage.assert_closed();
    drop(permits);
}

#[test]
fn ours_a_limit_outlives_the_process() {
    let check = |limit, waited, why| {
        let mut stage = stage();
        stage.answered(limit);
        let host = crate::stage::origin("http://example.org").host_key();
        let (_, bytes) = stage.scheduler.snapshot(&host).unwrap();
        stage.now = stage.now + 10 * SECOND;
        stage.scheduler = Scheduler::new(Politeness::default(), 2);
        stage
            .scheduler
            .restore(stage.now, &host, &bytes, RestartKind::AfterKill);
        stage.open("http://example.org", 10);
        assert_eq!(stage.next(), (waited, why));
    };
    check(left(0, 90), 80 * SECOND, GapReason::RateLimit);
    check(left(2, 90), 35 * SECOND, GapReason::RateLimit);
}
