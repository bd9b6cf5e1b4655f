//! Drives the scheduler alone. The scheduler has no clock and sends no requests, so your program
//! can use it to decide when to fetch from which host, in real time or, as here, in virtual time.
//!
//! `cargo run --release --example scheduler_by_hand`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, PaceFromRobots, Politeness, PollOutcome, RequestOutcome, RequestPurpose,
    RobotsState, Scheduler, Tick,
};
use crawl_weburl::Origin;

/// The response time of every request in this example.
const ANSWER: Duration = Duration::from_millis(120);
/// How long the rules of a robots.txt are valid.
const RULES_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

fn main() -> Result<(), Box<dyn Error>> {
    // The default politeness leaves at least a second between two requests to a host. 7 is the seed
    // of the random numbers.
    let mut scheduler = Scheduler::new(Politeness::default(), 7);
    let start = Tick::from_micros(1_000_000);
    let mut now = start;

    // Five URLs are pending on one host, two on another. The scheduler needs only their number.
    for (origin, urls) in [("https://a.example", 5), ("https://b.example", 2)] {
        let origin = Origin::parse(origin)?;
        scheduler.set_pending(now, &origin, urls);
    }

    loop {
        match scheduler.poll(now) {
            // The permit allows one request. Permits can't be copied. After use, the permit is
            // returned to the scheduler.
            PollOutcome::Issue(permit) => {
                let purpose = permit.purpose().clone();
                let at = now.since(start).as_secs_f64();
                // Your program would send a request here, and could send one to each host at the
                // same time. In this example each response arrives before the next poll.
                let end = now + ANSWER;
                let learned = scheduler.done(end, permit.spend(), answered(end));
                match purpose {
                    // The first permit of a host is for its robots.txt. The scheduler issues none
                    // for pages before it knows the rules.
                    RequestPurpose::Robots { origin } => {
                        println!("{at:>6.2} s  {origin}  robots.txt");
                        let pace = crawl_delay(&origin);
                        let until = end + RULES_HOLD;
                        let rules = RobotsState::InForce { pace, until };
                        scheduler.set_robots(end, &origin, rules);
                    }
                    RequestPurpose::Page { origin } => {
                        let next = learned.next_at.since(end).as_secs_f64();
                        println!("{at:>6.2} s  {origin}  a page; the next after {next} s");
                    }
                    other => println!("{at:>6.2} s  {other:?}"),
                }
                now = end;
            }
            // No request may be sent before `then`, so jump to that time.
            PollOutcome::SleepUntil(then) => now = then,
            // Nothing is pending.
            PollOutcome::Idle => return Ok(()),
        }
    }
}

/// Returns the pace of a robots.txt. The second host's has a crawl delay of three seconds.
fn crawl_delay(origin: &Origin) -> PaceFromRobots {
    let is_slow = origin.as_str().contains("b.example");
    PaceFromRobots {
        crawl_delay: is_slow.then_some(Duration::from_secs(3)),
        ..PaceFromRobots::default()
    }
}

/// Returns the outcome of a normal response: not an error, and without rate limits.
fn answered(end: Tick) -> RequestOutcome {
    RequestOutcome {
        end,
        response_time: ANSWER,
        address: None,
        kind: OutcomeKind::Answered,
        rate_limit: None,
        url: None,
    }
}
