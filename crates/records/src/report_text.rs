//! Formats the report as text.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use crawl_weburl::safe_line;

use crate::host_coverage::CoverageGapCounts;
use crate::host_reports::{HostReport, LastRobotsResponse, PENDING_REASON};
use crate::number_format::{counted, grouped, size};
use crate::report::{CrawlReport, LabelCounts, OperatorDescription, VisitCounts};
use crate::row_token_wording::{evidence_words, failure_words, outcome_words, status_words};

/// Maximum number of hosts listed individually. Those with the most requests come first.
const MAX_NAMED_HOSTS: usize = 20;

/// Maximum number of labels listed.
const MAX_NAMED_LABELS: usize = 20;
/// Maximum number of seeds that `crawl report` lists.
/// Beyond the limit: a count.
const MAX_NAMED_SEEDS: usize = 20;

/// Formats the report as text.
impl Display for CrawlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        seeds(f, &self.crawl.seeds)?;
        if let Some(started) = &self.crawl.started {
            writeln!(f, "started   {started}")?;
        }
        if let Some(browser) = &self.crawl.browser {
            writeln!(f, "browser   {}", safe_line(browser))?;
        }
        if let Some(of) = &self.crawl.replay_of {
            writeln!(f, "replay    of {}: no requests were sent", safe_line(of))?;
        }
        for (what, text) in operator_lines(&self.crawl.operator) {
            writeln!(f, "{what:<10}{}", safe_line(text))?;
        }
        let pages = &self.pages;
        let (total, received) = (grouped(pages.total), size(pages.bytes));
        writeln!(f, "pages     {total} ({received})")?;
        list(
            f,
            &in_words(&pages.by_outcome, |outcome| outcome_words(outcome)),
        )?;
        let statuses = in_words(&pages.by_status, |status| status_words(*status));
        writeln!(f, "statuses  {}", in_line(&statuses))?;
        writeln!(f, "failed    {}", grouped(pages.failed))?;
        writeln!(f, "broken    {}", grouped(self.broken.pages))?;
        if !pages.unrendered.is_empty() {
            let reasons = in_words(&pages.unrendered, |error| failure_words(error));
            writeln!(f, "could not be rendered: {}", in_line(&reasons))?;
        }
        for (number, round) in &pages.rounds {
            writeln!(f, "round {number:<4}{round}")?;
        }
        if let Some(all) = &pages.all_rounds {
            writeln!(f, "all rounds: {}", all_rounds(all))?;
        }
        for (label, of_label) in pages.by_label.iter().take(MAX_NAMED_LABELS) {
            let counts = label_counts(of_label);
            writeln!(f, "label     {}: {counts}", safe_line(label))?;
        }
        if pages.by_label.len() > MAX_NAMED_LABELS {
            let more = (pages.by_label.len() - MAX_NAMED_LABELS) as u64;
            writeln!(f, "  and {} more", counted(more, "label", "labels"))?;
        }
        writeln!(f, "excluded  {}", grouped(self.excluded.decided()))?;
        list(f, &self.excluded.by_decision())?;
        list(f, &self.excluded.put_aside)?;
        if let Some(pending) = self.pending.as_ref().filter(|pending| pending.total > 0) {
            writeln!(f, "pending   {pending}")?;
        }
        writeln!(f, "requests  {}", grouped(self.requests.total))?;
        list(f, &self.requests.by_purpose)?;
        list(
            f,
            &in_words(&self.requests.by_failure, |failure| failure_words(failure)),
        )?;
        writeln!(f, "gaps      {}", kept(self.requests.short_gaps))?;
        writeln!(f, "waits     {}", kept(self.requests.short_waits))?;
        if let Some(several) = self.requests.addresses_of_several_workers {
            let addresses = counted(several, "address", "addresses");
            writeln!(f, "workers   {addresses} contacted by more than one")?;
        }
        if let Some(sample) = &self.sample {
            write!(f, "{sample}")?;
        }
        if let Some(walk) = &self.walk {
            write!(f, "{walk}")?;
        }
        if let Some(extraction) = &self.extraction {
            write!(f, "{extraction}")?;
        }
        let (hosts, unasked) = self.hosts_asked();
        writeln!(f, "coverage  {}", self.coverage_line())?;
        writeln!(f, "hosts     {}", grouped(hosts.len() as u64))?;
        for host in hosts.iter().take(MAX_NAMED_HOSTS) {
            host_lines(f, host)?;
        }
        if hosts.len() > MAX_NAMED_HOSTS {
            let more = (hosts.len() - MAX_NAMED_HOSTS) as u64;
            writeln!(f, "  and {} more", grouped(more))?;
        }
        if let Some(line) = unvisited_line(unasked) {
            writeln!(f, "  and {line}")?;
        }
        for flaw in &self.flaws {
            writeln!(f, "flaw      {flaw}")?;
        }
        Ok(())
    }
}

impl CrawlReport {
    /// Counts the hosts by coverage verdict, in words.
    #[must_use]
    pub fn coverage_line(&self) -> String {
        let counts = self.coverage.iter();
        let counts =
            counts.map(|(coverage, hosts)| format!("{} {}", grouped(*hosts), coverage.word()));
        match counts.collect::<Vec<_>>() {
            none if none.is_empty() => "no host was contacted".to_owned(),
            // The verdicts are about the sample only. Pages that were not drawn don't count as
            // missing.
            counts if self.crawl.sample.is_some() || self.crawl.walk_steps.is_some() => {
                counts.join(", ") + " (of the sample)"
            }
            counts => counts.join(", "),
        }
    }
}

/// Writes one line per seed, up to a maximum, and then the number of seeds that are not listed.
pub(crate) fn seeds(f: &mut fmt::Formatter<'_>, seeds: &[String]) -> fmt::Result {
    for seed in seeds.iter().take(MAX_NAMED_SEEDS) {
        writeln!(f, "seed      {}", safe_line(seed))?;
    }
    match seeds.len().saturating_sub(MAX_NAMED_SEEDS) {
        0 => Ok(()),
        more => writeln!(f, "  and {} more", counted(more as u64, "seed", "seeds")),
    }
}

/// Describes the totals of all visits: a URL visited in three rounds counts three times.
pub(crate) fn all_rounds(all: &VisitCounts) -> String {
    format!(
        "{} ({}), {} failed",
        counted(all.visits, "visit", "visits"),
        size(all.bytes),
        grouped(all.failed)
    )
}

/// Describes the pages with one label.
pub(crate) fn label_counts(of_label: &LabelCounts) -> String {
    format!(
        "{} ({}), {} failed",
        counted(of_label.total, "page", "pages"),
        size(of_label.bytes),
        grouped(of_label.failed)
    )
}

/// Returns the settings about the operator and the purpose of the crawl, each with its label. Skips
/// settings that are not set.
pub(crate) fn operator_lines(
    operator: &OperatorDescription,
) -> impl Iterator<Item = (&'static str, &str)> {
    let lines = [
        ("contact", &operator.contact),
        ("operator", &operator.name),
        ("for", &operator.institution),
        ("study", &operator.study),
        ("about", &operator.study_page),
    ];
    let lines = lines.into_iter();
    lines.filter_map(|(what, text)| Some((what, text.as_deref()?)))
}

fn host_lines(f: &mut fmt::Formatter<'_>, host: &HostReport) -> fmt::Result {
    writeln!(
        f,
        "  {}: {}, {}, {}, {} excluded",
        host.host,
        counted(host.pages, "page", "pages"),
        size(host.bytes),
        counted(host.requests, "request", "requests"),
        grouped(host.decided_exclusions())
    )?;
    if let Some(words) = coverage_words(host) {
        writeln!(f, "    coverage: {}", safe_line(&words))?;
    }
    writeln!(f, "    gaps: {}", gaps(host))?;
    if host.waits.count > 0 {
        writeln!(f, "    waits: {}", waits(host))?;
    }
    for (origin, robots) in &host.robots {
        writeln!(f, "    {origin}/robots.txt: {}", robots_line(robots))?;
    }
    Ok(())
}

/// Describes the coverage verdict of a host, with the missing URLs and the evidence. `None` if the
/// host has no verdict.
pub(crate) fn coverage_words(host: &HostReport) -> Option<String> {
    let coverage = host.coverage?;
    let mut words = coverage.word().to_owned();
    let mut separator = ": ";
    for shortfall in &host.missing {
        words += separator;
        words += &shortfall_words(shortfall);
        separator = "; ";
    }
    let mut excluded_by = host.excluded_by.clone();
    excluded_by.remove(PENDING_REASON);
    if !excluded_by.is_empty() {
        let of_rules = in_line(&excluded_by);
        let _ = write!(words, " (excluded: {of_rules})");
    }
    Some(words)
}

fn shortfall_words(shortfall: &CoverageGapCounts) -> String {
    let CoverageGapCounts {
        reason,
        urls,
        evidence,
    } = shortfall;
    match urls {
        0 => {
            let evidence = evidence.keys().map(|evidence| evidence_words(evidence));
            let evidence: Vec<String> = evidence.collect();
            format!("{}, {}", reason.name(), evidence.join(", "))
        }
        urls => format!(
            "{} {} ({})",
            failure_words(reason.name()),
            grouped(*urls),
            causes_in_line(&in_words(evidence, |evidence| evidence_words(evidence)))
        ),
    }
}

/// Describes how many hosts got no request. `None` if there are no such hosts.
pub(crate) fn unvisited_line(hosts: u64) -> Option<String> {
    let hosts = (hosts > 0).then(|| counted(hosts, "host that was", "hosts that were"));
    hosts.map(|hosts| format!("{hosts} never contacted"))
}

/// Describes whether the delays of a host were respected.
pub(crate) fn gaps(host: &HostReport) -> String {
    let gaps = &host.gaps;
    let (Some(seen), Some(asked)) = (gaps.least_seen_ms, gaps.asked_then_ms) else {
        return "none, a single request".to_owned();
    };
    let mut words = format!(
        "shortest {} ms ({} ms required), {}",
        grouped(seen),
        grouped(asked),
        kept(gaps.short)
    );
    for (rule, gaps) in &gaps.by_site {
        let (count, seconds) = (grouped(gaps.count), grouped(gaps.asked_ms / 1000));
        let _ = write!(
            words,
            "; {count} by the site's {rule}, {seconds} s in total"
        );
    }
    words
}

/// Describes whether the waits that a host demanded were respected.
pub(crate) fn waits(host: &HostReport) -> String {
    let waits = &host.waits;
    format!(
        "{} requested, the longest {} ms, {} ms in total; {} ms waited; {}",
        grouped(waits.count),
        grouped(waits.longest_asked_ms),
        grouped(waits.asked_ms),
        grouped(waits.given_ms),
        kept(waits.short)
    )
}

/// Describes the last outcome for a robots.txt: `rules (200)`, `unreachable (200, encoding)`.
pub(crate) fn robots_line(robots: &LastRobotsResponse) -> String {
    match (robots.status, &robots.failure) {
        (Some(status), Some(failure)) => format!("{} ({status}, {failure})", robots.state),
        (Some(status), None) => format!("{} ({status})", robots.state),
        (None, Some(failure)) => format!("{} ({failure})", robots.state),
        (None, None) => robots.state.clone(),
    }
}

/// Returns `all respected`, or the number of delays or waits that were cut short.
pub(crate) fn kept(short: u64) -> String {
    match short {
        0 => "all respected".to_owned(),
        short => format!("{} cut short", grouped(short)),
    }
}

/// Replaces the keys of counts by the words that `words` returns. Adds up counts with the same
/// words.
#[must_use]
pub fn in_words<K: Ord>(
    counts: &BTreeMap<K, u64>,
    words: impl Fn(&K) -> String,
) -> BTreeMap<String, u64> {
    let mut named = BTreeMap::new();
    for (key, count) in counts {
        *named.entry(words(key)).or_default() += count;
    }
    named
}

fn list(f: &mut fmt::Formatter<'_>, counts: &BTreeMap<String, u64>) -> fmt::Result {
    for (name, count) in counts {
        writeln!(f, "  {name}: {}", grouped(*count))?;
    }
    Ok(())
}

/// Lists causes with their numbers of URLs. A number after a sentence would read as part of it.
fn causes_in_line(counts: &BTreeMap<String, u64>) -> String {
    let parts = counts.iter().map(|(cause, count)| {
        let count = grouped(*count);
        match cause.starts_with("it ") || cause.starts_with("its ") {
            true => format!("{count} since {cause}"),
            false => format!("{cause}: {count}"),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn in_line<K: Display>(counts: &BTreeMap<K, u64>) -> String {
    let parts = counts
        .iter()
        .map(|(name, count)| format!("{name}: {}", grouped(*count)));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::host_coverage::HostCoverage;
    use crate::report::{CrawlReport, SampleSettings};
    use crate::sample_report::SampleReport;

    #[test]
    fn a_host_is_complete_of_its_sample_where_there_is_one() {
        let mut report = CrawlReport::default();
        assert_eq!(report.coverage_line(), "no host was contacted");
        report
            .coverage
            .extend([(HostCoverage::Whole, 2), (HostCoverage::Partial, 1)]);
        assert_eq!(report.coverage_line(), "2 complete, 1 partial");
        // Rows of an earlier sample don't limit the crawl that follows it.
        report.sample = Some(SampleReport::default());
        assert_eq!(report.coverage_line(), "2 complete, 1 partial");
        report.crawl.sample = Some(SampleSettings::default());
        assert_eq!(
            report.coverage_line(),
            "2 complete, 1 partial (of the sample)"
        );
    }
}
