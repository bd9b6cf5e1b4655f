//! One origin of a host: the state of its robots.txt, and the number of its URLs that wait.

use std::time::Duration;

use crawl_weburl::Origin;

use crate::robots_pace::{OriginPace, RobotsPace};
use crate::tick::Tick;

/// No copy of a robots.txt is used for longer (RFC 9309 section 2.4).
const MAX_ROBOTS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The reason why the index of a host's origin fits in 32 bits.
pub(crate) const FEW_ORIGINS: &str = "invariant: two schemes, 65,536 ports";

/// The state of an origin's robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsState {
    /// Not known: the next permit of the origin is for its robots.txt.
    Unknown,
    /// Rules are known, or it is known that there are none.
    InForce {
        /// The pace that the group that applies asks for.
        pace: RobotsPace,
        /// When the copy stops being fresh; robots are asked for again before the first
        /// page after it.
        until: Tick,
    },
    /// Could not be fetched: no page (RFC 9309 section 2.3.1.4).
    Unreachable {
        /// When to ask for it again, if urls still wait.
        retry_at: Tick,
    },
}

pub(crate) struct OriginEntry {
    pub(crate) origin: Origin,
    state: State,
    /// The pace that was asked for last; it stands until other rules are in force.
    pub(crate) pace: Option<Box<OriginPace>>,
    /// Urls waiting, as last told.
    waiting: u64,
    /// Page permits issued since then: they stand for as many of those urls.
    permits_out: u32,
    /// A robots permit is out, or its answer has not been judged.
    asked: bool,
    /// Until when the first page under the rules in force may be issued, though they are
    /// no longer fresh: else a lifetime below the gap would ask for robots.txt for ever.
    first_until: Tick,
}

#[derive(Clone, Copy)]
enum State {
    Unknown,
    InForce { until: Tick },
    Unreachable { retry_at: Tick },
}

/// The part of an origin's state that its host counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OriginStatus {
    /// There is something to ask now, robots or a page.
    pub(crate) due: bool,
    /// Urls wait, or robots are being asked for.
    pub(crate) busy: bool,
    /// Robots are to be asked for again then, or pages are welcome again.
    pub(crate) retry_at: Option<Tick>,
}

impl OriginEntry {
    pub(crate) fn new(origin: Origin) -> OriginEntry {
        OriginEntry {
            origin,
            state: State::Unknown,
            pace: None,
            waiting: 0,
            permits_out: 0,
            asked: false,
            first_until: Tick::ZERO,
        }
    }

    pub(crate) fn status(&self) -> OriginStatus {
        let work = self.waiting > u64::from(self.permits_out);
        let retry_at = match self.state {
            _ if !work || self.asked => None,
            State::Unreachable { retry_at } => Some(retry_at),
            State::InForce { .. } => self.closed_until(),
            State::Unknown => None,
        };
        OriginStatus {
            due: work && !self.asked && retry_at.is_none(),
            busy: work || self.asked,
            retry_at,
        }
    }

    /// Urls that wait and have no permit.
    pub(crate) fn left(&self) -> u64 {
        self.waiting.saturating_sub(self.permits_out.into())
    }

    /// Sets the number of urls that wait.
    pub(crate) fn set_waiting(&mut self, urls: u64) {
        self.waiting = urls;
        self.permits_out = 0;
    }

    pub(crate) fn set_robots(&mut self, now: Tick, state: RobotsState) {
        self.asked = false;
        self.first_until = match state {
            RobotsState::InForce { .. } => now + MAX_ROBOTS_AGE,
            _ => Tick::ZERO,
        };
        self.state = match state {
            RobotsState::Unknown => State::Unknown,
            RobotsState::Unreachable { retry_at } => State::Unreachable { retry_at },
            RobotsState::InForce { pace, until } => {
                self.pace = OriginPace::of(&pace);
                State::InForce { until }
            }
        };
    }

    /// Takes in what is asked of our pace, and nothing else.
    pub(crate) fn heed(&mut self, pace: &RobotsPace) {
        self.pace = OriginPace::of(pace);
    }

    /// The time has come to ask an unreachable robots.txt again, or for pages again.
    pub(crate) fn retry(&mut self) {
        match (&mut self.pace, self.state) {
            (_, State::Unreachable { .. }) => self.state = State::Unknown,
            (Some(pace), _) => pace.closed = false,
            (None, _) => {}
        }
    }

    /// Its robots.txt can't be had.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self.state, State::Unreachable { .. })
    }

    /// A page is next, and it is not the hour for it.
    pub(crate) fn is_outside_visit_time(&self, now: Tick) -> bool {
        let closed = self.pace.as_ref().is_some_and(|pace| !pace.is_open(now));
        closed && self.status().due && self.rules_in_force(now)
    }

    /// Its pages wait for the next visit time.
    pub(crate) fn close(&mut self, now: Tick) {
        if let Some(pace) = &mut self.pace {
            pace.close(now);
        }
    }

    /// The visit time that its pages waited for last; zero where they never did.
    pub(crate) fn opened(&self) -> Tick {
        self.pace.as_ref().map_or(Tick::ZERO, |pace| pace.opens_at)
    }

    fn closed_until(&self) -> Option<Tick> {
        let pace = self.pace.as_ref()?;
        pace.closed.then_some(pace.opens_at)
    }

    /// Returns whether a page may be asked for; otherwise robots come first.
    pub(crate) fn rules_in_force(&self, now: Tick) -> bool {
        matches!(self.state, State::InForce { until } if now < until || now < self.first_until)
    }

    pub(crate) fn page_issued(&mut self) {
        self.permits_out = self.permits_out.saturating_add(1);
        self.first_until = Tick::ZERO;
    }

    /// The page permit came back unused. Where the number of urls was told meanwhile, that
    /// number stands.
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
