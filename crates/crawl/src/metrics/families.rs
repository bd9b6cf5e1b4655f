//! Definitions of all metrics: names, meanings and sources of the values.

use crawl_archive::rows::PAGE_OUTCOMES;
use crawl_engine::{CrawlPhase, DurationHistogram, ProgressSnapshot, exclusion_reasons};
use crawl_scheduler::PauseReason;

use super::process::ProcessMetrics;
use super::prometheus_text::{MetricFamily, MetricSample, MetricSamples};

/// Returns all metrics with their current values.
pub(super) fn families(now: &ProgressSnapshot, process: ProcessMetrics) -> Vec<MetricFamily> {
    let mut families = of_counters(now);
    families.extend(of_state(now));
    families.extend(of_process(process));
    families
}

fn of_counters(now: &ProgressSnapshot) -> Vec<MetricFamily> {
    let counted = &now.counters;
    let requests = counted.requests.iter();
    let failures = counted.failures.iter();
    vec![
        MetricFamily {
            name: "crawl_pages_total",
            unit: "pages",
            help: "Rows written to pages.jsonl, by outcome as in report.json: ok, unread \
                   (the body is incomplete), no_answer and so on.",
            values: MetricSamples::Counter(by("outcome", PAGE_OUTCOMES, |outcome| {
                counted.pages.get(outcome).copied()
            })),
        },
        MetricFamily {
            name: "crawl_requests_total",
            unit: "requests",
            help: "Finished requests, by purpose (as in requests.jsonl) and status class (none: no \
                   answer).",
            values: MetricSamples::Counter(
                requests
                    .map(|((purpose, class), count)| MetricSample {
                        labels: vec![("purpose", purpose), ("status", class)],
                        value: *count as f64,
                    })
                    .collect(),
            ),
        },
        MetricFamily {
            name: "crawl_request_failures_total",
            unit: "requests",
            help: "Requests without an answer, by kind of failure (as in requests.jsonl).",
            values: MetricSamples::Counter(
                failures
                    .map(|(kind, count)| labelled("kind", kind, *count))
                    .collect(),
            ),
        },
        MetricFamily {
            name: "crawl_excluded_total",
            unit: "URLs",
            help: "Rows written to excluded.jsonl during the crawl, by reason, without those \
                   written at the end of a run.",
            values: MetricSamples::Counter(by("reason", exclusion_reasons(), |reason| {
                counted.excluded.get(reason).copied()
            })),
        },
        MetricFamily {
            name: "crawl_received_bytes_total",
            unit: "bytes",
            help: "Size of bodies as received, including those of robots.txt files.",
            values: MetricSamples::Counter(one(counted.received_bytes)),
        },
        MetricFamily {
            name: "crawl_archived_bytes_total",
            unit: "bytes",
            help: "Compressed size of records appended to WARC files.",
            values: MetricSamples::Counter(one(counted.archived_bytes)),
        },
        MetricFamily {
            name: "crawl_one_family_lookups_total",
            unit: "lookups",
            help: "Name look-ups that used only the address family that answered first, because \
                   too many others waited for their slower family.",
            values: MetricSamples::Counter(one(counted.one_family_lookups)),
        },
        times(
            "crawl_gap_seconds",
            "Actual gaps, from the end of a request to the permit for the next request to the same \
             host.",
            &counted.gaps,
        ),
        times(
            "crawl_exchange_seconds",
            "Duration of exchanges, from the start of a request to the end of its answer.",
            &counted.exchanges,
        ),
        times(
            "crawl_commit_seconds",
            "Duration of commits: archive, rows and state, including their syncs.",
            &counted.commits,
        ),
        times(
            "crawl_sync_seconds",
            "Time spent in a commit on syncs of archive and rows.",
            &counted.syncs,
        ),
    ]
}

fn of_state(now: &ProgressSnapshot) -> Vec<MetricFamily> {
    let hosts = [
        ("asked", now.hosts_asked),
        ("ready", now.hosts_ready),
        ("gap", now.hosts_waiting),
        ("parked", now.hosts_parked),
    ];
    let resting =
        PauseReason::NAMES.map(|name| (name, now.resting.get(name).copied().unwrap_or_default()));
    let urls = [
        ("known", now.known),
        ("pending", now.pending),
        ("deferred", now.deferred),
    ];
    vec![
        MetricFamily {
            name: "crawl_hosts",
            unit: "hosts",
            help: "Hosts with pending URLs, by state: asked (a request is in flight), ready \
                   (waiting for a permit), gap (between requests), parked (by the operator), or the \
                   reason for a pause.",
            values: MetricSamples::Gauge(
                hosts
                    .into_iter()
                    .chain(resting)
                    .map(|(state, count)| labelled("state", state, count.into()))
                    .collect(),
            ),
        },
        MetricFamily {
            name: "crawl_urls",
            unit: "URLs",
            help: "URLs, by state: known (all URLs), pending, deferred.",
            values: MetricSamples::Gauge(
                urls.into_iter()
                    .map(|(state, count)| labelled("state", state, count))
                    .collect(),
            ),
        },
        MetricFamily {
            name: "crawl_requests_in_flight",
            unit: "requests",
            help: "Requests in flight.",
            values: MetricSamples::Gauge(one(now.in_flight.into())),
        },
        MetricFamily {
            name: "crawl_disk_free_bytes",
            unit: "bytes",
            help: "Free space on the disk of the crawl's directory.",
            values: MetricSamples::Gauge(now.disk_free.map(one).unwrap_or_default()),
        },
        MetricFamily {
            name: "crawl_disk_min_free_bytes",
            unit: "bytes",
            help: "Minimum free space on that disk (--min-free); 0 means no limit.",
            values: MetricSamples::Gauge(one(now.min_free)),
        },
        MetricFamily {
            name: "crawl_phase",
            unit: "0 or 1",
            help: "1 for the current phase: crawling, paused, disk_low (waiting for free disk \
                   space), waiting_for_workers, draining (finishing requests in flight), writing \
                   (index and report) or waiting (for the next round).",
            values: MetricSamples::Gauge(
                CrawlPhase::ALL
                    .iter()
                    .map(|phase| labelled("phase", phase.name(), u64::from(*phase == now.phase)))
                    .collect(),
            ),
        },
        MetricFamily {
            name: "crawl_round",
            unit: "number",
            help: "Number of the round, counted from 1.",
            values: MetricSamples::Gauge(one(now.round.into())),
        },
    ]
}

fn of_process(process: ProcessMetrics) -> Vec<MetricFamily> {
    let resident = process.resident_bytes.map(one);
    vec![
        MetricFamily {
            name: "crawl_build_info",
            unit: "1",
            help: "Version of the program.",
            values: MetricSamples::Gauge(vec![labelled("version", env!("CARGO_PKG_VERSION"), 1)]),
        },
        MetricFamily {
            name: "process_resident_memory_bytes",
            unit: "bytes",
            help: "Resident memory of the process.",
            values: MetricSamples::Gauge(resident.unwrap_or_default()),
        },
        MetricFamily {
            name: "process_start_time_seconds",
            unit: "seconds",
            help: "Start of the crawl, in seconds since the Unix epoch.",
            values: MetricSamples::Gauge(vec![MetricSample {
                labels: Vec::new(),
                value: process.started,
            }]),
        },
    ]
}

fn one(count: u64) -> Vec<MetricSample> {
    vec![MetricSample {
        labels: Vec::new(),
        value: count as f64,
    }]
}

fn labelled(name: &'static str, value: &'static str, count: u64) -> MetricSample {
    MetricSample {
        labels: vec![(name, value)],
        value: count as f64,
    }
}

/// Returns a sample for every label value. Values that have not occurred yet are included with 0,
/// so that a rate also covers their first occurrence.
fn by(
    label: &'static str,
    values: impl IntoIterator<Item = &'static str>,
    count: impl Fn(&str) -> Option<u64>,
) -> Vec<MetricSample> {
    let sample = |value| labelled(label, value, count(value).unwrap_or_default());
    values.into_iter().map(sample).collect()
}

fn times(name: &'static str, help: &'static str, histogram: &DurationHistogram) -> MetricFamily {
    MetricFamily {
        name,
        unit: "seconds",
        help,
        values: MetricSamples::Histogram(Box::new(histogram.clone())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crawl_engine::ProgressSnapshot;

    use super::super::process::ProcessMetrics;
    use super::super::prometheus_text;
    use super::MetricSamples;
    use super::families;

    #[test]
    fn names_follow_prometheus_conventions() {
        let all = families(&ProgressSnapshot::default(), ProcessMetrics::default());
        let names: HashSet<_> = all.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), all.len());
        for family in all {
            let is_counter = matches!(family.values, MetricSamples::Counter(_));
            assert_eq!(
                family.name.ends_with("_total"),
                is_counter,
                "{}",
                family.name
            );
            let has_unit = family
                .name
                .trim_end_matches("_total")
                .ends_with(family.unit);
            let is_base_unit = ["bytes", "seconds"].contains(&family.unit);
            assert!(has_unit || !is_base_unit, "{}", family.name);
        }
    }

    #[test]
    fn counts_are_exported() {
        let mut now = ProgressSnapshot {
            hosts_waiting: 3,
            in_flight: 2,
            ..ProgressSnapshot::default()
        };
        now.resting.insert("retry_after", 4);
        now.counters.requests.insert(("robots", "2xx"), 5);
        let text = prometheus_text::of(&families(&now, ProcessMetrics::default()));
        for line in [
            "# TYPE crawl_requests_total counter",
            "crawl_requests_total{purpose=\"robots\",status=\"2xx\"} 5",
            "crawl_pages_total{outcome=\"ok\"} 0",
            "crawl_hosts{state=\"gap\"} 3",
            "crawl_hosts{state=\"retry_after\"} 4",
            "crawl_requests_in_flight 2",
            "crawl_phase{phase=\"crawling\"} 1",
            "crawl_gap_seconds_bucket{le=\"0.001\"} 0",
            "crawl_gap_seconds_bucket{le=\"+Inf\"} 0",
            "crawl_gap_seconds_count 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        // A metric without a value yet is omitted.
        assert!(!text.contains("crawl_request_failures_total"), "{text}");
        assert!(!text.contains("process_resident_memory_bytes"), "{text}");
    }
}
