//! Checks from the records of a crawl whether the crawl followed its rules.
//!
//! The audit shares no code with the scheduler or the fetcher. It reads delays and waits from the
//! rows of `requests.jsonl`, rules from the archived responses to robots.txt requests, and the
//! settings in force at the time of each request from `state/delays.jsonl` and `crawl.toml`.

mod audit_findings;
mod audited_settings;
mod clock_periods;
mod compiled_robots_cache;
mod host_conduct_page;
mod host_pace;
mod operator_delays;
mod recorded_verdicts;
mod robots_exchanges;
mod robots_freshness;
mod robots_obedience;
mod robots_responses;
mod settings_file;
mod settings_history;
mod shared_limit_settings;
mod shared_limits;
mod signature_check;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::RequestRow;
use crawl_identity::KeyDirectory;
use serde::{Deserialize, Serialize};

use crate::error::RecordsError;
use crate::recognize_directory::{holds_any, why_without_archive};
use crate::row_file_reader::{RowFileReader, excluded, pages, requests};
use audit_findings::{AuditFindings, CitedRowFile};
pub use audited_settings::RequestsInFlightLimits;
pub(crate) use audited_settings::RobotsInterpretation;
use clock_periods::ClockPeriods;
use host_pace::HostRequestTrackers;
use operator_delays::OperatorDelayLog;
pub(crate) use robots_exchanges::{RobotsExchangeLocator, key as exchange_key};
use robots_responses::RobotsResponses;
pub(crate) use robots_responses::{MAX_HOPS, target as redirect_target};
use settings_history::SettingsHistory;
use shared_limits::SharedLimitTracker;

pub use host_conduct_page::conduct_page;
pub use signature_check::signed_message;

/// Maximum rounding error of a time in a row, in milliseconds. Rows store whole milliseconds.
const ROUNDING_MS: u64 = 1;
/// Grace period after an event, in milliseconds: a request that starts within it may still be sent
/// as if the event had not happened. An event is a robots.txt response, a change of the settings,
/// or the start of quiet hours.
const SETTLING_MS: u64 = 1000;
/// Maximum difference between the clocks of two workers, in milliseconds. The program warns about a
/// clock that differs by more than two seconds from the clock of the database server. So two clocks
/// without a warning differ by at most four seconds.
pub(crate) const CLOCKS_APART_MS: u64 = 4000;
// Keys of `AuditReport::undecided`, which are a part of the JSON format. The text format words them
// differently: see `undecided_words`.
const JUST_THEN: &str = "rules that were answered just then";
const NOT_ARCHIVED: &str = "an answer to a request for robots.txt that is not archived";
const EARLIER_RUN: &str = "an earlier run whose configuration is not known";
const STALE_AFTER_RESTART: &str = "a copy that was too old after a restart";
const NO_ROBOTS_BEFORE: &str = "rows of pages.jsonl without a robots.txt before them";
const BEYOND_TIMEOUT: &str = "requests in flight for longer than the timeout";
const PACE_BEFORE_RESTART: &str =
    "a pace that another origin of the host requested before a restart";
const WAIT_JUST_THEN: &str = "waits that were answered just then";
const WAIT_TAKEN_BACK: &str = "waits that another answer may have taken back";
const CLOCKS_APART: &str = "times of two workers whose clocks may differ";
const ROWS_ELSEWHERE: &str = "needs rows of another worker";
const CLOCK_SET_BACK: &str = "a clock that was set back between two runs";

/// The findings of an audit.
///
/// Field names are stable; later versions of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Version of this format: 1.
    pub format: u32,
    /// Number of hosts that got requests.
    pub hosts: u64,
    /// Number of checks, by kind: `requests` (rows of `requests.jsonl`), `gaps`, `waits`,
    /// `robots_gaps` (if robots.txt demands a delay), `page_requests` (against robots.txt: fetched
    /// first, in force, allowed, within visiting hours), `page_rows`, `excluded_rows` (the
    /// robots.txt verdicts in rows), `limits` (requests against the limits per address, per site
    /// and in total, and the quiet hours), `signatures` (of archived requests).
    pub checked: BTreeMap<String, u64>,
    /// Why the robots.txt rules were not checked. `None` if they were checked.
    pub rules_unchecked: Option<String>,
    /// Number of requests that were signed.
    pub signed: u64,
    /// Number of requests whose response demanded a signature that the crawl can't make.
    #[serde(default)]
    pub unmet_signatures: u64,
    /// For each key, by its thumbprint: the number of archived requests whose signature names it.
    #[serde(default)]
    pub signers: BTreeMap<String, u64>,
    /// Why signatures were not verified. `None` if they were verified, or if no request was signed.
    pub signatures_unchecked: Option<String>,
    /// Number of checks that could not be decided, by the information that was missing. Each of
    /// them may have been a breach.
    pub undecided: BTreeMap<String, u64>,
    /// Number of breaches by rule: `gap`, `in-flight`, `pace`, `wait`, `robots-first`,
    /// `unreachable`, `stale`, `disallowed`, `visit-time`, `page-row`, `excluded-row`,
    /// `per-address`, `per-site`, `max-rate`, `quiet-hours`, `unsigned`, `signature`.
    pub by_rule: BTreeMap<String, u64>,
    /// The first twenty breaches.
    pub breaches: Vec<RuleBreach>,
    /// Defects of files, such as torn last lines and damaged records, which don't count as
    /// breaches.
    pub flaws: Vec<String>,
}

/// A breach of a rule by the crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleBreach {
    /// The rule, as in [`AuditReport::by_rule`].
    pub rule: String,
    /// The host that the breach concerns.
    pub host: String,
    /// A description of the breach.
    pub what: String,
    /// The required time in milliseconds, for the rules `gap`, `pace` and `wait`. `None` for other
    /// rules.
    pub asked_ms: Option<u64>,
    /// The time in milliseconds that the crawl waited, for the rules `gap`, `pace` and `wait`.
    /// `None` for other rules.
    pub kept_ms: Option<u64>,
    /// The rows that show the breach, the earlier ones first.
    pub rows: Vec<CitedRow>,
}

/// A row cited as evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitedRow {
    /// The name of the file that contains the row.
    pub file: String,
    /// The line number of the row in the file, starting at 1.
    pub line: u64,
    /// The row itself, if it is in `requests.jsonl`.
    pub request: Option<RequestRow>,
}

impl AuditReport {
    /// Returns the number of breaches, including those beyond the first twenty.
    #[must_use]
    pub fn breach_count(&self) -> u64 {
        self.by_rule.values().sum()
    }
}

impl CitedRow {
    fn of((source, line): (CitedRowFile, u64)) -> CitedRow {
        CitedRow {
            file: source.name().to_owned(),
            line,
            request: None,
        }
    }
}

/// An audit in progress.
struct AuditRun<'a> {
    settings: &'a SettingsHistory,
    delays: OperatorDelayLog,
    clock: &'a ClockPeriods,
    /// The archived robots.txt responses. `None` if the crawl has no archive.
    copies: Option<RobotsResponses>,
    hosts: HostRequestTrackers,
    shared: SharedLimitTracker,
    findings: AuditFindings,
}

/// Checks the crawl in `dir` against the rules it had to follow.
///
/// `keys` are the published keys of the crawl's signatures. If it is empty, signatures are not
/// verified.
///
/// Reads each row file once or twice, and `requests.jsonl` up to four times. If no request was
/// signed, reads only the responses to robots.txt requests from the archive. Memory: about 1,500
/// bytes per host with its robots.txt, 200 bytes for each further robots.txt request, and 64 MiB of
/// compiled rules.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has no crawl; [`RecordsError::Config`] and file system
/// errors. A malformed line is not an error, but is listed in [`AuditReport::flaws`]. A malformed
/// line of `requests.jsonl` may have been the robots.txt response that allows a request. In that
/// case, an apparent breach of robots.txt is undecided.
pub fn audit(dir: &Path, keys: &[KeyDirectory]) -> Result<AuditReport, RecordsError> {
    holds_any(dir, &["crawl.toml", "requests.jsonl"])?;
    let (clock, delays, settings) = read_settings(dir)?;
    let mut audit = AuditReport {
        format: 1,
        ..AuditReport::default()
    };
    let exchanges = find_exchanges(dir)?;
    if exchanges.is_none() {
        let reason = match why_without_archive(dir) {
            Some(why) => format!("there is no archive ({why})"),
            None => "there is no archive".to_owned(),
        };
        audit.rules_unchecked = Some(reason);
    }
    let mut trial = AuditRun {
        copies: exchanges.map(RobotsResponses::new),
        settings: &settings,
        delays,
        clock: &clock,
        hosts: HostRequestTrackers::default(),
        shared: SharedLimitTracker::default(),
        findings: AuditFindings::default(),
    };
    let (flaws, signed, unmet) = (
        &mut audit.flaws,
        &mut audit.signed,
        &mut audit.unmet_signatures,
    );
    let (mut last_end, mut end_before, mut added) = (0, 0, 0);
    each(requests(dir)?, "requests.jsonl", flaws, |row, line| {
        let Some(mut row) = row else {
            trial.findings.lose(line, end_before);
            return Ok(());
        };
        last_end = last_end.max(row.end);
        if clock.added_at(line) > added {
            added = clock.added_at(line);
            trial.clock_was_set_back(added)?;
        }
        row.start = row.start.saturating_add(added);
        row.end = row.end.saturating_add(added);
        end_before = row.end;
        *signed += u64::from(row.signed);
        *unmet += u64::from(row.unmet_signature.is_some());
        (trial.shared).request(&row, line, trial.settings, &mut trial.findings);
        trial.request(&row, line)
    })?;
    trial.judge_rest()?;
    (trial.shared).finish(trial.settings, &mut trial.findings);
    if trial.copies.is_some() {
        each(pages(dir)?, "pages.jsonl", flaws, |row, line| {
            let Some(row) = row else {
                return Ok(());
            };
            // Every page has a request. So if a page is later than all requests, the end of the
            // request log is missing.
            if row.fetched_at.as_millis() > last_end {
                trial
                    .findings
                    .lose(u64::MAX, last_end.saturating_add(added));
            }
            trial.page_row(&row, line)
        })?;
        each(
            excluded(dir)?,
            "excluded.jsonl",
            flaws,
            |row, line| match row {
                Some(row) if row.reason == "robots" => trial.excluded_row(&row, line),
                _ => Ok(()),
            },
        )?;
    }
    let damaged = trial.copies.as_ref().map_or(0, RobotsResponses::damaged);
    if damaged > 0 {
        flaws.push(format!("{damaged} records of the archive can't be read"));
    }
    if audit.signed > 0 {
        audit.signers = signature_check::check(dir, keys, &mut trial.findings)?;
        if keys.is_empty() {
            audit.signatures_unchecked = Some("the public keys are not given".to_owned());
        }
    }
    audit.hosts = trial.hosts.all.iter().filter(|host| host.is_asked).count() as u64;
    let findings = trial.findings;
    audit.checked = findings.checked;
    audit.undecided = findings.undecided;
    audit.by_rule = findings.by_rule;
    audit.breaches = findings.breaches;
    cite(dir, &mut audit.breaches)?;
    Ok(audit)
}

/// Reads the settings of each run, and finds out whether the clock was set back between two runs.
fn read_settings(
    dir: &Path,
) -> Result<(ClockPeriods, OperatorDelayLog, SettingsHistory), RecordsError> {
    let mut rows = operator_delays::read_rows(dir)?;
    let delays = OperatorDelayLog::of(rows.clone());
    let settings = SettingsHistory::read(dir, &delays)?;
    let is_single = |host: &str| settings.most_per_host(host) == 1;
    let clock = ClockPeriods::find(requests(dir)?, &rows, is_single)?;
    if !clock.are_several() {
        return Ok((clock, delays, settings));
    }
    clock.correct(&mut rows);
    let delays = OperatorDelayLog::of(rows);
    let settings = SettingsHistory::read(dir, &delays)?;
    Ok((clock, delays, settings))
}

/// Finds the archived robots.txt exchanges; `None` if there is no archive.
fn find_exchanges(dir: &Path) -> Result<Option<RobotsExchangeLocator>, RecordsError> {
    let mut wanted = HashSet::new();
    for row in requests(dir)? {
        let Some(row) = readable(row)? else {
            continue;
        };
        if matches!(row.purpose.as_str(), "robots" | "hop") && row.status.is_some() {
            wanted.insert(exchange_key(&row.url, row.start));
        }
    }
    RobotsExchangeLocator::find(dir, &wanted)
}

/// Turns the error of a malformed line into `None`. A power failure may leave malformed lines, so
/// they don't stop the audit.
fn readable<T>(row: Result<T, RecordsError>) -> Result<Option<T>, RecordsError> {
    match row {
        Err(RecordsError::Row { .. }) => Ok(None),
        row => row.map(Some),
    }
}

/// Calls a function for each row with its line number. For a malformed line, the row is `None`.
fn each<T: serde::de::DeserializeOwned>(
    mut rows: RowFileReader<T>,
    file: &str,
    flaws: &mut Vec<String>,
    mut visit: impl FnMut(Option<T>, u64) -> Result<(), RecordsError>,
) -> Result<(), RecordsError> {
    let mut unreadable = 0_u64;
    while let Some(row) = rows.next() {
        let row = readable(row)?;
        unreadable += u64::from(row.is_none());
        visit(row, rows.line())?;
    }
    match unreadable {
        0 => {}
        1 => flaws.push(format!("one line of `{file}` can't be read")),
        count => flaws.push(format!("{count} lines of `{file}` can't be read")),
    }
    if rows.is_torn() {
        flaws.push(format!("the last line of `{file}` is torn"));
    }
    Ok(())
}

/// Fills in [`CitedRow::request`] for the cited rows of `requests.jsonl`.
fn cite(dir: &Path, breaches: &mut [RuleBreach]) -> Result<(), RecordsError> {
    let mut cited: HashMap<u64, Vec<&mut CitedRow>> = HashMap::new();
    let rows = breaches.iter_mut().flat_map(|breach| &mut breach.rows);
    for row in rows.filter(|row| row.file == CitedRowFile::Requests.name()) {
        cited.entry(row.line).or_default().push(row);
    }
    if cited.is_empty() {
        return Ok(());
    }
    let mut rows = requests(dir)?;
    while let Some(row) = rows.next() {
        let Some(row) = readable(row)? else {
            continue;
        };
        for cited in cited.remove(&rows.line()).unwrap_or_default() {
            cited.request = Some(row.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
