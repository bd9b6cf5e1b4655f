//! The record of a crawl that a clause is judged by, and the resulting verdict.

use std::time::Duration;

use crawl_testweb::LogEntry;
use serde::Serialize;

use crate::path_normalization::{normal, placed};

/// Maximum requests that a verdict of `crawl conformance` quotes.
/// Beyond the limit: only counted.
const MAX_EVIDENCE: usize = 6;

/// How a run of the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The command ended with this exit code. `None` if a signal ended it.
    Exited(Option<i32>),
    /// The command was killed at the time limit.
    TimeLimit,
    /// The command was killed because the clause is about restarts.
    Killed,
}

/// A run of the command. Times are in microseconds, on the scale of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CommandRun {
    /// When the command was started, in microseconds on the log's scale.
    pub start_us: u64,
    /// When the command ended or was killed, in microseconds on the log's scale.
    pub end_us: u64,
    /// How the command ended.
    pub end: RunEnd,
}

/// All data that a clause is judged by: the log of the servers and the runs of the command.
#[derive(Debug, Clone, Default)]
pub struct CrawlTrace {
    /// The requests to all hosts, in order of their starts.
    pub log: Vec<LogEntry>,
    /// The runs of the command, in order.
    pub runs: Vec<CommandRun>,
    /// `ADDRESS:PORT` of each host.
    pub authorities: Vec<String>,
    /// The product token of the crawler.
    pub token: String,
    /// The gap between requests to one host that the flags of the command set.
    pub gap: Duration,
}

impl CrawlTrace {
    /// Returns the first request for a path. The path is on host 0, or on host N if written as
    /// `N:/path`.
    pub fn first(&self, path: &str) -> Option<&LogEntry> {
        self.requests_of(path).first().copied()
    }

    /// Returns all requests for a path. The path is on host 0, or on host N if written as
    /// `N:/path`.
    pub fn requests_of(&self, path: &str) -> Vec<&LogEntry> {
        let (host, path) = placed(path);
        let path = normal(path);
        let entries = self.log.iter();
        entries
            .filter(|entry| entry.host == host && normal(&entry.path) == path)
            .collect()
    }

    /// Returns the requests to one host, in order of their starts.
    pub fn of_host(&self, host: u32) -> Vec<&LogEntry> {
        let mut entries: Vec<&LogEntry> =
            self.log.iter().filter(|entry| entry.host == host).collect();
        entries.sort_by_key(|entry| entry.start_us);
        entries
    }

    /// Returns all requests.
    pub fn all(&self) -> Vec<&LogEntry> {
        self.log.iter().collect()
    }

    /// Returns whether the last run was killed at the time limit.
    pub fn was_cut_off(&self) -> bool {
        self.runs
            .last()
            .is_some_and(|run| run.end == RunEnd::TimeLimit)
    }

    /// Returns the start of the second run in microseconds, or `None` if the command ran only once.
    pub fn second_start_us(&self) -> Option<u64> {
        self.runs.get(1).map(|run| run.start_us)
    }

    fn start_us(&self) -> u64 {
        let first_run = self.runs.first().map(|run| run.start_us);
        let first_request = self.log.iter().map(|entry| entry.start_us).min();
        first_run.or(first_request).unwrap_or(0)
    }
}

/// The outcome of judging a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClauseOutcome {
    /// The log shows that the crawler keeps the clause.
    Pass,
    /// The log shows that the crawler breaks the clause.
    Fail,
    /// The log doesn't show whether the crawler keeps the clause.
    NotShown,
}

/// The outcome of judging a clause, with its reason and evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClauseVerdict {
    /// Whether the crawler keeps the clause, breaks it, or the log doesn't show which.
    pub outcome: ClauseOutcome,
    /// A description of the behaviour that decides the outcome.
    pub reason: String,
    /// Requests that prove the outcome, in order.
    pub evidence: Vec<QuotedRequest>,
    /// The number of further requests that prove the outcome.
    pub more_evidence: usize,
}

/// A request that a verdict quotes as evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuotedRequest {
    /// Seconds from the start of the first run to the start of the request.
    pub at: f64,
    /// Seconds that the answer took. `None` if the server was still answering.
    pub took: Option<f64>,
    /// Seconds since the end of the previous request to the same host. Negative if the two requests
    /// overlap.
    pub gap: Option<f64>,
    /// `ADDRESS:PORT` of the host.
    pub host: String,
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The status of the answer.
    pub status: Option<u16>,
}

impl Eq for QuotedRequest {}

impl ClauseVerdict {
    /// Creates a verdict that the crawler keeps the clause. `proof` contains the requests of
    /// `trace` to quote as evidence.
    pub fn pass(
        reason: impl Into<String>,
        trace: &CrawlTrace,
        proof: &[&LogEntry],
    ) -> ClauseVerdict {
        ClauseVerdict::of(ClauseOutcome::Pass, reason.into(), trace, proof)
    }

    /// Creates a verdict that the crawler breaks the clause. `proof` contains the requests of
    /// `trace` to quote as evidence.
    pub fn fail(
        reason: impl Into<String>,
        trace: &CrawlTrace,
        proof: &[&LogEntry],
    ) -> ClauseVerdict {
        ClauseVerdict::of(ClauseOutcome::Fail, reason.into(), trace, proof)
    }

    /// Creates a verdict with the outcome `NotShown` and without evidence.
    pub fn not_shown(reason: &str) -> ClauseVerdict {
        ClauseVerdict {
            outcome: ClauseOutcome::NotShown,
            reason: reason.to_owned(),
            evidence: Vec::new(),
            more_evidence: 0,
        }
    }

    fn of(
        outcome: ClauseOutcome,
        reason: String,
        trace: &CrawlTrace,
        proof: &[&LogEntry],
    ) -> ClauseVerdict {
        let quoted = proof.iter().take(MAX_EVIDENCE);
        ClauseVerdict {
            outcome,
            reason,
            evidence: quoted
                .map(|entry| QuotedRequest::of(trace, entry))
                .collect(),
            more_evidence: proof.len().saturating_sub(MAX_EVIDENCE),
        }
    }
}

impl QuotedRequest {
    fn of(trace: &CrawlTrace, entry: &LogEntry) -> QuotedRequest {
        let earlier = trace.log.iter().filter(|other| {
            other.host == entry.host
                && (other.start_us, other.connection) < (entry.start_us, entry.connection)
        });
        let last_end = earlier
            .map(|other| other.end_us.unwrap_or(other.start_us))
            .max();
        QuotedRequest {
            at: seconds(entry.start_us, trace.start_us()),
            took: entry.end_us.map(|end| seconds(end, entry.start_us)),
            gap: last_end.map(|end| seconds(entry.start_us, end)),
            host: trace
                .authorities
                .get(entry.host as usize)
                .cloned()
                .unwrap_or_default(),
            method: entry.method.clone(),
            path: entry.path.clone(),
            status: entry.status,
        }
    }
}

/// Returns the seconds from `from_us` to `to_us`, rounded to milliseconds. Negative if `to_us` is
/// earlier.
pub(crate) fn seconds(to_us: u64, from_us: u64) -> f64 {
    let micros = i128::from(to_us) - i128::from(from_us);
    let millis = (micros as f64 / 1000.0).round();
    millis / 1000.0
}
