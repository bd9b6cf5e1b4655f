//! The pace that a robots.txt asks for, besides the pages that it disallows.

use std::time::Duration;

use crate::daily_hours::DailyHours;
use crate::tick::{Tick, micros};

/// Rates with hours of their own that are kept; what goes beyond counts at any hour.
const MAX_RATES: usize = 16;
/// Spans that are kept; a span less means fewer visits.
const MAX_VISIT_TIMES: usize = 64;

/// The pace that a robots.txt asks for; by default none.
///
/// None of it is in RFC 9309: `Crawl-delay` is common use, `Request-rate` and `Visit-time`
/// are from the draft "An Extended Standard for Robot Exclusion" (Conner, 1996).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RobotsPace {
    /// `Crawl-delay`: the least gap.
    pub crawl_delay: Option<Duration>,
    /// `Request-rate`: each asks for a gap of `per / requests` while its hours last.
    pub request_rates: Vec<PaceRate>,
    /// `Visit-time`: outside of all these spans no page is asked for; robots.txt may be.
    /// Empty: at any time.
    pub visit_times: Vec<DailyHours>,
}

/// So many requests in so long a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceRate {
    /// Requests; 0 counts as 1.
    pub requests: u32,
    /// The time in which they may be made.
    pub per: Duration,
    /// The hours for which this speaks; `None`: always.
    pub during: Option<DailyHours>,
}

impl PaceRate {
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
    pub(crate) rates: Vec<(u64, DailyHours)>,
}

/// The pace that one origin asks for.
pub(crate) struct OriginPace {
    pub(crate) pace: Pace,
    pub(crate) visits: Vec<DailyHours>,
    /// No page before this: the next moment of a visit time; past or zero: none waited for.
    pub(crate) opens_at: Tick,
    /// Its pages wait for `opens_at`.
    pub(crate) closed: bool,
}

impl Pace {
    pub(crate) fn is_empty(&self) -> bool {
        self.crawl_delay == 0 && self.rate == 0 && self.rates.is_empty()
    }

    /// Adds what another origin asks for: of each rule the stricter one.
    pub(crate) fn join(&mut self, other: &Pace) {
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

impl OriginPace {
    /// `None`: nothing is asked for.
    pub(crate) fn of(asked: &RobotsPace) -> Option<Box<OriginPace>> {
        let mut pace = Pace {
            crawl_delay: asked.crawl_delay.map_or(0, micros),
            ..Pace::default()
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
        Some(Box::new(OriginPace {
            pace,
            visits,
            opens_at: Tick::ZERO,
            closed: false,
        }))
    }

    /// Returns whether pages may be asked for at this hour.
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
