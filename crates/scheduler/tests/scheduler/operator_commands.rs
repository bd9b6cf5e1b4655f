//! Tests of operator commands during a crawl.

use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, Politeness, PollOutcome, RequestPurpose, RobotsState, Scheduler,
    SnapshotCompleteness, Tick,
};
use crawl_weburl::HostKey;

use crate::scheduler_harness::{ANSWER, SECOND, START, Stage, origin};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

fn host(text: &str) -> HostKey {
    HostKey::parse(text).unwrap()
}

fn stage() -> Stage {
    Stage::new(Politeness {
        delay_factor: 0.0,
        ..Politeness::default()
    })
}

#[test]
fn a_parked_host_gets_no_permit_until_it_is_unparked() {
    let mut stage = stage();
    stage.open("http://a.example", 5);
    stage.open("http://b.example", 1);
    let a = host("a.example");
    // A request that is in flight when the host is parked ends normally.
    let permit = stage.issue();
    assert_eq!(permit.host(), &a);
    stage.scheduler.park(stage.now, &a);
    let (other, _) = stage.wait();
    assert_eq!(other.host(), &host("b.example"));
    stage.now = stage.now + ANSWER;
    let (spent, other) = (permit.spend(), other.spend());
    stage.end(spent, ANSWERED);
    stage.end(other, ANSWERED);
    assert!(matches!(
        stage.scheduler.poll(stage.now + 3600 * SECOND),
        PollOutcome::Idle
    ));
    let resting = stage.scheduler.host_summary(stage.now);
    assert_eq!((resting.parked, resting.soonest), (vec![a.clone()], None));

    assert!(stage.scheduler.unpark(stage.now, &a));
    assert!(!stage.scheduler.unpark(stage.now, &a));
    stage.now = stage.now + 3600 * SECOND;
    assert_eq!(stage.issue().host(), &a);
}

#[test]
fn a_parked_host_gets_no_robots_or_hop_permits_either() {
    let mut stage = stage();
    let origin = origin("http://a.example");
    let a = host("a.example");
    // A host can be parked before the scheduler knows it.
    stage.scheduler.park(START, &a);
    stage.scheduler.set_pending(START, &origin, 3);
    let of = crate::scheduler_harness::origin("http://b.example");
    stage
        .scheduler
        .queue_request(START, &a, RequestPurpose::Hop { of });
    assert!(matches!(stage.scheduler.poll(START), PollOutcome::Idle));
    // An unreachable robots.txt is due again at `retry_at`. But the host is parked, so it gets no
    // permit.
    let retry_at = START + SECOND;
    stage
        .scheduler
        .set_robots(START, &origin, RobotsState::Unreachable { retry_at });
    assert!(matches!(stage.scheduler.poll(START), PollOutcome::Idle));
    assert!(matches!(
        stage.scheduler.poll(START + 2 * SECOND),
        PollOutcome::Idle
    ));
    stage.now = START + 2 * SECOND;
    stage.scheduler.unpark(stage.now, &a);
    let permit = stage.issue();
    assert!(matches!(permit.purpose(), RequestPurpose::Hop { .. }));
}

#[test]
fn a_host_stays_parked_while_it_is_evicted() {
    let mut stage = stage();
    let a = host("a.example");
    let origin = stage.open("http://a.example", 0);
    stage.scheduler.park(stage.now, &a);
    let evicted = stage.scheduler.evict().unwrap();
    assert!(!stage.scheduler.knows(&a) && stage.scheduler.is_parked(&a));
    let now = stage.now;
    stage
        .scheduler
        .restore(now, &a, &evicted.bytes, SnapshotCompleteness::Complete);
    stage.scheduler.set_pending(now, &origin, 2);
    assert!(matches!(
        stage.scheduler.poll(now + 60 * SECOND),
        PollOutcome::Idle
    ));
    assert_eq!(stage.scheduler.parked().collect::<Vec<_>>(), [&a]);
}

/// Returns the waits before three requests. The delay changes after the first request.
fn waits(stage: &mut Stage, of: Option<&HostKey>, delay: Duration) -> [Duration; 3] {
    let (first, _) = stage.exchange(ANSWERED);
    stage.scheduler.set_delay(stage.now, of, delay);
    [
        first,
        stage.exchange(ANSWERED).0,
        stage.exchange(ANSWERED).0,
    ]
}

#[test]
fn a_longer_delay_applies_at_once_and_a_shorter_one_after_the_promised_gap() {
    let a = host("a.example");
    for of in [None, Some(&a)] {
        let mut longer = stage();
        longer.open("http://a.example", 9);
        assert_eq!(
            waits(&mut longer, of, 5 * SECOND),
            [Duration::ZERO, 5 * SECOND, 5 * SECOND]
        );
        let mut shorter = stage();
        shorter.open("http://a.example", 9);
        assert_eq!(
            waits(&mut shorter, of, SECOND / 4),
            [Duration::ZERO, SECOND, SECOND / 4]
        );
    }
}

#[test]
fn no_delay_undercuts_the_hosts_own_pace() {
    let mut stage = stage();
    stage.open_with("http://a.example", 9, Some(3 * SECOND));
    let shown = waits(&mut stage, None, Duration::ZERO);
    assert_eq!(shown, [Duration::ZERO, 3 * SECOND, 3 * SECOND]);
    stage.exchange(crate::scheduler_harness::asked_to_wait(Some(77)));
    stage.scheduler.set_delay(stage.now, None, Duration::ZERO);
    assert_eq!(stage.exchange(ANSWERED).0, 77 * SECOND);
}

#[test]
fn a_hosts_own_delay_lasts_until_one_for_all_is_set() {
    let mut stage = stage();
    stage.open("http://a.example", 9);
    stage.open("http://b.example", 9);
    let (a, b) = (host("a.example"), host("b.example"));
    let gap = |scheduler: &Scheduler, host: &HostKey| {
        let work = scheduler.busiest(START, 9);
        work.into_iter()
            .find(|work| work.host == *host)
            .unwrap()
            .gap
    };
    stage.scheduler.set_delay(START, Some(&a), 7 * SECOND);
    assert_eq!(gap(&stage.scheduler, &a), 7 * SECOND);
    assert_eq!(gap(&stage.scheduler, &b), SECOND);
    stage.scheduler.set_delay(START, None, 2 * SECOND);
    assert_eq!(gap(&stage.scheduler, &a), 2 * SECOND);
    assert_eq!(gap(&stage.scheduler, &b), 2 * SECOND);
    // A delay that was set for a host not yet in memory applies once the host is opened.
    stage
        .scheduler
        .set_delay(START, Some(&host("c.example")), 4 * SECOND);
    stage.open("http://c.example", 1);
    assert_eq!(gap(&stage.scheduler, &host("c.example")), 4 * SECOND);
    assert_eq!(stage.scheduler.own_delays(), 1);
}

#[test]
fn busiest_lists_hosts_with_their_next_time() {
    let mut stage = stage();
    for (name, urls) in [("a", 3), ("b", 9), ("c", 5), ("d", 0)] {
        stage.open(&format!("http://{name}.example"), urls);
    }
    stage.scheduler.park(stage.now, &host("c.example"));
    let (permit, _) = stage.wait();
    let polled = permit.host().clone();
    let work = stage.scheduler.busiest(stage.now, 2);
    let shown: Vec<_> = work
        .iter()
        .map(|work| (work.host.as_str(), work.next_at, work.is_parked))
        .collect();
    let at = |name: &str| (polled.as_str() != name).then_some(stage.now);
    let expected: [(&str, Option<Tick>, bool); 2] = [
        ("b.example", at("b.example"), false),
        ("c.example", None, true),
    ];
    assert_eq!(shown, expected);
    assert!(stage.scheduler.busiest(stage.now, 0).is_empty());
    assert_eq!(stage.scheduler.busiest(stage.now, 50).len(), 3);
    stage.scheduler.give_back(stage.now, permit);
}

#[test]
fn known_hosts_lists_the_hosts_in_memory() {
    let mut stage = stage();
    assert_eq!(stage.scheduler.known_hosts().count(), 0);
    stage.open("http://a.example", 1);
    stage.open("https://a.example", 1);
    stage.open("http://b.example", 0);
    let mut hosts: Vec<_> = stage.scheduler.known_hosts().cloned().collect();
    hosts.sort();
    assert_eq!(hosts, [host("a.example"), host("b.example")]);
}

#[test]
fn an_added_slot_keeps_the_stricter_gap_of_the_others() {
    let politeness = |delay, per_host| Politeness {
        delay,
        delay_factor: 0.0,
        jitter: 0.0,
        per_host,
        ..Politeness::default()
    };
    let (narrow, wide) = (politeness(SECOND, 1), politeness(3 * SECOND, 2));
    for changes in [[&narrow, &wide, &wide], [&wide, &narrow, &wide]] {
        let mut stage = Stage::new(changes[0].clone());
        stage.open("http://a.example", 9);
        stage.exchange(ANSWERED);
        for &changed in &changes[1..] {
            let now = stage.now;
            stage.scheduler.set_politeness(now, changed.clone());
        }
        assert_eq!(stage.exchange(ANSWERED).0, 3 * SECOND);
    }
}
