//! What was had of each host, the requests to it, and whether its gaps and waits were kept.

mod last_rows;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow, WaitingRow};
use crawl_weburl::canonicalize;
use serde::{Deserialize, Serialize};

use crate::bins::GapHistograms;
use crate::coverage::{Coverage, HostOutcomes, Shortfall, coverage};

pub(crate) use self::last_rows::LastLines;

/// Starts and ends are written in whole milliseconds, so a gap may look this much shorter
/// than it was.
const ROUNDING_MS: u64 = 1;

/// Labels that are named of each host: it may have as many seeds as it has pages.
const MAX_HOST_LABELS: usize = 100;

/// The reason of URLs that the user's scope leaves out.
const OUT_OF_SCOPE: &str = "scope";

/// One host: what was fetched from it, and how it was treated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// The host key, as in `requests.jsonl`.
    pub host: String,
    /// URLs with a row in `pages.jsonl`, each counted once by its last row.
    pub pages: u64,
    /// URLs whose last row has no answer, a status of 400 and above, or no complete body.
    pub failed: u64,
    /// Bytes of the bodies of the last rows, as received.
    pub bytes: u64,
    /// Rows of `excluded.jsonl`.
    pub excluded: u64,
    /// The same by reason. Not told of hosts that were never to be asked.
    #[serde(default)]
    pub excluded_by: BTreeMap<String, u64>,
    /// URLs that wait for the next run.
    #[serde(default)]
    pub waiting: u64,
    /// Whether all was had that was to be had; none where the host was never to be asked.
    #[serde(default)]
    pub coverage: Option<Coverage>,
    /// The URLs that are missing, by reason.
    #[serde(default)]
    pub missing: Vec<Shortfall>,
    /// Requests sent.
    pub requests: u64,
    /// Requests among them for robots.txt, hops on the way to one included.
    pub robots_requests: u64,
    /// The sum of the response times, in milliseconds.
    pub busy_ms: u64,
    /// Gaps between requests.
    pub gaps: Gaps,
    /// Answers that asked us to wait.
    pub waits: Waits,
    /// The last outcome for robots.txt, by origin.
    pub robots: BTreeMap<String, RobotsReport>,
    /// The labels of its pages and of what is excluded of it, the first hundred.
    #[serde(default)]
    pub labels: BTreeSet<String>,
}

/// Gaps, from the end of one request to the start of the next.
///
/// Where several requests to one host may be in flight, each keeps a gap of its own: a
/// request is held against the one that ended longest ago.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// Gaps that were seen.
    pub count: u64,
    /// The shortest, in milliseconds.
    pub least_seen_ms: Option<u64>,
    /// The gap that was asked for before that request, in milliseconds.
    pub asked_then_ms: Option<u64>,
    /// The longest that was asked for, in milliseconds.
    pub most_asked_ms: Option<u64>,
    /// The rule that asked for that one: `delay`, `crawl-delay` ..
    pub most_asked_by: Option<String>,
    /// Gaps that the site itself asked for, by what asked: `crawl-delay`, `request-rate`,
    /// `rate-limit`. Where they are long, fewer pages are fetched in the same time.
    #[serde(default)]
    pub by_site: BTreeMap<String, SiteGaps>,
    /// Gaps shorter than what was asked for.
    pub short: u64,
}

/// Gaps that one rule of a site asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteGaps {
    /// The number of them.
    pub count: u64,
    /// Their sum as asked for, in milliseconds.
    pub asked_ms: u64,
}

/// Waits that the host asked for (Retry-After, 429, 503), and what it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Answers that asked for a wait.
    pub count: u64,
    /// The longest, in milliseconds.
    pub longest_asked_ms: u64,
    /// Their sum, in milliseconds.
    pub asked_ms: u64,
    /// The sum of the waits after those answers that were followed by a request.
    pub given_ms: u64,
    /// Waits that were cut short.
    pub short: u64,
}

/// The last answer to a request for an origin's robots.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsReport {
    /// `rules` (2xx), `none` (4xx but 429), `redirect` (3xx), `unreachable` (5xx, 429, no answer).
    pub state: String,
    /// The status, where one was answered.
    pub status: Option<u16>,
    /// The failure's name, where none was.
    pub failure: Option<String>,
    /// When it ended, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Sums rows up by host: first those of `requests.jsonl`, in their order, then the others. Takes
/// some 600 bytes for each host that a row names, and its key once more for each of its origins.
#[derive(Debug)]
pub struct HostSums {
    per_host: usize,
    hosts: BTreeMap<String, Host>,
    /// The host keys of origins, as URLs begin with them.
    keys: HashMap<String, String>,
    /// URLs that were asked for as sitemaps.
    sitemaps: HashSet<String>,
    gaps: GapHistograms,
    /// Rows of `pages.jsonl`, and the last round among them.
    page_rows: usize,
    rounds: u32,
    /// True if the last run has ended by itself.
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Host {
    report: HostReport,
    outcomes: HostOutcomes,
    /// Requests that are not judged yet, by start: rows stand in the order of their ends.
    ahead: BinaryHeap<Reverse<SentRequest>>,
    /// Ends of the latest request in each place; at most `per_host`.
    ends: Vec<u64>,
    /// An answer's end and the wait that it asked for, until the next request starts.
    owed: Option<(u64, u64)>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SentRequest {
    start: u64,
    end: u64,
    gap_asked: u64,
    why: String,
    wait_asked: Option<u64>,
}

impl HostSums {
    /// `per_host` is the number of requests that may be in flight per host.
    #[must_use]
    pub fn new(per_host: u32) -> HostSums {
        HostSums {
            per_host: usize::try_from(per_host).unwrap_or(usize::MAX).max(1),
            hosts: BTreeMap::new(),
            keys: HashMap::new(),
            sitemaps: HashSet::new(),
            gaps: GapHistograms::new(),
            page_rows: 0,
            rounds: 1,
            has_ended: false,
        }
    }

    /// Returns whether a page failed. A sitemap is looked for where nobody named one: its absence
    /// is no failure.
    pub(crate) fn is_failed(&self, row: &PageRow) -> bool {
        row.is_failed() && !self.sitemaps.contains(&row.url)
    }

    /// Takes a row of `pages.jsonl`. When all were taken, [`HostSums::take_last_rows`] is due.
    pub fn page(&mut self, row: &PageRow) {
        self.page_rows += 1;
        self.rounds = self.rounds.max(row.round);
        self.count_page(row);
    }

    fn count_page(&mut self, row: &PageRow) {
        let (is_failed, is_sitemap) = (self.is_failed(row), self.sitemaps.contains(&row.url));
        let host = self.host_of(&row.url);
        host.report.pages += 1;
        host.report.bytes += row.bytes;
        host.report.failed += u64::from(is_failed);
        host.note_label(row.label.as_deref());
        host.outcomes.page(row, is_sitemap);
    }

    /// Takes a row of `excluded.jsonl`.
    pub fn excluded(&mut self, row: &ExcludedRow) {
        let host = self.host_of(&row.url);
        host.report.excluded += 1;
        host.note_label(row.label.as_deref());
        host.outcomes.excluded(row);
        // Most hosts are only linked to: nothing but a number is held of them.
        if row.reason != OUT_OF_SCOPE {
            let by_reason = &mut host.report.excluded_by;
            *by_reason.entry(row.reason.clone()).or_default() += 1;
        }
    }

    /// Takes a row of `waiting.jsonl`: that of the crawl, or of an origin.
    pub fn waiting(&mut self, row: &WaitingRow) {
        let Some(origin) = &row.origin else {
            self.has_ended = true;
            return;
        };
        let host = self.host_of(origin);
        host.report.waiting += row.urls;
        host.outcomes.waiting(row);
    }

    /// Takes a row of `requests.jsonl`.
    pub fn request(&mut self, row: &RequestRow) {
        if row.purpose == "sitemap" {
            self.sitemaps.insert(row.url.clone());
        }
        let per_host = self.per_host;
        let host = host_of_key(&mut self.hosts, row.host.clone());
        host.outcomes.is_asked |= row.status.is_some();
        let report = &mut host.report;
        report.requests += 1;
        report.busy_ms += row.end.saturating_sub(row.start);
        if matches!(row.purpose.as_str(), "robots" | "hop") {
            report.robots_requests += 1;
        }
        if row.purpose == "robots" {
            let origin = canonicalize(None, &row.url).map(|url| url.origin().to_string());
            let origin = origin.unwrap_or_else(|_| row.url.clone());
            report.robots.insert(origin, RobotsReport::of(row));
        }
        host.ahead.push(Reverse(SentRequest {
            start: row.start,
            end: row.end,
            gap_asked: row.gap_asked,
            why: row.why.clone(),
            wait_asked: row.wait_asked,
        }));
        // Of requests that overlap, at most so many can end before an earlier one does.
        let kept = if per_host == 1 { 0 } else { 2 * per_host };
        while host.ahead.len() > kept {
            host.judge_next(per_host, &mut self.gaps);
        }
    }

    /// The hosts with anything to report, by host key, each with its coverage verdict.
    #[must_use]
    pub fn finish(self) -> Vec<HostReport> {
        self.finish_with_gaps().0
    }

    /// The same, and the gaps of all.
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
        for host in self.hosts.values_mut() {
            while !host.ahead.is_empty() {
                host.judge_next(self.per_host, &mut self.gaps);
            }
        }
    }

    fn host_of(&mut self, url: &str) -> &mut Host {
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

fn host_of_key(hosts: &mut BTreeMap<String, Host>, key: String) -> &mut Host {
    hosts.entry(key).or_insert_with_key(|key| {
        let mut host = Host::default();
        key.clone_into(&mut host.report.host);
        host
    })
}

/// The host key of a URL; none where it is no URL.
pub(crate) fn host_key(url: &str) -> Option<String> {
    let url = canonicalize(None, url).ok()?;
    Some(url.host_key().to_string())
}

/// The text of a canonical URL before its path; all of what is none.
pub(crate) fn origin_of(url: &str) -> &str {
    let authority = url.find("://").map(|at| at + 3);
    let path = authority.and_then(|from| Some((from, from + url[from..].find('/')?)));
    match path {
        Some((from, path)) if from < path => &url[..path],
        _ => url,
    }
}

impl Host {
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

    /// Judges the earliest request that is not judged yet.
    fn judge_next(&mut self, per_host: usize, all: &mut GapHistograms) {
        let Some(Reverse(sent)) = self.ahead.pop() else {
            return;
        };
        if self.ends.len() >= per_host {
            let longest_ago = self.ends.iter().enumerate().min_by_key(|(_, end)| **end);
            if let Some((place, end)) = longest_ago {
                let seen = sent.start.saturating_sub(*end);
                self.report.gaps.saw(seen, &sent);
                all.asked.add(sent.gap_asked);
                all.seen.add(seen);
                self.ends.swap_remove(place);
            }
        }
        self.ends.push(sent.end);
        match self.owed {
            Some((since, wait)) if sent.start >= since => {
                self.report.waits.gave(sent.start - since, wait);
                self.owed = None;
            }
            _ => {}
        }
        if let Some(wait) = sent.wait_asked {
            self.report.waits.asked(wait);
            self.owed = Some((sent.end, wait));
        }
    }
}

impl Gaps {
    fn saw(&mut self, seen: u64, sent: &SentRequest) {
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

impl Waits {
    fn asked(&mut self, wait: u64) {
        self.count += 1;
        self.asked_ms += wait;
        self.longest_asked_ms = self.longest_asked_ms.max(wait);
    }

    fn gave(&mut self, given: u64, asked: u64) {
        self.given_ms += given;
        self.short += u64::from(given + ROUNDING_MS < asked);
    }
}

impl RobotsReport {
    fn of(row: &RequestRow) -> RobotsReport {
        let state = match row.status {
            Some(200..=299) => "rules",
            Some(304) => "rules",
            Some(300..=399) => "redirect",
            Some(429) => "unreachable",
            Some(400..=499) => "none",
            _ => "unreachable",
        };
        RobotsReport {
            state: state.to_owned(),
            status: row.status,
            failure: row.failure.clone(),
            at_ms: row.end,
        }
    }
}

#[cfg(test)]
mod tests;
