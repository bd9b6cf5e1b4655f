//! The report as text.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use crate::hosts::{HostReport, RobotsReport};
use crate::report::Report;

/// Hosts that the text names one by one, those with most requests first.
const NAMED_HOSTS: usize = 20;

/// Lines for a person.
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seed in &self.crawl.seeds {
            writeln!(f, "seed      {seed}")?;
        }
        if let Some(started) = &self.crawl.started {
            writeln!(f, "started   {started}")?;
        }
        let pages = &self.pages;
        writeln!(f, "pages     {} ({} octets)", pages.total, pages.bytes)?;
        list(f, &pages.by_outcome)?;
        writeln!(f, "statuses  {}", counted(&pages.by_status))?;
        writeln!(f, "failed    {}", pages.failed)?;
        writeln!(f, "broken    {}", self.broken.pages)?;
        for (number, round) in &pages.rounds {
            writeln!(f, "round {number:<4}{round}")?;
        }
        writeln!(f, "excluded  {}", self.excluded.total)?;
        list(f, &self.excluded.by_reason)?;
        list(f, &self.excluded.put_aside)?;
        writeln!(f, "requests  {}", self.requests.total)?;
        list(f, &self.requests.by_purpose)?;
        list(f, &self.requests.by_failure)?;
        writeln!(f, "gaps      {}", kept(self.requests.short_gaps))?;
        writeln!(f, "waits     {}", kept(self.requests.short_waits))?;
        let mut hosts: Vec<&HostReport> = self.hosts.iter().collect();
        hosts.retain(|host| host.requests > 0 || host.pages > 0);
        hosts.sort_by_key(|host| std::cmp::Reverse(host.requests));
        writeln!(f, "hosts     {}", hosts.len())?;
        for host in hosts.iter().take(NAMED_HOSTS) {
            host_lines(f, host)?;
        }
        if hosts.len() > NAMED_HOSTS {
            writeln!(f, "  and {} more", hosts.len() - NAMED_HOSTS)?;
        }
        for flaw in &self.flaws {
            writeln!(f, "flaw      {flaw}")?;
        }
        Ok(())
    }
}

fn host_lines(f: &mut fmt::Formatter<'_>, host: &HostReport) -> fmt::Result {
    writeln!(
        f,
        "  {}: {} pages, {} octets, {} requests, {} excluded",
        host.host, host.pages, host.bytes, host.requests, host.excluded
    )?;
    writeln!(f, "    gaps: {}", gaps(host))?;
    if host.waits.count > 0 {
        writeln!(f, "    waits: {}", waits(host))?;
    }
    for (origin, robots) in &host.robots {
        writeln!(f, "    {origin}/robots.txt: {}", robots_line(robots))?;
    }
    Ok(())
}

/// How a host's gaps were kept, in words.
pub(crate) fn gaps(host: &HostReport) -> String {
    let gaps = &host.gaps;
    let (Some(seen), Some(asked)) = (gaps.least_seen_ms, gaps.asked_then_ms) else {
        return "none, a single request".to_owned();
    };
    let mut words = format!(
        "least seen {seen} ms where {asked} ms were asked for, {}",
        kept(gaps.short)
    );
    for (rule, gaps) in &gaps.by_site {
        let (count, seconds) = (gaps.count, gaps.asked_ms / 1000);
        let _ = write!(words, "; {count} by the site's {rule}, {seconds} s in all");
    }
    words
}

/// How a host's waits were kept, in words.
pub(crate) fn waits(host: &HostReport) -> String {
    let waits = &host.waits;
    format!(
        "{} asked for, the longest {} ms, {} ms in all; {} ms given; {}",
        waits.count,
        waits.longest_asked_ms,
        waits.asked_ms,
        waits.given_ms,
        kept(waits.short)
    )
}

/// What came of a robots.txt, in words.
pub(crate) fn robots_line(robots: &RobotsReport) -> String {
    match (robots.status, &robots.failure) {
        (Some(status), _) => format!("{} ({status})", robots.state),
        (None, Some(failure)) => format!("{} ({failure})", robots.state),
        (None, None) => robots.state.clone(),
    }
}

/// `all kept`, or how many were not.
pub(crate) fn kept(short: u64) -> String {
    match short {
        0 => "all kept".to_owned(),
        short => format!("{short} cut short"),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Words of a server without what would steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn list(f: &mut fmt::Formatter<'_>, counts: &BTreeMap<String, u64>) -> fmt::Result {
    for (name, count) in counts {
        writeln!(f, "  {name}: {count}")?;
    }
    Ok(())
}

fn counted<K: Display>(counts: &BTreeMap<K, u64>) -> String {
    let parts = counts
        .iter()
        .map(|(name, count)| format!("{name}: {count}"));
    parts.collect::<Vec<_>>().join(", ")
}
