//! Checks gaps and waits against the servers' log.

use std::collections::BTreeMap;

use crawl_archive::rows::RequestRow;
use crawl_testweb::LogEntry;

use super::checked_counts_and_breaches::{BrokenRules, CheckedCounts};
use super::program_run::TimesAroundKill;
use super::random_web::RandomWeb;

/// A wait that was restored from a row may end this many microseconds too early, because times in
/// rows are rounded to milliseconds.
const ROUNDED: u64 = 1000;

/// The maximum time, in microseconds, that a frozen process needs after it is resumed to send the
/// request that it was about to send.
const LATE: u64 = 250_000;

/// The kills and freezes that cut off or delayed requests. Times are in microseconds by the web's
/// clock.
#[derive(Clone, Copy)]
pub(super) struct CrawlDisturbances<'a> {
    pub(super) deaths: &'a [TimesAroundKill],
    /// When workers resumed after a freeze that was long enough for other workers to take their
    /// hosts. Each resumed worker may send one late request: the one that it was about to send when
    /// it was frozen.
    pub(super) thaws: &'a [u64],
}

impl<'a> CrawlDisturbances<'a> {
    /// Returns the kills of a crawl with a single worker, which is never frozen.
    pub(super) fn of_one(deaths: &'a [TimesAroundKill]) -> CrawlDisturbances<'a> {
        CrawlDisturbances { deaths, thaws: &[] }
    }

    /// Returns the time when a worker resumed after a freeze, if that worker may have sent this
    /// request late.
    fn thaw_before(&self, entry: &LogEntry) -> Option<u64> {
        let mut thaws = self.thaws.iter().copied();
        thaws.find(|thaw| (*thaw..*thaw + LATE).contains(&entry.start_us))
    }
}

pub(super) fn check(
    web: &RandomWeb,
    log: &[LogEntry],
    rows: &[RequestRow],
    events: CrawlDisturbances<'_>,
    breaches: &mut BrokenRules,
) -> CheckedCounts {
    let mut hosts: BTreeMap<u32, Vec<&LogEntry>> = BTreeMap::new();
    for entry in log {
        hosts.entry(entry.host).or_default().push(entry);
    }
    let mut tally = CheckedCounts::default();
    let mut late: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for entries in hosts.values_mut() {
        entries.sort_by_key(|entry| entry.start_us);
        for pair in entries.windows(2) {
            let Some(breach) = gap(web, pair[0], pair[1], events.deaths, &mut tally) else {
                continue;
            };
            match pair.iter().find_map(|entry| events.thaw_before(entry)) {
                Some(thaw) => late.entry(thaw).or_default().push(breach),
                None => breaches.add(breach),
            }
        }
    }
    for broken in late.into_values() {
        // A late request breaks at most two gaps: the one before it and the one after it.
        match broken.len() <= 2 {
            true => tally.late += 1,
            false => broken.into_iter().for_each(|breach| breaches.add(breach)),
        }
    }
    for row in rows.iter().filter(|row| row.wait_asked.is_some()) {
        wait(web, row, &hosts, breaches, &mut tally);
    }
    tally
}

/// Checks the gap between two requests. The gap starts when the first request ended or a kill cut
/// it off. Returns the breach, if any.
fn gap(
    web: &RandomWeb,
    first: &LogEntry,
    next: &LogEntry,
    deaths: &[TimesAroundKill],
    tally: &mut CheckedCounts,
) -> Option<String> {
    let ended = first.end_us.unwrap_or(u64::MAX);
    let cut_off = deaths
        .iter()
        .filter(|death| death.after >= first.start_us && death.before < ended)
        .map(|death| death.before.max(first.start_us))
        .min();
    let ended = cut_off.unwrap_or(ended).min(ended);
    let url = web.web.url(next.host, &next.path);
    let required = match web.crawl_delay {
        // The delay that a robots.txt demands doesn't apply to requests for the robots.txt itself.
        Some(delay) if !web.rules.contains(&url) => delay,
        _ => web.delay,
    };
    tally.gaps += 1;
    let killed = deaths
        .iter()
        .any(|death| death.after >= first.start_us && death.before <= next.start_us);
    tally.across += u64::from(killed);
    let actual = i128::from(next.start_us) - i128::from(ended);
    (actual < required.as_micros() as i128).then(|| {
        format!(
            "{url} came {actual} us after {}, not {} us, at {}{}",
            first.path,
            required.as_micros(),
            next.start_us,
            if killed { ", across a kill" } else { "" }
        )
    })
}

/// Checks that the crawler waited as long as an answer demanded. The row of the request has the
/// demanded wait.
fn wait(
    web: &RandomWeb,
    row: &RequestRow,
    hosts: &BTreeMap<u32, Vec<&LogEntry>>,
    breaches: &mut BrokenRules,
    tally: &mut CheckedCounts,
) {
    let all = hosts.values().flatten();
    let same = all.filter(|entry| web.web.url(entry.host, &entry.path) == row.url);
    let Some(entry) = same.min_by_key(|entry| (entry.start_us / 1000).abs_diff(row.start)) else {
        return breaches.add(format!("{} has a row but was never requested", row.url));
    };
    let next = hosts[&entry.host]
        .iter()
        .find(|next| next.start_us > entry.start_us);
    let (Some(next), Some(end)) = (next, entry.end_us) else {
        return;
    };
    tally.waits += 1;
    let until = end + row.wait_asked.unwrap_or_default() * 1000;
    if next.start_us + ROUNDED < until {
        breaches.add(format!(
            "{} came {} us before the wait after {} was over, at {}",
            next.path,
            until - next.start_us,
            entry.path,
            next.start_us
        ));
    }
}
