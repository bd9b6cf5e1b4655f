//! Counters of a run for observers. No counter ever decreases.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crawl_frontier::Reason;

/// The counters of a run since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCounters {
    /// Rows of `pages.jsonl`, by [outcome](crawl_archive::rows::PageRow::outcome).
    pub pages: BTreeMap<&'static str, u64>,
    /// Ended requests, by purpose and [`status_class`].
    pub requests: BTreeMap<(&'static str, &'static str), u64>,
    /// Requests without a response, by the kind of failure.
    pub failures: BTreeMap<&'static str, u64>,
    /// Rows of `excluded.jsonl`, by reason.
    pub excluded: BTreeMap<&'static str, u64>,
    /// Bytes of bodies before decoding, including robots.txt and aborted bodies.
    pub received_bytes: u64,
    /// Bytes appended to WARC files.
    pub archived_bytes: u64,
    /// Look-ups of host names that returned the addresses of only one family (IPv4 or IPv6),
    /// because too many look-ups were already waiting for the slower family.
    pub one_family_lookups: u64,
    /// Times from the end of a request to the start of the next one to the same host.
    pub gaps: DurationHistogram,
    /// Times between the start of a request and the end of its response.
    pub exchanges: DurationHistogram,
    /// Durations of commits, including the time for syncing files.
    pub commits: DurationHistogram,
    /// The part of each commit's duration spent on syncing files.
    pub syncs: DurationHistogram,
}

/// The properties of an ended request that are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedRequest {
    pub(crate) purpose: &'static str,
    pub(crate) status: Option<u16>,
    /// The kind of failure. `None` if there was a response.
    pub(crate) failure: Option<&'static str>,
    /// The time from the end of the previous request to the same host to the start of this one.
    /// `None` for the first request.
    pub(crate) waited: Option<Duration>,
    pub(crate) took: Duration,
    pub(crate) bytes: u64,
}

/// Statistics of a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommitMeasurement {
    /// Rows added to `pages.jsonl`, by outcome.
    pub(crate) outcomes: HashMap<&'static str, u64>,
    /// Rows added to `excluded.jsonl`, by reason.
    pub(crate) excluded: HashMap<&'static str, u64>,
    /// Bytes added to the archive.
    pub(crate) archived_bytes: u64,
    pub(crate) took: Duration,
    /// The part of `took` spent on syncs.
    pub(crate) synced: Duration,
}

impl RunCounters {
    pub(crate) fn request(&mut self, request: EndedRequest) {
        let class = status_class(request.status);
        *self.requests.entry((request.purpose, class)).or_default() += 1;
        if let Some(kind) = request.failure {
            *self.failures.entry(kind).or_default() += 1;
        }
        if let Some(waited) = request.waited {
            self.gaps.observe(waited);
        }
        self.exchanges.observe(request.took);
        self.received_bytes += request.bytes;
    }

    /// Counts what a commit made durable.
    pub(crate) fn commit(&mut self, made: &CommitMeasurement) {
        for (outcome, count) in &made.outcomes {
            *self.pages.entry(outcome).or_default() += count;
        }
        for (reason, count) in &made.excluded {
            *self.excluded.entry(reason).or_default() += count;
        }
        self.archived_bytes += made.archived_bytes;
        self.commits.observe(made.took);
        self.syncs.observe(made.synced);
    }
}

/// Returns every reason that a row of `excluded.jsonl` may have.
pub fn exclusion_reasons() -> impl Iterator<Item = &'static str> {
    Reason::ALL.iter().map(|reason| reason.name())
}

/// Returns the class of an HTTP status (RFC 9110 section 15), or `none` if there was no response.
#[must_use]
pub fn status_class(status: Option<u16>) -> &'static str {
    match status {
        None => "none",
        Some(..200) => "1xx",
        Some(200..=299) => "2xx",
        Some(300..=399) => "3xx",
        Some(400..=499) => "4xx",
        Some(500..) => "5xx",
    }
}

/// The upper bounds of a histogram's buckets, in seconds. A further bucket counts longer times.
pub const BUCKET_SECONDS: [f64; 14] = [
    0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0,
];

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DurationHistogram {
    /// The number of durations in each bucket. The last bucket has no upper bound.
    buckets: [u64; BUCKET_SECONDS.len() + 1],
    sum_seconds: f64,
}

impl DurationHistogram {
    pub(crate) fn observe(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BUCKET_SECONDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket] += 1;
        self.sum_seconds += seconds;
    }

    /// Returns cumulative counts: the number of durations up to each of [`BUCKET_SECONDS`], and
    /// finally the number of all durations.
    #[must_use]
    pub fn cumulative(&self) -> [u64; BUCKET_SECONDS.len() + 1] {
        let mut sum = 0;
        self.buckets.map(|count| {
            sum += count;
            sum
        })
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_seconds
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_counts_in_its_bucket_and_all_above() {
        let mut times = DurationHistogram::default();
        for millis in [0, 1, 2, 1_000, 1_001, 3_600_000, 3_600_001] {
            times.observe(Duration::from_millis(millis));
        }
        let expected = [2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 6, 7];
        assert_eq!(times.cumulative(), expected);
        assert!((times.sum_seconds() - 7_202.005).abs() < 1e-6);
    }

    #[test]
    fn a_request_is_counted_once_by_purpose_and_class() {
        let mut counters = RunCounters::default();
        let request = EndedRequest {
            purpose: "page",
            status: Some(204),
            failure: None,
            waited: Some(Duration::from_secs(1)),
            took: Duration::from_millis(20),
            bytes: 7,
        };
        counters.request(request);
        counters.request(EndedRequest {
            status: None,
            failure: Some("timeout"),
            waited: None,
            ..request
        });
        let requests = [(("page", "2xx"), 1), (("page", "none"), 1)];
        assert_eq!(counters.requests, requests.into());
        assert_eq!(counters.failures, [("timeout", 1)].into());
        assert_eq!(counters.received_bytes, 14);
        assert_eq!(counters.gaps.cumulative().last(), Some(&1));
        assert_eq!(counters.exchanges.cumulative().last(), Some(&2));
    }
}
