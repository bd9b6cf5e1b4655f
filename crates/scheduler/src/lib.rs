//! When a host may next be asked.
//!
//! The scheduler knows hosts, origins and counts of waiting urls, and mints a [`Permit`]
//! for each request at the earliest moment at which everybody agrees: the host (its
//! delay, its smoothed response time, what its robots.txt and its rate-limit fields ask of
//! our pace, what it asked us to wait, the hours in which it is not to be asked), the
//! address that serves it, its site, and the crawl as a whole. Robots come first: the
//! first permit of an origin is for its robots.txt, and no page permit exists until
//! rules are in force.
//!
//! It never does I/O, never reads a clock, never knows a url: what time it is comes in as
//! a [`Tick`], and what a request was like comes back as a [`RequestOutcome`]. The same seed and
//! the same calls give the same permits. A decision costs O(log n) in the number of hosts.
//!
//! ```
//! use std::time::Duration;
//! use crawl_scheduler::{
//!     Politeness, Poll, Purpose, RobotsPace, RobotsState, Scheduler, RequestOutcome, OutcomeKind, Tick,
//! };
//! use crawl_weburl::Origin;
//!
//! let mut scheduler = Scheduler::new(Politeness::default(), 7);
//! let origin = Origin::parse("http://example.org").unwrap();
//! let now = Tick::from_micros(1_000_000);
//! scheduler.set_pending(now, &origin, 2);
//!
//! // Robots first.
//! let Poll::Issue(permit) = scheduler.poll(now) else { panic!() };
//! assert_eq!(permit.purpose(), &Purpose::Robots { origin: origin.clone() });
//! let end = now + Duration::from_millis(50);
//! let signal = RequestOutcome {
//!     end,
//!     response_time: Duration::from_millis(50),
//!     address: None,
//!     kind: OutcomeKind::Answered,
//!     rate_limit: None,
//!     url: None,
//! };
//! let learned = scheduler.done(end, permit.spend(), signal);
//! assert_eq!(learned.next_at, end + Duration::from_secs(1));
//!
//! // Then a page, a gap after the end of that request.
//! let until = end + Duration::from_secs(86_400);
//! scheduler.set_robots(end, &origin, RobotsState::InForce { pace: RobotsPace::default(), until });
//! assert!(matches!(scheduler.poll(end), Poll::SleepUntil(at) if at == learned.next_at));
//! let Poll::Issue(permit) = scheduler.poll(learned.next_at) else { panic!() };
//! assert_eq!(permit.purpose(), &Purpose::Page { origin });
//! assert_eq!(permit.gap(), Duration::from_secs(1));
//! ```

mod backoff;
mod daily_hours;
mod gap;
mod gate;
mod host;
mod max_rate;
mod operator_commands;
mod origin;
mod overrides;
mod permit;
mod politeness;
mod random;
mod ready_key;
mod ready_queue;
mod request_outcome;
mod robots_pace;
mod scheduler;
mod slab;
mod snapshot;
mod snapshot_format;
mod summary;
mod tick;

pub use daily_hours::DailyHours;
pub use max_rate::MaxRate;
pub use operator_commands::HostWork;
pub use origin::RobotsState;
pub use overrides::{PolitenessOverride, PolitenessOverrides};
pub use permit::{Admission, GapReason, Permit, Poll, Purpose, Spent};
pub use politeness::Politeness;
pub use request_outcome::{HostWait, OutcomeKind, RateLimit, RequestOutcome};
pub use robots_pace::{PaceRate, RobotsPace};
pub use scheduler::Scheduler;
pub use snapshot::{Evicted, RestartKind, stored_address};
pub use snapshot_format::HostSnapshot;
pub use summary::{HostSummary, PauseReason, PausedHost};
pub use tick::Tick;
