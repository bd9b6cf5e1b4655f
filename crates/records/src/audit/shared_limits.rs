//! Checks the limits that several hosts share (per address, per site, and in total) and the quiet
//! hours. If the settings demand signatures, also checks that every request is signed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;

use crawl_archive::rows::RequestRow;
use crawl_weburl::HostKey;

use super::audit_findings::{AuditCheckResult, AuditFindings, CitedRowFile::Requests};
use super::settings_history::SettingsHistory;
use super::shared_limit_settings::{AddressOrSiteLimits, shortest};
use super::{EARLIER_RUN, ROUNDING_MS, SETTLING_MS};

/// A key of [`AuditReport::undecided`](super::AuditReport::undecided).
pub(super) const SEVERAL_ADDRESSES: &str = "a limit of an address whose host has several";
/// Rates are averaged over about this many milliseconds, because a single request may start a
/// little after its permit was issued.
const RATE_SPAN_MS: f64 = 10_000.0;
/// Maximum recent requests whose starts are kept.
/// Beyond the limit: a rate is checked over less than 10 seconds.
const MAX_STARTS: usize = 10_000;
/// Number of addresses and sites beyond which idle ones are dropped.
const MAX_GATES: usize = 100_000;
const MINUTE_MS: u64 = 60_000;

/// A request whose limits are not checked yet, ordered by its start.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StartedRequest {
    start: u64,
    line: u64,
    end: u64,
    host: Box<str>,
    address: Option<Box<str>>,
    worker: Option<Box<str>>,
    signed: bool,
}

/// The address or site that a [`SharedLimitRequests`] limits. A host named by its address has a
/// site of the same name, and each of its requests counts once towards each of the two.
#[derive(Debug, PartialEq, Eq, Hash)]
enum GateKey {
    Address(Box<str>),
    Site(Box<str>),
}

/// The requests to an address or a site so far.
#[derive(Debug, Default)]
struct SharedLimitRequests {
    /// For each request that may be in flight, its end time and its line in `requests.jsonl`.
    in_flight: Vec<(u64, u64)>,
    /// The latest end of a request that has ended.
    ended: u64,
    starts: RecentRequestStarts,
}

/// For each of the last requests, its start time and its line in `requests.jsonl`.
#[derive(Debug, Default)]
struct RecentRequestStarts(VecDeque<(u64, u64)>);

/// Tracks the requests that count against limits shared by several hosts. Each worker of a shared
/// crawl has its own limits, so each is checked separately. Memory: about 200 bytes for each
/// address and site.
#[derive(Debug, Default)]
pub(super) struct SharedLimitTracker {
    ahead: BinaryHeap<Reverse<StartedRequest>>,
    all: HashMap<Option<Box<str>>, RecentRequestStarts>,
    gates: HashMap<(Option<Box<str>>, GateKey), SharedLimitRequests>,
    /// The only address of each host. `None` if the host has had several addresses.
    addresses: HashMap<Box<str>, Option<Box<str>>>,
}

impl SharedLimitTracker {
    /// Adds a row of `requests.jsonl`. Checks the requests that are certain to have started before
    /// all later rows.
    pub(super) fn request(
        &mut self,
        row: &RequestRow,
        line: u64,
        settings: &SettingsHistory,
        findings: &mut AuditFindings,
    ) {
        self.ahead.push(Reverse(StartedRequest {
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
    pub(super) fn finish(&mut self, settings: &SettingsHistory, findings: &mut AuditFindings) {
        while !self.ahead.is_empty() {
            self.judge_next(settings, findings);
        }
    }

    /// Checks all requests so far, and drops them. The clock was set back after them, so the time
    /// from them to later requests is unknown.
    pub(super) fn clock_was_set_back(
        &mut self,
        settings: &SettingsHistory,
        findings: &mut AuditFindings,
    ) {
        self.finish(settings, findings);
        self.all.clear();
        self.gates.clear();
    }

    fn judge_next(&mut self, settings: &SettingsHistory, findings: &mut AuditFindings) {
        let Some(Reverse(sent)) = self.ahead.pop() else {
            return;
        };
        let (start, host, worker) = (sent.start, &*sent.host, sent.worker.as_deref());
        // Shortly after a change, a request may follow either the previous or the new settings.
        let limits = move || {
            settings
                .around(worker, start)
                .map(|settings| &settings.shared)
        };
        let of_sites = move || limits().map(move |limits| limits.of_host(host));
        let since = settings.since(worker, start);
        let mut broken = Vec::new();
        if !sent.signed && limits().all(|limits| limits.always_signed) {
            let breach = "a request is not signed, although the settings say `always`".to_owned();
            broken.push(("unsigned", breach, None));
        }
        let before = start.saturating_sub(SETTLING_MS);
        if of_sites().all(|limits| limits.is_quiet(start) && limits.is_quiet(before)) {
            let breach = "a request was sent in the quiet hours".to_owned();
            broken.push(("quiet-hours", breach, None));
        }
        let of_site = of_sites().map(|limits| AddressOrSiteLimits {
            number: limits.number,
            delay: limits.delay,
            interval: None,
        });
        let of_site = of_site.reduce(AddressOrSiteLimits::loosest);
        let of_address = limits().map(|limits| limits.address);
        let of_address = of_address.reduce(AddressOrSiteLimits::loosest);
        let intervals = limits().map(|limits| limits.interval);
        let interval = intervals.reduce(shortest).flatten();
        let all = self.all.entry(sent.worker.clone()).or_default();
        if let Some((breach, line)) = all.take(&sent, interval, since) {
            broken.push(("max-rate", format!("{breach} in total"), Some(line)));
        }
        let site = HostKey::parse(host).map(|key| key.site().to_string());
        let site = site.unwrap_or_else(|_| host.to_owned());
        let gate = self.gate(&sent, GateKey::Site(site.as_str().into()));
        if let Some(limits) = of_site
            && let Some((breach, line)) = gate.take(&sent, limits, since)
        {
            broken.push((
                "per-site",
                format!("{breach} to the site {site}"),
                Some(line),
            ));
        }
        if let Some(limits) = of_address
            && let Some((breach, line)) = self.address(&sent, limits, since)
        {
            broken.push(("per-address", breach, Some(line)));
        }
        for (rule, breach, earlier) in broken {
            // The crawl counts all requests to a host towards its first address, even if a request
            // went to another of its addresses. So for a host with several addresses, an apparent
            // breach of a limit per address is undecided.
            let is_fixed = rule != "per-address" || self.has_one_address(host);
            let result = match settings.is_known_at(worker, start) {
                true if is_fixed => AuditCheckResult::Broke(rule, breach),
                true => AuditCheckResult::Undecided(SEVERAL_ADDRESSES),
                false => AuditCheckResult::Undecided(EARLIER_RUN),
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

    fn gate(&mut self, sent: &StartedRequest, key: GateKey) -> &mut SharedLimitRequests {
        (self.gates.entry((sent.worker.clone(), key))).or_default()
    }

    /// Counts a request to an address. If the request breaks a limit, returns a description of the
    /// breach, and the line of an earlier request that shows it.
    fn address(
        &mut self,
        sent: &StartedRequest,
        limits: AddressOrSiteLimits,
        since: u64,
    ) -> Option<(String, u64)> {
        let address = sent.address.as_deref()?;
        let of_host = self.addresses.entry(sent.host.clone());
        let first = of_host.or_insert_with(|| sent.address.clone());
        if first.as_deref() != Some(address) {
            *first = None;
        }
        // Loopback addresses have no rate limit.
        let is_loopback = address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let limits = AddressOrSiteLimits {
            interval: limits.interval.filter(|_| !is_loopback),
            ..limits
        };
        let gate = self.gate(sent, GateKey::Address(address.into()));
        let (breach, line) = gate.take(sent, limits, since)?;
        Some((format!("{breach} to {address}"), line))
    }

    fn has_one_address(&self, host: &str) -> bool {
        self.addresses.get(host).is_some_and(Option::is_some)
    }
}

impl SharedLimitRequests {
    /// Counts a request. If the request breaks a limit, returns a description of the breach, and
    /// the line of an earlier request that shows it. Rates and delays are checked only between
    /// requests that started at `since` or later, the time of the last change of the settings.
    fn take(
        &mut self,
        sent: &StartedRequest,
        limits: AddressOrSiteLimits,
        since: u64,
    ) -> Option<(String, u64)> {
        let is_over = |end: u64| end <= sent.start + ROUNDING_MS;
        for (end, _) in self.in_flight.iter().filter(|(end, _)| is_over(*end)) {
            self.ended = self.ended.max(*end);
        }
        self.in_flight.retain(|(end, _)| !is_over(*end));
        let first = self.in_flight.first().map(|(_, line)| *line);
        let count = self.in_flight.len() + 1;
        self.in_flight.push((sent.end, sent.line));
        let (last, earlier) = self.starts.0.back().copied().unwrap_or_default();
        let rated = self.starts.take(sent, limits.interval, since);
        if let Some(first) = first.filter(|_| count > limits.number) {
            let limit = limits.number;
            return Some((
                format!("{count} requests in flight, but at most {limit} were allowed"),
                first,
            ));
        }
        let since_end = sent.start.saturating_sub(self.ended);
        // A request starts a little after its permit was issued, and the next delay counts from the
        // permit. So allow for the difference.
        let since_start = sent.start.saturating_sub(last) + SETTLING_MS;
        let delay = since_end.min(since_start);
        match earlier > 0 && last >= since && delay + ROUNDING_MS < limits.delay {
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

impl RecentRequestStarts {
    /// Counts a request. If the rate is too high, returns a description of the breach, and the line
    /// of an earlier request that shows it.
    fn take(
        &mut self,
        sent: &StartedRequest,
        interval: Option<f64>,
        since: u64,
    ) -> Option<(String, u64)> {
        while self.0.front().is_some_and(|(start, _)| *start < since) {
            self.0.pop_front();
        }
        self.0.push_back((sent.start, sent.line));
        // The casts saturate, so a very small interval does no harm.
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
