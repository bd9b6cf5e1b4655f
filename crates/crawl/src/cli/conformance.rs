//! The flags of `crawl conformance`.

use std::ffi::OsString;

use clap::Args;

use crate::values::DurationSetting;

/// Judge whether a crawler, this or any other, keeps the rules of the web
///
/// Serves a small web on loopback for each clause of RFC 9309, HTTP, robots meta tags, sitemaps and
/// the conventions about pace and traps, runs COMMAND over it, and judges by the server's log
/// alone. In COMMAND, `{url}` is replaced by the start URL, `{host}` by its address and port, and
/// `{dir}` by a directory, which stays the same over restarts and second visits. The
/// environment variables CRAWL_URL and CRAWL_DIR have the same. docs/conformance.md has examples.
/// Exit code 0: no clause failed; 4: some did; 2: the command line is wrong, or COMMAND can't be
/// started; 3: the test server couldn't start; 130: interrupted.
#[derive(Debug, Args)]
#[command(override_usage = "crawl conformance [OPTIONS] -- COMMAND {url}")]
pub(crate) struct ConformanceArgs {
    /// Product token of the crawler, which robots.txt files name
    #[arg(long, value_name = "NAME", default_value = "crawl")]
    pub(crate) token: String,
    /// Gap between requests to one host that the flags of COMMAND set
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) gap: DurationSetting,
    /// Maximum time of a run of COMMAND
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub(crate) timeout: DurationSetting,
    /// Maximum number of runs at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: u32,
    /// Add this argument to COMMAND for a second visit (may be repeated)
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) again: Vec<OsString>,
    /// Judge only these clauses, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// List the clauses instead
    #[arg(long, conflicts_with = "words")]
    pub(crate) list: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ConformanceFormat,
    /// Command that starts the crawler
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "list")]
    pub(crate) words: Vec<OsString>,
}

/// The formats of `crawl conformance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ConformanceFormat {
    /// Plain text
    Text,
    /// A JSON object with all verdicts and their evidence
    Json,
    /// JUnit XML, for continuous integration
    Junit,
    /// An HTML page
    Html,
}
