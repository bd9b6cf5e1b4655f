//! A crawl in numbers: `report.json`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crawl_archive::rows::{ExcludedRow, PageRow, RequestRow};
use serde::{Deserialize, Serialize};

use crate::bins::GapHistograms;
use crate::coverage::Coverage;
use crate::directory::{holds_any, seeds_of, stored_settings};
use crate::error::RecordsError;
use crate::hosts::{HostReport, HostSums};
use crate::numbers::grouped;
use crate::outcome::outcome;
use crate::rows::{excluded, pages, requests, waiting};
use crate::sample::{SampleReport, SampleRows};
use crate::walk::{WalkReport, WalkSteps};

/// The numbers of a crawl, over all its runs.
///
/// Serialised, this is `report.json`. Its field names stay; a later version of the
/// program may add fields. Times are milliseconds since the Unix epoch, durations
/// milliseconds, sizes bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The layout of this report: 1.
    pub format: u32,
    /// The seeds of the crawl, and the program that crawled.
    pub crawl: CrawlSettings,
    /// The pages, each URL counted once by its last visit.
    pub pages: PageCounts,
    /// Pages that are broken as of their last row; [`broken()`](crate::broken()) tells where links
    /// to them stand.
    #[serde(default)]
    pub broken: BrokenCounts,
    /// The rows of `excluded.jsonl`.
    pub excluded: ExcludedCounts,
    /// The rows of `requests.jsonl`.
    pub requests: RequestCounts,
    /// The sample, where the crawl drew one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
    /// The random walk, where the crawl is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<WalkReport>,
    /// Hosts by their coverage verdict; those that were never to be asked have none.
    #[serde(default)]
    pub coverage: BTreeMap<Coverage, u64>,
    /// Each host, by host key.
    pub hosts: Vec<HostReport>,
    /// Defects of the records: files whose last line is torn, lines that are no
    /// rows. Empty where all is well.
    pub flaws: Vec<String>,
}

/// The crawl's settings that a report names, from `crawl.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlSettings {
    /// As typed.
    pub seeds: Vec<String>,
    /// The version of the program that ran last.
    pub version: Option<String>,
    /// When the crawl was first started, RFC 3339.
    pub started: Option<String>,
    /// The directory of the crawl whose replay this is: then no request was sent, and all times are
    /// virtual. None for a crawl.
    #[serde(default)]
    pub replay_of: Option<String>,
    /// Requests that might be in flight per host.
    pub per_host: u32,
    /// Who answers for it, and what it is for.
    #[serde(default)]
    pub operator: Operator,
    /// The sample that was to be drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleSettings>,
}

/// The design of a sample, as `[sample]` of `crawl.toml` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSettings {
    /// Pages of each stratum, at most.
    pub pages: u64,
    /// The strata: `crawl`, `host`, `depth` or `path`.
    pub by: String,
    /// The text from which the draw follows.
    pub seed: String,
    /// Pages that are fewer links away from a seed were read to find what could be drawn.
    pub frame_depth: u64,
}

/// Who answers for a crawl, and what it is for, as `[operator]` of `crawl.toml` says; each may not
/// be said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// The mail address or URL that the owners of visited sites were given.
    pub contact: Option<String>,
    /// The person.
    pub name: Option<String>,
    /// The institution.
    pub institution: Option<String>,
    /// What the study is about.
    pub study: Option<String>,
    /// The page that tells of it.
    pub study_page: Option<String>,
}

/// The pages of a crawl. All but `rounds` and `all_rounds` count each URL once, by its last row in
/// `pages.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCounts {
    /// URLs with a row.
    pub total: u64,
    /// URLs for which [`PageRow::is_failed`], sitemaps excluded.
    pub failed: u64,
    /// Bytes of the bodies, as received.
    pub bytes: u64,
    /// `ok` (2xx), `unmodified` (304 for what is held), `redirect` (3xx), `client_error` (4xx),
    /// `server_error` (5xx), `no_answer`, `other`; and, whatever their status, `login_page`,
    /// `challenge` and `block_page`.
    pub by_outcome: BTreeMap<String, u64>,
    /// By status code.
    pub by_status: BTreeMap<u16, u64>,
    /// By content type, without parameters, in lower case.
    pub by_type: BTreeMap<String, u64>,
    /// By links followed from a seed.
    pub by_depth: BTreeMap<u32, u64>,
    /// The rounds of the crawl by their number: 1, and one more for each `--recrawl`.
    #[serde(default)]
    pub rounds: BTreeMap<u32, Round>,
    /// All visits of a crawl with more than one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_rounds: Option<VisitCounts>,
    /// Those with a label, by it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_label: BTreeMap<String, LabelCounts>,
}

/// All rows of `pages.jsonl`: a URL visited in three rounds counts three times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitCounts {
    /// All rows.
    pub visits: u64,
    /// Rows for which [`PageRow::is_failed`], sitemaps excluded.
    pub failed: u64,
    /// Bytes of the bodies, as received.
    pub bytes: u64,
}

/// The pages with one label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCounts {
    /// URLs with that label.
    pub total: u64,
    /// URLs for which [`PageRow::is_failed`], sitemaps excluded.
    pub failed: u64,
    /// Bytes of the bodies, as received.
    pub bytes: u64,
}

/// Pages without an answer, or with a status of 400 and above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenCounts {
    /// The number of them.
    pub pages: u64,
    /// The first hundred, in the order of their rows.
    pub first: Vec<BrokenRow>,
}

/// A page that is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenRow {
    /// Its URL.
    pub url: String,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The error, where there was no answer.
    pub error: Option<String>,
    /// The page that led there first; none for a seed.
    pub via: Option<String>,
}

/// The rows of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// All of its rows.
    pub rows: u64,
    /// Pages where there were none before.
    pub new: u64,
    /// Pages that are others than at their last visit.
    pub changed: u64,
    /// Pages that are as they were.
    pub same: u64,
    /// Pages that are no more.
    pub gone: u64,
    /// Rows without an answer, or with a status of 400 and above.
    #[serde(default)]
    pub broken: u64,
}

impl Round {
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

impl std::fmt::Display for Round {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [new, changed, same, gone, broken] =
            [self.new, self.changed, self.same, self.gone, self.broken].map(grouped);
        write!(
            f,
            "{new} new, {changed} changed, {same} same, {gone} gone, {broken} broken"
        )
    }
}

/// The rows of `excluded.jsonl`, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedCounts {
    /// All rows.
    pub total: u64,
    /// `robots`, `meta`, `scope` ..
    pub by_reason: BTreeMap<String, u64>,
    /// Rows of traps, actions and duplicates by their rule, which holds the evidence; the first
    /// thousand rules.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub put_aside: BTreeMap<String, u64>,
}

/// The rows of `requests.jsonl`, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// All rows: robots.txt, retries and failures too.
    pub total: u64,
    /// `page`, `robots` ..
    pub by_purpose: BTreeMap<String, u64>,
    /// Requests without an answer, by the failure's name.
    pub by_failure: BTreeMap<String, u64>,
    /// When the first was sent.
    pub first_start_ms: Option<u64>,
    /// When the last ended.
    pub last_end_ms: Option<u64>,
    /// Gaps shorter than what was asked for, over all hosts.
    pub short_gaps: u64,
    /// Waits that were cut short, over all hosts.
    pub short_waits: u64,
    /// Addresses that more than one worker asked, where the requests of several were gathered: a
    /// limit per address holds for each worker by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses_of_several_workers: Option<u64>,
}

/// Content types that are told apart; the rest is `other`. A server chooses them, so
/// their number must be bounded.
const MAX_TYPES: usize = 1000;
/// Labels that are told apart: as many as a list may have seeds; the rest is `other`.
const MAX_LABELS: usize = 10_000;
/// Rules that are told apart; their texts hold URLs.
const MAX_RULES: usize = 1000;
/// Broken pages that are named one by one.
const MAX_NAMED_BROKEN: usize = 100;
/// Flaws that are named one by one.
const MAX_FLAWS: usize = 100;

/// Sums a crawl's records up.
///
/// # Errors
/// [`RecordsError::NoCrawl`] where `dir` holds no records, and errors of the file system.
/// Lines that are no rows are no error: they stand in [`Report::flaws`].
pub fn report(dir: &Path) -> Result<Report, RecordsError> {
    report_with_gaps(dir).map(|(report, _)| report)
}

/// The same, and the gaps of all hosts, which its page draws.
pub(crate) fn report_with_gaps(dir: &Path) -> Result<(Report, GapHistograms), RecordsError> {
    let crawl = CrawlSettings::read(dir)?;
    let mut hosts = HostSums::new(crawl.per_host);
    let mut report = Report {
        format: 1,
        crawl,
        ..Report::default()
    };
    report.read_requests(dir, &mut hosts)?;
    report.read_pages(dir, &mut hosts)?;
    report.read_excluded(dir, &mut hosts)?;
    report.read_waiting(dir, &mut hosts)?;
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

impl Report {
    /// The hosts that were asked for anything, those with most requests first, and how many others
    /// there are: those that are only linked to.
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
            .all(|coverage| *coverage == Coverage::Whole)
    }

    fn read_pages(&mut self, dir: &Path, hosts: &mut HostSums) -> Result<(), RecordsError> {
        let mut rows = pages(dir)?;
        let mut sample = SampleRows::default();
        let mut broken = BrokenCounts::default();
        for row in rows.by_ref() {
            if let Some(row) = self.sound(row)? {
                sample.add(&row);
                self.pages.add(&row, hosts.is_failed(&row));
                hosts.page(&row);
                broken.add(row);
            }
        }
        self.note_torn("pages.jsonl", rows.is_torn());
        self.sample = sample.report();
        let (steps, is_torn) = WalkSteps::read(dir, |row| self.sound(row))?;
        self.note_torn("walk.jsonl", is_torn);
        self.walk = steps.report(&sample);
        let (mut last_pages, mut last_broken) = (PageCounts::default(), BrokenCounts::default());
        let has_rounds = hosts.take_last_rows(dir, |row, is_failed| {
            last_pages.add(&row, is_failed);
            last_broken.add(row);
        })?;
        self.broken = if has_rounds { last_broken } else { broken };
        if has_rounds {
            self.pages.keep_last(last_pages);
        }
        Ok(())
    }

    fn read_excluded(&mut self, dir: &Path, hosts: &mut HostSums) -> Result<(), RecordsError> {
        let mut rows = excluded(dir)?;
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

    fn read_waiting(&mut self, dir: &Path, hosts: &mut HostSums) -> Result<(), RecordsError> {
        let mut is_finished = false;
        for row in waiting(dir)? {
            if let Some(row) = self.sound(row)? {
                is_finished |= row.origin.is_none() && row.reason == "finished";
                hosts.waiting(&row);
            }
        }
        // Pages that wait are no pages that failed.
        if let Some(sample) = &mut self.sample
            && sample.without_row > 0
            && !is_finished
        {
            sample.estimates = None;
        }
        Ok(())
    }

    fn read_requests(&mut self, dir: &Path, hosts: &mut HostSums) -> Result<(), RecordsError> {
        let mut rows = requests(dir)?;
        // Who asked each address; none where several did.
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

    /// The row, or nothing where the line was none.
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
    /// Reads those of the crawl in `dir`.
    ///
    /// # Errors
    /// [`RecordsError::NoCrawl`] where `dir` holds none.
    pub fn read(dir: &Path) -> Result<CrawlSettings, RecordsError> {
        holds_any(dir, &["crawl.toml", "pages.jsonl"])?;
        let table = stored_settings(dir);
        let note = |key: &str| Some(table.get("crawl")?.get(key)?.as_str()?.to_owned());
        let per_host = || table.get("politeness")?.get("per-host")?.as_integer();
        let said = |key: &str| {
            let text = table.get("operator")?.get(key)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Ok(CrawlSettings {
            seeds: seeds_of(&table).map(str::to_owned).collect(),
            version: note("version"),
            started: note("started"),
            replay_of: note("replay-of"),
            per_host: per_host().and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            operator: Operator {
                contact: said("contact"),
                name: said("operator-name"),
                institution: said("institution"),
                study: said("study"),
                study_page: said("study-page"),
            },
            sample: table.get("sample").and_then(SampleSettings::read),
        })
    }
}

impl SampleSettings {
    /// Reads the table `[sample]`; none where no sample is drawn.
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
    /// Replaces the counts of all rows by those of the last row of each URL. The rounds stay, and
    /// the sums of all rows move to `all_rounds`.
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

    fn add(&mut self, row: &PageRow, failed: bool) {
        self.total += 1;
        self.bytes += row.bytes;
        self.failed += u64::from(failed);
        *self.by_outcome.entry(outcome(row).to_owned()).or_default() += 1;
        if let Some(status) = row.status {
            *self.by_status.entry(status).or_default() += 1;
        }
        if let Some(kind) = &row.content_type {
            let kind = kind.split(';').next().unwrap_or_default();
            let kind = kind.trim().to_ascii_lowercase();
            let known = self.by_type.len() < MAX_TYPES || self.by_type.contains_key(&kind);
            let kind = if known { kind } else { "other".to_owned() };
            *self.by_type.entry(kind).or_default() += 1;
        }
        *self.by_depth.entry(row.depth).or_default() += 1;
        self.rounds.entry(row.round).or_default().add(row);
        if let Some(label) = &row.label {
            let known = self.by_label.len() < MAX_LABELS || self.by_label.contains_key(label);
            let label = if known { label.as_str() } else { "other" };
            let of_label = self.by_label.entry(label.to_owned()).or_default();
            of_label.total += 1;
            of_label.failed += u64::from(failed);
            of_label.bytes += row.bytes;
        }
    }
}

impl BrokenCounts {
    /// Takes the last row of a URL.
    fn add(&mut self, row: PageRow) {
        if !row.is_broken() {
            return;
        }
        self.pages += 1;
        if self.first.len() < MAX_NAMED_BROKEN {
            self.first.push(BrokenRow {
                url: row.url,
                status: row.status,
                error: row.error,
                via: row.via,
            });
        }
    }
}

impl ExcludedCounts {
    fn note_rule(&mut self, row: &ExcludedRow) {
        let Some(rule) = &row.rule else {
            return;
        };
        let told = matches!(row.reason.as_str(), "trap" | "action" | "duplicate");
        let room = self.put_aside.len() < MAX_RULES || self.put_aside.contains_key(rule);
        if told && room {
            *self.put_aside.entry(rule.clone()).or_default() += 1;
        }
    }
}

impl RequestCounts {
    fn add(&mut self, row: &RequestRow) {
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
