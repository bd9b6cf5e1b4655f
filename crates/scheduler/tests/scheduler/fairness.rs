//! Tests that no host starves.

use std::collections::HashMap;
use std::time::Duration;

use crawl_scheduler::{OutcomeKind, Politeness, PollOutcome, SpentPermit};

use crate::scheduler_harness::{ANSWER, SECOND, Stage, origin_of};

const ANSWERED: OutcomeKind = OutcomeKind::Answered;

#[test]
fn the_host_that_is_ready_longest_is_polled_first() {
    let mut stage = Stage::new(Politeness {
        concurrency: 1,
        ..Politeness::default()
    });
    for (host, urls) in [("c", 1_000_000), ("a", 2), ("b", 2)] {
        stage.open(&format!("http://{host}.example"), urls);
    }
    let mut sequence = String::new();
    for _ in 0..9 {
        let (permit, _) = stage.wait();
        sequence.push_str(&permit.host().as_str()[..1]);
        stage.now = stage.now + SECOND;
        stage.end(permit.spend(), ANSWERED);
    }
    assert_eq!(sequence, "cabcabccc");
}

#[test]
fn with_room_all_ready_hosts_are_in_flight() {
    let mut stage = Stage::new(Politeness {
        concurrency: 500,
        ..Politeness::default()
    });
    for host in 0..400 {
        stage.open(&format!("http://h{host}.example"), 3);
    }
    for _ in 0..3 {
        let mut flying = Vec::new();
        while let PollOutcome::Issue(permit) = stage.scheduler.poll(stage.now) {
            flying.push(permit.spend());
        }
        assert_eq!(flying.len(), 400);
        for spent in flying {
            stage.end(spent, ANSWERED);
        }
        stage.now = stage.now + SECOND;
    }
}

#[test]
fn origins_of_a_host_take_turns() {
    let mut stage = Stage::new(Politeness::default());
    stage.open("http://example.org", 1_000_000);
    stage.open("https://example.org", 2);
    stage.open("http://example.org:81", 2);
    let mut turns = HashMap::new();
    for _ in 0..6 {
        let (permit, _) = stage.wait();
        *turns
            .entry(origin_of(permit.purpose()).clone())
            .or_insert(0) += 1;
        stage.end(permit.spend(), ANSWERED);
    }
    assert!(turns.len() == 3 && turns.values().all(|count| *count == 2));
}

/// A host waits for its site and its address at the same time. Other hosts keep both of them busy,
/// yet the host is served.
#[test]
fn two_busy_gates_do_not_starve_a_host() {
    let mut stage = Stage::new(Politeness {
        delay: Duration::ZERO,
        delay_factor: 0.0,
        per_site: Some(1),
        per_address: 1,
        ..Politeness::default()
    });
    let hosts = [
        ("x.one", 1),
        ("y.one", 2),
        ("z.one", 2),
        ("u.two", 1),
        ("v.three", 1),
    ];
    for (host, address) in hosts {
        let origin = stage.open(&format!("http://{host}.example"), 1_000_000);
        let address = [192, 0, 2, address].into();
        stage
            .scheduler
            .set_address(stage.now, &origin.host_key(), address);
    }
    // Requests never end at the same time, so the limits of site and address are never free
    // together.
    let mut flying: Vec<(u32, SpentPermit)> = Vec::new();
    let mut turns = HashMap::new();
    for step in 0..10_000 {
        while let PollOutcome::Issue(permit) = stage.scheduler.poll(stage.now) {
            *turns.entry(permit.host().to_string()).or_insert(0) += 1;
            flying.push((step + 2, permit.spend()));
        }
        stage.now = stage.now + ANSWER;
        if let Some(index) = flying.iter().position(|(end, _)| *end <= step + 1) {
            stage.end(flying.remove(index).1, ANSWERED);
        }
    }
    let least = turns.values().min().unwrap();
    assert!(turns.len() == 5 && *least > 200, "{turns:?}");
}
