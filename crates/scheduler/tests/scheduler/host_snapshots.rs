//! Tests of host snapshots: they outlive the process, and restore hosts that were evicted from
//! memory.

use std::time::Duration;

use crawl_scheduler::{
    EvictedHost, GapReason, OtherCrawlsGap, OutcomeKind, PaceFromRobots, PauseReason, Politeness,
    PollOutcome, Scheduler, SnapshotCompleteness, Tick, stored_address,
};
use crawl_weburl::Origin;
use proptest::prelude::*;

use crate::robots_pace::{clock, rate, rates};
use crate::scheduler_harness::{SECOND, Stage, asked_to_wait, origin};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

/// Kills the scheduler. After the time `away`, starts a new one that knows only the stored state.
fn restart(stage: &mut Stage, origin: &Origin, away: Duration, rest: SnapshotCompleteness) {
    let (_, bytes) = stage.scheduler.snapshot(&origin.host_key()).unwrap();
    stage.now = stage.now + away;
    stage.scheduler = Scheduler::new(stage.scheduler.politeness().clone(), 2);
    stage
        .scheduler
        .restore(stage.now, &origin.host_key(), &bytes, rest);
    stage.open(origin.as_str(), 100);
}

#[test]
fn the_rest_of_a_requested_wait_is_kept_after_a_kill() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 10);
    stage.exchange(asked_to_wait(Some(3600)));
    restart(
        &mut stage,
        &origin,
        600 * SECOND,
        SnapshotCompleteness::Complete,
    );
    let (permit, waited) = stage.wait();
    assert_eq!(
        (waited, permit.why()),
        (3000 * SECOND, GapReason::RetryAfter)
    );
    assert_eq!(permit.gap(), 3600 * SECOND);
}

#[test]
fn levels_and_failures_survive_a_restart() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 100);
    for _ in 0..3 {
        stage.exchange(asked_to_wait(None));
        restart(&mut stage, &origin, SECOND, SnapshotCompleteness::Complete);
    }
    let (waited, learned) = stage.exchange(asked_to_wait(None));
    assert_eq!(waited, 239 * SECOND);
    assert_eq!(learned.wait_asked, Some(480 * SECOND));
    stage.exchange(OutcomeKind::NoConnection);
    stage.exchange(OutcomeKind::NoConnection);
    restart(&mut stage, &origin, SECOND, SnapshotCompleteness::Complete);
    assert_eq!(stage.exchange(OutcomeKind::UrlFailed).0, 19 * SECOND);
    assert_eq!(stage.wait().1, 40 * SECOND);
}

#[test]
fn the_gap_survives_a_kill_with_its_crawl_delay() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open_with("http://example.org", 10, Some(20 * SECOND));
    stage.exchange(ANSWERED);
    restart(
        &mut stage,
        &origin,
        5 * SECOND,
        SnapshotCompleteness::Complete,
    );
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.why()), (15 * SECOND, GapReason::CrawlDelay));
}

#[test]
fn a_slot_in_flight_at_the_kill_ends_with_it() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 10);
    let _lost = stage.issue();
    restart(
        &mut stage,
        &origin,
        5 * SECOND,
        SnapshotCompleteness::Complete,
    );
    assert_eq!(stage.wait().1, SECOND);
}

#[test]
fn the_first_request_after_a_power_loss_waits_a_full_gap() {
    let mut stage = Stage::new(Politeness {
        per_host: 3,
        ..Politeness::default()
    });
    let origin = stage.open("http://example.org", 10);
    stage.exchange(ANSWERED);
    restart(
        &mut stage,
        &origin,
        60 * SECOND,
        SnapshotCompleteness::WritesMayBeLost,
    );
    let (permit, waited) = stage.wait();
    assert_eq!((waited, permit.why()), (SECOND, GapReason::Restart));
}

#[test]
fn garbage_restores_nothing_and_waits_a_full_gap() {
    for bytes in [&[][..], &[1; 80], &[0xFF; 3]] {
        let mut stage = Stage::new(Politeness::default());
        let origin = stage.open("http://example.org", 10);
        let (host, now) = (origin.host_key(), stage.now);
        stage
            .scheduler
            .restore(now, &host, bytes, SnapshotCompleteness::Complete);
        assert_eq!(stage.wait().1, SECOND);
    }
}

#[test]
fn a_wrong_clock_blocks_no_host_for_years() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 10);
    stage.exchange(asked_to_wait(Some(60)));
    let (_, bytes) = stage.scheduler.snapshot(&origin.host_key()).unwrap();
    let mut past = Stage::new(Politeness::default());
    past.now = Tick::from_micros(1_000_000);
    past.open("http://example.org", 10);
    let now = past.now;
    past.scheduler.restore(
        now,
        &origin.host_key(),
        &bytes,
        SnapshotCompleteness::Complete,
    );
    past.scheduler.note_past_request(
        now,
        &origin.host_key(),
        stage.now,
        SECOND,
        Some((stage.now, GapReason::RetryAfter)),
    );
    assert!(past.wait().1 <= 24 * 3600 * SECOND);
}

proptest! {
    /// If the clock was ahead when a wait was stored, the wait starts when the snapshot is
    /// restored.
    #[test]
    fn a_clock_that_was_ahead_makes_no_wait_longer(
        ahead in 1_u64..200_000_000_000,
        asked in prop::option::of(1_u64..100_000),
    ) {
        let mut stage = Stage::new(Politeness::default());
        stage.now = stage.now + Duration::from_millis(ahead);
        let origin = stage.open("http://example.org", 10);
        let host = origin.host_key();
        stage.exchange(asked_to_wait(asked));
        let learned = stage.now;
        let (wake, bytes) = stage.scheduler.snapshot(&host).unwrap();

        let mut past = Stage::new(Politeness::default());
        past.open("http://example.org", 10);
        past.scheduler.restore(past.now, &host, &bytes, SnapshotCompleteness::Complete);
        let (again, _) = past.scheduler.snapshot(&host).unwrap();
        prop_assert_eq!(again.since(past.now), wake.since(learned));
    }
}

#[test]
fn past_requests_keep_their_gap_and_wait() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 10);
    let host = origin.host_key();
    let now = stage.now + 60 * SECOND;
    stage.now = now;
    let ended = Tick::from_micros(now.as_micros() - 3_000_000);
    for _ in 0..2 {
        stage
            .scheduler
            .note_past_request(now, &host, ended, 10 * SECOND, None);
    }
    let PollOutcome::SleepUntil(at) = stage.scheduler.poll(now) else {
        panic!()
    };
    assert_eq!(at, ended + 10 * SECOND);
    let wait = Some((now + 100 * SECOND, GapReason::Wait));
    stage
        .scheduler
        .note_past_request(now, &host, ended, SECOND, wait);
    let paused = stage.scheduler.host_summary(now).paused;
    assert_eq!(paused[0].why, PauseReason::Wait);
    assert_eq!(stage.wait().1, 100 * SECOND);
}

#[test]
fn an_evicted_idle_host_is_restored_unchanged() {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open("http://example.org", 1);
    let busy = stage.open("http://busy.example", 5);
    stage.exchange(asked_to_wait(Some(100)));
    assert_eq!(stage.scheduler.hosts(), 2);
    let EvictedHost {
        host,
        origins,
        wake,
        bytes,
    } = stage.scheduler.evict().unwrap();
    assert_eq!(origins, std::slice::from_ref(&origin));
    assert_eq!(
        (&host, wake),
        (&origin.host_key(), stage.now + 100 * SECOND)
    );
    assert!(stage.scheduler.evict().is_none());
    assert_eq!(stage.scheduler.hosts(), 1);
    stage.scheduler.set_pending(stage.now, &busy, 0);
    stage
        .scheduler
        .restore(stage.now, &host, &bytes, SnapshotCompleteness::Complete);
    stage.open("http://example.org", 1);
    assert_eq!(stage.wait().1, 100 * SECOND);
}

#[test]
fn the_stored_address_of_a_host_is_readable() {
    let mut stage = Stage::new(Politeness::default());
    let host = stage.open("http://example.org", 10).host_key();
    let address = "192.0.2.1".parse().unwrap();
    stage.scheduler.set_address(stage.now, &host, address);
    stage.exchange(ANSWERED);
    let (_, bytes) = stage.scheduler.snapshot(&host).unwrap();
    assert_eq!(stored_address(&bytes), Some(address));
    assert_eq!(stored_address(b"torn"), None);
}

/// Returns the gap for the user's other crawls after an exchange with a host of this pace.
fn gap_for_others(pace: PaceFromRobots, kind: OutcomeKind) -> OtherCrawlsGap {
    let mut stage = Stage::new(Politeness::default());
    let origin = stage.open_with_pace("http://example.org", 10, pace);
    stage.exchange(kind);
    let gap = stage.scheduler.gap_for_other_crawls(&origin.host_key());
    let gap = gap.unwrap();
    assert_eq!(gap.since, stage.now);
    gap
}

#[test]
fn other_crawls_keep_the_demands_of_the_host_and_their_own_delay() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let crawl_delay = |delay| PaceFromRobots {
        crawl_delay: Some(delay),
        ..PaceFromRobots::default()
    };
    let days = |days: u64| minutes(days * 24 * 60);
    for (robots, kind, pace, wait, kept) in [
        (
            PaceFromRobots::default(),
            ANSWERED,
            minutes(0),
            minutes(0),
            minutes(1),
        ),
        // A pause after failures is the crawl's own.
        (
            PaceFromRobots::default(),
            OutcomeKind::NoConnection,
            minutes(0),
            minutes(0),
            minutes(1),
        ),
        (
            crawl_delay(20 * SECOND),
            ANSWERED,
            20 * SECOND,
            minutes(0),
            minutes(1),
        ),
        (
            crawl_delay(minutes(30)),
            ANSWERED,
            minutes(30),
            minutes(0),
            minutes(30),
        ),
        (
            crawl_delay(minutes(1)),
            asked_to_wait(Some(7200)),
            minutes(1),
            minutes(120),
            minutes(120),
        ),
        (
            crawl_delay(days(36_500)),
            ANSWERED,
            days(2),
            minutes(0),
            days(2),
        ),
    ] {
        let gap = gap_for_others(robots, kind);
        assert_eq!((gap.pace, gap.wait, gap.kept), (pace, wait, kept));
        // Another crawl with a longer delay counts it from the request, within `kept`.
        assert_eq!(gap.for_delay(days(9)), kept);
    }
    let stage = Stage::new(Politeness::default());
    let unknown = origin("http://example.org").host_key();
    assert_eq!(stage.scheduler.gap_for_other_crawls(&unknown), None);
}

#[test]
fn other_crawls_keep_gaps_that_follow_each_other() {
    let mut stage = Stage::new(Politeness::default());
    stage.now = clock(&stage, 6, 58);
    let pace = rates(&[rate(1, 600, Some((6, 7))), rate(1, 1800, Some((7, 8)))]);
    let origin = stage.open_with_pace("http://example.org", 10, pace);
    stage.exchange(ANSWERED);
    let gap = stage.scheduler.gap_for_other_crawls(&origin.host_key());
    assert_eq!(gap.unwrap().pace, 1800 * SECOND);
}
