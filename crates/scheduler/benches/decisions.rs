//! Measures the cost of a scheduling decision with a thousand hosts and with a million. Hosts are
//! kept in a tree ordered by time, so the cost should grow only with the tree's depth and with
//! cache misses.

use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, PaceFromRobots, Politeness, PollOutcome, RequestOutcome, RobotsState, Scheduler,
    Tick,
};
use crawl_weburl::Origin;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// An arbitrary time in 2026.
const START: Tick = Tick::from_micros(1_790_000_000_000_000);

/// Creates a scheduler with this many hosts, four per address, that never run out of URLs.
fn scheduler(hosts: u32) -> Scheduler {
    let mut scheduler = Scheduler::new(Politeness::default(), 1);
    let until = START + Duration::from_secs(1_000_000_000);
    for host in 0..hosts {
        let Ok(origin) = Origin::parse(&format!("http://h{host}.example")) else {
            continue;
        };
        let pace = PaceFromRobots::default();
        scheduler.set_robots(START, &origin, RobotsState::InForce { pace, until });
        scheduler.set_pending(START, &origin, u64::MAX);
        let address = (host / 4).to_be_bytes().into();
        scheduler.set_address(START, &origin.host_key(), address);
    }
    scheduler
}

/// Issues the next permit and ends its request. Advances the clock if no permit is due yet.
fn decide(scheduler: &mut Scheduler, now: &mut Tick) {
    loop {
        match scheduler.poll(*now) {
            PollOutcome::Issue(permit) => {
                let signal = RequestOutcome {
                    end: *now,
                    response_time: Duration::from_millis(50),
                    address: None,
                    kind: OutcomeKind::Answered,
                    rate_limit: None,
                    url: None,
                };
                let _ = scheduler.done(*now, permit.spend(), signal);
                return;
            }
            PollOutcome::SleepUntil(at) => *now = at,
            PollOutcome::Idle => return,
        }
    }
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    for hosts in [1_000, 100_000, 1_000_000] {
        let (mut scheduler, mut now) = (scheduler(hosts), START);
        // Fetch from every host once, so that they spread over the following second.
        for _ in 0..2 * hosts {
            now = now + Duration::from_nanos(1_000_000_000 / u64::from(hosts));
            decide(&mut scheduler, &mut now);
        }
        group.bench_function(BenchmarkId::from_parameter(hosts), |bencher| {
            bencher.iter(|| decide(&mut scheduler, &mut now));
        });
    }
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
