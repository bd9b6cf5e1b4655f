//! The audit: did a crawl keep its rules? Derived anew from what it wrote down.
//!
//! Nothing here is the scheduler's or the fetcher's own code: gaps and waits come from the
//! rows of `requests.jsonl`, rules from the archived answers to requests for robots.txt, and
//! what was asked of the crawl from `crawl.toml` and `state/delays.jsonl`.

mod answer_age;
mod cache;
mod delays;
mod exchange;
mod findings;
mod hosts;
mod limits;
mod page_requests;
mod robots_copies;
mod row_verdicts;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crawl_archive::rows::RequestRow;
use serde::{Deserialize, Serialize};

use crate::directory::holds_any;
use crate::error::RecordsError;
use crate::rows::{RowsOf, excluded, pages, requests};
use delays::Delays;
use exchange::Exchanges;
use findings::{Findings, Source};
use hosts::Hosts;
use limits::CrawlLimits;
use robots_copies::Copies;

/// Rows hold whole milliseconds.
const ROUNDING_MS: u64 = 1;
/// Where two things happen at once (several requests in flight, an hour that ends), the one
/// may not know of the other for so long.
const SETTLING_MS: u64 = 1000;
const JUST_THEN: &str = "rules that were answered just then";
const NOT_ARCHIVED: &str = "an answer to a request for robots.txt that is not archived";
const EARLIER_RUN: &str = "an earlier run whose configuration is not known";

/// The findings of an audit.
///
/// Field names stay; a later version of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The layout of this object: 1.
    pub format: u32,
    /// Hosts that were asked.
    pub hosts: u64,
    /// The number of checks, by kind: `requests` (rows of `requests.jsonl`),
    /// `gaps`, `waits`, `robots_gaps` (where robots.txt asks for a pace), `page_requests`
    /// (against robots.txt: asked first, in force, allowed, welcome at that hour),
    /// `page_rows`, `excluded_rows` (what rows say of robots.txt).
    pub checked: BTreeMap<String, u64>,
    /// The reason why the rules of robots.txt were not checked, where they were not.
    pub rules_unchecked: Option<String>,
    /// The requests that may have broken a rule, by what is missing to tell.
    pub undecided: BTreeMap<String, u64>,
    /// Breaches by rule: `gap`, `in-flight`, `pace`, `wait`, `robots-first`, `unreachable`,
    /// `stale`, `disallowed`, `visit-time`, `page-row`, `excluded-row`.
    pub by_rule: BTreeMap<String, u64>,
    /// The first twenty breaches.
    pub breaches: Vec<Breach>,
    /// Defects of the files: torn last lines, damaged records. None is a breach.
    pub flaws: Vec<String>,
}

/// A rule that was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Which one, as in [`Audit::by_rule`].
    pub rule: String,
    /// The host that was asked.
    pub host: String,
    /// The event, in words.
    pub what: String,
    /// The time that was asked for, in milliseconds, where it is one.
    pub asked_ms: Option<u64>,
    /// The part of it that was kept, in milliseconds.
    pub kept_ms: Option<u64>,
    /// The rows that show it, the earlier ones first.
    pub rows: Vec<CitedRow>,
}

/// A row that shows something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitedRow {
    /// The row file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The row itself, where it is one of `requests.jsonl`.
    pub request: Option<RequestRow>,
}

impl Audit {
    /// The number of breaches.
    #[must_use]
    pub fn breach_count(&self) -> u64 {
        self.by_rule.values().sum()
    }
}

impl CitedRow {
    fn of((source, line): (Source, u64)) -> CitedRow {
        CitedRow {
            file: source.name().to_owned(),
            line,
            request: None,
        }
    }
}

/// An audit under way.
struct AuditRun<'a> {
    limits: &'a CrawlLimits,
    delays: Delays,
    /// None where there is no archive.
    copies: Option<Copies>,
    hosts: Hosts,
    findings: Findings,
}

/// Holds the crawl that lies in `dir` against the rules that it was to keep.
///
/// Goes through each row file from end to end, once or twice, and reads of the archive the
/// answers to requests for robots.txt alone. Memory: some 1,500 bytes for each host with
/// its robots.txt, 200 for each further request for one, and 64 MiB of compiled rules.
///
/// # Errors
/// [`RecordsError::NoCrawl`] where `dir` holds no crawl; [`RecordsError::Config`] and errors of
/// the file system. Lines that are no rows are no error: they are counted in [`Audit::flaws`], and
/// what looks like a breach of robots.txt is undecided where the answer that allows it may have
/// stood in one of `requests.jsonl`.
pub fn audit(dir: &Path) -> Result<Audit, RecordsError> {
    holds_any(dir, &["crawl.toml", "requests.jsonl"])?;
    let delays = Delays::read(dir)?;
    let limits = CrawlLimits::read(dir)?.with_earlier(delays.rereads());
    let mut audit = Audit {
        format: 1,
        ..Audit::default()
    };
    let exchanges = find_exchanges(dir)?;
    if exchanges.is_none() {
        let why = match limits.archives {
            true => "there is no archive",
            false => "the crawl kept no archive (--warc off)",
        };
        audit.rules_unchecked = Some(why.to_owned());
    }
    let mut trial = AuditRun {
        copies: exchanges.map(|exchanges| Copies::new(exchanges, &limits)),
        limits: &limits,
        delays,
        hosts: Hosts::default(),
        findings: Findings::default(),
    };
    let flaws = &mut audit.flaws;
    let (mut last_end, mut end_before) = (0, 0);
    each(requests(dir)?, "requests.jsonl", flaws, |row, line| {
        let Some(row) = row else {
            trial.findings.lose(line, end_before);
            return Ok(());
        };
        end_before = row.end;
        last_end = last_end.max(row.end);
        trial.request(&row, line)
    })?;
    trial.judge_rest()?;
    if trial.copies.is_some() {
        each(pages(dir)?, "pages.jsonl", flaws, |row, line| {
            let Some(row) = row else {
                return Ok(());
            };
            // Each page has a request: the end of their log was cut off.
            if row.fetched_at.as_millis() > last_end {
                trial.findings.lose(u64::MAX, last_end);
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
    let damaged = trial.copies.as_ref().map_or(0, Copies::damaged);
    if damaged > 0 {
        flaws.push(format!("{damaged} records of the archive can't be read"));
    }
    audit.hosts = trial.hosts.all.len() as u64;
    let findings = trial.findings;
    audit.checked = findings.checked;
    audit.undecided = findings.undecided;
    audit.by_rule = findings.by_rule;
    audit.breaches = findings.breaches;
    cite(dir, &mut audit.breaches)?;
    Ok(audit)
}

/// The archived exchanges for robots.txt; nothing where there is no archive.
fn find_exchanges(dir: &Path) -> Result<Option<Exchanges>, RecordsError> {
    let mut wanted = HashSet::new();
    for row in requests(dir)? {
        let Some(row) = readable(row)? else {
            continue;
        };
        if matches!(row.purpose.as_str(), "robots" | "hop") && row.status.is_some() {
            wanted.insert(exchange::key(&row.url, row.start));
        }
    }
    Exchanges::find(dir, &wanted)
}

/// Nothing for a line that is no row: a power cut may leave anything there.
fn readable<T>(row: Result<T, RecordsError>) -> Result<Option<T>, RecordsError> {
    match row {
        Err(RecordsError::Row { .. }) => Ok(None),
        row => row.map(Some),
    }
}

/// Goes through the rows with their lines; nothing stands for a line that is no row.
fn each<T: serde::de::DeserializeOwned>(
    mut rows: RowsOf<T>,
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

/// Fills in the requests that breaches speak of.
fn cite(dir: &Path, breaches: &mut [Breach]) -> Result<(), RecordsError> {
    let mut cited: HashMap<u64, Vec<&mut CitedRow>> = HashMap::new();
    let rows = breaches.iter_mut().flat_map(|breach| &mut breach.rows);
    for row in rows.filter(|row| row.file == Source::Requests.name()) {
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
