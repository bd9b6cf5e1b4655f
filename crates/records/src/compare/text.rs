//! Formats the comparison as text.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crawl_weburl::safe_line;

use super::{ComparedCrawlTotals, ComparedHost, CrawlComparison, DifferingPage};
use crate::host_coverage::HostCoverage;
use crate::number_format::{counted, grouped, size};

/// Maximum number of differences of each kind listed individually.
const MAX_NAMED: usize = 20;

impl Display for CrawlComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (&self.a, &self.b);
        writeln!(f, "A         {}", safe_line(&a.dir))?;
        writeln!(f, "B         {}", safe_line(&b.dir))?;
        for (name, crawl) in [("A", a), ("B", b)] {
            if !crawl.has_ended {
                writeln!(f, "note      the last run of {name} has not ended")?;
            }
            for flaw in &crawl.flaws {
                writeln!(f, "flaw of {name} {}", safe_line(flaw))?;
            }
        }
        if let Some(round) = self.round {
            let (in_a, in_b) = (grouped(a.rounds.into()), grouped(b.rounds.into()));
            writeln!(
                f,
                "round     {round} of {in_a} in A and {in_b} in B; gaps, waits, excluded and waiting URLs, coverage and hosts include all rounds"
            )?;
        }
        let mut row = |what: &str, of: &dyn Fn(&ComparedCrawlTotals) -> String| {
            let (of_a, of_b) = (of(a), of(b));
            writeln!(f, "{what:<10}A {of_a:<26} B {of_b}")
        };
        row("pages", &|it| grouped(it.pages))?;
        row("received", &|it| size(it.bytes))?;
        row("requests", &|it| grouped(it.requests))?;
        row("took", &|it| seconds(it.took_ms))?;
        row("answers", &|it| seconds(it.busy_ms))?;
        row("gaps", &gaps)?;
        row("waits", &|it| waits(it.waits, it.wait_asked_ms))?;
        row("excluded", &|it| grouped(it.excluded))?;
        row("waiting", &|it| grouped(it.waiting))?;
        row("coverage", &|it| coverage(&it.coverage))?;
        writeln!(f, "order     {}", self.order_line())?;
        self.pages_lines(f)?;
        self.excluded_lines(f)?;
        self.hosts_lines(f)
    }
}

impl CrawlComparison {
    fn order_line(&self) -> String {
        let order = &self.order;
        let of_hosts = match (order.hosts_same, order.hosts_other) {
            (same, 0) => format!("the same for {}", counted(same, "host", "hosts")),
            (same, other) => format!(
                "the same for {}, different for {}",
                counted(same, "host", "hosts"),
                grouped(other)
            ),
        };
        match order.is_same {
            true => format!("{of_hosts}, and overall"),
            false => format!("{of_hosts}; different overall"),
        }
    }

    fn pages_lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = &self.pages;
        writeln!(f, "in both   {}", grouped(pages.both))?;
        let urls = |urls: &[String]| -> Vec<String> {
            urls.iter().map(|url| safe_line(url).into_owned()).collect()
        };
        let differences =
            |pages: &[DifferingPage]| -> Vec<String> { pages.iter().map(page_words).collect() };
        for (what, lines) in [
            ("only A", urls(&pages.only_a)),
            ("only B", urls(&pages.only_b)),
            ("status", differences(&pages.status)),
            ("digest", differences(&pages.digest)),
        ] {
            list(f, what, &lines)?;
        }
        Ok(())
    }

    fn excluded_lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.excluded.iter().map(|rule| {
            let text = rule.rule.as_deref().unwrap_or("no rule");
            let (a, b) = (grouped(rule.a), grouped(rule.b));
            safe_line(&format!("{}: {text}: {a} in A, {b} in B", rule.reason)).into_owned()
        });
        list(f, "rules", &rules.collect::<Vec<_>>())
    }

    fn hosts_lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.hosts.iter().map(|host| {
            let (a, b) = (host_words(host.a.as_ref()), host_words(host.b.as_ref()));
            safe_line(&format!("{}: A {a}; B {b}", host.host)).into_owned()
        });
        list(f, "hosts", &hosts.collect::<Vec<_>>())
    }
}

/// Writes the number of differences of a kind, and the first ones.
fn list(f: &mut fmt::Formatter<'_>, what: &str, lines: &[String]) -> fmt::Result {
    writeln!(f, "{what:<10}{}", grouped(lines.len() as u64))?;
    for line in lines.iter().take(MAX_NAMED) {
        writeln!(f, "  {line}")?;
    }
    match lines.len().saturating_sub(MAX_NAMED) {
        0 => Ok(()),
        more => writeln!(f, "  and {} more (--json lists all)", grouped(more as u64)),
    }
}

fn page_words(page: &DifferingPage) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let (a, b) = (or_none(&page.a), or_none(&page.b));
    safe_line(&format!("{}: {a} in A, {b} in B", page.url)).into_owned()
}

fn host_words(host: Option<&ComparedHost>) -> String {
    let Some(host) = host else {
        return "never contacted".to_owned();
    };
    format!(
        "{}, {}, {}, {}",
        host.coverage.map_or("no verdict", HostCoverage::word),
        counted(host.pages, "page", "pages"),
        size(host.bytes),
        counted(host.requests, "request", "requests")
    )
}

fn gaps(crawl: &ComparedCrawlTotals) -> String {
    let count = grouped(crawl.gaps);
    let longest = seconds(crawl.most_gap_asked_ms);
    match crawl.short_gaps {
        0 => format!("{count}, at most {longest}"),
        short => format!("{count}, at most {longest}, {} cut short", grouped(short)),
    }
}

fn waits(count: u64, asked_ms: u64) -> String {
    match count {
        0 => "none".to_owned(),
        count => format!("{}, {} in total", grouped(count), seconds(asked_ms)),
    }
}

fn coverage(counts: &BTreeMap<HostCoverage, u64>) -> String {
    let counts = counts
        .iter()
        .map(|(coverage, hosts)| format!("{} {}", grouped(*hosts), coverage.word()));
    counts.collect::<Vec<_>>().join(", ")
}

/// Formats milliseconds as seconds.
fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", grouped(ms / 1000), ms % 1000)
}
