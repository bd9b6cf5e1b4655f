//! The lines of a robots.txt other than rules, such as `Crawl-delay` and `Sitemap`, with their
//! numbers.

use crawl_policy::usage_statements::{UsagePurpose, UsageStatementInputs, UsageStatements};
use crawl_policy::{AgentRules, VisitHours};
use serde_json::{Map, Value, json};

/// A line of a robots.txt other than a rule, such as `Crawl-delay` or `Sitemap`. It applies to the
/// agent or to the whole file.
pub(super) struct NonRuleLine {
    pub(super) line: u32,
    pub(super) field: &'static str,
    pub(super) value: String,
}

/// Returns the lines other than rules that the parser understands, sorted by line number.
pub(super) fn records(robots: &AgentRules) -> Vec<NonRuleLine> {
    let record = |line, field, value| NonRuleLine { line, field, value };
    let mut records = Vec::new();
    if let Some((delay, line)) = robots.crawl_delay() {
        records.push(record(
            line,
            "Crawl-delay",
            format!("{} s", delay.as_secs_f64()),
        ));
    }
    records.extend(robots.request_rates().iter().map(|rate| {
        let pace = format!("{} in {} s", rate.requests, rate.per.as_secs_f64());
        let value = match rate.during {
            Some(during) => format!("{pace}, {}", hours(during)),
            None => pace,
        };
        record(rate.line, "Request-rate", value)
    }));
    let visits = robots.visit_times().iter();
    records.extend(visits.map(|visit| record(visit.line, "Visit-time", hours(visit.hours))));
    let sitemaps = robots.sitemaps().iter();
    records.extend(sitemaps.map(|sitemap| record(sitemap.line, "Sitemap", sitemap.url.clone())));
    records.extend(robots.clean_params().iter().map(|clean| {
        let value = format!("{} {}", clean.params.join("&"), clean.path);
        record(clean.line, "Clean-param", value.trim_end().to_owned())
    }));
    if let Some((host, line)) = robots.host() {
        records.push(record(line, "Host", host.to_owned()));
    }
    records.sort_by_key(|record| record.line);
    records
}

/// Returns what robots.txt states on each use of a page: `allowed`, `refused`, or null if it makes
/// no statement.
pub(super) fn usage(robots: &AgentRules, path_and_query: &str) -> Value {
    let statements = UsageStatements::read(&UsageStatementInputs {
        robots: Some(robots),
        path_and_query,
        ..UsageStatementInputs::default()
    });
    let verdicts = UsagePurpose::ALL.into_iter().map(|purpose| {
        let verdict = statements.verdict(purpose);
        let stance = verdict.stance.map(|stance| stance.to_string());
        (purpose.to_string(), json!(stance))
    });
    Value::Object(verdicts.collect::<Map<_, _>>())
}

fn hours(span: VisitHours) -> String {
    let clock = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
    format!("{} to {} UTC", clock(span.from), clock(span.to))
}
