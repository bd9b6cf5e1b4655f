//! Formats an audit as text for a terminal.

use std::fmt;

use crawl_archive::Timestamp;

use super::audit_findings::ROW_LOST;
use super::shared_limits::SEVERAL_ADDRESSES;
use super::signature_check::{CLOCK_STEP, UNKNOWN_SIGNER};
use super::{
    AuditReport, BEYOND_TIMEOUT, CLOCK_SET_BACK, CLOCKS_APART, CitedRow, EARLIER_RUN, JUST_THEN,
    NO_ROBOTS_BEFORE, NOT_ARCHIVED, PACE_BEFORE_RESTART, ROWS_ELSEWHERE, RuleBreach,
    STALE_AFTER_RESTART, WAIT_JUST_THEN, WAIT_TAKEN_BACK,
};

/// The kinds of checks in output order: the key in [`AuditReport::checked`], the label, and a
/// description.
const CHECKED: [(&str, &str, &str); 8] = [
    ("requests", "requests", "rows of requests.jsonl"),
    ("gaps", "gaps", "between requests to a host"),
    ("robots_gaps", "pace", "gaps required by robots.txt"),
    ("waits", "waits", "required by a response"),
    (
        "limits",
        "limits",
        "requests checked against the limits of addresses and sites, and quiet hours",
    ),
    (
        "page_requests",
        "pages",
        "requests checked against robots.txt",
    ),
    (
        "page_rows",
        "rows",
        "of pages.jsonl checked against robots.txt",
    ),
    (
        "excluded_rows",
        "excluded",
        "rows of excluded.jsonl checked against robots.txt",
    ),
];

impl fmt::Display for AuditReport {
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
        if self.signed > 0 {
            writeln!(f, "signed     {} requests", self.signed)?;
            let verified = self.checked.get("signatures").copied().unwrap_or(0);
            match &self.signatures_unchecked {
                Some(why) => writeln!(f, "signatures not verified: {why}")?,
                None => writeln!(f, "signatures {verified} of archived requests verified")?,
            }
        }
        if self.unmet_signatures > 0 {
            let unmet = self.unmet_signatures;
            writeln!(
                f,
                "unmet      {unmet} demands for signatures that can't be made"
            )?;
        }
        for (why, count) in &self.undecided {
            writeln!(f, "undecided  {count}: {}", undecided_words(why))?;
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

/// Describes why a check could not be decided, given its key in [`AuditReport::undecided`].
pub(super) fn undecided_words(key: &str) -> &str {
    match key {
        JUST_THEN => "robots.txt was fetched only just before the request",
        NOT_ARCHIVED => "the robots.txt response is not in the archive",
        EARLIER_RUN => "the settings of an earlier run are unknown",
        STALE_AFTER_RESTART => "the copy of robots.txt had expired after a restart",
        NO_ROBOTS_BEFORE => "the row of pages.jsonl has no earlier robots.txt",
        BEYOND_TIMEOUT => "requests were in flight for longer than the timeout",
        PACE_BEFORE_RESTART => "another origin of the host set the pace before a restart",
        WAIT_JUST_THEN => "the wait was required only just before the request",
        WAIT_TAKEN_BACK => "another response may have lifted the wait",
        CLOCKS_APART => "two workers sent the requests, and their clocks may differ by 4 s",
        ROWS_ELSEWHERE => "depends on rows that only another worker's directory may have",
        CLOCK_SET_BACK => "the clock was set back between two runs",
        SEVERAL_ADDRESSES => "the host has several addresses, and counts towards one of them",
        CLOCK_STEP => "the system clock differed from the crawl's when the request was signed",
        UNKNOWN_SIGNER => "the key of the signature isn't among the given keys",
        ROW_LOST => "depends on a lost row of requests.jsonl",
        key => key,
    }
}

/// Formats a breach, followed by one line for each row that shows it.
impl fmt::Display for RuleBreach {
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
        write!(f, ", required gap {} ms ({})", row.gap_asked, row.why)?;
        match row.wait_asked {
            Some(wait) => write!(f, ", required wait {wait} ms"),
            None => Ok(()),
        }
    }
}
