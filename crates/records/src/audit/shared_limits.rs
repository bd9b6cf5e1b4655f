//! Checks the limits that several hosts share (per address, per site, and in total), the quiet
//! hours, and that every request is signed if the settings demand it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::path::Path;

use crawl_archive::rows::RequestRow;
use crawl_weburl::HostKey;
use toml::Value;

use super::findings::{CheckResult, Findings, Source::Requests};
use super::limits::{AuditedSettings, File, find, span};
use super::{EARLIER_RUN, ROUNDING_MS, SETTLING_MS};
use crate::error::RecordsError;

/// A key of [`Audit::undecided`](super::Audit::undecided).
pub(super) const SEVERAL_ADDRESSES: &str = "a limit of an address whose host has several";
/// Rates are checked over about this many milliseconds, because a request starts a little after its
/// turn.
const RATE_SPAN_MS: f64 = 10_000.0;
/// Maximum requests in [`RATE_SPAN_MS`] whose starts are kept.
/// Beyond the limit: a higher rate is checked over a shorter time.
const MAX_STARTS: usize = 10_000;
/// Number of addresses and sites at which idle ones are dropped.
const MAX_GATES: usize = 100_000;
const MINUTE_MS: u64 = 60_000;

/// The limits in `crawl.toml`. Durations are in milliseconds.
#[derive(Debug)]
struct SharedLimits {
    /// Whether every request must be signed.
    always_signed: bool,
    /// Time between the starts of two requests, if there is a limit.
    interval: Option<f64>,
    address: GateLimits,
    everywhere: SiteLimits,
    by_name: BTreeMap<String, SiteLimits>,
}

/// The limits of an address or a site.
#[derive(Clone, Copy, Debug)]
struct GateLimits {
    /// Maximum requests in flight.
    number: usize,
    /// Minimum time from the latest start or end of a request to the next start.
    delay: u64,
    /// Time between the starts of two requests, if there is a limit.
    interval: Option<f64>,
}

/// The limits of a host's site, and the host's quiet hours.
#[derive(Clone, Debug)]
struct SiteLimits {
    number: usize,
    delay: u64,
    /// Minutes of the day in UTC: the first, and the one after the last.
    quiet: Vec<(u64, u64)>,
}

impl SharedLimits {
    fn of(file: &File) -> Result<SharedLimits, String> {
        let politeness = |key| file.get("politeness", key);
        let general = SiteLimits {
            number: usize::MAX,
            delay: 0,
            quiet: Vec::new(),
        };
        let everywhere = match file.table("politeness") {
            Some(table) => general.with(table)?,
            None => general,
        };
        let address = GateLimits {
            number: politeness("per-address").map_or(Ok(8), number)?,
            delay: politeness("address-delay").map_or(Ok(0), span)?,
            interval: match politeness("address-rate") {
                Some(rate) => interval(rate)?,
                None => Some(1000.0 / 16.0),
            },
        };
        Ok(SharedLimits {
            always_signed: file.text("operator", "signature") == Some("always"),
            interval: politeness("max-rate").map_or(Ok(None), interval)?,
            address,
            by_name: file.by_name(&everywhere, SiteLimits::with)?,
            everywhere,
        })
    }

    fn of_host(&self, host: &str) -> &SiteLimits {
        find(&self.by_name, host).unwrap_or(&self.everywhere)
    }
}

impl SiteLimits {
    /// Returns these limits, overridden by the keys of a table.
    fn with(&self, table: &Value) -> Result<SiteLimits, String> {
        let mut limits = self.clone();
        if let Some(value) = table.get("per-site") {
            limits.number = number(value)?;
        }
        if let Some(value) = table.get("site-delay") {
            limits.delay = span(value)?;
        }
        if let Some(value) = table.get("quiet-hours") {
            let bad = || format!("`{value}` is not a list of hours");
            let hours = value.as_array().ok_or_else(bad)?.iter();
            let hours = hours.map(|hours| hours.as_str().and_then(day_hours).ok_or_else(bad));
            limits.quiet = hours.collect::<Result<_, _>>()?;
        }
        Ok(limits)
    }

    /// Returns whether a moment is in the quiet hours.
    fn is_quiet(&self, moment: u64) -> bool {
        let minute = moment / MINUTE_MS % 1440;
        let mut quiet = self.quiet.iter();
        quiet.any(|(from, until)| match from < until {
            true => (*from..*until).contains(&minute),
            false => minute >= *from || minute < *until,
        })
    }
}

/// Parses a number of requests; `unlimited` is the maximum.
fn number(value: &Value) -> Result<usize, String> {
    let number = match value.as_str() {
        Some("unlimited") => Some(usize::MAX),
        _ => value.as_integer().and_then(|n| usize::try_from(n).ok()),
    };
    number.ok_or_else(|| format!("`{value}` is not a number of requests"))
}

/// Parses a rate per second. Returns the milliseconds between two requests, or `None` without a
/// limit.
fn interval(value: &Value) -> Result<Option<f64>, String> {
    let rate = match value {
        Value::String(text) if text == "unlimited" => return Ok(None),
        Value::Integer(rate) => *rate as f64,
        value => value
            .as_float()
            .ok_or_else(|| format!("`{value}` is not a rate"))?,
    };
    Ok((rate > 0.0).then_some(1000.0 / rate))
}

/// Parses `HH:MM-HH:MM`.
fn day_hours(text: &str) -> Option<(u64, u64)> {
    let minute = |text: &str| {
        let (hours, minutes) = text.trim().split_once(':')?;
        Some(60 * hours.parse::<u64>().ok()? + minutes.parse::<u64>().ok()?)
    };
    let (from, until) = text.split_once('-')?;
    Some((minute(from)?, minute(until)? % 1440))
}

/// A request, ordered by its start.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Started {
    start: u64,
    line: u64,
    end: u64,
    host: Box<str>,
    address: Option<Box<str>>,
    worker: Option<Box<str>>,
    signed: bool,
}

/// The requests to an address or a site so far.
#[derive(Debug, Default)]
struct Gate {
    /// Ends of the requests that may be in flight, with their lines.
    in_flight: Vec<(u64, u64)>,
    /// The latest end of a request that has ended.
    ended: u64,
    starts: Starts,
}

/// The starts of the last requests.
#[derive(Debug, Default)]
struct Starts(VecDeque<(u64, u64)>);

/// The state of the checks, made of the requests so far. Each worker of a shared crawl has its own
/// limits. Memory: about 200 bytes for each address and site.
#[derive(Debug)]
pub(super) struct SharedChecks {
    limits: SharedLimits,
    ahead: BinaryHeap<Reverse<Started>>,
    all: HashMap<Option<Box<str>>, Starts>,
    gates: HashMap<(Option<Box<str>>, Box<str>), Gate>,
    /// The first address of each host. `None` if it has had several.
    addresses: HashMap<Box<str>, Option<Box<str>>>,
}

impl SharedChecks {
    /// Reads the limits from `crawl.toml` in the directory of a crawl.
    pub(super) fn read(dir: &Path) -> Result<SharedChecks, RecordsError> {
        File::read(dir, SharedLimits::of).map(SharedChecks::new)
    }

    fn new(limits: SharedLimits) -> SharedChecks {
        SharedChecks {
            limits,
            ahead: BinaryHeap::new(),
            all: HashMap::new(),
            gates: HashMap::new(),
            addresses: HashMap::new(),
        }
    }

    /// Adds a row of `requests.jsonl`, and checks the requests that no later row can precede.
    pub(super) fn request(
        &mut self,
        row: &RequestRow,
        line: u64,
        settings: &AuditedSettings,
        findings: &mut Findings,
    ) {
        self.ahead.push(Reverse(Started {
            start: row.start,
            line,
            end: row.end,
            host: row.host.as_str().into(),
            address: row.address.as_deref().map(Box::from),
            worker: row.worker.as_deref().map(Box::from),
            signed: row.signed,
        }));
        let begun = row.end.saturating_sub(settings.timeout + SETTLING_MS);
        while (self.ahead.peek()).is_some_and(|Reverse(first)| first.start < begun) {
            self.judge_next(settings, findings);
        }
    }

    /// Checks the remaining requests.
    pub(super) fn finish(&mut self, settings: &AuditedSettings, findings: &mut Findings) {
        while !self.ahead.is_empty() {
            self.judge_next(settings, findings);
        }
    }

    fn judge_next(&mut self, settings: &AuditedSettings, findings: &mut Findings) {
        let Some(Reverse(sent)) = self.ahead.pop() else {
            return;
        };
        let limits = &self.limits;
        let site_limits = limits.of_host(&sent.host);
        let (total, of_address) = (limits.interval, limits.address);
        let (start, host) = (sent.start, &*sent.host);
        let mut broken = Vec::new();
        if limits.always_signed && !sent.signed {
            let breach = "a request is not signed, although the settings say `always`".to_owned();
            broken.push(("unsigned", breach, None));
        }
        if site_limits.is_quiet(start) && site_limits.is_quiet(start.saturating_sub(SETTLING_MS)) {
            let breach = "a request was sent in the quiet hours".to_owned();
            broken.push(("quiet-hours", breach, None));
        }
        let of_site = GateLimits {
            number: site_limits.number,
            delay: site_limits.delay,
            interval: None,
        };
        let all = self.all.entry(sent.worker.clone()).or_default();
        if let Some((breach, line)) = all.take(&sent, total) {
            broken.push(("max-rate", format!("{breach} in total"), Some(line)));
        }
        let site = HostKey::parse(host).map(|key| key.site().to_string());
        let site = site.unwrap_or_else(|_| host.to_owned());
        if let Some((breach, line)) = self.gate(&sent, &site).take(&sent, of_site) {
            broken.push((
                "per-site",
                format!("{breach} to the site {site}"),
                Some(line),
            ));
        }
        if let Some((breach, line)) = self.address(&sent, of_address) {
            broken.push(("per-address", breach, Some(line)));
        }
        for (rule, breach, earlier) in broken {
            // A host with several addresses counts towards the limits of the first one.
            let is_fixed = rule != "per-address" || self.has_one_address(host);
            let result = match settings.held_throughout(start) {
                true if is_fixed => CheckResult::Broke(rule, breach),
                true => CheckResult::Undecided(SEVERAL_ADDRESSES),
                false => CheckResult::Undecided(EARLIER_RUN),
            };
            let rows = earlier.into_iter().chain([sent.line]);
            let rows: Vec<_> = rows.map(|line| (Requests, line)).collect();
            findings.settle("limits", host, result, &rows);
        }
        findings.checked("limits");
        if self.gates.len() > MAX_GATES {
            self.gates.retain(|_, gate| !gate.is_idle(start));
        }
    }

    fn gate(&mut self, sent: &Started, name: &str) -> &mut Gate {
        self.gates
            .entry((sent.worker.clone(), name.into()))
            .or_default()
    }

    /// Counts a request to an address. Returns which limit it breaks, and an earlier request.
    fn address(&mut self, sent: &Started, limits: GateLimits) -> Option<(String, u64)> {
        let address = sent.address.as_deref()?;
        let of_host = self.addresses.entry(sent.host.clone());
        let first = of_host.or_insert_with(|| sent.address.clone());
        if first.as_deref() != Some(address) {
            *first = None;
        }
        // Loopback addresses have no rate limit.
        let is_loopback = address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let limits = GateLimits {
            interval: limits.interval.filter(|_| !is_loopback),
            ..limits
        };
        let (breach, line) = self.gate(sent, address).take(sent, limits)?;
        Some((format!("{breach} to {address}"), line))
    }

    fn has_one_address(&self, host: &str) -> bool {
        self.addresses.get(host).is_some_and(Option::is_some)
    }
}

impl Gate {
    /// Counts a request. Returns which limit it breaks, and the line of an earlier request.
    fn take(&mut self, sent: &Started, limits: GateLimits) -> Option<(String, u64)> {
        let is_over = |end: u64| end <= sent.start + ROUNDING_MS;
        for (end, _) in self.in_flight.iter().filter(|(end, _)| is_over(*end)) {
            self.ended = self.ended.max(*end);
        }
        self.in_flight.retain(|(end, _)| !is_over(*end));
        let first = self.in_flight.first().map(|(_, line)| *line);
        let count = self.in_flight.len() + 1;
        self.in_flight.push((sent.end, sent.line));
        let (last, earlier) = self.starts.0.back().copied().unwrap_or_default();
        let rated = self.starts.take(sent, limits.interval);
        if let Some(first) = first.filter(|_| count > limits.number) {
            let limit = limits.number;
            return Some((
                format!("{count} requests in flight, but at most {limit} were allowed"),
                first,
            ));
        }
        let since_end = sent.start.saturating_sub(self.ended);
        // A request starts a little after its turn, which the next delay counts from.
        let since_start = sent.start.saturating_sub(last) + SETTLING_MS;
        let delay = since_end.min(since_start);
        match earlier > 0 && delay + ROUNDING_MS < limits.delay {
            true => Some((
                format!(
                    "a delay of {delay} ms, but {} ms were required",
                    limits.delay
                ),
                earlier,
            )),
            false => rated,
        }
    }

    fn is_idle(&self, now: u64) -> bool {
        let last = self.starts.0.back().map_or(0, |(start, _)| *start);
        self.in_flight.iter().all(|(end, _)| *end < now) && last + 24 * 60 * MINUTE_MS < now
    }
}

impl Starts {
    /// Counts a request. Returns the rate if it is too high, and the line of an earlier request.
    fn take(&mut self, sent: &Started, interval: Option<f64>) -> Option<(String, u64)> {
        self.0.push_back((sent.start, sent.line));
        // The casts saturate.
        let count = interval.map_or(1, |interval| {
            ((RATE_SPAN_MS / interval).ceil() as usize).clamp(1, MAX_STARTS)
        });
        while self.0.len() > count + 1 {
            self.0.pop_front();
        }
        let interval = interval?;
        let mut earlier = [count, 1].into_iter().filter_map(|count| {
            let index = self.0.len().checked_sub(count + 1)?;
            Some((count, *self.0.get(index)?))
        });
        earlier.find_map(|(count, (start, line))| {
            let took = sent.start.saturating_sub(start);
            let required = (count as f64 * interval) as u64;
            let breach = format!("{count} requests in {took} ms, but {required} ms were required");
            (took + SETTLING_MS < required).then_some((breach, line))
        })
    }
}

#[cfg(test)]
#[path = "shared_limits_tests.rs"]
mod tests;
