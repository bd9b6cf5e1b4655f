//! Formats an explanation as text.

use std::fmt;

use crawl_archive::Timestamp;
use crawl_archive::rows::RequestRow;

use crawl_weburl::safe_line;

use super::{Explanation, IndexPresence, PendingReason, StateAvailability, UrlMention};
use crate::number_format::counted;
use crate::row_token_wording::failure_words;

impl Explanation {
    /// Returns whether a budget still held the URL back when the last run ended. The URL then has a
    /// row in `excluded.jsonl`, which the next start removes.
    fn is_beyond_budget(&self) -> bool {
        let row = self.excluded.as_ref();
        row.is_some_and(|row| row.reason == "budget")
    }
}

impl PendingReason {
    fn words(&self) -> String {
        let detail = self.detail.as_deref().map(failure_words);
        let words = match (self.reason.as_str(), detail) {
            ("parked", _) => "its host is parked",
            ("interrupted", _) => "the last run was interrupted",
            ("handed_over", _) => "its host was handed over to another worker",
            ("budget", Some(budget)) => return format!("a budget is spent ({budget})"),
            ("robots" | "unreachable" | "quiet_hours" | "other_crawl", Some(why)) => {
                return safe_line(&why).into_owned();
            }
            ("robots", None) => "its robots.txt is unreachable",
            ("unreachable", None) => "its host is unreachable",
            (_, _) => "the last run has ended",
        };
        words.to_owned()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.url)?;
        match self.state {
            "fetched" => writeln!(f, "fetched")?,
            "failed" => writeln!(f, "failed: no answer")?,
            "excluded" => writeln!(f, "not fetched")?,
            "deferred" => writeln!(f, "put aside; fetched only if found another way")?,
            "pending" if self.is_beyond_budget() => {
                writeln!(f, "not fetched: a budget is spent")?;
            }
            "pending" if self.visits > 0 || self.excluded.is_some() => {
                writeln!(f, "waiting to be visited again")?;
            }
            "pending" => writeln!(f, "waiting to be fetched")?,
            "forgotten" => self.forgotten(f)?,
            "undetermined" if self.taken_for.is_none() => self.undetermined(f)?,
            _ => self.unknown(f)?,
        }
        if let Some(page) = &self.page {
            if let Some(status) = page.status {
                let bytes = counted(page.bytes, "byte", "bytes");
                writeln!(f, "  answer: {status}, {bytes}, {}", page.fetched_at)?;
            }
            if page.hops_off_scope > 0 {
                let hops = counted(page.hops_off_scope.into(), "link", "links");
                writeln!(f, "  {hops} out of scope, allowed by hops-off-scope")?;
            }
            if let Some(target) = &page.redirect {
                writeln!(f, "  redirects to: {target}")?;
            }
            if let Some(error) = &page.error {
                writeln!(f, "  error: {}", failure_words(error))?;
            }
            if let Some(label) = &page.label {
                writeln!(f, "  label: {}", safe_line(label))?;
            }
            if let Some(change) = &page.change {
                writeln!(f, "  round {}: {change}", page.round)?;
            }
            self.index(f)?;
            if let Some(robots) = &page.robots {
                rule(
                    f,
                    &format!("robots.txt: {}", robots.verdict),
                    &robots.rule,
                    robots.line,
                )?;
            }
            for said in page.usage.iter().flat_map(|usage| &usage.said) {
                let title = format!("usage: {} in {}", said.vocabulary, said.channel);
                rule(f, &title, &Some(said.raw.clone()), said.line)?;
            }
            if let Some(warc) = &page.warc {
                writeln!(f, "  archived: {} at {}", warc.file, warc.offset)?;
            }
            if let Some(words) = &page.withheld {
                writeln!(f, "  body not archived because of `{words}`")?;
            }
            if let Some(filter) = &page.unwanted {
                writeln!(f, "  unwanted, so its body was not kept: {filter}")?;
            }
        }
        if let Some((reason, text, line)) = &self.exclusion {
            rule(f, &format!("reason: {reason}"), text, *line)?;
        } else if let Some(row) = &self.excluded {
            let when = match self.state {
                "excluded" => Some("reason"),
                "pending" if self.is_beyond_budget() => Some("reason"),
                // The row in `excluded.jsonl` no longer applies, because it is from an earlier run,
                // or because the URL is pending again.
                "pending" => Some("not fetched before"),
                _ => None,
            };
            if let Some(when) = when {
                rule(f, &format!("{when}: {}", row.reason), &row.rule, row.line)?;
            }
        }
        if let Some(pending) = &self.pending {
            // Skip the reason if it is a spent budget, because the reason in `excluded.jsonl` is
            // the same.
            if pending.reason != "budget" || !self.is_beyond_budget() {
                writeln!(f, "  pending because: {}", pending.words())?;
            }
            if let Some(at) = pending.next_try {
                let or_sooner = match pending.tried_at_start {
                    true => ", or at the next start",
                    false => "",
                };
                writeln!(f, "  next try: from {at}{or_sooner}")?;
            }
        }
        if let Some(since) = &self.rule_since {
            writeln!(
                f,
                "  rule in force since: {since}, when the settings were reloaded"
            )?;
        }
        if let Some(sample) = &self.sample {
            let outcome = match sample.is_drawn {
                true => "drawn",
                false => "not drawn",
            };
            writeln!(
                f,
                "  sample: {outcome} in stratum {} ({} of {}): rank {}, last rank drawn {}",
                sample.stratum, sample.drawn, sample.of, sample.rank, sample.last_rank
            )?;
        }
        if let Some(walk) = &self.walk {
            let steps = counted(walk.steps, "step", "steps");
            let (walker, step) = walk.first;
            writeln!(
                f,
                "  walk: {steps} led to it, first step {step} of walker {walker}"
            )?;
        }
        if let Some(attempt) = self.next_attempt.filter(|attempt| *attempt > 1) {
            writeln!(f, "  attempts so far: {}", attempt - 1)?;
        }
        if let Some(via) = &self.via {
            writeln!(f, "  found on: {via}")?;
        }
        if let Some(depth) = self.depth {
            writeln!(f, "  depth: {depth}")?;
        }
        if self.visits > 1 {
            writeln!(f, "  visits: {}", self.visits)?;
        }
        match &self.due {
            Some(_) if self.is_due => {
                writeln!(f, "  next visit: in the next round (--recrawl)")?;
            }
            Some(due) => writeln!(f, "  next visit: from {due} on (--recrawl)")?,
            None => {}
        }
        writeln!(f, "  requests sent for it: {}", self.requests_sent)?;
        for request in &self.requests {
            writeln!(f, "    {}", request_line(request))?;
        }
        if let Some(robots) = &self.robots_request {
            writeln!(f, "  last request for robots.txt: {}", request_line(robots))?;
        }
        if self.unreadable_lines > 0 {
            let lines = self.unreadable_lines;
            writeln!(f, "  unreadable lines in row files: {lines}")?;
        }
        match &self.state_read {
            StateAvailability::Read => Ok(()),
            StateAvailability::InUse => {
                writeln!(f, "  the crawl is running; only its rows were read")
            }
            StateAvailability::Absent => writeln!(f, "  no stored state; only rows were read"),
            StateAvailability::Broken(why) => {
                writeln!(f, "  the stored state can't be read: {why}")
            }
        }
    }
}

/// Returns the words for what the last visit decided about the index.
fn decision_words(decided: &str) -> &str {
    match decided {
        "no_page" => "no; not a document of a type in --index-types",
        "empty" => "no; a page without text",
        other => other,
    }
}

impl Explanation {
    /// Writes whether the page is in the index. Without an index, writes the last decision.
    fn index(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decided = self.indexed.as_deref();
        match &self.index {
            None => match decided {
                Some(decided) => writeln!(f, "  index: {}", decision_words(decided)),
                None => Ok(()),
            },
            Some(IndexPresence::Found {
                kept_despite: Some(why),
                ..
            }) => writeln!(
                f,
                "  index: yes; kept for now, although its last visit says {why}"
            ),
            Some(IndexPresence::Found {
                canonical: Some(canonical),
                ..
            }) => writeln!(
                f,
                "  index: yes; no page is indexed at its canonical URL {canonical}"
            ),
            Some(IndexPresence::Found { .. }) => writeln!(f, "  index: yes"),
            Some(IndexPresence::Replaced { by, canonical }) => match canonical {
                Some(canonical) => {
                    writeln!(f, "  index: no; replaced by {by} (canonical: {canonical})")
                }
                None => writeln!(f, "  index: no; replaced by {by} (same title and text)"),
            },
            Some(IndexPresence::Expired { until }) => {
                let until = u64::try_from(*until).unwrap_or_default();
                let until = Timestamp::from_micros(until.saturating_mul(1_000_000));
                writeln!(f, "  index: no; expired on {until} (unavailable_after)")
            }
            Some(IndexPresence::Absent) if self.state == "excluded" => {
                let stored = self.exclusion.as_ref().map(|(reason, ..)| reason);
                let row = self.excluded.as_ref().map(|row| &row.reason);
                let reason = stored.or(row).map_or("rule", String::as_str);
                writeln!(f, "  index: no; excluded since its last visit ({reason})")
            }
            Some(IndexPresence::Absent) => match decided {
                Some("yes") => writeln!(
                    f,
                    "  index: no, although its last visit allows it; `crawl index DIR` rebuilds the index"
                ),
                Some(why) => writeln!(f, "  index: {}", decision_words(why)),
                None => writeln!(f, "  index: no"),
            },
        }
    }

    fn forgotten(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(tombstone) = &self.forgotten else {
            return Ok(());
        };
        let suffix = match tombstone.kind.as_str() {
            "host" => " with its host",
            _ => "",
        };
        writeln!(
            f,
            "removed from this crawl{suffix}; will not be fetched again"
        )?;
        writeln!(f, "  when: {}", tombstone.at.rfc3339_millis())?;
        writeln!(f, "  reason: {}", tombstone.reason)
    }

    /// Describes a URL that no row has. The stored state may have it, but can't be read.
    fn undetermined(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "not fetched so far; whether it is pending is not known, since the state can't be read"
        )?;
        self.named_by.iter().try_for_each(|named| mention(f, named))
    }

    fn unknown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self
            .requests
            .iter()
            .any(|request| request.purpose == "render")
        {
            return writeln!(
                f,
                "fetched to render a page, and not as a page of the crawl"
            );
        }
        if let Some(other) = &self.taken_for {
            match other.is_fetched {
                true => writeln!(f, "fetched as {}", other.url)?,
                false => writeln!(f, "taken for {}, another spelling of it", other.url)?,
            }
            return self.named_by.iter().try_for_each(|named| mention(f, named));
        }
        let Some(named) = &self.named_by else {
            writeln!(
                f,
                "unknown: it was not a seed, and no page read so far mentions it"
            )?;
            return match self.unread_pages {
                0 => Ok(()),
                pages => writeln!(f, "  pages not searched for it: {pages}"),
            };
        };
        let role = match named.kind {
            "resource" => "a resource that a page is displayed with",
            "feed" => "a feed",
            "form" => "the target of a form",
            "post-form" => "the target of a form that is sent with POST",
            _ => "a link that is not followed",
        };
        match (&named.setting, &named.unwanted) {
            (Some(setting), _) => {
                writeln!(f, "not fetched: it is {role}, and {setting} is in force")?;
            }
            (None, Some(filter)) => {
                writeln!(f, "not fetched: it is a link on an unwanted page: {filter}")?;
            }
            (None, None) => writeln!(
                f,
                "unknown to the crawl, although a page mentions it: it is {role}"
            )?,
        }
        mention(f, named)
    }
}

fn mention(f: &mut fmt::Formatter<'_>, named: &UrlMention) -> fmt::Result {
    match &named.element {
        Some(element) => writeln!(f, "  mentioned by: <{element}> on {}", named.page),
        None => writeln!(f, "  mentioned by: {}", named.page),
    }
}

fn rule(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    rule: &Option<String>,
    line: Option<u32>,
) -> fmt::Result {
    write!(f, "  {what}")?;
    if let Some(rule) = rule {
        write!(f, ", by `{rule}`")?;
    }
    if let Some(line) = line {
        write!(f, " on line {line}")?;
    }
    writeln!(f)
}

fn request_line(request: &RequestRow) -> String {
    let at = Timestamp::from_micros(request.start.saturating_mul(1000));
    let line = format!("{at} {} ({})", request.purpose, request.answer());
    match &request.via {
        Some(page) => format!("{line}, for {page}"),
        None => line,
    }
}
