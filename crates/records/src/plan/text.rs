//! Formats the plan as text.

use std::fmt::{self, Display};

use crawl_archive::rows::{PageUsagePermissions, UsageStatement};
use crawl_weburl::safe_line;

use super::{BoundedEstimate, CostPlan, ExclusionRuleCount, HostPlan, OriginRobotsStatements};
use crate::number_format::{counted, grouped, size};
use crate::report_text::seeds;

/// Maximum number of hosts listed individually, the slowest first.
const MAX_NAMED_HOSTS: usize = 20;

/// Formats the plan as text.
impl Display for CostPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        seeds(f, &self.seeds)?;
        let purpose = self.purpose.as_deref().unwrap_or("unstated");
        writeln!(f, "purpose   {purpose}")?;
        writeln!(f, "pages     {} known", grouped(self.pages))?;
        writeln!(f, "requests  {}", grouped(self.requests))?;
        writeln!(f, "time      {}", hours(&self.hours))?;
        writeln!(f, "bytes     {}", bytes(&self.bytes))?;
        if let Some(uncounted) = self.uncounted_words() {
            writeln!(f, "without   {uncounted}")?;
        }
        writeln!(f, "excluded  {}", grouped(self.excluded.values().sum()))?;
        for (reason, urls) in &self.excluded {
            writeln!(f, "  {reason}: {}", grouped(*urls))?;
        }
        writeln!(f, "hosts     {}", grouped(self.hosts.len() as u64))?;
        let hosts = self.slowest_first();
        for host in hosts.iter().take(MAX_NAMED_HOSTS) {
            host_lines(f, host, self.purpose.as_deref())?;
        }
        if hosts.len() > MAX_NAMED_HOSTS {
            let more = (hosts.len() - MAX_NAMED_HOSTS) as u64;
            writeln!(f, "  and {} more", grouped(more))?;
        }
        writeln!(
            f,
            "sent      {}, only for robots.txt and sitemaps",
            counted(self.asked, "request", "requests")
        )
    }
}

impl CostPlan {
    /// Names the settings that may end the crawl earlier than planned. `None` if there are none.
    pub(super) fn uncounted_words(&self) -> Option<String> {
        let names = self.uncounted.join(", ");
        (!names.is_empty()).then(|| format!("{names}, which may end the crawl earlier"))
    }

    /// Returns the hosts, the slowest first.
    pub(super) fn slowest_first(&self) -> Vec<&HostPlan> {
        let mut hosts: Vec<_> = self.hosts.iter().collect();
        hosts.sort_by(|one, other| other.hours.least.total_cmp(&one.hours.least));
        hosts
    }
}

fn host_lines(f: &mut fmt::Formatter<'_>, host: &HostPlan, purpose: Option<&str>) -> fmt::Result {
    let pages = counted(host.pages, "page", "pages");
    writeln!(f, "  {}: {pages} known", host.host)?;
    writeln!(f, "    sitemaps: {}", grouped(host.sitemaps))?;
    writeln!(f, "    time: {}", hours(&host.hours))?;
    writeln!(f, "    gap: {}", gap(host))?;
    writeln!(f, "    bytes: {}", safe_line(&bytes(&host.bytes)))?;
    for rule in &host.rules {
        writeln!(f, "    excluded: {}", safe_line(&rule_words(rule)))?;
    }
    for origin in &host.origins {
        for line in origin_lines(origin, purpose) {
            writeln!(f, "    {}/robots.txt: {}", origin.origin, safe_line(&line))?;
        }
    }
    Ok(())
}

/// Describes the delay and the response time of a host.
pub(super) fn gap(host: &HostPlan) -> String {
    let answer = grouped(host.answer_ms.round() as u64);
    let gap = grouped(host.gap_ms);
    format!("{gap} ms ({}), responses take {answer} ms", host.gap_by)
}

pub(super) fn rule_words(rule: &ExclusionRuleCount) -> String {
    let text = rule.rule.as_deref().unwrap_or_default();
    let line = rule.line.map(|line| format!(" (line {line})"));
    let urls = counted(rule.urls, "URL", "URLs");
    format!(
        "{urls} by {} {text}{}",
        rule.reason,
        line.unwrap_or_default()
    )
}

/// Describes the Crawl-delay of an origin, its usage statements, and whether these allow `purpose`.
pub(super) fn origin_lines(origin: &OriginRobotsStatements, purpose: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(delay) = origin.crawl_delay_ms {
        let line = origin.crawl_delay_line.unwrap_or_default();
        lines.push(format!("Crawl-delay {} ms (line {line})", grouped(delay)));
    }
    let Some(usage) = &origin.usage else {
        return lines;
    };
    lines.extend(usage.said.iter().map(statement_words));
    let Some(purpose) = purpose else {
        lines.push("preferences don't bind a crawl without a stated purpose".to_owned());
        return lines;
    };
    let verdict = match verdict(usage, purpose) {
        Some(verdict) => format!("for {purpose}: {verdict}"),
        None => format!("for {purpose}: not stated"),
    };
    lines.push(verdict);
    lines
}

fn verdict<'u>(usage: &'u PageUsagePermissions, purpose: &str) -> Option<&'u str> {
    let verdict = match purpose {
        "search" => &usage.search,
        "ai-input" => &usage.ai_input,
        "train-ai" => &usage.train_ai,
        "archive" => &usage.archive,
        _ => &None,
    };
    verdict.as_deref()
}

fn statement_words(statement: &UsageStatement) -> String {
    let line = statement.line.map(|line| format!(" (line {line})"));
    let (vocabulary, raw) = (&statement.vocabulary, &statement.raw);
    format!("{vocabulary}: {raw}{}", line.unwrap_or_default())
}

pub(super) fn hours(estimate: &BoundedEstimate) -> String {
    let number = |hours: f64| match hours {
        ..0.1 => format!("{:.1} min", hours * 60.0),
        _ => format!("{hours:.1} h"),
    };
    format!("{}; {}", range(estimate, number), estimate.why)
}

pub(super) fn bytes(estimate: &BoundedEstimate) -> String {
    let number = |bytes: f64| size(bytes.round() as u64);
    format!("{}; {}", range(estimate, number), estimate.why)
}

fn range(estimate: &BoundedEstimate, number: impl Fn(f64) -> String) -> String {
    let least = number(estimate.least);
    match (estimate.expected, estimate.most) {
        (Some(expected), Some(most)) => {
            format!("{} ({least} to {})", number(expected), number(most))
        }
        (Some(expected), None) => number(expected),
        (None, Some(most)) => format!("{least} to {}", number(most)),
        (None, None) => format!("at least {least}"),
    }
}
