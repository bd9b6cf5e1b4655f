//! Tests of the pace set by rate-limit fields.

use std::time::Duration;

use crawl_scheduler::{
    GapReason, HostWait, OutcomeKind, PaceFromRateLimit, PauseReason, Politeness, RequestOutcome,
    Scheduler, SnapshotCompleteness,
};

use crate::scheduler_harness::{ANSWER, SECOND, Stage};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the rate limit that allows this many more requests in this many seconds.
fn left(requests: u32, seconds: u64) -> Option<PaceFromRateLimit> {
    let lasts = Duration::from_secs(seconds);
    Some(match requests {
        0 => PaceFromRateLimit {
            wait: Some(lasts),
            ..PaceFromRateLimit::default()
        },
        _ => PaceFromRateLimit {
            gap: Some(lasts / requests),
            lasts,
            wait: None,
        },
    })
}

impl Stage {
    fn answered(
        &mut self,
        rate_limit: Option<PaceFromRateLimit>,
    ) -> (Duration, GapReason, HostWait) {
        self.ended(OutcomeKind::Answered, rate_limit)
    }

    fn ended(
        &mut self,
        kind: OutcomeKind,
        rate_limit: Option<PaceFromRateLimit>,
    ) -> (Duration, GapReason, HostWait) {
        let (permit, waited) = self.wait();
        let reason = permit.why();
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
        (waited, reason, learned)
    }

    /// Waits for the next request and returns the wait and its reason.
    fn next(&mut self) -> (Duration, GapReason) {
        let (waited, reason, _) = self.answered(None);
        (waited, reason)
    }
}

fn stage() -> Stage {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 1000);
    stage
}

#[test]
fn ratelimit_the_remaining_quota_is_spread_up_to_the_reset() {
    let mut stage = stage();
    stage.answered(left(4, 20));
    assert_eq!(stage.next(), (5 * SECOND, GapReason::RateLimit));
    // An answer without fields changes nothing.
    assert_eq!(stage.next(), (5 * SECOND, GapReason::RateLimit));
    // The request after this one would come another 5 s later, but the quota resets a little
    // earlier.
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
fn ratelimit_a_used_up_quota_waits_for_the_reset() {
    let mut stage = stage();
    let (.., learned) = stage.answered(left(0, 90));
    assert_eq!(learned.wait_asked, Some(90 * SECOND));
    let paused = stage.scheduler.host_summary(stage.now).paused;
    assert_eq!(paused[0].why, PauseReason::RateLimit);
    assert_eq!(stage.next(), (90 * SECOND, GapReason::RateLimit));
    assert_eq!(stage.next(), (SECOND, GapReason::Delay));
}

#[test]
fn a_later_answer_replaces_the_limit() {
    let mut stage = stage();
    stage.answered(left(2, 20));
    assert_eq!(stage.answered(left(1000, 10)).0, 10 * SECOND);
    assert_eq!(stage.next(), (SECOND, GapReason::Delay));
}

#[test]
fn no_rate_limit_wait_exceeds_the_longest_retry_after() {
    let mut stage = stage();
    stage.answered(left(0, u64::MAX));
    assert_eq!(stage.next().0, 24 * 3600 * SECOND);
    stage.answered(left(1, u64::MAX));
    assert_eq!(stage.next().0, 24 * 3600 * SECOND);
}

#[test]
fn ratelimit_a_retry_after_takes_precedence() {
    let mut stage = stage();
    let retry_after = Some(30 * SECOND);
    let (.., learned) = stage.ended(OutcomeKind::AskedToWait { retry_after }, left(0, 90));
    assert_eq!(learned.wait_asked, retry_after);
    assert_eq!(stage.next(), (30 * SECOND, GapReason::RetryAfter));
    // Without a Retry-After, the longer wait applies: the default wait, or the time until the quota
    // resets.
    let busy = OutcomeKind::AskedToWait { retry_after: None };
    assert_eq!(
        stage.ended(busy, left(0, 90)).2.wait_asked,
        Some(90 * SECOND)
    );
    assert_eq!(stage.ended(busy, left(0, 90)).0, 90 * SECOND);
    assert_eq!(stage.next().0, 2 * MINUTE);
}

#[test]
fn slots_that_would_exceed_the_limit_rest() {
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
fn slots_that_just_keep_the_limit_stay_in_use() {
    let mut stage = Stage::new(Politeness {
        per_host: 2,
        ..Politeness::default()
    });
    stage.open("http://example.org", 1000);
    // The quota allows a request every half second. That is also the rate of two slots with a gap
    // of a second each.
    stage.answered(left(20, 10));
    stage.now = stage.now + 2 * SECOND;
    let permits = [stage.issue(), stage.issue()];
    stage.assert_closed();
    drop(permits);
}

#[test]
fn a_limit_outlives_the_process() {
    let check = |limit, waited, why| {
        let mut stage = stage();
        stage.answered(limit);
        let host = crate::scheduler_harness::origin("http://example.org").host_key();
        let (_, bytes) = stage.scheduler.snapshot(&host).unwrap();
        stage.now = stage.now + 10 * SECOND;
        stage.scheduler = Scheduler::new(Politeness::default(), 2);
        stage
            .scheduler
            .restore(stage.now, &host, &bytes, SnapshotCompleteness::Complete);
        stage.open("http://example.org", 10);
        assert_eq!(stage.next(), (waited, why));
    };
    check(left(0, 90), 80 * SECOND, GapReason::RateLimit);
    check(left(2, 90), 35 * SECOND, GapReason::RateLimit);
}
