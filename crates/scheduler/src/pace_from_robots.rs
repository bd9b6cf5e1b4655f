//! The pace that a robots.txt sets. Allow and disallow rules are not handled here.

use std::time::Duration;

use crate::daily_hours::DailyHours;
use crate::tick::{Tick, micros};

/// Maximum `Request-rate` lines with hours to keep per host.
/// Beyond the limit: the strictest further line applies at any hour.
const MAX_RATES: usize = 16;
/// Maximum `Visit-time` spans to keep per origin.
/// Beyond the limit: ignored, so the host is visited less.
const MAX_VISIT_TIMES: usize = 64;

/// The pace set by a robots.txt. The default is no pace.
///
/// RFC 9309 doesn't define the lines that set a pace. `Crawl-delay` is common practice, and
/// `Request-rate` and `Visit-time` are from the draft "An Extended Standard for Robot Exclusion"
/// (Conner, 1996).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaceFromRobots {
    /// `Crawl-delay`: the minimum gap.
    pub crawl_delay: Option<Duration>,
    /// `Request-rate`: each line sets a gap of `per / requests` during its hours.
    pub request_rates: Vec<RobotsRequestRate>,
    /// `Visit-time`: pages are fetched only within these spans; robots.txt is exempt. Empty means
    /// at any time.
    pub visit_times: Vec<DailyHours>,
}

/// A maximum number of requests in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobotsRequestRate {
    /// Maximum number of requests in the period `per`; 0 counts as 1.
    pub requests: u32,
    /// The period in which at most `requests` are allowed.
    pub per: Duration,
    /// The hours to which the rate applies; `None` for always.
    pub during: Option<DailyHours>,
}

impl RobotsRequestRate {
    /// Returns the gap equivalent to the rate.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.per / self.requests.max(1)
    }
}

/// The gaps that robots.txt files set: those of one origin, or those of all origins of a host
/// combined.
#[derive(Default)]
pub(crate) struct RobotsGaps {
    /// The longest crawl delay, in microseconds; 0 for none.
    pub(crate) crawl_delay: u64,
    /// The longest gap of a request rate without hours, in microseconds; 0 for none.
    pub(crate) rate: u64,
    /// Gaps that apply only during some hours.
    pub(crate) rates: Vec<(u64, DailyHours)>,
}

/// The pace that an origin's robots.txt sets: its gaps and its visit times.
pub(crate) struct OriginRobotsPace {
    pub(crate) pace: RobotsGaps,
    pub(crate) visits: Vec<DailyHours>,
    /// No page before this time, which is the beginning of the next visit time. Zero or in the past
    /// if pages may be fetched now.
    pub(crate) opens_at: Tick,
    /// Whether the origin's pages wait for `opens_at`.
    pub(crate) closed: bool,
}

impl RobotsGaps {
    pub(crate) fn is_empty(&self) -> bool {
        self.crawl_delay == 0 && self.rate == 0 && self.rates.is_empty()
    }

    /// Adds another origin's pace, keeping the stricter value of each rule.
    pub(crate) fn join(&mut self, other: &RobotsGaps) {
        self.crawl_delay = self.crawl_delay.max(other.crawl_delay);
        self.rate = self.rate.max(other.rate);
        for rate in &other.rates {
            self.add(rate.0, Some(rate.1));
        }
    }

    fn add(&mut self, gap: u64, during: Option<DailyHours>) {
        match during.filter(|hours| !hours.is_whole_day()) {
            Some(hours) if self.rates.contains(&(gap, hours)) => {}
            Some(hours) if self.rates.len() < MAX_RATES => self.rates.push((gap, hours)),
            _ => self.rate = self.rate.max(gap),
        }
    }
}

impl OriginRobotsPace {
    /// Converts the pace that a robots.txt sets to its stored form. Returns `None` if the file sets
    /// no pace.
    pub(crate) fn of(asked: &PaceFromRobots) -> Option<Box<OriginRobotsPace>> {
        let mut pace = RobotsGaps {
            crawl_delay: asked.crawl_delay.map_or(0, micros),
            ..RobotsGaps::default()
        };
        for rate in &asked.request_rates {
            pace.add(micros(rate.gap()), rate.during);
        }
        let mut visits = asked.visit_times.clone();
        if visits.iter().any(|hours| hours.is_whole_day()) {
            visits.clear();
        }
        visits.truncate(MAX_VISIT_TIMES);
        visits.shrink_to_fit();
        pace.rates.shrink_to_fit();
        if pace.is_empty() && visits.is_empty() {
            return None;
        }
        Some(Box::new(OriginRobotsPace {
            pace,
            visits,
            opens_at: Tick::ZERO,
            closed: false,
        }))
    }

    /// Returns whether pages may be fetched at the time `at`.
    pub(crate) fn is_open(&self, at: Tick) -> bool {
        self.visits.is_empty() || self.visits.iter().any(|hours| hours.contain(at))
    }

    /// Bars pages until the next visit time begins.
    pub(crate) fn close(&mut self, now: Tick) {
        let opens = self.visits.iter().map(|hours| hours.begins_after(now));
        self.opens_at = opens.min().unwrap_or(now);
        self.closed = true;
    }
}
