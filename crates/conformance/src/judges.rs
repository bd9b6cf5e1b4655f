//! Judgements that several clauses share. Each is a pure function over the log.
//!
//! A gap is the time from the end of an answer to the start of the next request. The server records
//! the end just before it sends the last bytes, and the start after it has read the first byte. So
//! a measured gap is never shorter than the crawler's pause, however slow the machine is.

use std::time::Duration;

use crawl_testweb::LogEntry;

use crate::crawl_trace::{ClauseVerdict, CrawlTrace, RunEnd, seconds};

/// A wait may be shorter than required by up to `1 / GAP_TOLERANCE` (a tenth), because timers are
/// coarse.
const GAP_TOLERANCE: u32 = 10;

/// A request this soon after an answer is not judged if the crawler sends several requests at a
/// time: the crawler may have sent it before it read the answer.
const ON_THE_WAY: Duration = Duration::from_millis(250);

/// Maximum time until the server notices that a connection was closed.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

/// How much of an answer without an end a crawler may read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndlessBodyLimit {
    /// Maximum bytes that the server sends.
    Bytes(u64),
    /// Maximum time from the start of the request.
    Time(Duration),
}

/// Checks that every request to host 0 keeps the gap that the command's flags set.
pub(crate) fn keeps_own_gap(trace: &CrawlTrace) -> ClauseVerdict {
    keeps_gap(trace, &trace.of_host(0), trace.gap)
}

/// Checks that requests to host 0 keep a gap of two seconds. The first one after robots.txt is
/// exempt, because the crawler may have scheduled it before it knew the delay.
pub(crate) fn keeps_two_seconds(trace: &CrawlTrace) -> ClauseVerdict {
    let entries = trace.of_host(0);
    let rules = entries.iter().position(|entry| entry.path == "/robots.txt");
    match rules {
        Some(rules) => keeps_gap(trace, &entries[rules + 1..], Duration::from_secs(2)),
        None => ClauseVerdict::fail("never requested /robots.txt", trace, &entries),
    }
}

/// Judges the gaps between consecutive entries. `entries` must be of one host and ordered by start.
///
/// The average gap must be at least nine tenths of `gap`, and each gap at least half of `gap`. The
/// tolerance is for crawlers that measure from start to start: on a busy machine, they may send a
/// few requests early.
pub(crate) fn keeps_gap(trace: &CrawlTrace, entries: &[&LogEntry], gap: Duration) -> ClauseVerdict {
    if entries.len() < 3 {
        return ClauseVerdict::not_shown("fewer than three requests, so no gaps are shown");
    }
    let (mut short, mut gaps, mut latest_end) = (Vec::new(), Vec::new(), 0);
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            gaps.push(entry.start_us.saturating_sub(latest_end));
            if entry.start_us < latest_end + micros(gap / 2) {
                short.push(*entry);
            }
        }
        latest_end = latest_end.max(entry.end_us.unwrap_or(entry.start_us));
    }
    let average = gaps.iter().sum::<u64>() / gaps.len() as u64;
    let shortest = gaps.iter().min().copied().unwrap_or(0);
    let measured = format!(
        "the average gap is {} s, the shortest {} s, and {} s were due",
        seconds(average, 0),
        seconds(shortest, 0),
        gap.as_secs_f64()
    );
    match (
        short.is_empty(),
        average >= micros(gap - gap / GAP_TOLERANCE),
    ) {
        (true, true) => ClauseVerdict::pass(measured, trace, entries),
        (true, false) => ClauseVerdict::fail(measured, trace, entries),
        (false, _) => ClauseVerdict::fail(measured, trace, &short),
    }
}

/// Checks that no request to host 0 starts while another one is being answered.
pub(crate) fn one_at_a_time(trace: &CrawlTrace) -> ClauseVerdict {
    let entries = trace.of_host(0);
    if entries.len() < 3 {
        return ClauseVerdict::not_shown("fewer than three requests, so no overlap is shown");
    }
    let overlapping = overlapping(&entries);
    match overlapping.is_empty() {
        true => ClauseVerdict::pass("one request at a time", trace, &entries),
        false => ClauseVerdict::fail(
            format!(
                "{} requests started while another one was being answered",
                overlapping.len()
            ),
            trace,
            &overlapping,
        ),
    }
}

/// Returns the requests that start while an earlier request is being answered.
fn overlapping<'a>(entries: &[&'a LogEntry]) -> Vec<&'a LogEntry> {
    let overlaps = |entry: &&&LogEntry| {
        entries.iter().any(|other| {
            (other.start_us, other.connection) < (entry.start_us, entry.connection)
                && other.end_us.is_none_or(|end| end > entry.start_us)
        })
    };
    entries.iter().filter(overlaps).copied().collect()
}

/// Checks that nothing was requested from host 0 for `wait` after the first answer with `status`.
pub(crate) fn waits_after(trace: &CrawlTrace, status: u16, wait: Duration) -> ClauseVerdict {
    let entries = trace.of_host(0);
    let busy = entries.iter().find(|entry| entry.status == Some(status));
    let Some((busy, end)) = busy.and_then(|entry| entry.end_us.map(|end| (entry, end))) else {
        return ClauseVerdict::not_shown(&format!("no answer with status {status} was sent"));
    };
    let unread_until = match overlapping(&entries).is_empty() {
        true => end,
        false => end + micros(ON_THE_WAY),
    };
    let later: Vec<&LogEntry> = entries
        .iter()
        .filter(|entry| entry.start_us >= unread_until)
        .copied()
        .collect();
    let is_early = |entry: &&&LogEntry| entry.start_us < end + micros(wait - wait / GAP_TOLERANCE);
    let early: Vec<&LogEntry> = later.iter().filter(is_early).copied().collect();
    let wait = wait.as_secs_f64();
    if !early.is_empty() {
        let reason = format!(
            "{} requests within {wait} s of status {status}",
            early.len()
        );
        return ClauseVerdict::fail(reason, trace, &[&[*busy], &*early].concat());
    }
    match later.is_empty() {
        true => ClauseVerdict::not_shown(&format!("no request after status {status}")),
        false => ClauseVerdict::pass(
            format!("no request for {wait} s after status {status}"),
            trace,
            &[&[*busy], &*later].concat(),
        ),
    }
}

/// Checks that the crawler keeps waiting after a restart: the second run must not send a request to
/// host 0 within `wait` after the end of the answer that told the first run to wait. This answer is
/// the last one in the first run that `is_cause` accepts.
pub(crate) fn waits_over_restart(
    trace: &CrawlTrace,
    wait: Duration,
    is_cause: fn(&LogEntry) -> bool,
) -> ClauseVerdict {
    let was_killed = trace
        .runs
        .first()
        .is_some_and(|run| run.end == RunEnd::Killed);
    let (true, Some(restart)) = (was_killed, trace.second_start_us()) else {
        return ClauseVerdict::not_shown("the first run ended before it could be killed");
    };
    let entries = trace.of_host(0);
    let (before, after): (Vec<&LogEntry>, Vec<&LogEntry>) =
        entries.iter().partition(|entry| entry.start_us < restart);
    let cause = before.iter().rev().find(|entry| is_cause(entry));
    let Some((cause, end)) = cause.and_then(|entry| entry.end_us.map(|end| (entry, end))) else {
        return ClauseVerdict::not_shown("the first run never got to know that it had to wait");
    };
    let Some(first) = after.first() else {
        return ClauseVerdict::not_shown("the second run sent no request");
    };
    let waited = seconds(first.start_us, end);
    let due = wait.as_secs_f64();
    let proof = [*cause, *first];
    match first.start_us >= end + micros(wait - wait / GAP_TOLERANCE) {
        true => ClauseVerdict::pass(
            format!("the second run began {waited} s after the last answer, and {due} s were due"),
            trace,
            &proof,
        ),
        false => ClauseVerdict::fail(
            format!(
                "the second run sent a request {waited} s after the last answer, and {due} s were due"
            ),
            trace,
            &proof,
        ),
    }
}

/// Checks that the crawler leaves a trap: at most `limit` requests went to paths on host 0 that
/// start with `prefix`. The outcome is `NotShown` if fewer than two requests did, or if the command
/// was killed before the limit was reached.
pub(crate) fn leaves_after(trace: &CrawlTrace, prefix: &str, limit: usize) -> ClauseVerdict {
    let inside: Vec<&LogEntry> = trace
        .of_host(0)
        .into_iter()
        .filter(|entry| entry.path.starts_with(prefix))
        .collect();
    let count = inside.len();
    if count < 2 {
        return ClauseVerdict::not_shown(&format!("fewer than two requests below {prefix}"));
    }
    if count > limit {
        let reason =
            format!("{count} requests below {prefix}, and {limit} are enough to see the trap");
        return ClauseVerdict::fail(reason, trace, &inside);
    }
    match trace.was_cut_off() {
        true => ClauseVerdict::not_shown(&format!(
            "{count} requests below {prefix} when time was up: allow more time"
        )),
        false => ClauseVerdict::pass(format!("left after {count} requests"), trace, &inside),
    }
}

/// Checks that `path` was requested at most `limit` times. If `path` was never requested, the
/// outcome is `NotShown`.
pub(crate) fn repeats_at_most(trace: &CrawlTrace, path: &str, limit: usize) -> ClauseVerdict {
    let requests = trace.requests_of(path);
    match requests.len() {
        0 => ClauseVerdict::not_shown(&format!("{path} was not requested")),
        count if count > limit => {
            let reason = format!("{count} requests for {path}, and {limit} are enough");
            ClauseVerdict::fail(reason, trace, &requests)
        }
        count => ClauseVerdict::pass(format!("{count} requests for {path}"), trace, &requests),
    }
}

/// Returns the requests to host 0, starting with the first one for robots.txt. Earlier requests are
/// the subject of another clause. Returns all requests if none was for robots.txt.
pub(crate) fn since_robots(trace: &CrawlTrace) -> Vec<&LogEntry> {
    let entries = trace.of_host(0);
    let first = entries.iter().position(|entry| entry.path == "/robots.txt");
    entries[first.unwrap_or(0)..].to_vec()
}

/// Checks that nothing but robots.txt was requested from host 0, for a clause whose robots.txt
/// can't be read.
pub(crate) fn only_robots(trace: &CrawlTrace) -> ClauseVerdict {
    let (rules, others): (Vec<&LogEntry>, Vec<&LogEntry>) = since_robots(trace)
        .into_iter()
        .partition(|entry| entry.path == "/robots.txt");
    match (rules.is_empty(), others.is_empty()) {
        (_, false) => ClauseVerdict::fail("requested pages without rules", trace, &others),
        (true, true) => ClauseVerdict::not_shown("/robots.txt was not requested"),
        (false, true)
            if trace.was_cut_off() && rules.iter().all(|entry| !has_ended(trace, entry)) =>
        {
            ClauseVerdict::not_shown(
                "still waited for /robots.txt when time was up: allow more time",
            )
        }
        (false, true) => ClauseVerdict::pass("requested only /robots.txt", trace, &rules),
    }
}

/// Returns whether the crawler ended an exchange while its process was still running. The server
/// notices a closed connection only when it sends the next byte. So an exchange that ended less
/// than `NOTICED_WITHIN` before the end of the last run doesn't count: the end of the process may
/// have closed its connection.
fn has_ended(trace: &CrawlTrace, entry: &LogEntry) -> bool {
    let run_end = trace.runs.last().map(|run| run.end_us);
    entry
        .end_us
        .is_some_and(|end| run_end.is_none_or(|run_end| end + micros(NOTICED_WITHIN) < run_end))
}

/// Checks that the crawler gave up an endless answer within `limit`, before the command was killed.
/// The outcome is `NotShown` if the command was killed before the limit was reached.
pub(crate) fn gives_up(trace: &CrawlTrace, path: &str, limit: EndlessBodyLimit) -> ClauseVerdict {
    let requests = trace.requests_of(path);
    if requests.is_empty() {
        return ClauseVerdict::not_shown(&format!("{path} was not requested"));
    }
    let run_end = trace.runs.last().map_or(0, |run| run.end_us);
    for entry in &requests {
        let took = entry
            .end_us
            .unwrap_or(run_end)
            .saturating_sub(entry.start_us);
        let reason = match limit {
            EndlessBodyLimit::Bytes(most) if entry.sent > most => {
                format!("read {} MiB of {path}", entry.sent >> 20)
            }
            EndlessBodyLimit::Time(most) if took > micros(most + NOTICED_WITHIN) => {
                format!("read {path} for {} s", took / 1_000_000)
            }
            _ => continue,
        };
        return ClauseVerdict::fail(reason, trace, &[*entry]);
    }
    let is_open = |entry: &&LogEntry| trace.was_cut_off() && !has_ended(trace, entry);
    match requests.iter().any(is_open) {
        true => ClauseVerdict::not_shown(&format!(
            "still read {path} when time was up: allow more time"
        )),
        false => ClauseVerdict::pass(format!("gave up {path}"), trace, &requests),
    }
}

/// Checks that `is_kept` is true for every request. `kept` and `broken` are the reasons in the
/// verdict.
pub(crate) fn every_request(
    trace: &CrawlTrace,
    kept: &str,
    broken: &str,
    is_kept: impl Fn(&LogEntry) -> bool,
) -> ClauseVerdict {
    let bad: Vec<&LogEntry> = trace.log.iter().filter(|entry| !is_kept(entry)).collect();
    match bad.is_empty() {
        true => ClauseVerdict::pass(kept, trace, &trace.all()),
        false => ClauseVerdict::fail(broken, trace, &bad),
    }
}

/// Converts a duration to microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
