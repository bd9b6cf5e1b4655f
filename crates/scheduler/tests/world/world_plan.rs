//! The random plan of a world.

use std::time::Duration;

use crawl_scheduler::{
    DailyHours, PaceFromRobots, Politeness, PolitenessOverride, PolitenessOverrides,
    RobotsRequestRate, Tick,
};
use crawl_weburl::Origin;

use super::Dice;

/// An arbitrary time in 2026, shortly after two in the afternoon.
pub(crate) const START: Tick = Tick::from_micros(1_790_000_000_000_000);
/// The minute of the day of `START`.
const START_MINUTE: u32 = 14 * 60 + 13;

/// The parameters of a world.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) addresses: u32,
    pub(crate) sites: u32,
    /// Maximum number of URLs that are found on a host at the same time.
    pub(crate) urls: u32,
    /// Percentage of hosts that have URLs under a second origin.
    pub(crate) second_origins: u32,
    /// Percentage of hosts whose robots.txt sets a pace.
    pub(crate) asking: u32,
    /// Percentage of hosts that send rate-limit fields.
    pub(crate) limited: u32,
    /// Requests in a thousand that fail in some way.
    pub(crate) trouble: u32,
    /// Percentage of steps that evict a host, and number of steps in 10,000 that kill the process.
    pub(crate) churn: u32,
    /// Whether to log each request.
    pub(crate) logged: bool,
    pub(crate) politeness: Politeness,
    /// Politeness overrides by host name.
    pub(crate) overrides: Vec<(String, PolitenessOverride)>,
    /// Number of steps in a thousand that swap the operator's two politeness settings.
    pub(crate) reloads: u32,
    pub(crate) other: Politeness,
    pub(crate) other_overrides: Vec<(String, PolitenessOverride)>,
}

/// Spans of minutes of the day. The end is not part of a span.
pub(crate) type Spans = Vec<(u16, u16)>;

/// A number of requests per number of seconds, at any time or within a daily time span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) requests: u32,
    pub(crate) seconds: u32,
    pub(crate) during: Option<(u16, u16)>,
}

impl Rate {
    pub(crate) fn gap(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds)) / self.requests
    }
}

/// The pace set by a robots.txt.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorldPace {
    pub(crate) crawl_delay: Duration,
    pub(crate) rates: Vec<Rate>,
    pub(crate) visits: Spans,
}

/// A host of the web.
#[derive(Clone, Copy)]
pub(crate) struct HostPlan {
    pub(crate) site: u32,
    pub(crate) address: u32,
    pub(crate) latency_ms: u16,
    /// Index of the host's robots pace; 0 for none.
    pub(crate) pace: u8,
    pub(crate) limited: bool,
    pub(crate) second_origin: bool,
}

impl Plan {
    /// Returns the plan's politeness with its overrides.
    pub(crate) fn politeness(&self) -> Politeness {
        let mut sites = PolitenessOverrides::default();
        for (pattern, terms) in &self.overrides {
            // If a pattern occurs twice, the first one wins.
            let _ = sites.insert(pattern, terms.clone());
        }
        Politeness {
            sites,
            ..self.politeness.clone()
        }
    }

    /// Swaps the operator's two politeness settings.
    pub(crate) fn reload(&mut self) {
        std::mem::swap(&mut self.politeness, &mut self.other);
        std::mem::swap(&mut self.overrides, &mut self.other_overrides);
    }

    pub(crate) fn draw_host(&self, dice: &mut Dice) -> HostPlan {
        HostPlan {
            site: dice.below(self.sites),
            address: dice.below(self.addresses),
            latency_ms: u16::try_from(5 + dice.below(400)).unwrap_or(5),
            pace: match dice.percent(self.asking) {
                true => u8::try_from(1 + dice.below(PACES)).unwrap_or(1),
                false => 0,
            },
            limited: dice.percent(self.limited),
            second_origin: dice.percent(self.second_origins),
        }
    }

    /// Draws the robots paces that hosts choose from. The first sets no pace.
    pub(crate) fn draw_paces(&self, dice: &mut Dice) -> Vec<WorldPace> {
        // Draw visit times only without quiet hours, because a visit time within quiet hours would
        // leave no time for requests.
        let own = self.overrides.iter().chain(&self.other_overrides);
        let own = own.flat_map(|(_, terms)| &terms.quiet);
        let usual = self.politeness.quiet.is_empty() && self.other.quiet.is_empty();
        let is_loud = usual && own.count() == 0;
        let pace = (0..PACES).map(|kind| WorldPace::draw(kind, is_loud, dice));
        std::iter::once(WorldPace::default()).chain(pace).collect()
    }
}

/// Number of distinct robots paces.
const PACES: u32 = 24;

impl WorldPace {
    fn draw(kind: u32, is_loud: bool, dice: &mut Dice) -> WorldPace {
        let mut pace = WorldPace::default();
        if matches!(kind % 8, 0 | 3 | 5) {
            pace.crawl_delay = dice.millis(4000);
        }
        if matches!(kind % 8, 1 | 4 | 5) {
            for _ in 0..=dice.below(2) {
                let during = dice.percent(60).then(|| span(dice, true));
                pace.rates.push(Rate {
                    requests: 1 + dice.below(3),
                    seconds: 1 + dice.below(9),
                    during,
                });
            }
        }
        if kind % 8 == 6 {
            pace.visits = (0..=dice.below(2)).map(|_| span(dice, is_loud)).collect();
        }
        pace
    }

    pub(crate) fn to_robots_pace(&self) -> PaceFromRobots {
        let hours = |(from, until): (u16, u16)| DailyHours::new(from, until);
        let rates = self.rates.iter();
        PaceFromRobots {
            crawl_delay: Some(self.crawl_delay).filter(|delay| !delay.is_zero()),
            request_rates: rates
                .map(|rate| RobotsRequestRate {
                    requests: rate.requests,
                    per: Duration::from_secs(u64::from(rate.seconds)),
                    during: rate.during.map(hours),
                })
                .collect(),
            visit_times: self.visits.iter().copied().map(hours).collect(),
        }
    }
}

/// Draws a span that begins or ends within minutes of the start, so that runs cross its edges.
fn span(dice: &mut Dice, brief: bool) -> (u16, u16) {
    let minute = |n: u32| u16::try_from((START_MINUTE + n) % 1440).unwrap_or(0);
    let begins = dice.below(8);
    match brief && dice.percent(50) {
        true => (minute(begins), minute(begins + 1 + dice.below(10))),
        // This span covers nearly the whole day and crosses midnight.
        false => (minute(begins + 2), minute(begins)),
    }
}

/// Returns whether any of the spans contains a time.
pub(crate) fn within(spans: &[(u16, u16)], at: Tick) -> bool {
    let minute = at.as_micros() / 60_000_000 % 1440;
    spans.iter().any(|(from, until)| {
        let (from, until) = (u64::from(*from), u64::from(*until));
        match from < until {
            true => from <= minute && minute < until,
            false => minute < until || from <= minute,
        }
    })
}

/// Returns the text of one of the two origins of a host.
pub(crate) fn origin_text(host: u32, plan: HostPlan, second: bool) -> String {
    match second {
        false => format!("http://h{host}.s{}.example", plan.site),
        true => format!("https://h{host}.s{}.example:8443", plan.site),
    }
}

/// Returns the number in a host's name.
pub(crate) fn host_number(name: &str) -> u32 {
    let digits = name.split('.').next().unwrap_or_default();
    digits[1..].parse().unwrap_or(u32::MAX)
}

/// Returns the number of an origin.
pub(crate) fn origin_number(origin: &Origin) -> u32 {
    let text = origin.as_str();
    let (name, second) = match text.strip_prefix("https://") {
        Some(name) => (name, 1),
        None => (&text["http://".len()..], 0),
    };
    host_number(name) * 2 + second
}
