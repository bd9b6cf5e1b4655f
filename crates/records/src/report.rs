//! The totals of a crawl: `report.json`.

mod unfetched_counts;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crawl_archive::rows::{PageRow, RequestRow};
use serde::{Deserialize, Serialize};

use crate::audit::RequestsInFlightLimits;
use crate::error::RecordsError;
use crate::extraction_report::{ExtractionReport, extraction};
use crate::histograms::GapHistograms;
use crate::host_coverage::HostCoverage;
use crate::host_reports::{HostReport, HostReportCollector};
use crate::number_format::grouped;
use crate::random_walk_report::{RandomWalkReport, WalkVisitCounter};
use crate::recognize_directory::{holds_any, seeds_of, stored_settings};
use crate::round_row_filter::ExclusionsInForce;
use crate::round_row_filter::RoundSelection;
use crate::row_file_reader::{pages, requests, waiting};
use crate::sample_report::{LastSampledRows, SampleReport};

pub use unfetched_counts::{ExcludedCounts, PendingCounts};

/// The totals of a crawl, over all its runs.
///
/// Serialized, this is `report.json`. Field names are stable; later versions of the program may add
/// fields. Times are milliseconds since the Unix epoch, durations are milliseconds, sizes are
/// bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrawlReport {
    /// Version of this format: 1.
    pub format: u32,
    /// The seeds of the crawl, and the program that crawled.
    pub crawl: CrawlSettings,
    /// Page counts. Each URL is counted once, by its last visit.
    pub pages: PageCounts,
    /// Pages whose last row is broken; [`broken_links()`](crate::broken_links()) finds the links to
    /// them.
    #[serde(default)]
    pub broken: BrokenPagesSummary,
    /// Counts of the URLs whose row in `excluded.jsonl` is still in force.
    pub excluded: ExcludedCounts,
    /// URLs left for the next run. `None` while a run is in progress, or if the last one was
    /// killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingCounts>,
    /// Counts of the rows of `requests.jsonl`.
    pub requests: RequestCounts,
    /// The sample, if the crawl drew one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    /// The random walk, if the crawl is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<RandomWalkReport>,
    /// The fields that rules found in pages, if the crawl has rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extraction: Option<ExtractionReport>,
    /// Number of hosts by coverage verdict. A host has no verdict if the crawl wanted none of its
    /// URLs.
    #[serde(default)]
    pub coverage: BTreeMap<HostCoverage, u64>,
    /// All hosts, by host key.
    pub hosts: Vec<HostReport>,
    /// Defects of the records: files with a torn last line, malformed lines. Empty if there are
    /// none.
    pub flaws: Vec<String>,
}

/// The settings of the crawl that a report includes, from `crawl.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlSettings {
    /// The seeds as typed.
    pub seeds: Vec<String>,
    /// The version of the program in the last run.
    pub version: Option<String>,
    /// The name and version of the browser that rendered pages in the last run. `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
    /// When the crawl was first started, in RFC 3339.
    pub started: Option<String>,
    /// If this is a replay, the directory of the replayed crawl. A replay sends no request, and all
    /// its times are virtual. `None` for a crawl.
    #[serde(default)]
    pub replay_of: Option<String>,
    /// Maximum requests in flight per host.
    pub per_host: u32,
    /// The same, with the limits of single hosts.
    #[serde(skip)]
    pub in_flight: RequestsInFlightLimits,
    /// The operator and purpose of the crawl.
    #[serde(default)]
    pub operator: OperatorDescription,
    /// The settings of the sample, if one is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleSettings>,
    /// The number of steps per walker, if the crawl is a random walk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk_steps: Option<u64>,
}

/// The design of a sample, from `[sample]` in `crawl.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSettings {
    /// Maximum number of pages per stratum.
    pub pages: u64,
    /// The property that defines the strata: `crawl` (one stratum), `host`, `depth` or `path`.
    pub by: String,
    /// The random seed of the draw.
    pub seed: String,
    /// Pages at a lower depth than this (fewer links from a seed) are read to build the frame: the
    /// set of URLs that can be drawn.
    pub frame_depth: u64,
}

/// The operator and purpose of a crawl, from `[operator]` in `crawl.toml`. Every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorDescription {
    /// The email address or URL given to the owners of visited sites.
    pub contact: Option<String>,
    /// Name of the person.
    pub name: Option<String>,
    /// Name of the institution.
    pub institution: Option<String>,
    /// The subject of the study.
    pub study: Option<String>,
    /// The page about the study.
    pub study_page: Option<String>,
}

/// Counts of a crawl's pages. Except in `rounds` and `all_rounds`, each URL is counted once, by its
/// last row in `pages.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCounts {
    /// Number of URLs with a row.
    pub total: u64,
    /// Number of URLs for which [`PageRow::is_failed`] is true.
    pub failed: u64,
    /// Bytes of bodies, as received.
    pub bytes: u64,
    /// Number of URLs by [outcome](PageRow::outcome): `ok` (2xx), `unread` (2xx with an incomplete
    /// body), `unmodified` (304 for a stored page), `redirect` (3xx except 304), `client_error`
    /// (4xx), `server_error` (5xx), `no_answer` or `other`. Some outcomes take precedence over the
    /// status: `login_page`, `challenge`, `block_page`, `unwanted_type`, `unwanted_language`,
    /// `unwanted_size`, and redirects that lead nowhere, such as `redirect_loop`.
    pub by_outcome: BTreeMap<String, u64>,
    /// Number of URLs by status code.
    pub by_status: BTreeMap<u16, u64>,
    /// Number of URLs by content type, without parameters and in lower case.
    pub by_type: BTreeMap<String, u64>,
    /// Number of URLs by depth, which is the number of links followed from a seed.
    pub by_depth: BTreeMap<u32, u64>,
    /// Number of URLs whose page could not be rendered, by the error in the row's `render`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unrendered: BTreeMap<String, u64>,
    /// Counts by round. The first round is 1, and each `--recrawl` adds one.
    #[serde(default)]
    pub rounds: BTreeMap<u32, RoundCounts>,
    /// Counts of all visits, if the crawl has several rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_rounds: Option<VisitCounts>,
    /// Counts of the pages with each label. The user gives labels to seeds, and a page has the
    /// label of the seed whose area contains it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_label: BTreeMap<String, LabelCounts>,
}

/// Counts of the visits to pages in all rounds, one per row of `pages.jsonl`: a URL visited in
/// three rounds counts three times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitCounts {
    /// All rows.
    pub visits: u64,
    /// Number of rows for which [`PageRow::is_failed`] is true.
    pub failed: u64,
    /// Bytes of bodies, as received.
    pub bytes: u64,
}

/// Counts of the pages with one label. The user gives labels to seeds, and a page has the label of
/// the seed whose area contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCounts {
    /// Number of URLs with the label.
    pub total: u64,
    /// Number of URLs for which [`PageRow::is_failed`] is true.
    pub failed: u64,
    /// Bytes of bodies, as received.
    pub bytes: u64,
}

/// The pages for which [`PageRow::is_broken`] is true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenPagesSummary {
    /// Number of broken pages.
    pub pages: u64,
    /// The first hundred broken pages, in row order.
    pub first: Vec<ReportedBrokenPage>,
}

/// A broken page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedBrokenPage {
    /// The URL of the page.
    pub url: String,
    /// The status of the response.
    pub status: Option<u16>,
    /// The error in the row of the page, if there is one.
    pub error: Option<String>,
    /// The page that first led to the broken page; `None` for a seed.
    pub via: Option<String>,
}

/// Counts of the rows of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundCounts {
    /// Number of rows.
    pub rows: u64,
    /// Number of pages visited for the first time.
    pub new: u64,
    /// Number of pages that changed since their last visit.
    pub changed: u64,
    /// Number of pages that did not change since their last visit.
    pub same: u64,
    /// Number of pages that no longer exist.
    pub gone: u64,
    /// Number of rows for which [`PageRow::is_broken`] is true.
    #[serde(default)]
    pub broken: u64,
}

impl RoundCounts {
    fn add(&mut self, row: &PageRow) {
        self.rows += 1;
        self.broken += u64::from(row.is_broken());
        match row.change.as_deref() {
            Some("new") => self.new += 1,
            Some("changed") => self.changed += 1,
            Some("same") => self.same += 1,
            Some("gone") => self.gone += 1,
            _ => {}
        }
    }
}

impl std::fmt::Display for RoundCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [new, changed, same, gone, broken] =
            [self.new, self.changed, self.same, self.gone, self.broken].map(grouped);
        write!(
            f,
            "{new} new, {changed} changed, {same} same, {gone} gone, {broken} broken"
        )
    }
}

/// Counts of the rows of `requests.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Number of rows, including robots.txt, retries and failures.
    pub total: u64,
    /// Number of rows by purpose: `page`, `robots` ..
    pub by_purpose: BTreeMap<String, u64>,
    /// Requests without a response, by failure name.
    pub by_failure: BTreeMap<String, u64>,
    /// Start of the first request, in milliseconds since the Unix epoch.
    pub first_start_ms: Option<u64>,
    /// End of the last request, in milliseconds since the Unix epoch.
    pub last_end_ms: Option<u64>,
    /// Number of delays shorter than required, over all hosts.
    pub short_gaps: u64,
    /// Number of waits that were cut short, over all hosts.
    pub short_waits: u64,
    /// Number of addresses that more than one worker sent requests to. Each worker applies the
    /// limit per address on its own. `None` unless the directory is gathered from several workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses_of_several_workers: Option<u64>,
}

/// Maximum number of content types counted separately. Further types count as `other`. The number
/// must be bounded, because servers choose the types.
const MAX_TYPES: usize = 1000;
/// Maximum number of labels counted separately. Further labels count as `other`. A list of seeds
/// has at most this many entries.
const MAX_LABELS: usize = 10_000;
/// Maximum number of broken pages listed individually.
const MAX_NAMED_BROKEN: usize = 100;
/// Maximum number of flaws listed individually.
const MAX_FLAWS: usize = 100;

/// Sums up the records of a crawl.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has no records, and file system errors. A malformed line is
/// not an error, but is listed in [`CrawlReport::flaws`].
pub fn report(dir: &Path) -> Result<CrawlReport, RecordsError> {
    report_with_gaps(dir).map(|(report, _)| report)
}

/// Sums up the records like [`report`], and also returns the delays of all hosts, for the HTML
/// page.
pub(crate) fn report_with_gaps(dir: &Path) -> Result<(CrawlReport, GapHistograms), RecordsError> {
    let crawl = CrawlSettings::read(dir)?;
    let mut hosts = HostReportCollector::new(crawl.in_flight.clone());
    let mut report = CrawlReport {
        format: 1,
        crawl,
        ..CrawlReport::default()
    };
    report.read_requests(dir, &mut hosts)?;
    report.read_pages(dir, &mut hosts)?;
    report.read_excluded(dir, &mut hosts)?;
    report.read_waiting(dir, &mut hosts)?;
    report.extraction = extraction(dir, RoundSelection::Last)?;
    let (hosts, gaps) = hosts.finish_with_gaps();
    report.hosts = hosts;
    for coverage in report.hosts.iter().filter_map(|host| host.coverage) {
        *report.coverage.entry(coverage).or_default() += 1;
    }
    let sum = |of: fn(&HostReport) -> u64| report.hosts.iter().map(of).sum();
    report.requests.short_gaps = sum(|host| host.gaps.short);
    report.requests.short_waits = sum(|host| host.waits.short);
    Ok((report, gaps))
}

impl CrawlReport {
    /// Returns the hosts that have requests or pages, those with the most requests first, and the
    /// number of other hosts, which are only linked to.
    #[must_use]
    pub fn hosts_asked(&self) -> (Vec<&HostReport>, u64) {
        let (mut asked, others): (Vec<_>, Vec<_>) = self
            .hosts
            .iter()
            .partition(|host| host.requests > 0 || host.pages > 0);
        asked.sort_by_key(|host| std::cmp::Reverse(host.requests));
        (asked, others.len() as u64)
    }

    /// Returns whether the crawl is complete: no host is partial, blocked or empty.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.coverage
            .keys()
            .all(|coverage| *coverage == HostCoverage::Whole)
    }

    fn read_pages(
        &mut self,
        dir: &Path,
        hosts: &mut HostReportCollector,
    ) -> Result<(), RecordsError> {
        let mut rows = pages(dir)?;
        let mut sample = LastSampledRows::default();
        let mut broken = BrokenPagesSummary::default();
        for row in rows.by_ref() {
            if let Some(row) = self.sound(row)? {
                sample.add(&row);
                self.pages.add(&row);
                hosts.page(&row);
                broken.add(row);
            }
        }
        self.note_torn("pages.jsonl", rows.is_torn());
        self.sample = sample.report();
        let (steps, is_torn) = WalkVisitCounter::read(dir, |row| self.sound(row))?;
        self.note_torn("walk.jsonl", is_torn);
        let mut pending = steps.unanswered_ends(&sample);
        if !pending.is_empty() {
            for row in ExclusionsInForce::open(dir)? {
                match row {
                    // A row of an earlier round, before a walker came to the URL, or of a URL that
                    // a budget left pending.
                    Ok(row) if matches!(row.reason.as_str(), "sample" | "budget") => {}
                    Ok(row) => drop(pending.remove(&row.url)),
                    Err(RecordsError::Row { .. }) => {}
                    Err(why) => return Err(why),
                }
            }
        }
        self.walk = steps.report(&sample, &pending);
        let (mut last_pages, mut last_broken) =
            (PageCounts::default(), BrokenPagesSummary::default());
        let has_rounds = hosts.take_last_rows(dir, |row| {
            last_pages.add(&row);
            last_broken.add(row);
        })?;
        self.broken = if has_rounds { last_broken } else { broken };
        if has_rounds {
            self.pages.keep_last(last_pages);
        }
        Ok(())
    }

    fn read_excluded(
        &mut self,
        dir: &Path,
        hosts: &mut HostReportCollector,
    ) -> Result<(), RecordsError> {
        let mut rows = ExclusionsInForce::open(dir)?;
        for row in rows.by_ref() {
            if let Some(row) = self.sound(row)? {
                self.excluded.total += 1;
                self.excluded.note_rule(&row);
                hosts.excluded(&row);
                *self.excluded.by_reason.entry(row.reason).or_default() += 1;
            }
        }
        self.note_torn("excluded.jsonl", rows.is_torn());
        Ok(())
    }

    fn read_waiting(
        &mut self,
        dir: &Path,
        hosts: &mut HostReportCollector,
    ) -> Result<(), RecordsError> {
        let mut is_finished = false;
        for row in waiting(dir)? {
            if let Some(row) = self.sound(row)? {
                is_finished |= row.origin.is_none() && row.reason == "finished";
                self.pending.get_or_insert_default().add(&row);
                hosts.waiting(&row);
            }
        }
        // Some drawn URLs without a row, or targets of their redirects, may still be waiting, so
        // don't give estimates yet.
        if let Some(sample) = &mut self.sample
            && sample.without_row + sample.without_target > 0
            && !is_finished
        {
            sample.estimates = None;
        }
        Ok(())
    }

    fn read_requests(
        &mut self,
        dir: &Path,
        hosts: &mut HostReportCollector,
    ) -> Result<(), RecordsError> {
        let mut rows = requests(dir)?;
        // The worker that sent requests to each address. `None` if several workers did.
        let mut askers: HashMap<String, Option<String>> = HashMap::new();
        for row in rows.by_ref() {
            let Some(row) = self.sound(row)? else {
                continue;
            };
            self.requests.add(&row);
            hosts.request(&row);
            if let (Some(address), Some(worker)) = (row.address, row.worker) {
                let asker = askers
                    .entry(address)
                    .or_insert_with(|| Some(worker.clone()));
                if asker.as_ref().is_some_and(|asker| *asker != worker) {
                    *asker = None;
                }
            }
        }
        let several = askers.values().filter(|asker| asker.is_none()).count();
        self.requests.addresses_of_several_workers = (!askers.is_empty()).then_some(several as u64);
        self.note_torn("requests.jsonl", rows.is_torn());
        Ok(())
    }

    /// Returns the row. If the line is malformed, notes a flaw and returns `None`.
    fn sound<T>(&mut self, row: Result<T, RecordsError>) -> Result<Option<T>, RecordsError> {
        match row {
            Ok(row) => Ok(Some(row)),
            Err(why @ RecordsError::Row { .. }) => {
                self.note_flaw(why.to_string());
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }

    fn note_torn(&mut self, file: &str, torn: bool) {
        if torn {
            self.note_flaw(format!("the last line of `{file}` is torn"));
        }
    }

    fn note_flaw(&mut self, flaw: String) {
        match self.flaws.len() {
            0..MAX_FLAWS => self.flaws.push(flaw),
            MAX_FLAWS => self.flaws.push("and more".to_owned()),
            _ => {}
        }
    }
}

impl CrawlSettings {
    /// Reads the settings of the crawl in `dir`.
    ///
    /// # Errors
    /// [`RecordsError::NoCrawl`] if `dir` has no crawl.
    pub fn read(dir: &Path) -> Result<CrawlSettings, RecordsError> {
        holds_any(dir, &["crawl.toml", "pages.jsonl"])?;
        let table = stored_settings(dir);
        let note = |key: &str| Some(table.get("crawl")?.get(key)?.as_str()?.to_owned());
        let per_host = || table.get("politeness")?.get("per-host")?.as_integer();
        let operator_text = |key: &str| {
            let text = table.get("operator")?.get(key)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Ok(CrawlSettings {
            seeds: seeds_of(&table).map(str::to_owned).collect(),
            version: note("version"),
            browser: note("browser"),
            started: note("started"),
            replay_of: note("replay-of"),
            per_host: per_host().and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            in_flight: RequestsInFlightLimits::read(&table),
            operator: OperatorDescription {
                contact: operator_text("contact"),
                name: operator_text("operator-name"),
                institution: operator_text("institution"),
                study: operator_text("study"),
                study_page: operator_text("study-page"),
            },
            sample: table.get("sample").and_then(SampleSettings::read),
            walk_steps: table
                .get("sample")
                .and_then(|sample| u64::try_from(sample.get("walk")?.as_integer()?).ok()),
        })
    }
}

impl SampleSettings {
    /// Reads the table `[sample]`; `None` if no sample is drawn.
    fn read(table: &toml::Value) -> Option<SampleSettings> {
        let number = |key: &str| u64::try_from(table.get(key)?.as_integer()?).ok();
        let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
        Some(SampleSettings {
            pages: number("sample")?,
            by: text("sample-by").unwrap_or_default(),
            seed: text("sample-seed").unwrap_or_default(),
            frame_depth: number("frame-depth").unwrap_or_default(),
        })
    }
}

impl PageCounts {
    /// Replaces the counts of all rows by the counts of each URL's last row. The counts by round
    /// stay, and the totals of all rows move to `all_rounds`.
    fn keep_last(&mut self, last: PageCounts) {
        let all_rows = std::mem::replace(self, last);
        self.rounds = all_rows.rounds;
        self.all_rounds = Some(VisitCounts {
            visits: all_rows.total,
            failed: all_rows.failed,
            bytes: all_rows.bytes,
        });
    }

    /// Returns the number of rows in `pages.jsonl`, over all rounds.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.all_rounds.map_or(self.total, |all| all.visits)
    }

    fn add(&mut self, row: &PageRow) {
        let failed = u64::from(row.is_failed());
        self.total += 1;
        self.bytes += row.bytes;
        self.failed += failed;
        *self.by_outcome.entry(row.outcome().to_owned()).or_default() += 1;
        if let Some(status) = row.status {
            *self.by_status.entry(status).or_default() += 1;
        }
        if let Some(kind) = &row.content_type {
            let kind = kind.split(';').next().unwrap_or_default();
            let kind = kind.trim().to_ascii_lowercase();
            let has_key = self.by_type.len() < MAX_TYPES || self.by_type.contains_key(&kind);
            let kind = if has_key { kind } else { "other".to_owned() };
            *self.by_type.entry(kind).or_default() += 1;
        }
        *self.by_depth.entry(row.depth).or_default() += 1;
        let render_error = row.render.as_ref().and_then(|render| render.error.as_ref());
        if let Some(error) = render_error {
            *self.unrendered.entry(error.clone()).or_default() += 1;
        }
        self.rounds.entry(row.round).or_default().add(row);
        if let Some(label) = &row.label {
            let has_key = self.by_label.len() < MAX_LABELS || self.by_label.contains_key(label);
            let label = if has_key { label.as_str() } else { "other" };
            let of_label = self.by_label.entry(label.to_owned()).or_default();
            of_label.total += 1;
            of_label.failed += failed;
            of_label.bytes += row.bytes;
        }
    }
}

impl BrokenPagesSummary {
    /// Counts the last row of a URL, if the page is broken.
    fn add(&mut self, row: PageRow) {
        if !row.is_broken() {
            return;
        }
        self.pages += 1;
        if self.first.len() < MAX_NAMED_BROKEN {
            self.first.push(ReportedBrokenPage {
                url: row.url,
                status: row.status,
                error: row.error,
                via: row.via,
            });
        }
    }
}

impl RequestCounts {
    /// Counts a request, unless it was never sent.
    fn add(&mut self, row: &RequestRow) {
        if !row.is_sent() {
            return;
        }
        self.total += 1;
        *self.by_purpose.entry(row.purpose.clone()).or_default() += 1;
        if let Some(failure) = &row.failure {
            *self.by_failure.entry(failure.clone()).or_default() += 1;
        }
        let first = self
            .first_start_ms
            .map_or(row.start, |first| first.min(row.start));
        self.first_start_ms = Some(first);
        self.last_end_ms = Some(self.last_end_ms.map_or(row.end, |last| last.max(row.end)));
    }
}

#[cfg(test)]
mod tests;
