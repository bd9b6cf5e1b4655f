//! Formats an audit as text.

use std::fmt;

use crawl_archive::Timestamp;

use super::{Audit, Breach, CitedRow};

/// The kinds of checks with their labels, in output order.
const CHECKED: [(&str, &str, &str); 7] = [
    ("requests", "requests", "rows of requests.jsonl"),
    ("gaps", "gaps", "between requests of a host"),
    ("robots_gaps", "pace", "gaps for which robots.txt asks"),
    ("waits", "waits", "for which an answer asked"),
    ("page_requests", "pages", "requests held against robots.txt"),
    (
        "page_rows",
        "rows",
        "of pages.jsonl held against robots.txt",
    ),
    (
        "excluded_rows",
        "excluded",
        "rows of excluded.jsonl held against robots.txt",
    ),
];

/// Formats the audit as text.
impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "hosts      {}", self.hosts)?;
        let rules = ["page_requests", "page_rows", "excluded_rows", "robots_gaps"];
        for (kind, name, what) in CHECKED {
            if self.rules_unchecked.is_some() && rules.contains(&kind) {
                continue;
            }
            let count = self.checked.get(kind).copied().unwrap_or(0);
            writeln!(f, "{name:<10} {count} {what}")?;
        }
        if let Some(why) = &self.rules_unchecked {
            writeln!(f, "robots.txt not checked: {why}; gaps and waits only")?;
        }
        for (why, count) in &self.undecided {
            writeln!(f, "undecided  {count}: {why}")?;
        }
        for flaw in &self.flaws {
            writeln!(f, "flaw       {flaw}")?;
        }
        match self.breach_count() {
            0 => return writeln!(f, "breaches   none"),
            count => {
                let rules = self.by_rule.iter();
                let rules = rules.map(|(rule, count)| format!("{rule} {count}"));
                writeln!(
                    f,
                    "breaches   {count}: {}",
                    rules.collect::<Vec<_>>().join(", ")
                )?;
            }
        }
        for breach in &self.breaches {
            write!(f, "{breach}")?;
        }
        let listed = self.breaches.len() as u64;
        match self.breach_count().saturating_sub(listed) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}

/// Formats a breach, with one line per row that shows it.
impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}: {}: {}", self.rule, self.host, self.what)?;
        for row in &self.rows {
            writeln!(f, "    {row}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CitedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file, self.line)?;
        let Some(row) = &self.request else {
            return Ok(());
        };
        let at = |millis: u64| Timestamp::from_micros(millis.saturating_mul(1000)).rfc3339_millis();
        let (start, end, answer) = (at(row.start), at(row.end), row.answer());
        write!(
            f,
            ": {} {}, {start} to {end} ({answer})",
            row.purpose, row.url
        )?;
        write!(f, ", gap asked {} ms by {}", row.gap_asked, row.why)?;
        match row.wait_asked {
            Some(wait) => write!(f, ", wait asked {wait} ms"),
            None => Ok(()),
        }
    }
}
