//! `crawl replay`: reports what other settings would have fetched, from the archive of a crawl.

use std::fmt::{self, Display};
use std::path::Path;

use crawl_engine::{Ended, ReplayDifference};
use crawl_records::{Comparison, counted, grouped};
use crawl_weburl::{CanonicalUrl, safe_line};
use serde::Serialize;

use crate::error::CommandError;
use crate::error::records::of_records;
use crate::run::{ReplayRun, replay};
use crate::settings::Settings;
use crate::terminal::{print, print_json};

/// The result of a replay, also printed as JSON. Field names are stable; later versions may add
/// fields.
#[derive(Debug, Serialize)]
struct ReplayReport {
    /// The version of this object's layout: 1.
    format: u32,
    /// Settings that differ from the crawl's. If there are none, requests are replayed at their
    /// recorded times.
    settings: Vec<String>,
    /// How the run ended.
    ended: String,
    /// Duration in virtual time, in milliseconds.
    took_ms: u64,
    /// Requests without an answer in the archive.
    not_archived: u64,
    /// Requests whose answers are not in the archive because the site forbids archiving.
    withheld: u64,
    /// URLs not fetched because the archive lacks the rules of their site.
    without_rules: u64,
    /// Bodies that the crawl truncated, but that the replay's settings would keep whole.
    cut_bodies: u64,
    /// How a replay with unchanged settings first diverges from the records: it sends an `other`
    /// request, sends the recorded request `later`, goes `beyond` the last recorded request, or
    /// sends `fewer` requests. `None` if it doesn't diverge.
    difference: Option<&'static str>,
    /// The request at which the replay diverges. `None` if the replay only sends fewer requests.
    first_difference: Option<String>,
    /// The divergence in words.
    #[serde(skip)]
    differs: Option<String>,
    /// A comparison of the crawl (A) with its replay (B).
    comparison: Comparison,
}

/// Runs `crawl replay`.
pub(crate) fn run(dir: &Path, settings: &Settings, as_json: bool) -> Result<u8, CommandError> {
    let ReplayRun {
        replayed,
        changed_settings,
    } = replay(dir, settings)?;
    let summary = &replayed.summary;
    let comparison = crawl_records::compare(dir, &summary.output).map_err(of_records)?;
    let difference = replayed.difference.as_ref();
    let report = ReplayReport {
        format: 1,
        settings: changed_settings,
        ended: ending(&summary.ended),
        took_ms: u64::try_from(summary.elapsed.as_millis()).unwrap_or(u64::MAX),
        not_archived: replayed.gaps.not_archived,
        withheld: replayed.gaps.withheld,
        without_rules: summary
            .excluded
            .get("not_archived")
            .copied()
            .unwrap_or_default(),
        cut_bodies: replayed.gaps.cut_bodies,
        difference: difference.map(ReplayDifference::name),
        first_difference: difference
            .and_then(ReplayDifference::url)
            .map(ToString::to_string),
        differs: difference.map(differs),
        comparison,
    };
    match as_json {
        true => print_json(&report),
        false => print(report.to_string().as_bytes()),
    }
}

fn differs(difference: &ReplayDifference) -> String {
    let from = |url: &CanonicalUrl| format!("from {}", safe_line(url.as_str()));
    match difference {
        ReplayDifference::Other(url) => {
            format!("{}: the records have a different request there", from(url))
        }
        ReplayDifference::Later(url) => {
            format!("{}: the records have that request earlier", from(url))
        }
        ReplayDifference::Beyond(url) => format!("{}: the records end there", from(url)),
        ReplayDifference::Fewer(count) => {
            let requests = counted(*count, "request of A was", "requests of A were");
            format!("{requests} not sent again")
        }
    }
}

fn ending(ended: &Ended) -> String {
    match ended {
        Ended::Finished => "finished".to_owned(),
        Ended::Budget(budget) => format!("--{budget} was reached"),
        Ended::TableBudget(budget) => format!("{budget} was reached"),
        Ended::Interrupted => "interrupted".to_owned(),
        // Unreachable: a replay has no other workers.
        Ended::HandedOver => "handed over".to_owned(),
        Ended::Unreachable(hosts) => {
            let hosts = counted(hosts.len() as u64, "host", "hosts");
            format!("{hosts} unreachable until the end")
        }
    }
}

/// Formats the report as text.
impl Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.settings.len() {
            0 => writeln!(
                f,
                "settings  unchanged: each request is made at its recorded time"
            )?,
            count => writeln!(f, "settings  {} changed", grouped(count as u64))?,
        }
        for line in &self.settings {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "ended     {}", self.ended)?;
        writeln!(f, "unknown   {}", self.unknown())?;
        if self.withheld > 0 {
            let withheld = counted(self.withheld, "of these was", "of these were");
            writeln!(
                f,
                "  {withheld} withheld from the archive at the site's request"
            )?;
        }
        if self.cut_bodies > 0 {
            let bodies = counted(self.cut_bodies, "body is", "bodies are");
            writeln!(
                f,
                "  {bodies} truncated at the crawl's --max-body, and can't get longer"
            )?;
        }
        if self
            .settings
            .iter()
            .any(|line| line.starts_with("operator.agent "))
        {
            writeln!(f, "  servers may answer another agent differently")?;
        }
        if let Some(differs) = &self.differs {
            writeln!(f, "differs   {differs}")?;
        }
        write!(f, "{}", self.comparison)
    }
}

impl ReplayReport {
    fn unknown(&self) -> String {
        let of_all = self.comparison.b.requests;
        let unanswered = match self.not_archived {
            0 => format!("none of {}", counted(of_all, "request", "requests")),
            count => format!(
                "{} of {} have no answer in the archive",
                grouped(count),
                counted(of_all, "request", "requests")
            ),
        };
        match self.without_rules {
            0 => unanswered,
            count => format!(
                "{unanswered}; {} not fetched, since the archive has no robots.txt for the site",
                counted(count, "URL is", "URLs are")
            ),
        }
    }
}
