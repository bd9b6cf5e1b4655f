//! robots.txt over time: interpreting answers, their lifetime, and copies.
//!
//! A request for robots.txt is a normal exchange; [`RobotsFetchResult::of`] interprets its result
//! by RFC 9309 section 2.3.1. The caller follows a [`RobotsFetchResult::Redirect`], with a permit
//! for the host of each hop. Any other answer yields the origin's next [`RobotsCopy`]
//! ([`RobotsCopy::learn`]), which reports the rules in force and when they expire
//! ([`RobotsCopy::force`]), and has a durable form. [`RobotsCache`] keeps copies with their
//! compiled rules in bounded memory.
//!
//! ```
//! use crawl_fetcher::robots::{lifetime, RobotsTimeLimits};
//! use crawl_scheduler::Tick;
//! use http::{HeaderMap, HeaderValue};
//!
//! let mut headers = HeaderMap::new();
//! headers.insert("cache-control", HeaderValue::from_static("max-age=600"));
//! let holds = lifetime(&headers, &RobotsTimeLimits::default(), Tick::from_micros(0));
//! assert_eq!(holds.as_secs(), 600);
//! ```

mod cache;
mod copy;
mod fetch_result;
mod tdm_reservation_copy;
mod time_limits;

pub use cache::{CompiledRobots, RobotsCache};
pub use copy::{RobotsCopy, RobotsCopyDecodeError, RobotsFreshness, RobotsRulesState};
pub use fetch_result::{EXCLUDED_HOST, MAX_HOPS, MAX_ROBOTS_BYTES, RobotsFetchResult};
pub use tdm_reservation_copy::{TDMREP_PATH, TdmReservationCopy};
pub use time_limits::{RobotsTimeLimits, lifetime};
