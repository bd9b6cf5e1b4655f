//! One origin of a host: how its robots stand, and how many urls wait.

use std::time::Duration;

use crawl_weburl::Origin;

use crate::tick::{Tick, micros};

/// No copy of a robots.txt is used for longer (RFC 9309 section 2.4).
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// How the robots.txt of an origin stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsState {
    /// Not known: the next permit of the origin is for its robots.txt.
    Unknown,
    /// Rules are known, or it is known that there are none.
    InForce {
        /// The crawl delay of the group that applies.
        crawl_delay: Option<Duration>,
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
    /// In microseconds; 0: none. The last one known stands until others are in force.
    pub(crate) crawl_delay: u64,
    /// Urls waiting, as last told.
    waiting: u64,
    /// Page permits issued since then: they stand for as many of those urls.
    promised: u32,
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

/// What the host counts of an origin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// There is something to ask now, robots or a page.
    pub(crate) due: bool,
    /// Urls wait, or robots are being asked for.
    pub(crate) busy: bool,
    /// Robots are to be asked for again then.
    pub(crate) retry_at: Option<Tick>,
}

impl OriginEntry {
    pub(crate) fn new(origin: Origin) -> OriginEntry {
        OriginEntry {
            origin,
            state: State::Unknown,
            crawl_delay: 0,
            waiting: 0,
            promised: 0,
            asked: false,
            first_until: Tick::ZERO,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        let work = self.waiting > u64::from(self.promised);
        let retry_at = match self.state {
            State::Unreachable { retry_at } if work && !self.asked => Some(retry_at),
            _ => None,
        };
        Standing {
            due: work && !self.asked && retry_at.is_none(),
            busy: work || self.asked,
            retry_at,
        }
    }

    /// Sets the number of urls that wait.
    pub(crate) fn set_waiting(&mut self, urls: u64) {
        self.waiting = urls;
        self.promised = 0;
    }

    pub(crate) fn judged(&mut self, now: Tick, state: RobotsState) {
        self.asked = false;
        self.first_until = match state {
            RobotsState::InForce { .. } => now + LONGEST_LIFE,
            _ => Tick::ZERO,
        };
        self.state = match state {
            RobotsState::Unknown => State::Unknown,
            RobotsState::Unreachable { retry_at } => State::Unreachable { retry_at },
            RobotsState::InForce { crawl_delay, until } => {
                self.crawl_delay = crawl_delay.map_or(0, micros);
                State::InForce { until }
            }
        };
    }

    /// The time to ask an unreachable robots.txt again has come.
    pub(crate) fn retry(&mut self) {
        self.state = State::Unknown;
    }

    /// Whether a page may be asked for; otherwise robots come first.
    pub(crate) fn rules_in_force(&self, now: Tick) -> bool {
        matches!(self.state, State::InForce { until } if now < until || now < self.first_until)
    }

    pub(crate) fn page_issued(&mut self) {
        self.promised = self.promised.saturating_add(1);
        self.first_until = Tick::ZERO;
    }

    /// The page permit came back unused. Where the number of urls was told meanwhile, that
    /// number stands.
    pub(crate) fn page_given_back(&mut self) {
        self.promised = self.promised.saturating_sub(1);
    }

    pub(crate) fn robots_issued(&mut self) {
        self.asked = true;
    }

    pub(crate) fn robots_given_back(&mut self) {
        self.asked = false;
    }
}
