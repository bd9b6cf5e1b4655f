//! Prometheus' text format 0.0.4.

use std::fmt::Write as _;

use crawl_engine::{BUCKET_SECONDS, DurationHistogram};

/// A metric with all its samples.
#[derive(Clone, Debug)]
pub(super) struct MetricFamily {
    pub(super) name: &'static str,
    /// The unit of the values, which only the documentation shows.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the text format has no place for it")
    )]
    pub(super) unit: &'static str,
    /// The meaning of the metric and of its label.
    pub(super) help: &'static str,
    pub(super) values: MetricSamples,
}

/// The samples of a metric, by type.
#[derive(Clone, Debug)]
pub(super) enum MetricSamples {
    /// A number that only increases.
    Counter(Vec<MetricSample>),
    /// A number that can increase and decrease.
    Gauge(Vec<MetricSample>),
    /// A histogram of durations.
    Histogram(Box<DurationHistogram>),
}

/// A value with its labels.
#[derive(Clone, Debug)]
pub(super) struct MetricSample {
    pub(super) labels: Vec<(&'static str, &'static str)>,
    pub(super) value: f64,
}

impl MetricSamples {
    /// Returns the name of the type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            MetricSamples::Counter(_) => "counter",
            MetricSamples::Gauge(_) => "gauge",
            MetricSamples::Histogram(_) => "histogram",
        }
    }
}

/// Formats all families. A family without samples is left out.
pub(super) fn of(families: &[MetricFamily]) -> String {
    let mut text = String::with_capacity(16 * 1024);
    for family in families {
        write_family(&mut text, family);
    }
    text
}

fn write_family(text: &mut String, family: &MetricFamily) {
    let (name, kind) = (family.name, family.values.kind());
    if let MetricSamples::Counter(samples) | MetricSamples::Gauge(samples) = &family.values
        && samples.is_empty()
    {
        return;
    }
    // Writing to a string can't fail.
    let _ = writeln!(text, "# HELP {name} {}", escaped(family.help));
    let _ = writeln!(text, "# TYPE {name} {kind}");
    match &family.values {
        MetricSamples::Counter(samples) | MetricSamples::Gauge(samples) => {
            for MetricSample { labels, value } in samples {
                let _ = writeln!(text, "{name}{} {value}", braced(labels));
            }
        }
        MetricSamples::Histogram(times) => {
            let cumulative = times.cumulative();
            for (bound, count) in BUCKET_SECONDS.iter().zip(cumulative) {
                let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
            }
            let all = cumulative.last().copied().unwrap_or_default();
            let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {all}");
            let _ = writeln!(text, "{name}_sum {}", times.sum_seconds());
            let _ = writeln!(text, "{name}_count {all}");
        }
    }
}

/// Formats labels in braces. The labels' values are constants that need no escaping.
fn braced(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    format!("{{{}}}", labels.join(","))
}

/// Escapes the backslashes and line breaks in a help text.
fn escaped(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n")
}
