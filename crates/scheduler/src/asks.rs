//! What a robots.txt asks of our pace, besides which pages it bars.

use std::time::Duration;

use crate::hours::Hours;
use crate::tick::{Tick, micros};

/// Rates with hours of their own that are kept; what goes beyond counts at any hour.
const RATES: usize = 16;
/// Spans that are kept; a span less means fewer visits.
const VISITS: usize = 64;

/// What a robots.txt asks of our pace; by default nothing.
///
/// None of it is in RFC 9309: `Crawl-delay` is common use, `Request-rate` and `Visit-time`
/// are from the draft "An Extended Standard for Robot Exclusion" (Conner, 1996).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RobotsAsks {
    /// `Crawl-delay`: the least gap.
    pub crawl_delay: Option<Duration>,
    /// `Request-rate`: each asks for a gap of `per / requests` while its hours last.
    pub request_rates: Vec<RequestRate>,
    /// `Visit-time`: outside of all these spans no page is asked for; robots.txt may be.
    /// Empty: at any time.
    pub visit_times: Vec<Hours>,
}

/// So many requests in so long a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// Requests; 0 counts as 1.
    pub requests: u32,
    /// The time in which they may be made.
    pub per: Duration,
    /// The hours for which this speaks; `None`: always.
    pub during: Option<Hours>,
}

impl RequestRate {
    /// The gap that it comes to.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.per / self.requests.max(1)
    }
}

/// The pace that a host is asked for, by all its origins together.
#[derive(Default)]
pub(crate) struct Pace {
    /// The longest crawl delay, in microseconds; 0: none.
    pub(crate) crawl_delay: u64,
    /// The longest gap of a request rate that speaks at any hour; 0: none.
    pub(crate) rate: u64,
    /// Gaps that are asked for during some hours only.
    pub(crate) rates: Vec<(u64, Hours)>,
}

/// What one origin asks for.
pub(crate) struct OriginAsks {
    pub(crate) pace: Pace,
    pub(crate) visits: Vec<Hours>,
    /// No page before this: the next moment of a visit time; past or zero: none waited for.
    pub(crate) opens_at: Tick,
    /// Its pages wait for `opens_at`.
    pub(crate) closed: bool,
}

impl Pace {
    pub(crate) fn is_empty(&self) -> bool {
        self.crawl_delay == 0 && self.rate == 0 && self.rates.is_empty()
    }

    /// What this and another ask for together.
    pub(crate) fn join(&mut self, other: &Pace) {
        self.crawl_delay = self.crawl_delay.max(other.crawl_delay);
        self.rate = self.rate.max(other.rate);
        for rate in &other.rates {
            self.add(rate.0, Some(rate.1));
        }
    }

    fn add(&mut self, gap: u64, during: Option<Hours>) {
        match during.filter(|hours| !hours.is_whole_day()) {
            Some(hours) if self.rates.contains(&(gap, hours)) => {}
            Some(hours) if self.rates.len() < RATES => self.rates.push((gap, hours)),
            _ => self.rate = self.rate.max(gap),
        }
    }
}

impl OriginAsks {
    /// `None`: nothing is asked for.
    pub(crate) fn of(asks: &RobotsAsks) -> Option<Box<OriginAsks>> {
        let mut pace = Pace {
            crawl_delay: asks.crawl_delay.map_or(0, micros),
            ..Pace::default()
        };
        for rate in &asks.request_rates {
            pace.add(micros(rate.gap()), rate.during);
        }
        let mut visits = asks.visit_times.clone();
        if visits.iter().any(|hours| hours.is_whole_day()) {
            visits.clear();
        }
        visits.truncate(VISITS);
        visits.shrink_to_fit();
        pace.rates.shrink_to_fit();
        if pace.is_empty() && visits.is_empty() {
            return None;
        }
        Some(Box::new(OriginAsks {
            pace,
            visits,
            opens_at: Tick::ZERO,
            closed: false,
        }))
    }

    /// Whether pages may be asked for at this hour.
    pub(crate) fn is_open(&self, at: Tick) -> bool {
        self.visits.is_empty() || self.visits.iter().any(|hours| hours.contain(at))
    }

    /// No page until the next visit time.
    pub(crate) fn close(&mut self, now: Tick) {
        let opens = self.visits.iter().map(|hours| hours.begins_after(now));
        self.opens_at = opens.min().unwrap_or(now);
        self.closed = true;
    }
}
