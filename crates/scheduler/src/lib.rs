//! Decides when each host may next be fetched from.
//!
//! The scheduler tracks hosts, origins and numbers of pending URLs. It issues a [`Permit`] for each
//! request as soon as every limit allows it:
//!
//! - the host: its delay, its smoothed response time, the pace set by its robots.txt and rate-limit
//!   fields, any wait it requested, and quiet hours
//! - the address that serves the host
//! - the host's site
//! - the crawl as a whole
//!
//! robots.txt comes first: an origin's first permit is for its robots.txt, and no page permit is
//! issued until rules are in force.
//!
//! The scheduler does no I/O, reads no clock and never sees a URL. Each call carries the time as a
//! [`Tick`], and each request reports back as a [`RequestOutcome`]. The same seed and the same
//! calls yield the same permits. A decision costs O(log n) in the number of hosts.
//!
//! ```
//! use std::time::Duration;
//! use crawl_scheduler::{
//!     Politeness, PollOutcome, RequestPurpose, PaceFromRobots, RobotsState, Scheduler, RequestOutcome, OutcomeKind, Tick,
//! };
//! use crawl_weburl::Origin;
//!
//! let mut scheduler = Scheduler::new(Politeness::default(), 7);
//! let origin = Origin::parse("http://example.org").unwrap();
//! let now = Tick::from_micros(1_000_000);
//! scheduler.set_pending(now, &origin, 2);
//!
//! // Robots first.
//! let PollOutcome::Issue(permit) = scheduler.poll(now) else { panic!() };
//! assert_eq!(permit.purpose(), &RequestPurpose::Robots { origin: origin.clone() });
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
//! // Then a page, one gap after that request ended.
//! let until = end + Duration::from_secs(86_400);
//! scheduler.set_robots(end, &origin, RobotsState::InForce { pace: PaceFromRobots::default(), until });
//! assert!(matches!(scheduler.poll(end), PollOutcome::SleepUntil(at) if at == learned.next_at));
//! let PollOutcome::Issue(permit) = scheduler.poll(learned.next_at) else { panic!() };
//! assert_eq!(permit.purpose(), &RequestPurpose::Page { origin });
//! assert_eq!(permit.gap(), Duration::from_secs(1));
//! ```

mod backoff;
mod daily_hours;
mod host;
mod host_snapshots;
mod hosts_summary;
mod operator_commands;
mod origin;
mod pace_from_robots;
mod permit;
mod politeness_overrides;
mod politeness_settings;
mod random;
mod rate_limits;
mod ready_queue;
mod ready_queue_entry;
mod request_gap;
mod request_outcome;
mod scheduler;
mod shared_limit_gate;
mod slab;
mod snapshot_format;
mod tick;

pub use daily_hours::DailyHours;
pub use host_snapshots::{
    EvictedHost, OtherCrawlsGap, RelinquishedHost, SnapshotCompleteness, stored_address,
};
pub use hosts_summary::{HostsSummary, PauseReason, PausedHost, WaitingHost};
pub use operator_commands::HostWorkload;
pub use origin::RobotsState;
pub use pace_from_robots::{PaceFromRobots, RobotsRequestRate};
pub use permit::{
    GapReason, Permit, PermitAdmissionResult, PollOutcome, RequestPurpose, SpentPermit,
};
pub use politeness_overrides::{PolitenessOverride, PolitenessOverrides};
pub use politeness_settings::Politeness;
pub use rate_limits::MaxRateLimiter;
pub use request_outcome::{HostWait, OutcomeKind, PaceFromRateLimit, RequestOutcome};
pub use scheduler::Scheduler;
pub use snapshot_format::HostSnapshot;
pub use tick::Tick;
