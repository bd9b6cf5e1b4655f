//! The flags of `crawl report`, and the formats of fault reports.

use std::path::PathBuf;

use clap::Args;
use crawl_records::FaultKind;

use crate::error::nearest;

/// Flags that conflict with `--faults`: flags that select another report, and flags that are only
/// allowed with such a flag. Flags that require `--faults` must declare the same conflicts.
/// Otherwise clap drops the requirement, and the flag is silently ignored.
const NOT_WITH_FAULTS: [&str; 9] = [
    "json",
    "html",
    "changes",
    "broken",
    "all",
    "compare",
    "round",
    "site",
    "max_clicks",
];
/// Flags that conflict with `--site`, and with every flag that requires `--site` (see
/// [`NOT_WITH_FAULTS`]).
const NOT_WITH_SITE: [&str; 11] = [
    "changes",
    "broken",
    "all",
    "compare",
    "round",
    "faults",
    "kinds",
    "format",
    "baseline",
    "write_baseline",
    "fail_on_faults",
];
/// Flags that conflict with `--broken`, and with every flag that requires `--broken` (see
/// [`NOT_WITH_FAULTS`]).
const NOT_WITH_BROKEN: [&str; 12] = [
    "html",
    "changes",
    "compare",
    "round",
    "site",
    "max_clicks",
    "faults",
    "kinds",
    "format",
    "baseline",
    "write_baseline",
    "fail_on_faults",
];
/// Flags that conflict with `--compare`, and with every flag that requires `--compare` (see
/// [`NOT_WITH_FAULTS`]).
const NOT_WITH_COMPARE: [&str; 14] = [
    "html",
    "changes",
    "broken",
    "all",
    "site",
    "max_clicks",
    "faults",
    "kinds",
    "format",
    "baseline",
    "write_baseline",
    "fail_on_faults",
    "fail_on_broken",
    "fail_on_partial",
];

/// Summarize a crawl from its records
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Directory of the crawl; the directories of all its workers are combined
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read, after those of several workers were combined.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML page to this file instead
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// List what was new, changed and gone in the last round instead
    #[arg(long, conflicts_with_all = ["html", "broken"])]
    pub(crate) changes: bool,
    /// Compare the crawl in A with the one in DIR, as `crawl report --compare A B`
    ///
    /// Compares pages that only one has, statuses and digests, requests and their order, time,
    /// delays, rules that excluded a different number of URLs, and hosts with different coverage.
    #[arg(long, value_name = "A", conflicts_with_all = NOT_WITH_COMPARE)]
    pub(crate) compare: Option<PathBuf>,
    /// With --compare: only the pages and requests of this round; 1 for a replay with other settings
    #[arg(
        long,
        value_name = "N",
        requires = "compare",
        conflicts_with_all = NOT_WITH_COMPARE,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) round: Option<u32>,
    /// List the broken pages instead, one per line, with the first pages that link to each
    ///
    /// A page is broken if its last visit had no response, a status of 400 or above, or an endless
    /// redirect; pages excluded by robots.txt are not. Links are read from links.jsonl, or from the
    /// archived pages.
    #[arg(long, conflicts_with_all = NOT_WITH_BROKEN)]
    pub(crate) broken: bool,
    /// With --broken: list every link, with its text and redirects, as --json does
    #[arg(long, requires = "broken", conflicts_with_all = NOT_WITH_BROKEN)]
    pub(crate) all: bool,
    /// Exit with 1 if any page is broken, whatever is printed
    #[arg(long)]
    pub(crate) fail_on_broken: bool,
    /// List the faults of the pages instead, each with the page to fix
    ///
    /// Faults are links to missing pages or servers that don't respond, links to an id or a text
    /// that the page lacks, links to permanently moved pages, and resources that an https page
    /// loads over http. Pages are read from the archive. Images, styles and scripts are included if
    /// the crawl fetched them (--resources).
    #[arg(long, conflicts_with_all = NOT_WITH_FAULTS)]
    pub(crate) faults: bool,
    /// With --faults: list only these kinds, separated by commas
    #[arg(
        long,
        value_name = "KINDS",
        requires = "faults",
        conflicts_with_all = NOT_WITH_FAULTS,
        value_delimiter = ',',
        value_parser = fault_kind
    )]
    pub(crate) kinds: Vec<FaultKind>,
    /// With --faults: output format
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "faults",
        conflicts_with_all = NOT_WITH_FAULTS,
        default_value = "text"
    )]
    pub(crate) format: FaultFormat,
    /// With --faults: skip faults listed in this file, written by --write-baseline
    #[arg(long, value_name = "FILE", requires = "faults", conflicts_with_all = NOT_WITH_FAULTS)]
    pub(crate) baseline: Option<PathBuf>,
    /// With --faults: write the faults to this file, as a baseline for later reports
    #[arg(long, value_name = "FILE", requires = "faults", conflicts_with_all = NOT_WITH_FAULTS)]
    pub(crate) write_baseline: Option<PathBuf>,
    /// With --faults: exit with 1 if any fault is listed, except redirects
    ///
    /// Redirects count if --kinds names them.
    #[arg(long, requires = "faults", conflicts_with_all = NOT_WITH_FAULTS)]
    pub(crate) fail_on_faults: bool,
    /// Report what stands out in the site's pages instead
    ///
    /// Missing or duplicate titles, descriptions and h1 headings, images without alternative text,
    /// orphans (in the sitemap or a feed, but linked from no page), pages that take many clicks,
    /// the slowest and largest pages, redirect chains, and linked pages that robots.txt excludes.
    /// Pages are read from the archive. With --html, a page that begins with what to fix, also the
    /// faults of links, each with a grade.
    #[arg(long, conflicts_with_all = NOT_WITH_SITE)]
    pub(crate) site: bool,
    /// With --site: list pages that are more clicks than this away from a seed
    #[arg(
        long,
        value_name = "N",
        requires = "site",
        conflicts_with_all = NOT_WITH_SITE,
        default_value_t = crawl_records::MAX_CLICKS
    )]
    pub(crate) max_clicks: u32,
    /// Exit with 1 if any host is partial, blocked or empty, whatever is printed
    ///
    /// hosts.jsonl has the reason.
    #[arg(long)]
    pub(crate) fail_on_partial: bool,
}

/// The formats of `crawl report --faults` and `crawl check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FaultFormat {
    /// Plain text
    Text,
    /// A JSON object with counts
    Json,
    /// CSV with one line per link
    Csv,
    /// One JSON object per fault, for --baseline
    Jsonl,
    /// JUnit XML, for continuous integration
    Junit,
    /// Annotations for a GitHub workflow
    Github,
    /// An HTML page
    Html,
}

pub(super) fn fault_kind(name: &str) -> Result<FaultKind, String> {
    let kinds = FaultKind::ALL.map(|kind| (kind.to_string(), kind));
    let entry = kinds.iter().find(|(known, _)| known == name);
    entry.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|(known, _)| known.as_str()).collect();
        let similar = nearest(name, kinds.iter().map(|(known, _)| (known.clone(), known)));
        let similar = similar.map(|known| format!("did you mean `{known}`? "));
        format!(
            "{}valid kinds: {}",
            similar.unwrap_or_default(),
            names.join(", ")
        )
    })
}
