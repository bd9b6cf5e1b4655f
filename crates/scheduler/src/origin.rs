//! One origin of a host: the state of its robots.txt and its number of pending URLs.

use std::time::Duration;

use crawl_weburl::Origin;

use crate::pace_from_robots::{OriginRobotsPace, PaceFromRobots};
use crate::tick::Tick;

/// Maximum age of a robots.txt copy in use (RFC 9309 section 2.4).
const MAX_ROBOTS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The panic message if an index of an origin within its host exceeds 32 bits. That can't happen,
/// because an origin is a scheme and a port.
pub(crate) const FEW_ORIGINS: &str = "invariant: two schemes, 65,536 ports";

/// The state of an origin's robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsState {
    /// Unknown. The origin's next permit is for its robots.txt.
    Unknown,
    /// The rules are known, or it is known that there are no rules.
    InForce {
        /// The pace set by the robots.txt group that applies to this crawler.
        pace: PaceFromRobots,
        /// When the copy stops being fresh. After that, robots.txt is fetched again before the next
        /// page.
        until: Tick,
    },
    /// robots.txt could not be fetched, so no page may be fetched (RFC 9309 section 2.3.1.4).
    Unreachable {
        /// When to fetch robots.txt again, if URLs are still pending.
        retry_at: Tick,
    },
}

/// An origin of a scheduled host: the state and pace of its robots.txt, and the number of its
/// pending URLs.
pub(crate) struct OriginEntry {
    pub(crate) origin: Origin,
    state: RobotsValidity,
    /// The pace that the origin's robots.txt last set. Stays in force until new rules are known.
    pub(crate) pace: Option<Box<OriginRobotsPace>>,
    /// Number of pending URLs, as last set by the caller.
    waiting: u64,
    /// Number of page permits issued since `waiting` was set, without permits given back. Each of
    /// these permits uses up one of the pending URLs.
    permits_out: u32,
    /// Whether a permit for robots.txt was issued, and `set_robots` was not called since.
    asked: bool,
    /// Until when the first page after a robots.txt answer may be issued, even if the rules have
    /// expired. Without this exception, rules that expire before the host's gap ends would never
    /// allow a page, and robots.txt would be fetched again and again.
    first_until: Tick,
}

#[derive(Clone, Copy)]
enum RobotsValidity {
    Unknown,
    InForce { until: Tick },
    Unreachable { retry_at: Tick },
}

/// The state of an origin that its host and the scheduler track: each host counts its due and busy
/// origins, and the scheduler keeps a queue of retry times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OriginSchedulingState {
    /// Whether a request can be issued now, for robots or a page.
    pub(crate) due: bool,
    /// Whether URLs are pending or a robots request is under way.
    pub(crate) busy: bool,
    /// When to fetch an unreachable robots.txt again, or when visit times begin.
    pub(crate) retry_at: Option<Tick>,
}

impl OriginEntry {
    pub(crate) fn new(origin: Origin) -> OriginEntry {
        OriginEntry {
            origin,
            state: RobotsValidity::Unknown,
            pace: None,
            waiting: 0,
            permits_out: 0,
            asked: false,
            first_until: Tick::ZERO,
        }
    }

    pub(crate) fn status(&self) -> OriginSchedulingState {
        let work = self.waiting > u64::from(self.permits_out);
        let retry_at = match self.state {
            _ if !work || self.asked => None,
            RobotsValidity::Unreachable { retry_at } => Some(retry_at),
            RobotsValidity::InForce { .. } => self.closed_until(),
            RobotsValidity::Unknown => None,
        };
        OriginSchedulingState {
            due: work && !self.asked && retry_at.is_none(),
            busy: work || self.asked,
            retry_at,
        }
    }

    /// Returns the number of pending URLs without a permit.
    pub(crate) fn left(&self) -> u64 {
        self.waiting.saturating_sub(self.permits_out.into())
    }

    /// Sets the number of pending URLs.
    pub(crate) fn set_waiting(&mut self, urls: u64) {
        self.waiting = urls;
        self.permits_out = 0;
    }

    pub(crate) fn set_robots(&mut self, now: Tick, state: RobotsState) {
        // Only a new answer allows one page after its rules expire. If a stored copy allowed one
        // too, another page would be fetched each time the origin comes back into memory.
        let is_answer = std::mem::take(&mut self.asked);
        self.first_until = match state {
            RobotsState::InForce { .. } if is_answer => now + MAX_ROBOTS_AGE,
            _ => Tick::ZERO,
        };
        self.state = match state {
            RobotsState::Unknown => RobotsValidity::Unknown,
            RobotsState::Unreachable { retry_at } => RobotsValidity::Unreachable { retry_at },
            RobotsState::InForce { pace, until } => {
                self.pace = OriginRobotsPace::of(&pace);
                RobotsValidity::InForce { until }
            }
        };
    }

    /// Applies the pace of a robots.txt, but not its rules.
    pub(crate) fn heed(&mut self, pace: &PaceFromRobots) {
        self.pace = OriginRobotsPace::of(pace);
    }

    /// Makes the origin due again, because an unreachable robots.txt may be fetched again or visit
    /// times began.
    pub(crate) fn retry(&mut self) {
        match (&mut self.pace, self.state) {
            (_, RobotsValidity::Unreachable { .. }) => self.state = RobotsValidity::Unknown,
            (Some(pace), _) => pace.closed = false,
            (None, _) => {}
        }
    }

    /// Returns whether the origin's robots.txt could not be fetched.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self.state, RobotsValidity::Unreachable { .. })
    }

    /// Returns whether the origin answered the last request for its robots.txt, or such a request
    /// is due or in flight.
    pub(crate) fn may_answer(&self) -> bool {
        match self.state {
            RobotsValidity::InForce { .. } => true,
            RobotsValidity::Unknown => self.status().busy,
            RobotsValidity::Unreachable { .. } => false,
        }
    }

    /// Returns whether the rules of the origin are known, even if they are no longer fresh.
    pub(crate) fn has_rules(&self) -> bool {
        matches!(self.state, RobotsValidity::InForce { .. })
    }

    /// Returns whether the origin's next request is for a page, but the time is outside its visit
    /// times.
    pub(crate) fn is_outside_visit_time(&self, now: Tick) -> bool {
        let closed = self.pace.as_ref().is_some_and(|pace| !pace.is_open(now));
        closed && self.status().due && self.rules_in_force(now)
    }

    /// Defers the origin's pages to the next visit time.
    pub(crate) fn close(&mut self, now: Tick) {
        if let Some(pace) = &mut self.pace {
            pace.close(now);
        }
    }

    /// Returns the beginning of the last visit time that the origin's pages waited for, or zero if
    /// they never waited.
    pub(crate) fn opened(&self) -> Tick {
        self.pace.as_ref().map_or(Tick::ZERO, |pace| pace.opens_at)
    }

    fn closed_until(&self) -> Option<Tick> {
        let pace = self.pace.as_ref()?;
        pace.closed.then_some(pace.opens_at)
    }

    /// Returns whether rules are in force, so that pages may be fetched. If not, robots.txt must be
    /// fetched first.
    pub(crate) fn rules_in_force(&self, now: Tick) -> bool {
        matches!(self.state, RobotsValidity::InForce { until } if now < until || now < self.first_until)
    }

    pub(crate) fn page_issued(&mut self) {
        self.permits_out = self.permits_out.saturating_add(1);
        self.first_until = Tick::ZERO;
    }

    /// Takes back an unused page permit, so that its URL is pending again. If the number of pending
    /// URLs was set after the permit was issued, this number stays.
    pub(crate) fn page_given_back(&mut self) {
        self.permits_out = self.permits_out.saturating_sub(1);
    }

    pub(crate) fn robots_issued(&mut self) {
        self.asked = true;
    }

    pub(crate) fn robots_given_back(&mut self) {
        self.asked = false;
    }
}
