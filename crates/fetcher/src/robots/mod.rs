//! robots.txt as a living thing: what an answer means, how long it holds, copies of it.
//!
//! A request for robots.txt is an exchange like any other; [`RobotsAnswer::of`] reads its
//! result by RFC 9309 section 2.3.1. A [`RobotsAnswer::Redirect`] is followed by the
//! caller, each hop with a permit of its own host. Any other answer becomes the origin's
//! next [`RobotsCopy`] ([`RobotsCopy::learn`]), which says whether rules are in force and
//! until when ([`RobotsCopy::force`]), and has a durable form. [`RobotsCache`] keeps copies
//! with their compiled rules in bounded memory.
//!
//! ```
//! use crawl_fetcher::robots::{lifetime, RobotsTimes};
//! use crawl_scheduler::Tick;
//! use http::{HeaderMap, HeaderValue};
//!
//! let mut headers = HeaderMap::new();
//! headers.insert("cache-control", HeaderValue::from_static("max-age=600"));
//! let holds = lifetime(&headers, &RobotsTimes::default(), Tick::from_micros(0));
//! assert_eq!(holds.as_secs(), 600);
//! ```

mod answer;
mod cache;
mod copy;
mod freshness;
mod tdm;

pub use answer::{EXCLUDED_HOST, MAX_HOPS, MAX_ROBOTS_BYTES, RobotsAnswer};
pub use cache::{CompiledRobots, RobotsCache};
pub use copy::{BadRobotsCopy, RobotsCopy, RobotsCopyState, RobotsForce};
pub use freshness::{RobotsTimes, lifetime};
pub use tdm::{TDMREP_PATH, TdmFile};
