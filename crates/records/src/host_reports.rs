//! The results of each host, its requests, and whether its delays and waits were respected.

mod last_row_line_set;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

use crawl_archive::rows::{ExcludedRow, PageRow, PendingOriginRow, RequestRow};
use crawl_weburl::canonicalize;
use serde::{Deserialize, Serialize};

use crate::audit::{CLOCKS_APART_MS, RequestsInFlightLimits};
use crate::histograms::GapHistograms;
use crate::host_coverage::{CoverageGapCounts, HostCoverage, HostOutcomeCounts, coverage};

pub(crate) use self::last_row_line_set::LastRowLineSet;

/// Tolerance when a delay or wait is compared with its requirement, in milliseconds. Recorded
/// starts and ends of requests are rounded to whole milliseconds.
const ROUNDING_MS: u64 = 1;

/// Maximum number of seed labels listed per host in `hosts.jsonl`, which may have as many seeds as
/// pages.
/// Beyond the limit: only in the rows of pages.
const MAX_HOST_LABELS: usize = 100;

/// The reason in rows of URLs outside the user's scope.
const OUT_OF_SCOPE: &str = "scope";

/// The reason in rows of URLs that a budget left pending for a later run. Headlines count these
/// URLs as pending, not as excluded.
pub(crate) const PENDING_REASON: &str = "budget";

/// The results of one host, and how the crawl treated the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// The host key, as in `requests.jsonl`.
    pub host: String,
    /// URLs with a row in `pages.jsonl`, each counted once by its last row.
    pub pages: u64,
    /// URLs whose last row has failed ([`PageRow::is_failed`]), each counted once.
    pub failed: u64,
    /// Bytes of the bodies of the last rows, as received.
    pub bytes: u64,
    /// URLs whose row in `excluded.jsonl` is still in force.
    pub excluded: u64,
    /// The URLs in `excluded`, counted by reason. Empty if the crawl wanted no URL of the host.
    #[serde(default)]
    pub excluded_by: BTreeMap<String, u64>,
    /// URLs left for the next run.
    #[serde(default)]
    pub waiting: u64,
    /// The coverage verdict. `None` if the crawl wanted no URL of the host.
    #[serde(default)]
    pub coverage: Option<HostCoverage>,
    /// URLs of the host that should have been fetched but were not, by reason.
    #[serde(default)]
    pub missing: Vec<CoverageGapCounts>,
    /// Requests sent.
    pub requests: u64,
    /// Requests for robots.txt, including redirects on the way to it.
    pub robots_requests: u64,
    /// Sum of the durations of all requests, in milliseconds.
    pub busy_ms: u64,
    /// Delays between requests.
    pub gaps: RequestGaps,
    /// Waits demanded by the host's responses.
    pub waits: DemandedWaits,
    /// The last result for robots.txt, by origin.
    pub robots: BTreeMap<String, LastRobotsResponse>,
    /// The labels of the seeds that the host's pages and excluded URLs belong to, at most a
    /// hundred.
    #[serde(default)]
    pub labels: BTreeSet<String>,
}

impl HostReport {
    /// Returns the number of excluded URLs, without those that a budget left pending.
    #[must_use]
    pub fn decided_exclusions(&self) -> u64 {
        let pending = self.excluded_by.get(PENDING_REASON).copied();
        self.excluded.saturating_sub(pending.unwrap_or(0))
    }
}

/// Delays, from the end of one request to the start of the next.
///
/// A host has one slot for each request that may be in flight at once, and each slot has its own
/// delay. A request takes the slot whose last request ended longest ago.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestGaps {
    /// Number of delays observed.
    pub count: u64,
    /// The shortest delay, in milliseconds.
    pub least_seen_ms: Option<u64>,
    /// The delay that was required when the shortest delay was observed, in milliseconds. `None` if
    /// no delay was observed.
    pub asked_then_ms: Option<u64>,
    /// The longest required delay, in milliseconds.
    pub most_asked_ms: Option<u64>,
    /// The rule that required the longest delay: `delay`, `crawl-delay` ..
    pub most_asked_by: Option<String>,
    /// Delays that the site itself required, by rule: `crawl-delay`, `request-rate`, `rate-limit`.
    /// Such delays explain why few pages of a host could be fetched in the available time.
    #[serde(default)]
    pub by_site: BTreeMap<String, RequiredDelayTotals>,
    /// Number of delays shorter than required.
    pub short: u64,
}

/// Delays required by one rule of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredDelayTotals {
    /// Number of delays.
    pub count: u64,
    /// Sum of the required delays, in milliseconds.
    pub asked_ms: u64,
}

/// Waits demanded by the host (Retry-After, 429, 503), and the time actually waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemandedWaits {
    /// Responses that demanded a wait.
    pub count: u64,
    /// The longest demanded wait, in milliseconds.
    pub longest_asked_ms: u64,
    /// Sum of the demanded waits, in milliseconds.
    pub asked_ms: u64,
    /// Sum of the times that the crawl really waited before the next request, in milliseconds.
    pub given_ms: u64,
    /// Number of waits that were cut short.
    pub short: u64,
}

/// The last outcome of requests for an origin's robots.txt, after all redirects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRobotsResponse {
    /// `rules` (read, or confirmed by 304), `none` (4xx except 429, or a redirect without a usable
    /// target), `redirect` (the target was not requested yet), `unreachable` (5xx, 429, no
    /// response, or one that can't be read).
    pub state: String,
    /// The status, if there was a response.
    pub status: Option<u16>,
    /// The name of the failure if there was no response, or the reason that a response can't be
    /// used, such as `encoding`.
    pub failure: Option<String>,
    /// End of the request, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Sums up rows by host. The rows of `requests.jsonl` must be added first, in order, then the rows
/// of the other files. Takes about 600 bytes per host, and memory for the host key of each origin.
#[derive(Debug)]
pub struct HostReportCollector {
    in_flight: RequestsInFlightLimits,
    hosts: BTreeMap<String, HostRowCounts>,
    /// The host key of each origin (the part of a URL before its path), so that each origin is
    /// parsed once.
    keys: HashMap<String, String>,
    /// URLs requested as sitemaps.
    sitemaps: HashSet<String>,
    gaps: GapHistograms,
    /// Number of rows of `pages.jsonl`.
    page_rows: usize,
    rounds: u32,
    /// Whether the last run ended normally.
    has_ended: bool,
}

#[derive(Debug, Default)]
struct HostRowCounts {
    report: HostReport,
    outcomes: HostOutcomeCounts,
    /// Requests whose delay is not judged yet, sorted by start. Rows are in the order in which
    /// their requests ended, so a request waits here until no later row can have an earlier start.
    ahead: BinaryHeap<Reverse<SentRequest>>,
    /// The end of the latest request in each slot. A host has `per_host` slots, one per request in
    /// flight.
    ends: Vec<(u64, SendingWorker)>,
    /// The end of the last response, the wait it demanded, and the worker that got it, if no
    /// request has started since.
    owed: Option<(u64, u64, SendingWorker)>,
}

/// The worker that sent a request, if the directory is gathered from several workers.
type SendingWorker = Option<Rc<str>>;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SentRequest {
    start: u64,
    end: u64,
    gap_asked: u64,
    why: String,
    wait_asked: Option<u64>,
    worker: SendingWorker,
}

impl SentRequest {
    /// Returns whether this request started too early, before `moment`, only because the clock of
    /// its worker may differ from the clock of `worker`.
    fn may_be_after(&self, moment: u64, worker: &SendingWorker) -> bool {
        let is_early = self.start.saturating_add(ROUNDING_MS) < moment;
        let latest = self.start.saturating_add(CLOCKS_APART_MS);
        is_early && self.worker != *worker && moment <= latest
    }
}

impl HostReportCollector {
    /// Creates empty sums.
    #[must_use]
    pub fn new(in_flight: RequestsInFlightLimits) -> HostReportCollector {
        HostReportCollector {
            in_flight,
            hosts: BTreeMap::new(),
            keys: HashMap::new(),
            sitemaps: HashSet::new(),
            gaps: GapHistograms::new(),
            page_rows: 0,
            rounds: 1,
            has_ended: false,
        }
    }

    /// Adds a row of `pages.jsonl`. After the last one, call
    /// [`HostReportCollector::take_last_rows`].
    pub fn page(&mut self, row: &PageRow) {
        self.page_rows += 1;
        self.rounds = self.rounds.max(row.round);
        self.count_page(row);
    }

    fn count_page(&mut self, row: &PageRow) {
        let is_sitemap = self.sitemaps.contains(&row.url);
        let host = self.host_of(&row.url);
        host.report.pages += 1;
        host.report.bytes += row.bytes;
        host.report.failed += u64::from(row.is_failed());
        host.note_label(row.label.as_deref());
        host.outcomes.page(row, is_sitemap);
    }

    /// Adds a row of `excluded.jsonl` that is still in force; see
    /// [`ExclusionsInForce`](crate::ExclusionsInForce).
    pub fn excluded(&mut self, row: &ExcludedRow) {
        let host = self.host_of(&row.url);
        host.report.excluded += 1;
        host.note_label(row.label.as_deref());
        host.outcomes.excluded(row);
        // Don't store the reason `scope`: most hosts are only linked to, and have no other reason.
        // `with_coverage` adds it for the other hosts.
        if row.reason != OUT_OF_SCOPE {
            let by_reason = &mut host.report.excluded_by;
            *by_reason.entry(row.reason.clone()).or_default() += 1;
        }
    }

    /// Adds a row of `waiting.jsonl`. The row is about the whole crawl or about one origin.
    pub fn waiting(&mut self, row: &PendingOriginRow) {
        let Some(origin) = &row.origin else {
            self.has_ended = true;
            return;
        };
        let host = self.host_of(origin);
        host.report.waiting += row.urls;
        host.outcomes.waiting(row);
    }

    /// Adds a row of `requests.jsonl`.
    pub fn request(&mut self, row: &RequestRow) {
        if row.purpose == "sitemap" {
            self.sitemaps.insert(row.url.clone());
        }
        if let Some((origin, response)) = LastRobotsResponse::of(row) {
            // A redirect may have led to another host.
            let host = self.host_of(&origin);
            host.report.robots.insert(origin, response);
        }
        if !row.is_sent() {
            return;
        }
        let per_host = self.in_flight.of_host(&row.host);
        let host = host_of_key(&mut self.hosts, row.host.clone());
        host.outcomes.is_asked |= row.status.is_some();
        let report = &mut host.report;
        report.requests += 1;
        report.busy_ms += row.end.saturating_sub(row.start);
        if matches!(row.purpose.as_str(), "robots" | "hop") {
            report.robots_requests += 1;
        }
        host.ahead.push(Reverse(SentRequest {
            start: row.start,
            end: row.end,
            gap_asked: row.gap_asked,
            why: row.why.clone(),
            wait_asked: row.wait_asked,
            worker: row.worker.as_deref().map(Rc::from),
        }));
        // The number of requests to keep in `ahead`: the maximum number that can start after
        // another request and still end before it.
        let max_ahead = if per_host == 1 { 0 } else { 2 * per_host };
        while host.ahead.len() > max_ahead {
            host.judge_next(per_host, &mut self.gaps);
        }
    }

    /// Returns the report of each host that has any rows, sorted by host key, with its coverage
    /// verdict.
    #[must_use]
    pub fn finish(self) -> Vec<HostReport> {
        self.finish_with_gaps().0
    }

    /// Returns the report of each host like [`HostReportCollector::finish`], and histograms of the
    /// delays of all hosts.
    pub(crate) fn finish_with_gaps(mut self) -> (Vec<HostReport>, GapHistograms) {
        self.judge_all();
        let hosts = self.hosts.into_values().map(|mut host| {
            if !self.has_ended {
                host.outcomes.unfinished();
            }
            host.with_coverage()
        });
        (hosts.collect(), self.gaps)
    }

    fn judge_all(&mut self) {
        for (key, host) in &mut self.hosts {
            let per_host = self.in_flight.of_host(key);
            while !host.ahead.is_empty() {
                host.judge_next(per_host, &mut self.gaps);
            }
        }
    }

    fn host_of(&mut self, url: &str) -> &mut HostRowCounts {
        let origin = origin_of(url);
        let key = match self.keys.get(origin) {
            Some(key) => key.clone(),
            None => {
                let parsed = host_key(url);
                if let Some(key) = &parsed {
                    self.keys.insert(origin.to_owned(), key.clone());
                }
                parsed.unwrap_or_default()
            }
        };
        host_of_key(&mut self.hosts, key)
    }
}

fn host_of_key(hosts: &mut BTreeMap<String, HostRowCounts>, key: String) -> &mut HostRowCounts {
    hosts.entry(key).or_insert_with_key(|key| {
        let mut host = HostRowCounts::default();
        key.clone_into(&mut host.report.host);
        host
    })
}

/// Returns the host key of a URL; `None` if it isn't a valid URL.
pub(crate) fn host_key(url: &str) -> Option<String> {
    let url = canonicalize(None, url).ok()?;
    Some(url.host_key().to_string())
}

/// Returns the part of a canonical URL before its path; other text is returned whole.
pub(crate) fn origin_of(url: &str) -> &str {
    let authority = url.find("://").map(|at| at + 3);
    let path = authority.and_then(|from| Some((from, from + url[from..].find('/')?)));
    match path {
        Some((from, path)) if from < path => &url[..path],
        _ => url,
    }
}

impl HostRowCounts {
    fn note_label(&mut self, label: Option<&str>) {
        let labels = &mut self.report.labels;
        if let Some(label) = label.filter(|label| !labels.contains(*label))
            && labels.len() < MAX_HOST_LABELS
        {
            labels.insert(label.to_owned());
        }
    }

    fn with_coverage(self) -> HostReport {
        let mut report = self.report;
        match coverage(&self.outcomes) {
            None => report.excluded_by.clear(),
            Some((coverage, missing)) => {
                (report.coverage, report.missing) = (Some(coverage), missing);
                let of_others: u64 = report.excluded_by.values().sum();
                let out_of_scope = report.excluded - of_others;
                if out_of_scope > 0 {
                    let by_reason = &mut report.excluded_by;
                    by_reason.insert(OUT_OF_SCOPE.to_owned(), out_of_scope);
                }
            }
        }
        report
    }

    /// Takes the earliest request from `ahead`, and compares the delay and the wait before the
    /// request with the required ones.
    fn judge_next(&mut self, per_host: usize, all: &mut GapHistograms) {
        let Some(Reverse(sent)) = self.ahead.pop() else {
            return;
        };
        // With one request in flight, each request ends later than the one before it. If it
        // doesn't, the clock was set back between two runs, so the times can't be compared.
        if per_host == 1 && self.ends.iter().any(|(end, _)| sent.end < *end) {
            self.ends.clear();
            self.owed = None;
        }
        if self.ends.len() >= per_host {
            let longest_ago = self
                .ends
                .iter()
                .enumerate()
                .min_by_key(|(_, (end, _))| *end);
            if let Some((place, _)) = longest_ago {
                let (end, worker) = self.ends.swap_remove(place);
                if !sent.may_be_after(end.saturating_add(sent.gap_asked), &worker) {
                    let seen = sent.start.saturating_sub(end);
                    self.report.gaps.add(seen, &sent);
                    all.asked.add(sent.gap_asked);
                    all.seen.add(seen);
                }
            }
        }
        self.ends.push((sent.end, sent.worker.clone()));
        if let Some((since, wait, worker)) = self.owed.take_if(|owed| sent.start >= owed.0)
            && !sent.may_be_after(since.saturating_add(wait), &worker)
        {
            self.report.waits.add_given(sent.start - since, wait);
        }
        if let Some(wait) = sent.wait_asked {
            self.report.waits.add_demanded(wait);
            self.owed = Some((sent.end, wait, sent.worker));
        }
    }
}

impl RequestGaps {
    fn add(&mut self, seen: u64, sent: &SentRequest) {
        self.count += 1;
        if self.least_seen_ms.is_none_or(|least| seen < least) {
            self.least_seen_ms = Some(seen);
            self.asked_then_ms = Some(sent.gap_asked);
        }
        if self.most_asked_ms.is_none_or(|most| sent.gap_asked > most) {
            self.most_asked_ms = Some(sent.gap_asked);
            self.most_asked_by = Some(sent.why.clone());
        }
        if matches!(
            sent.why.as_str(),
            "crawl-delay" | "request-rate" | "rate-limit"
        ) {
            let gaps = self.by_site.entry(sent.why.clone()).or_default();
            gaps.count += 1;
            gaps.asked_ms += sent.gap_asked;
        }
        self.short += u64::from(seen + ROUNDING_MS < sent.gap_asked);
    }
}

impl DemandedWaits {
    fn add_demanded(&mut self, wait: u64) {
        self.count += 1;
        self.asked_ms += wait;
        self.longest_asked_ms = self.longest_asked_ms.max(wait);
    }

    fn add_given(&mut self, given: u64, demanded: u64) {
        self.given_ms += given;
        self.short += u64::from(given + ROUNDING_MS < demanded);
    }
}

impl LastRobotsResponse {
    /// Returns the origin that a request for robots.txt was for, and the outcome. `None` for other
    /// requests.
    fn of(row: &RequestRow) -> Option<(String, LastRobotsResponse)> {
        if let Some(outcome) = &row.robots {
            let response = LastRobotsResponse {
                state: outcome.state.clone(),
                status: row.status,
                failure: outcome.why.clone(),
                at_ms: row.end,
            };
            return Some((outcome.of.clone(), response));
        }
        if row.purpose != "robots" {
            return None;
        }
        // The row has no outcome, so only its status shows what the answer meant.
        let state = match row.status {
            Some(200..=299) => "rules",
            Some(304) => "rules",
            Some(300..=399) => "redirect",
            Some(429) => "unreachable",
            Some(400..=499) => "none",
            _ => "unreachable",
        };
        let response = LastRobotsResponse {
            state: state.to_owned(),
            status: row.status,
            failure: row.failure.clone(),
            at_ms: row.end,
        };
        let origin = canonicalize(None, &row.url).map(|url| url.origin().to_string());
        Some((origin.unwrap_or_else(|_| row.url.clone()), response))
    }
}

#[cfg(test)]
mod tests;
