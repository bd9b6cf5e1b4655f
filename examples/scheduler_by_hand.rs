//! The scheduler by itself, driven by hand: it has no clock and sends nothing, so a program of
//! yours can ask it when which host may be asked, in real time or, as here, in virtual time.
//!
//! `cargo run --release --example scheduler_by_hand`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use crawl_scheduler::{
    OutcomeKind, Politeness, Poll, Purpose, RequestOutcome, RobotsPace, RobotsState, Scheduler,
    Tick,
};
use crawl_weburl::Origin;

/// The time that each answer takes in this example.
const ANSWER: Duration = Duration::from_millis(120);
/// The time for which the rules of a robots.txt hold.
const RULES_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

fn main() -> Result<(), Box<dyn Error>> {
    // At least a second between two requests to a host. The 7 seeds what is drawn.
    let mut scheduler = Scheduler::new(Politeness::default(), 7);
    let start = Tick::from_micros(1_000_000);
    let mut now = start;

    // Five URLs wait on one host, two on another. Which ones is not the scheduler's matter.
    for (origin, urls) in [("https://a.example", 5), ("https://b.example", 2)] {
        let origin = Origin::parse(origin)?;
        scheduler.set_pending(now, &origin, urls);
    }

    loop {
        match scheduler.poll(now) {
            // Leave to send one request. It can't be copied, and is handed back when it is spent.
            Poll::Issue(permit) => {
                let purpose = permit.purpose().clone();
                let at = now.since(start).as_secs_f64();
                // Your program would send a request here. Two hosts would be asked at once; in
                // this example an answer comes before anything else happens.
                let end = now + ANSWER;
                let learned = scheduler.done(end, permit.spend(), answered(end));
                match purpose {
                    // The first permit of a host is for its robots.txt, and no page is asked for
                    // until the scheduler knows that there are rules.
                    Purpose::Robots { origin } => {
                        println!("{at:>6.2} s  {origin}  robots.txt");
                        let pace = crawl_delay(&origin);
                        let until = end + RULES_HOLD;
                        let rules = RobotsState::InForce { pace, until };
                        scheduler.set_robots(end, &origin, rules);
                    }
                    Purpose::Page { origin } => {
                        let next = learned.next_at.since(end).as_secs_f64();
                        println!("{at:>6.2} s  {origin}  a page; the next after {next} s");
                    }
                    other => println!("{at:>6.2} s  {other:?}"),
                }
                now = end;
            }
            // Nobody may be asked before this.
            Poll::SleepUntil(then) => now = then,
            // Nothing waits.
            Poll::Idle => return Ok(()),
        }
    }
}

/// The second host asks in its robots.txt to be asked every three seconds at most.
fn crawl_delay(origin: &Origin) -> RobotsPace {
    let is_slow = origin.as_str().contains("b.example");
    RobotsPace {
        crawl_delay: is_slow.then_some(Duration::from_secs(3)),
        ..RobotsPace::default()
    }
}

/// A plain answer: neither an error nor a wish to be asked less.
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
