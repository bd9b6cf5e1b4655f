//! Plans a crawl: estimates its cost for each host that it would fetch from. The estimate is made
//! from a planning run, which fetched only robots.txt files and sitemaps.

mod html;
mod page_budgets;
mod page_sizes;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;

use crawl_archive::rows::{ExcludedRow, PageUsagePermissions, RequestRow};
use serde::{Deserialize, Serialize};

use self::page_budgets::KnownHost;
pub use self::page_budgets::{GroupPageBudget, PageBudgets};
use self::page_sizes::{HostBytesEstimate, MeasuredPageSizes, PlannedHostPageCounts};
use crate::error::RecordsError;
use crate::host_coverage::{CoverageGapCounts, CoverageGapReason};
use crate::host_reports::{HostReport, host_key};
use crate::report::report;
use crate::row_file_reader::{excluded, requests};

/// The reason in the rows of URLs that the planned crawl would fetch.
const PLANNED: &str = "planned";

/// Maximum number of rules listed per host. The rules that exclude most URLs come first.
const MAX_RULES: usize = 20;

/// Kinds of delays that apply throughout a crawl. Delays of other kinds depend on the host's latest
/// response.
const LASTING_GAPS: [&str; 5] = [
    "delay",
    "delay-factor",
    "crawl-delay",
    "request-rate",
    "site-delay",
];

/// The cost of a crawl for its hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostPlan {
    /// Version of this format: 1.
    pub format: u32,
    /// The seeds.
    pub seeds: Vec<String>,
    /// The intended use of the pages, if it is set.
    pub purpose: Option<String>,
    /// Known pages that may be fetched.
    pub pages: u64,
    /// Known URLs that would not be fetched, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// Requests for the known pages, robots.txt files and sitemaps.
    pub requests: u64,
    /// Duration of the crawl, in hours.
    pub hours: BoundedEstimate,
    /// Bytes of bodies, as received.
    pub bytes: BoundedEstimate,
    /// The names of the settings that may end the crawl earlier than planned.
    pub uncounted: Vec<String>,
    /// Requests that the planning run itself sent.
    pub asked: u64,
    /// All hosts, by host key.
    pub hosts: Vec<HostPlan>,
}

/// The cost of a crawl for one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// The host key.
    pub host: String,
    /// Known pages to fetch, within the budgets of pages and the sample.
    pub pages: u64,
    /// Known pages that wait for an unavailable robots.txt.
    pub waiting: u64,
    /// Sitemaps that were read.
    pub sitemaps: u64,
    /// Whether entries are missing because a sitemap could not be read completely.
    pub is_sitemap_missing: bool,
    /// Known URLs that would not be fetched, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// Known URLs that would not be fetched, by rule. Only the twenty rules that exclude most URLs.
    pub rules: Vec<ExclusionRuleCount>,
    /// The host's origins, with the statements of their robots.txt files.
    pub origins: Vec<OriginRobotsStatements>,
    /// The delay from the end of a request to the start of the next, in milliseconds.
    pub gap_ms: u64,
    /// The rule that requires the delay, such as `delay` or `crawl-delay`.
    pub gap_by: String,
    /// The mean response time of the host during the planning run, in milliseconds.
    pub answer_ms: f64,
    /// Requests for pages, robots.txt and sitemaps.
    pub requests: u64,
    /// Duration of the planned requests, in hours.
    pub hours: BoundedEstimate,
    /// Bytes of bodies, as received.
    pub bytes: BoundedEstimate,
}

/// A rule that excludes URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionRuleCount {
    /// The reason for the exclusion: `robots`, `usage`, `scope` ..
    pub reason: String,
    /// The rule as written.
    pub rule: Option<String>,
    /// The line of the rule.
    pub line: Option<u32>,
    /// Number of URLs that the rule excludes.
    pub urls: u64,
}

/// The statements of an origin's robots.txt that neither allow nor disallow URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginRobotsStatements {
    /// Scheme, host and port.
    pub origin: String,
    /// The Crawl-delay, in milliseconds.
    pub crawl_delay_ms: Option<u64>,
    /// The line of the Crawl-delay.
    pub crawl_delay_line: Option<u32>,
    /// The usage statement.
    pub usage: Option<PageUsagePermissions>,
}

/// A number with bounds and an explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundedEstimate {
    /// The expected number; `None` if it is unknown.
    pub expected: Option<f64>,
    /// Lower bound.
    pub least: f64,
    /// Upper bound; `None` if there is no bound.
    pub most: Option<f64>,
    /// The explanation: how the number was derived, and which costs it does not include.
    pub why: String,
}

/// The settings that a plan needs in addition to the records.
#[derive(Clone, Debug, Default)]
pub struct PlanSettings {
    /// The intended use of the pages, if it is set.
    pub purpose: Option<String>,
    /// The minimum delay, in milliseconds.
    pub delay_ms: u64,
    /// The budgets of pages, and the sample.
    pub page_budgets: PageBudgets,
    /// The names of settings that may end the crawl earlier than planned.
    pub uncounted: Vec<String>,
    /// Maximum requests per second in total.
    pub max_rate: Option<f64>,
    /// Maximum requests per second to one IP address that is not on loopback. `None` if there is no
    /// limit.
    pub address_rate: Option<f64>,
    /// The statements of the robots.txt files.
    pub origins: Vec<OriginRobotsStatements>,
}

/// Sums up the planning run in `dir`. If `earlier` is the directory of an earlier crawl, page sizes
/// are estimated from it.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has no records, and file system errors.
pub fn plan(
    dir: &Path,
    earlier: Option<&Path>,
    settings: &PlanSettings,
) -> Result<CostPlan, RecordsError> {
    let sizes = earlier.map(MeasuredPageSizes::read).transpose()?;
    let sizes = sizes.unwrap_or_default();
    let known_pages = sizes.known_pages(dir)?;
    let HostDelaysAndAddresses {
        mut gaps,
        addresses,
    } = HostDelaysAndAddresses::read(dir)?;
    let mut rules = rules(dir)?;
    let report = report(dir)?;
    let planned = report.hosts.iter().filter(|host| host.coverage.is_some());
    let planned: Vec<_> = planned.collect();
    let seeds: Vec<_> = report
        .crawl
        .seeds
        .iter()
        .map(|seed| host_key(seed))
        .collect();
    let known = planned.iter().map(|host| KnownHost {
        host: &host.host,
        pages: host.excluded_by.get(PLANNED).copied().unwrap_or_default(),
        seeds: seeds
            .iter()
            .flatten()
            .filter(|seed| **seed == host.host)
            .count() as u64,
        sitemaps: host.pages,
    });
    let pages = settings.page_budgets.pages(&known.collect::<Vec<_>>());
    let none = PlannedHostPageCounts::default();
    let hosts = planned.into_iter().zip(pages).map(|(host, pages)| {
        let gap = gaps.remove(&host.host);
        let rules = rules.remove(&host.host).unwrap_or_default();
        let slots = report.crawl.in_flight.of_host(&host.host);
        let mut plan = host_plan(host, (pages, slots), gap, rules, settings);
        let known_pages = known_pages.get(&host.host).unwrap_or(&none);
        let is_listed = plan.hours.expected.is_some();
        let bytes = sizes.bytes_of(&host.host, known_pages, (host.bytes, plan.pages), is_listed);
        plan.bytes = bytes.estimate();
        (plan, bytes)
    });
    let (hosts, bytes): (Vec<HostPlan>, Vec<HostBytesEstimate>) = hosts.unzip();
    let sum = |of: fn(&HostPlan) -> u64| hosts.iter().map(of).sum::<u64>();
    let mut excluded = report.excluded.by_reason;
    excluded.remove(PLANNED);
    Ok(CostPlan {
        format: 1,
        seeds: report.crawl.seeds,
        purpose: settings.purpose.clone(),
        pages: sum(|host| host.pages),
        excluded,
        requests: sum(|host| host.requests),
        hours: all_hours(&hosts, &addresses, settings),
        bytes: HostBytesEstimate::sum(&bytes),
        uncounted: settings.uncounted.clone(),
        asked: report.requests.total,
        hosts,
    })
}

/// Builds the plan of a host with this many pages and slots (its requests in flight), except for
/// its `bytes`, which the caller sets.
fn host_plan(
    host: &HostReport,
    (pages, slots): (u64, usize),
    gap: Option<(u64, String)>,
    rules: Vec<ExclusionRuleCount>,
    settings: &PlanSettings,
) -> HostPlan {
    let mut excluded = host.excluded_by.clone();
    excluded.remove(PLANNED);
    let of_host =
        |origin: &&OriginRobotsStatements| host_key(&origin.origin).as_ref() == Some(&host.host);
    let origins: Vec<_> = settings.origins.iter().filter(of_host).cloned().collect();
    let asked_delay = origins.iter().filter_map(|origin| origin.crawl_delay_ms);
    let (gap_ms, gap_by) = gap.unwrap_or_else(|| match asked_delay.max() {
        Some(asked) if asked > settings.delay_ms => (asked, "crawl-delay".to_owned()),
        _ => (settings.delay_ms, "delay".to_owned()),
    });
    let answer_ms = host.busy_ms as f64 / host.requests.max(1) as f64;
    let requests = host.requests + pages;
    let is_unread = |shortfall: &CoverageGapCounts| {
        matches!(
            shortfall.reason,
            CoverageGapReason::Refused | CoverageGapReason::Errors | CoverageGapReason::Limits
        )
    };
    let is_sitemap_missing = host.missing.iter().any(is_unread);
    let is_listed = host.pages > 0 && !is_sitemap_missing;
    // The first request needs no delay. The requests are divided among the slots, and each slot has
    // its own delay.
    let busy = requests as f64 * answer_ms;
    let least_ms = (requests.saturating_sub(1) as f64 * gap_ms as f64 + busy) / slots as f64;
    let least = least_ms / 3_600_000.0;
    let hours = BoundedEstimate {
        expected: (is_listed && host.waiting == 0).then_some(least),
        least,
        most: None,
        why: known_words(host, is_listed),
    };
    HostPlan {
        host: host.host.clone(),
        pages,
        waiting: host.waiting,
        sitemaps: host.pages,
        is_sitemap_missing,
        excluded,
        rules,
        origins,
        gap_ms,
        gap_by,
        answer_ms,
        requests,
        hours,
        bytes: BoundedEstimate::default(),
    }
}

/// Returns why the number of a host's pages is uncertain, or on what condition it is right. Used as
/// the explanation of the estimated hours.
fn known_words(host: &HostReport, is_listed: bool) -> String {
    let unreachable = host.robots.iter();
    let unreachable = unreachable.filter(|(_, robots)| robots.state == "unreachable");
    let unreachable: Vec<&str> = unreachable.map(|(origin, _)| origin.as_str()).collect();
    if let Some(evidence) = waiting_evidence(host).filter(|_| unreachable.is_empty()) {
        return format!("its pages are not known yet: {evidence}");
    }
    let words = match is_listed {
        _ if host.waiting > 0 && (1..host.robots.len()).contains(&unreachable.len()) => {
            let origins = unreachable.join(" and ");
            return format!(
                "the robots.txt of {origins} can't be fetched, so no page there may be"
            );
        }
        _ if host.waiting > 0 => "its robots.txt can't be fetched, so no page may be fetched now",
        true => "if its sitemaps list all pages; pages found only through links come on top",
        false if host.pages > 0 => "a sitemap could not be read completely",
        false => "it has no sitemap, so only the seeds are known",
    };
    words.to_owned()
}

/// Returns why URLs of a host are still pending, although its robots.txt could be fetched. `None`
/// if no URL is pending, or if the reason is not known.
fn waiting_evidence(host: &HostReport) -> Option<&str> {
    let mut missing = host.missing.iter();
    let waiting = missing.find(|missing| missing.reason == CoverageGapReason::Waiting)?;
    let evidence = waiting.evidence.keys().next()?;
    Some(evidence)
        .filter(|_| host.waiting > 0)
        .map(String::as_str)
}

/// Returns the duration of the whole crawl in hours. Hosts are crawled concurrently, so the
/// duration is that of the slowest host, or follows from a rate limit that several hosts share.
fn all_hours(
    hosts: &[HostPlan],
    addresses: &HashMap<String, IpAddr>,
    settings: &PlanSettings,
) -> BoundedEstimate {
    let requests = hosts.iter().map(|host| host.requests).sum();
    let by_rate = hours_at(requests, settings.max_rate);
    let by_address = hours_at(most_requests(hosts, addresses), settings.address_rate);
    let least_hours = f64::max(by_rate, by_address);
    let longest = |hours: &mut dyn Iterator<Item = f64>| hours.fold(least_hours, f64::max);
    let expected: Option<Vec<f64>> = hosts.iter().map(|host| host.hours.expected).collect();
    let expected = expected.filter(|hours| !hours.is_empty());
    let slowest = hosts
        .iter()
        .max_by(|one, other| one.hours.least.total_cmp(&other.hours.least));
    BoundedEstimate {
        expected: expected.map(|hours| longest(&mut hours.into_iter())),
        least: longest(&mut hosts.iter().map(|host| host.hours.least)),
        most: None,
        why: match slowest {
            Some(host) if host.hours.least >= least_hours => {
                format!("hosts are crawled in parallel; {} takes longest", host.host)
            }
            Some(_) if by_address > by_rate => {
                "the rate to an address shared by several hosts is the limit".to_owned()
            }
            Some(_) => "the total rate is the limit".to_owned(),
            None => "no host was contacted".to_owned(),
        },
    }
}

/// Returns the hours that this many requests take at `rate` requests per second. Returns 0 if there
/// is no rate limit.
fn hours_at(requests: u64, rate: Option<f64>) -> f64 {
    let rate = rate.filter(|rate| *rate > 0.0);
    rate.map_or(0.0, |rate| requests as f64 / rate / 3600.0)
}

/// Returns how many requests go to the busiest address. Loopback addresses don't count.
fn most_requests(hosts: &[HostPlan], addresses: &HashMap<String, IpAddr>) -> u64 {
    let mut by_address: HashMap<IpAddr, u64> = HashMap::new();
    for host in hosts {
        let address = addresses.get(&host.host);
        if let Some(address) = address.filter(|address| !address.is_loopback()) {
            *by_address.entry(*address).or_default() += host.requests;
        }
    }
    by_address.into_values().max().unwrap_or_default()
}

/// Facts about hosts from the requests of a planning run.
#[derive(Default)]
struct HostDelaysAndAddresses {
    /// For each host, its last delay of a kind in [`LASTING_GAPS`] in milliseconds, and the rule
    /// that required the delay.
    gaps: HashMap<String, (u64, String)>,
    /// For each host, the address of its last request.
    addresses: HashMap<String, IpAddr>,
}

impl HostDelaysAndAddresses {
    fn read(dir: &Path) -> Result<HostDelaysAndAddresses, RecordsError> {
        let mut hosts = HostDelaysAndAddresses::default();
        for row in requests(dir)? {
            match row {
                Ok(row) => hosts.note(row),
                // Skip a malformed row: the report already counts it.
                Err(RecordsError::Row { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(hosts)
    }

    fn note(&mut self, row: RequestRow) {
        if let Some(address) = row.address.and_then(|address| address.parse().ok()) {
            self.addresses.insert(row.host.clone(), address);
        }
        if row.gap_asked > 0 && LASTING_GAPS.contains(&row.why.as_str()) {
            self.gaps.insert(row.host, (row.gap_asked, row.why));
        }
    }
}

/// Returns the rules that exclude URLs, by host key. Per host, the rules that exclude the most URLs
/// come first, at most [`MAX_RULES`].
fn rules(dir: &Path) -> Result<HashMap<String, Vec<ExclusionRuleCount>>, RecordsError> {
    type Key = (String, Option<String>, Option<u32>);
    let mut counts: HashMap<String, HashMap<Key, u64>> = HashMap::new();
    for row in excluded(dir)? {
        match row {
            Ok(ExcludedRow { reason, .. }) if reason == PLANNED => {}
            Ok(row) => {
                let of_host = counts
                    .entry(host_key(&row.url).unwrap_or_default())
                    .or_default();
                *of_host.entry((row.reason, row.rule, row.line)).or_default() += 1;
            }
            Err(RecordsError::Row { .. }) => {}
            Err(why) => return Err(why),
        }
    }
    let listed = counts.into_iter().map(|(host, counts)| {
        let rules = counts
            .into_iter()
            .map(|((reason, rule, line), urls)| ExclusionRuleCount {
                reason,
                rule,
                line,
                urls,
            });
        let mut rules: Vec<_> = rules.collect();
        rules.sort_by(|one, other| {
            let key =
                |rule: &ExclusionRuleCount| (rule.reason.clone(), rule.line, rule.rule.clone());
            (other.urls, key(one)).cmp(&(one.urls, key(other)))
        });
        rules.truncate(MAX_RULES);
        (host, rules)
    });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{HostPlan, PlanSettings, all_hours};

    fn hours(address: &str, settings: &PlanSettings) -> (f64, String) {
        let hosts = ["a.example", "b.example"].map(|host| HostPlan {
            host: host.to_owned(),
            requests: 7_200,
            ..HostPlan::default()
        });
        let address = address.parse().unwrap();
        let addresses = hosts.iter().map(|host| (host.host.clone(), address));
        let hours = all_hours(&hosts, &addresses.collect::<HashMap<_, _>>(), settings);
        (hours.least, hours.why)
    }

    #[test]
    fn hosts_at_one_address_share_its_rate() {
        let settings = PlanSettings {
            address_rate: Some(1.0),
            max_rate: Some(2.0),
            ..PlanSettings::default()
        };
        let (least, why) = hours("192.0.2.1", &settings);
        assert_eq!(least, 4.0);
        assert_eq!(
            why,
            "the rate to an address shared by several hosts is the limit"
        );
        // Requests to loopback have no rate limit per address.
        let (least, why) = hours("127.0.0.1", &settings);
        assert_eq!((least, why.as_str()), (2.0, "the total rate is the limit"));
    }

    #[test]
    fn without_a_rate_the_slowest_host_decides() {
        let (least, why) = hours("192.0.2.1", &PlanSettings::default());
        assert_eq!(least, 0.0);
        assert!(why.contains("takes longest"), "{why}");
    }
}
