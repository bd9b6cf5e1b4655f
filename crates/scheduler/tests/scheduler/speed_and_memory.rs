//! Tests of the cost of each decision and the memory for each host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, PaceFromRobots, Politeness, PollOutcome, RequestOutcome, RobotsState, Scheduler,
    Tick,
};

use crate::scheduler_harness::{SECOND, START, origin};

/// Runs this many requests to `hosts` hosts, each with a gap of a second and an answer of 50 ms.
fn run(hosts: usize, requests: u64) -> Tick {
    let mut scheduler = Scheduler::new(
        Politeness {
            concurrency: u32::MAX,
            address_rate: None,
            ..Politeness::default()
        },
        1,
    );
    let mut now = START;
    let until = now + 1_000_000 * SECOND;
    for host in 0..hosts {
        let origin = origin(&format!("http://h{host}.example"));
        let state = RobotsState::InForce {
            pace: PaceFromRobots::default(),
            until,
        };
        scheduler.set_robots(now, &origin, state);
        scheduler.set_pending(now, &origin, requests);
        let address = u32::try_from(host / 4).unwrap();
        scheduler.set_address(now, &origin.host_key(), address.to_be_bytes().into());
    }
    let answer = Duration::from_millis(50);
    let mut flying = Vec::new();
    let mut ends = BinaryHeap::new();
    let mut made = 0;
    while made < requests {
        let wake = match scheduler.poll(now) {
            PollOutcome::Issue(permit) => {
                ends.push(Reverse((now + answer, flying.len())));
                flying.push(Some(permit.spend()));
                continue;
            }
            PollOutcome::SleepUntil(at) => at,
            PollOutcome::Idle => Tick::from_micros(u64::MAX),
        };
        let end = ends.peek().map(|Reverse((end, _))| *end);
        now = end.map_or(wake, |end| end.min(wake));
        while let Some(Reverse((end, _))) = ends.peek()
            && *end <= now
        {
            let Reverse((end, index)) = ends.pop().unwrap();
            let signal = RequestOutcome {
                end,
                response_time: answer,
                address: None,
                kind: OutcomeKind::Answered,
                rate_limit: None,
                url: None,
            };
            scheduler.done(now, flying[index].take().unwrap(), signal);
            made += 1;
        }
    }
    now
}

#[test]
fn hosts_get_all_the_speed_they_allow() {
    let took = run(100, 10_000).since(START);
    // Each of the hundred rounds is an answer and a gap; the last round has no gap.
    assert_eq!(took, 100 * Duration::from_millis(1050) - SECOND);
}

/// Measures a million requests to a thousand hosts in an optimised build: `cargo test --release -p
/// crawl-scheduler million`.
#[test]
#[cfg(not(debug_assertions))]
fn a_million_requests_of_a_thousand_hosts() {
    run(1_000, 1_000_000);
}

/// Measures two million requests to a million hosts, where memory is the limit.
#[test]
#[cfg(not(debug_assertions))]
fn two_million_requests_of_a_million_hosts() {
    run(1_000_000, 2_000_000);
}
