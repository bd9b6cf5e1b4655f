//! `crawl replay`: reports what other settings would have fetched, from the archive of a crawl.

use std::fmt::{self, Display};
use std::path::Path;

use crawl_engine::{EndReason, ReplayDifference, RerenderResult};
use crawl_records::{CrawlComparison, counted, grouped};
use crawl_weburl::{CanonicalUrl, safe_line};
use serde::Serialize;

use crate::error::CommandError;
use crate::error::records::of_records;
use crate::run::{FinishedReplay, replay};
use crate::settings::Settings;
use crate::terminal::{print, print_json};

/// The result of a replay, also printed as JSON. Field names are stable; later versions may add
/// fields.
#[derive(Debug, Serialize)]
struct ReplayReport {
    /// The version of this object's JSON layout: 1.
    format: u32,
    /// Settings that differ from those in the crawl's crawl.toml. If there are none, each request
    /// is replayed at its recorded time.
    settings: Vec<String>,
    /// Number of the crawl's runs that the replay followed although they had other settings than
    /// the replay. Runs whose settings were not recorded don't count.
    runs_with_other_settings: u64,
    /// Whether the replay followed the recorded order, over all rounds. Otherwise it decided the
    /// order itself, and ended after one round.
    followed_order: bool,
    /// Why the replay ended, in words.
    ended: String,
    /// Duration of the replay in virtual time, in milliseconds.
    took_ms: u64,
    /// Number of requests without a response in the archive.
    not_archived: u64,
    /// Number of requests whose response has no body, because the site forbids archiving it.
    withheld: u64,
    /// Number of requests whose response has no body, because the crawl's filters of types, sizes
    /// and languages did not keep it. The crawl may have followed links in these bodies.
    unwanted: u64,
    /// Number of URLs not fetched because the archive lacks the robots.txt of their site.
    without_rules: u64,
    /// Number of bodies that the crawl truncated, although the replay's settings would have kept
    /// them whole.
    cut_bodies: u64,
    /// How a replay with unchanged settings first diverges from the records. `None` if it doesn't
    /// diverge.
    ///
    /// - `other`: the replay sends a request that differs from the recorded one.
    /// - `missing`: the replay doesn't send a recorded request.
    /// - `later`: the replay sends a request after the end of its recorded exchange.
    /// - `beyond`: the replay sends a request after the last recorded one.
    /// - `fewer`: the replay ends before the last recorded request.
    difference: Option<&'static str>,
    /// URL of the request at which the replay diverges. `None` if the replay doesn't diverge or
    /// only sends fewer requests.
    first_difference: Option<String>,
    /// The first divergence from the records in words, for the text output.
    #[serde(skip)]
    differs: Option<String>,
    /// The result of rendering pages again. Present if the replay used rendered pages or could not
    /// start a browser.
    rendered: Option<RerenderReport>,
    /// A comparison of the crawl (A) with its replay (B).
    comparison: CrawlComparison,
}

/// How the rendered pages of the replay differ from those of the crawl.
#[derive(Debug, Serialize)]
struct RerenderReport {
    /// Number of pages whose DOM is the same as in the crawl.
    same: u64,
    /// Number of pages whose DOM differs, or that could not be rendered again.
    different: u64,
    /// Details of the first pages that `different` counts.
    differences: Vec<DomDifference>,
    /// Number of pages that were not rendered again: their DOM was only read from the archive.
    from_archive: u64,
    /// Why no browser could be started. `None` if one was started or not needed.
    no_browser: Option<String>,
}

#[derive(Debug, Serialize)]
struct DomDifference {
    url: String,
    /// The digest of the recorded DOM.
    recorded: String,
    /// The digest of the new DOM. `None` if the page could not be rendered.
    again: Option<String>,
    /// Why the page could not be rendered again. `None` if it was rendered.
    error: Option<&'static str>,
    /// URL of the first resource that the page requested in the replay, but not in the crawl.
    requested: Option<String>,
}

/// Maximum differences between DOMs in the text output.
const MAX_DOMS_SHOWN: usize = 10;

impl RerenderReport {
    fn of(rendered: &RerenderResult) -> Option<RerenderReport> {
        let RerenderResult {
            same,
            different,
            differences,
            from_archive,
            no_browser,
        } = rendered;
        if same + different + from_archive == 0 && no_browser.is_none() {
            return None;
        }
        let differences = differences.iter().map(|difference| DomDifference {
            url: difference.url.to_string(),
            recorded: difference.recorded.clone(),
            again: difference.again.as_ref().ok().cloned(),
            error: difference.again.as_ref().err().copied(),
            requested: difference.requested.clone(),
        });
        Some(RerenderReport {
            same: *same,
            different: *different,
            differences: differences.collect(),
            from_archive: *from_archive,
            no_browser: no_browser.clone(),
        })
    }
}

/// Formats the lines about rendered pages for the text output.
impl Display for RerenderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rendered = self.same + self.different;
        if rendered > 0 {
            let pages = counted(rendered, "page", "pages");
            match self.different {
                0 => writeln!(f, "rendered  {pages} again, with the recorded DOM")?,
                count => {
                    let count = grouped(count);
                    writeln!(f, "rendered  {pages} again, {count} with another DOM")?;
                }
            }
        }
        let shown = self.differences.iter().take(MAX_DOMS_SHOWN);
        for difference in shown {
            let now = difference.again.as_deref().or(difference.error);
            writeln!(f, "  {}", safe_line(&difference.url))?;
            writeln!(f, "    recorded {}", difference.recorded)?;
            writeln!(f, "    now      {}", now.unwrap_or_default())?;
            if let Some(url) = &difference.requested {
                let url = safe_line(url);
                writeln!(
                    f,
                    "    requested {url}, which it did not request in the crawl"
                )?;
            }
        }
        let more = self.different.saturating_sub(MAX_DOMS_SHOWN as u64);
        if more > 0 {
            writeln!(f, "  and {}", counted(more, "other page", "other pages"))?;
        }
        if let Some(reason) = &self.no_browser {
            let reason = reason.lines().next().unwrap_or_default();
            let pages = counted(self.from_archive, "page was", "pages were");
            writeln!(
                f,
                "archived  {pages} not rendered again, but read from the archive: {reason}"
            )?;
            writeln!(
                f,
                "  hint: install chromium, or name its program with --browser"
            )?;
        }
        Ok(())
    }
}

pub(crate) fn run(dir: &Path, settings: &Settings, as_json: bool) -> Result<u8, CommandError> {
    let FinishedReplay {
        replayed,
        changed_settings,
    } = replay(dir, settings)?;
    let summary = &replayed.summary;
    let comparison = crawl_records::compare(dir, &summary.output).map_err(of_records)?;
    let difference = replayed.difference.as_ref();
    let report = ReplayReport {
        format: 1,
        settings: changed_settings,
        runs_with_other_settings: replayed.runs_with_other_settings,
        followed_order: replayed.followed_order,
        ended: ending(&summary.ended),
        took_ms: u64::try_from(summary.elapsed.as_millis()).unwrap_or(u64::MAX),
        not_archived: replayed.gaps.not_archived,
        withheld: replayed.gaps.withheld,
        unwanted: replayed.gaps.unwanted,
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
        rendered: RerenderReport::of(&replayed.rendered),
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
        ReplayDifference::Missing(url) => {
            format!("{}: the replay doesn't send this request", from(url))
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

fn ending(ended: &EndReason) -> String {
    match ended {
        EndReason::Finished => "finished".to_owned(),
        EndReason::Budget(budget) => format!("--{budget} was reached"),
        EndReason::TableBudget(budget) => format!("{budget} was reached"),
        EndReason::Interrupted => "interrupted".to_owned(),
        // Unreachable, because a replay has no other workers.
        EndReason::HandedOver => "handed over".to_owned(),
        EndReason::NoFetchableHost(hosts) => {
            let hosts = counted(hosts.len() as u64, "host", "hosts");
            format!("{hosts} unreachable until the end")
        }
    }
}

/// Formats the report as text.
impl Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.settings.len(), self.runs_with_other_settings) {
            (0, _) if !self.followed_order => writeln!(
                f,
                "settings  unchanged, but A has no recorded order: the replay decides the order of \
                 one round itself"
            )?,
            (0, 0) => writeln!(
                f,
                "settings  unchanged: each request is made at its recorded time"
            )?,
            (0, runs) => writeln!(
                f,
                "settings  those of A's crawl.toml: {} of A had others, so the replay may diverge",
                counted(runs, "run", "runs")
            )?,
            (count, _) => writeln!(f, "settings  {} changed", grouped(count as u64))?,
        }
        for line in &self.settings {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "ended     {}", self.ended)?;
        writeln!(f, "unknown   {}", self.unknown())?;
        if self.withheld > 0 {
            let bodies = counted(self.withheld, "body was", "bodies were");
            writeln!(
                f,
                "  {bodies} withheld from the archive at the site's request"
            )?;
        }
        if self.unwanted > 0 {
            let bodies = counted(self.unwanted, "body is", "bodies are");
            writeln!(
                f,
                "  {bodies} not archived because of --content-type or another filter of documents; \
                 links in them are unknown"
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
        if let Some(rendered) = &self.rendered {
            write!(f, "{rendered}")?;
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
