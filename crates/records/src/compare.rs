//! Compares two crawls, and lists their differences.

mod request_order;
mod round_request_totals;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crawl_archive::rows::PageRow;
use serde::{Deserialize, Serialize};

use self::round_request_totals::RoundRequestTotals;
use crate::broken_links::{LatestRows, key};
use crate::error::RecordsError;
use crate::host_coverage::HostCoverage;
use crate::host_reports::{HostReport, PENDING_REASON};
use crate::report::{CrawlReport, report};
use crate::round_row_filter::ExclusionsInForce;
use crate::row_file_reader::{pages, waiting};

/// The differences between two crawls, A and B.
///
/// Field names are stable; later versions of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlComparison {
    /// Version of this format: 1.
    pub format: u32,
    /// The round whose pages and requests are compared, or `None` for all rounds. The other values
    /// (delays, waits, exclusions, waiting URLs, coverage and hosts) are always over all rounds.
    #[serde(default)]
    pub round: Option<u32>,
    /// Totals of A.
    pub a: ComparedCrawlTotals,
    /// Totals of B.
    pub b: ComparedCrawlTotals,
    /// Differences between the pages. Only the last row of each URL is compared.
    pub pages: PageDifferences,
    /// Differences in the order of requests.
    pub order: RequestOrderComparison,
    /// Rules that excluded different numbers of URLs in the two crawls. At most a thousand rules
    /// are listed per reason, and the counts of further rules are added up.
    pub excluded: Vec<ExclusionRuleDifference>,
    /// Hosts with different results, by host key.
    pub hosts: Vec<HostDifference>,
}

/// The totals of one crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedCrawlTotals {
    /// The crawl's directory.
    pub dir: String,
    /// Number of URLs with a row in `pages.jsonl`.
    pub pages: u64,
    /// Total bytes of the bodies as received, over all rows of the compared rounds.
    pub bytes: u64,
    /// Number of requests sent.
    pub requests: u64,
    /// Milliseconds from the start of the first request to the end of the last.
    pub took_ms: u64,
    /// The sum of the response times, in milliseconds.
    pub busy_ms: u64,
    /// Number of delays between requests to the same host.
    pub gaps: u64,
    /// The longest required delay, in milliseconds.
    pub most_gap_asked_ms: u64,
    /// Number of delays shorter than required.
    pub short_gaps: u64,
    /// Number of responses that demanded a wait.
    pub waits: u64,
    /// The sum of the demanded waits, in milliseconds.
    pub wait_asked_ms: u64,
    /// Number of known URLs that were excluded from the crawl, without those that a budget left
    /// pending.
    pub excluded: u64,
    /// Number of URLs left for the next run.
    pub waiting: u64,
    /// Whether the last run has ended.
    #[serde(default)]
    pub has_ended: bool,
    /// Number of rounds.
    #[serde(default)]
    pub rounds: u32,
    /// Number of hosts by coverage verdict.
    pub coverage: BTreeMap<HostCoverage, u64>,
    /// Defects of the records, as in [`CrawlReport::flaws`].
    #[serde(default)]
    pub flaws: Vec<String>,
}

/// Differences between the pages of two crawls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageDifferences {
    /// Number of URLs that both crawls fetched.
    pub both: u64,
    /// URLs only in A, in row order.
    pub only_a: Vec<String>,
    /// URLs only in B, in row order.
    pub only_b: Vec<String>,
    /// Pages that both crawls fetched, with different statuses (or failures, if there was no
    /// response).
    pub status: Vec<DifferingPage>,
    /// Pages that both crawls fetched, with the same status but different payload digests.
    pub digest: Vec<DifferingPage>,
}

/// A page that differs between two crawls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingPage {
    /// The URL of the page.
    pub url: String,
    /// The status, failure or digest in A.
    pub a: Option<String>,
    /// The status, failure or digest in B.
    pub b: Option<String>,
}

/// Whether two crawls sent the same requests in the same order. Requests are compared by purpose,
/// URL and response, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestOrderComparison {
    /// Whether all requests are the same in the same order.
    pub is_same: bool,
    /// Number of hosts with the same requests in the same order.
    pub hosts_same: u64,
    /// Number of hosts with different requests, including hosts of only one crawl.
    pub hosts_other: u64,
}

/// A rule that excluded different numbers of URLs in the two crawls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionRuleDifference {
    /// The reason for the exclusion, such as `robots` or `scope`.
    pub reason: String,
    /// The rule, as written.
    pub rule: Option<String>,
    /// Number of URLs that the rule excluded in A.
    pub a: u64,
    /// Number of URLs that the rule excluded in B.
    pub b: u64,
}

/// A host for which the two crawls have different results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostDifference {
    /// The host key.
    pub host: String,
    /// The host in A; `None` if A sent it no requests.
    pub a: Option<ComparedHost>,
    /// The host in B; `None` if B sent it no requests.
    pub b: Option<ComparedHost>,
}

/// The results of a crawl for one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedHost {
    /// The coverage verdict.
    pub coverage: Option<HostCoverage>,
    /// Number of URLs with a row in `pages.jsonl`.
    pub pages: u64,
    /// Total bytes of the bodies in the last rows of the host's URLs.
    pub bytes: u64,
    /// Number of requests sent.
    pub requests: u64,
}

/// Maximum number of rules per reason that are kept. The texts of rules contain URLs, so there may
/// be very many.
const MAX_RULES: usize = 1000;

/// Compares the crawls in two directories. Memory: about 100 bytes per page, and the URLs that
/// differ.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if a directory has no crawl; file system errors. A malformed line is
/// not an error, but is listed in [`ComparedCrawlTotals::flaws`].
pub fn compare(a: &Path, b: &Path) -> Result<CrawlComparison, RecordsError> {
    compare_round(a, b, None)
}

/// Compares one round of the crawls in two directories. If `round` is `None`, compares all rounds,
/// or only the first round if one crawl is a replay and their numbers of rounds differ.
///
/// # Errors
/// As for [`compare`]; [`RecordsError::NoRound`] if a crawl has no such round.
pub fn compare_round(
    a: &Path,
    b: &Path,
    round: Option<u32>,
) -> Result<CrawlComparison, RecordsError> {
    let (sums_a, sums_b) = (report(a)?, report(b)?);
    let is_replay = |sums: &CrawlReport| sums.crawl.replay_of.is_some();
    let has_replay = is_replay(&sums_a) || is_replay(&sums_b);
    let of_replay = (has_replay && rounds(&sums_a) != rounds(&sums_b)).then_some(1);
    for (dir, sums) in [(a, &sums_a), (b, &sums_b)] {
        if let Some(round) = round.filter(|round| !(1..=rounds(sums)).contains(round)) {
            return Err(RecordsError::NoRound {
                dir: dir.to_owned(),
                round,
                rounds: rounds(sums),
            });
        }
    }
    let round = round.or(of_replay);
    let latest_a = LatestRows::of_round(a, round)?;
    let latest_b = LatestRows::of_round(b, round)?;
    let requests_a = RoundRequestTotals::read(a, round)?;
    let requests_b = RoundRequestTotals::read(b, round)?;
    let order = requests_a.orders.compare(&requests_b.orders);
    Ok(CrawlComparison {
        format: 1,
        round,
        a: ComparedCrawlTotals::of(a, &sums_a, &latest_a, &requests_a)?,
        b: ComparedCrawlTotals::of(b, &sums_b, &latest_b, &requests_b)?,
        pages: page_differences((a, &latest_a), (b, &latest_b), has_replay)?,
        order,
        excluded: excluded_differences(a, b)?,
        hosts: host_differences(&sums_a, &sums_b),
    })
}

impl CrawlComparison {
    /// Returns whether both crawls have the same pages, by URL, status and digest.
    #[must_use]
    pub fn has_same_pages(&self) -> bool {
        let pages = &self.pages;
        pages.only_a.is_empty()
            && pages.only_b.is_empty()
            && pages.status.is_empty()
            && pages.digest.is_empty()
    }
}

impl ComparedCrawlTotals {
    fn of(
        dir: &Path,
        report: &CrawlReport,
        latest: &LatestRows,
        asked: &RoundRequestTotals,
    ) -> Result<ComparedCrawlTotals, RecordsError> {
        let requests = &report.requests;
        let sum = |of: fn(&HostReport) -> u64| report.hosts.iter().map(of).sum();
        let gaps_asked = report
            .hosts
            .iter()
            .filter_map(|host| host.gaps.most_asked_ms);
        let mut waiting = waiting(dir)?;
        Ok(ComparedCrawlTotals {
            dir: dir.display().to_string(),
            pages: latest.urls(),
            bytes: asked.page_bytes,
            requests: asked.count,
            took_ms: asked.took_ms(),
            busy_ms: asked.busy_ms,
            gaps: sum(|host| host.gaps.count),
            most_gap_asked_ms: gaps_asked.max().unwrap_or_default(),
            short_gaps: requests.short_gaps,
            waits: sum(|host| host.waits.count),
            wait_asked_ms: sum(|host| host.waits.asked_ms),
            excluded: report.excluded.decided(),
            waiting: sum(|host| host.waiting),
            has_ended: waiting.any(|row| row.is_ok_and(|row| row.origin.is_none())),
            rounds: rounds(report),
            coverage: report.coverage.clone(),
            flaws: report.flaws.clone(),
        })
    }
}

/// Returns the number of rounds in a crawl.
fn rounds(report: &CrawlReport) -> u32 {
    report.pages.rounds.keys().last().copied().unwrap_or(1)
}

/// A page reduced for comparison: the hashes of its status (or failure) and of its payload digest.
#[derive(Clone, Copy)]
struct PageHashes {
    answer: u64,
    digest: Option<u64>,
    /// Whether the crawl's archive lacks the body, so that a replay can't know the digest.
    is_body_omitted: bool,
}

impl PageHashes {
    fn of(row: &PageRow) -> PageHashes {
        PageHashes {
            answer: key(&answer(row)),
            digest: row.digest.as_deref().map(key),
            is_body_omitted: row.is_body_omitted(),
        }
    }

    fn differs(&self, other: &PageHashes, has_replay: bool) -> bool {
        let is_unknown = has_replay && (self.is_body_omitted || other.is_body_omitted);
        self.answer != other.answer || !is_unknown && self.digest != other.digest
    }
}

/// Returns the status of a page or, if there was no response, the name of the failure.
fn answer(row: &PageRow) -> String {
    match (row.status, &row.error) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.split(':').next().unwrap_or_default().to_owned(),
        (None, None) => "no answer".to_owned(),
    }
}

fn page_differences(
    (a, latest_a): (&Path, &LatestRows),
    (b, latest_b): (&Path, &LatestRows),
    has_replay: bool,
) -> Result<PageDifferences, RecordsError> {
    let mut differences = PageDifferences::default();
    let mut of_a = HashMap::new();
    for_latest(a, latest_a, |row| match latest_b.knows(&row.url) {
        true => drop(of_a.insert(key(&row.url), PageHashes::of(&row))),
        false => differences.only_a.push(row.url),
    })?;
    // The status and digest of each row of B that differs from A's row of the same URL.
    let mut differing = HashMap::new();
    for_latest(b, latest_b, |row| match of_a.get(&key(&row.url)) {
        Some(of_a) => {
            differences.both += 1;
            if of_a.differs(&PageHashes::of(&row), has_replay) {
                differing.insert(key(&row.url), (answer(&row), row.digest));
            }
        }
        None => differences.only_b.push(row.url),
    })?;
    if differing.is_empty() {
        return Ok(differences);
    }
    for_latest(a, latest_a, |row| {
        let Some((answer_b, digest_b)) = differing.remove(&key(&row.url)) else {
            return;
        };
        let answer_a = answer(&row);
        let (kind, a, b) = match answer_a == answer_b {
            true => (&mut differences.digest, row.digest, digest_b),
            false => (&mut differences.status, Some(answer_a), Some(answer_b)),
        };
        kind.push(DifferingPage { url: row.url, a, b });
    })?;
    Ok(differences)
}

/// Passes the last row of each URL in the crawl in `dir` to `take`.
fn for_latest(
    dir: &Path,
    latest: &LatestRows,
    mut take: impl FnMut(PageRow),
) -> Result<(), RecordsError> {
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_sound() {
        let row = row?;
        if latest.is_last(&row, rows.line()) {
            take(row);
        }
    }
    Ok(())
}

/// Number of URLs per rule in A and in B, by reason and rule.
type RuleCounts = BTreeMap<String, BTreeMap<Option<String>, (u64, u64)>>;

fn excluded_differences(a: &Path, b: &Path) -> Result<Vec<ExclusionRuleDifference>, RecordsError> {
    let mut counts = RuleCounts::new();
    count_rules(a, &mut counts, |(a, _)| *a += 1)?;
    count_rules(b, &mut counts, |(_, b)| *b += 1)?;
    let rules = counts.into_iter().flat_map(|(reason, rules)| {
        rules
            .into_iter()
            .map(move |(rule, (a, b))| ExclusionRuleDifference {
                reason: reason.clone(),
                rule,
                a,
                b,
            })
    });
    Ok(rules.filter(|rule| rule.a != rule.b).collect())
}

fn count_rules(
    dir: &Path,
    counts: &mut RuleCounts,
    count: fn(&mut (u64, u64)),
) -> Result<(), RecordsError> {
    for row in ExclusionsInForce::open(dir)? {
        let row = match row {
            Err(RecordsError::Row { .. }) => continue,
            row => row?,
        };
        // URLs that a budget holds back are pending, and counted as waiting.
        if row.reason == PENDING_REASON {
            continue;
        }
        let rules = counts.entry(row.reason).or_default();
        let has_room = rules.len() < MAX_RULES || rules.contains_key(&row.rule);
        count(rules.entry(row.rule.filter(|_| has_room)).or_default());
    }
    Ok(())
}

fn host_differences(a: &CrawlReport, b: &CrawlReport) -> Vec<HostDifference> {
    let mut hosts: BTreeMap<&str, (Option<ComparedHost>, Option<ComparedHost>)> = BTreeMap::new();
    for host in a.hosts_asked().0 {
        hosts.entry(&host.host).or_default().0 = Some(ComparedHost::of(host));
    }
    for host in b.hosts_asked().0 {
        hosts.entry(&host.host).or_default().1 = Some(ComparedHost::of(host));
    }
    let differing = hosts.into_iter().filter(|(_, (a, b))| a != b);
    let difference = |(host, (a, b)): (&str, _)| HostDifference {
        host: host.to_owned(),
        a,
        b,
    };
    differing.map(difference).collect()
}

impl ComparedHost {
    fn of(host: &HostReport) -> ComparedHost {
        ComparedHost {
            coverage: host.coverage,
            pages: host.pages,
            bytes: host.bytes,
            requests: host.requests,
        }
    }
}

#[cfg(test)]
mod tests;
