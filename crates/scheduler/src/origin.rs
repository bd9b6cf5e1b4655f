//! One origin of a host: how its robots stand, and how many urls wait.

use std::time::Duration;

use crawl_weburl::Origin;

use crate::tick::{Tick, micros};

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

    pub(crate) fn judged(&mut self, state: RobotsState) {
        self.asked = false;
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
        matches!(self.state, State::InForce { until } if now < until)
    }

    pub(crate) fn page_issued(&mut self) {
        self.promised = self.promised.saturating_add(1);
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
