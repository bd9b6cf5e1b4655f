//! The flags of `crawl report`.

use std::path::PathBuf;

use clap::Args;
use crawl_records::FaultKind;

/// Summarise a crawl from its records
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The crawl's directory; those of all its workers are read as one
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read: the only one given, or the gathered one.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write it to this file as a page instead
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// List instead what the last round found new, changed and gone
    #[arg(long, conflicts_with_all = ["html", "broken"])]
    pub(crate) changes: bool,
    /// Compare the crawl in A with that in DIR, as `crawl report --compare A B`
    ///
    /// Pages that one of the two has alone, other statuses and digests, requests and their order,
    /// time, gaps, rules that excluded another number of URLs, and hosts that were not had alike.
    #[arg(long, value_name = "A", conflicts_with_all = [
        "html", "changes", "broken", "fail_on_broken", "fail_on_partial"
    ])]
    pub(crate) compare: Option<PathBuf>,
    /// With --compare: the pages and requests of this round alone; 1 where one is a replay
    #[arg(long, value_name = "N", requires = "compare", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) round: Option<u32>,
    /// List instead the broken pages, one a line, with the first pages where a link to it stands
    ///
    /// Broken is a page whose last visit had no answer, a status of 400 and above, or a redirect
    /// without an end; what robots.txt excludes is not. Links are those of links.jsonl, or of the
    /// archived pages.
    #[arg(long, conflicts_with = "html")]
    pub(crate) broken: bool,
    /// With --broken: every link, with its text and the redirects on the way, as --json has them
    #[arg(long, requires = "broken")]
    pub(crate) all: bool,
    /// Exit with 1 if any page is broken, whatever is printed
    #[arg(long)]
    pub(crate) fail_on_broken: bool,
    /// List instead the faults of the pages, each with the page to mend
    ///
    /// Links that lead nowhere or to a server that does not answer, to an id or a text that their
    /// page does not have, or to what has moved for good; and what a page by https loads by http.
    /// Pages are read from the archive. Images, styles and scripts are among them where the crawl
    /// fetched them (--resources).
    #[arg(long, conflicts_with_all = ["json", "html", "changes", "broken", "compare"])]
    pub(crate) faults: bool,
    /// With --faults: these kinds alone, with commas between them
    #[arg(long, value_name = "KINDS", requires = "faults", value_delimiter = ',', value_parser = fault_kind)]
    pub(crate) kinds: Vec<FaultKind>,
    /// With --faults: in which format
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "faults",
        default_value = "text"
    )]
    pub(crate) format: FaultFormat,
    /// With --faults: leave out what this file lists, which `--format jsonl` wrote
    #[arg(long, value_name = "FILE", requires = "faults")]
    pub(crate) baseline: Option<PathBuf>,
    /// With --faults: exit with 1 if a fault is listed
    #[arg(long, requires = "faults")]
    pub(crate) fail_on_faults: bool,
    /// Tell instead what stands out in the site's pages
    ///
    /// Titles and descriptions that are missing or that several pages have, orphans (in the sitemap
    /// or a feed, linked from no page), pages that take many clicks, the slowest and largest,
    /// redirect chains, and what robots.txt excludes although pages link to it. Pages are read from
    /// the archive. With --html as a page with plots.
    #[arg(long, conflicts_with_all = ["changes", "broken", "compare", "faults"])]
    pub(crate) site: bool,
    /// With --site: list pages that take more clicks than this from a seed
    #[arg(long, value_name = "N", requires = "site", default_value_t = 4)]
    pub(crate) max_clicks: u32,
    /// Exit with 1 if any host is partial, blocked or empty: hosts.jsonl says why
    #[arg(long, conflicts_with_all = ["broken", "changes"])]
    pub(crate) fail_on_partial: bool,
}

/// Formats of `crawl report --faults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FaultFormat {
    /// Lines for a person
    Text,
    /// One JSON object, with counts
    Json,
    /// A JSON object for each fault, as --baseline reads it
    Jsonl,
    /// JUnit's XML, for continuous integration
    Junit,
    /// Annotations of a GitHub workflow
    Github,
    /// A page
    Html,
}

/// Parses the name of a fault kind.
fn fault_kind(name: &str) -> Result<FaultKind, String> {
    let kinds = FaultKind::ALL.map(|kind| (kind.to_string(), kind));
    let kind = kinds.iter().find(|(kind_name, _)| kind_name == name);
    kind.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<&str> = kinds
            .iter()
            .map(|(kind_name, _)| kind_name.as_str())
            .collect();
        format!("the kinds are {}", names.join(", "))
    })
}
