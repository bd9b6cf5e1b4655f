//! A clause: a rule, the web that shows whether a crawler keeps it, and the judgement.

use crawl_testweb::{LogEntry, ReceivedRequest, ScriptedReply};
use serde::Serialize;

use crate::crawl_trace::{ClauseVerdict, CrawlTrace};

/// How strongly a clause is required by its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequirementLevel {
    /// An absolute requirement of the source.
    Must,
    /// A recommendation of the source.
    Should,
    /// A permission of the source. A crawler that doesn't use it never fails the clause.
    May,
    /// A convention. Either no standard describes it, or the standard has no words such as MUST or
    /// SHOULD for it.
    Custom,
}

impl RequirementLevel {
    /// Returns the level's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            RequirementLevel::Must => "MUST",
            RequirementLevel::Should => "SHOULD",
            RequirementLevel::May => "MAY",
            RequirementLevel::Custom => "custom",
        }
    }
}

/// How often the crawler's command is run for a clause.
#[derive(Debug, Clone, Copy)]
pub enum CommandRuns {
    /// Once.
    Once,
    /// Twice, with the same directory. The second run gets the additional arguments for a second
    /// visit.
    Twice,
    /// Twice, with the same directory. The contained function is called with the log. Half a second
    /// after it returns true, the first run is killed with SIGKILL, and the second one starts.
    Killed(fn(&[LogEntry]) -> bool),
}

impl CommandRuns {
    /// Returns whether the clause can be judged only for a command with a `{dir}` placeholder.
    pub fn needs_dir(self) -> bool {
        !matches!(self, CommandRuns::Once)
    }
}

/// A page of a clause's web.
#[derive(Debug, Clone, Copy)]
pub struct ClausePage {
    /// The path on host 0, or `N:/path` on host N.
    pub path: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Header fields as names and values. Values may contain the placeholders of `body`.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body. `{token}` stands for the crawler's product token, `{TOKEN}` for the token in
    /// capitals, and `{0}`, `{1}` and so on for `ADDRESS:PORT` of each host.
    pub body: &'static str,
}

/// The input of a scripted reply in a clause.
#[derive(Debug)]
pub struct ScriptedReplyInput<'a> {
    /// The request as the host received it.
    pub request: &'a ReceivedRequest,
    /// The number of earlier requests for this path on this host.
    pub earlier: u32,
    /// The product token of the crawler under test.
    pub token: &'a str,
    /// `ADDRESS:PORT` of each host.
    pub authorities: &'a [String],
}

impl ScriptedReplyInput<'_> {
    /// Returns whether the request lists gzip as an acceptable content coding.
    pub(crate) fn accepts_gzip(&self) -> bool {
        accepts_gzip(self.request.header("accept-encoding").unwrap_or(""))
    }
}

/// Returns whether a value of `Accept-Encoding` lists gzip. A weight of 0 means "not acceptable"
/// (RFC 9110 section 12.5.3).
fn accepts_gzip(codings: &str) -> bool {
    codings.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let name = name.trim();
        let weight = weight
            .split_once('=')
            .map(|(_, weight)| weight.trim().parse::<f32>());
        let is_gzip = name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip");
        is_gzip && weight != Some(Ok(0.0))
    })
}

/// A test case of the conformance check. It consists of a rule for crawlers with its source, a web
/// that shows whether a crawler keeps the rule, and a function that judges.
///
/// Paths are on host 0, or on host N if written as `N:/path`. The front page of host 0 links to the
/// paths of `shows`, `never` and `always`, except those in `hidden`.
#[derive(Debug, Clone, Copy)]
pub struct Clause {
    /// The name in reports and of `--only`.
    pub id: &'static str,
    /// The behaviour of a crawler that keeps the clause.
    pub title: &'static str,
    /// The document and section that the clause is from.
    pub source: &'static str,
    /// How strongly the source requires the clause.
    pub level: RequirementLevel,
    /// The number of hosts. With more than one, each has its own address, unless
    /// `shares_address` is set.
    pub hosts: u32,
    /// Whether the hosts are ports of one address.
    pub shares_address: bool,
    /// How often the command is run.
    pub plan: CommandRuns,
    /// The robots.txt of every host. May contain the placeholders of [`ClausePage::body`].
    pub robots: &'static str,
    /// Pages with specific content. The clause's other paths get generated pages.
    pub pages: &'static [ClausePage],
    /// Computes the reply to a request. If the function returns `None`, `pages` and `robots`
    /// determine the reply.
    pub special: Option<fn(&ScriptedReplyInput<'_>) -> Option<ScriptedReply>>,
    /// Paths that the crawler must request before the clause can be judged. If the crawler skips
    /// one, the outcome is [`ClauseOutcome::NotShown`](crate::ClauseOutcome::NotShown).
    pub shows: &'static [&'static str],
    /// Paths that the crawler must not request.
    pub never: &'static [&'static str],
    /// Paths that the crawler must request, once it has requested all of `shows`.
    pub always: &'static [&'static str],
    /// Paths that `/` doesn't link to, because the crawler must find them on another page.
    pub hidden: &'static [&'static str],
    /// Judges behaviour other than which paths are requested, such as pauses. Called only if the
    /// crawler requested all of `shows` and `always` and none of `never`.
    pub judge: Option<fn(&CrawlTrace) -> ClauseVerdict>,
}

impl Clause {
    /// Default values for clauses, used with struct update syntax.
    pub(crate) const BASE: Clause = Clause {
        id: "",
        title: "",
        source: "",
        level: RequirementLevel::Must,
        hosts: 1,
        shares_address: false,
        plan: CommandRuns::Once,
        robots: "User-agent: *\nDisallow:\n",
        pages: &[],
        special: None,
        shows: &["/open"],
        never: &[],
        always: &[],
        hidden: &[],
        judge: None,
    };

    /// Judges a crawl of this clause's web.
    pub fn verdict(&self, trace: &CrawlTrace) -> ClauseVerdict {
        if trace.log.is_empty() {
            return ClauseVerdict::not_shown("the command sent no request");
        }
        if let Some(path) = self.never.iter().find(|path| trace.first(path).is_some()) {
            let evidence = trace.requests_of(path);
            return ClauseVerdict::fail(format!("requested {path}"), trace, &evidence);
        }
        if let Some(path) = self.shows.iter().find(|path| trace.first(path).is_none()) {
            let reason = format!("{path} was not requested, so nothing is shown");
            return ClauseVerdict::not_shown(&reason);
        }
        if let Some(path) = self.always.iter().find(|path| trace.first(path).is_none()) {
            let reason = format!("{path} was not requested");
            let is_open = self.level == RequirementLevel::May || trace.was_cut_off();
            return match is_open {
                true => ClauseVerdict::not_shown(&reason),
                false => ClauseVerdict::fail(reason, trace, &trace.all()),
            };
        }
        if let Some(judge) = self.judge {
            return judge(trace);
        }
        let shown = self.always.iter().chain(self.shows);
        let evidence = shown
            .filter_map(|path| trace.first(path))
            .collect::<Vec<_>>();
        let summary = match (self.never, self.always) {
            ([], _) => "requested what is allowed".to_owned(),
            (never, []) => format!("never requested {}", never.join(", ")),
            (never, _) => format!("requested what is allowed, never {}", never.join(", ")),
        };
        ClauseVerdict::pass(summary, trace, &evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::accepts_gzip;

    #[test]
    fn gzip_with_a_weight_of_0_is_not_acceptable() {
        for accepted in [
            "gzip",
            "br, GZIP",
            "deflate;q=0, x-gzip ; q=0.001",
            "gzip;q=1",
        ] {
            assert!(accepts_gzip(accepted), "{accepted}");
        }
        for refused in [
            "",
            "identity",
            "identity, gzip;q=0",
            "gzip ; Q=0.000",
            "gzip-x",
        ] {
            assert!(!accepts_gzip(refused), "{refused}");
        }
    }
}
