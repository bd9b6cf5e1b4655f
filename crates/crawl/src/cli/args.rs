//! The definition of the command line: subcommands and their flags.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use crawl_documents::DocumentKind;
use crawl_records::FaultKind;

use crate::cli::completions_and_manual::Shell;
use crate::cli::conformance::ConformanceArgs;
use crate::cli::gather::GatherArgs;
use crate::cli::identity::IdentityArgs;
use crate::cli::report::{FaultFormat, ReportArgs, fault_kind};
use crate::cli::search_filter::SearchFilter;
use crate::control::protocol;
use crate::identity::PublishedKeysArgument;
use crate::settings::{IndexedDocumentTypes, ProfileName, SettingsLayer, default_of};

/// The file that `crawl init` writes unless another one is given.
pub(crate) const DEFAULT_CONFIG: &str = "crawl.toml";

/// The output of `crawl --version`: the version and the features of this build.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("conformance", cfg!(feature = "conformance")),
        ("documents", cfg!(feature = "documents")),
        ("exports", cfg!(feature = "exports")),
        ("extract", cfg!(feature = "extract")),
        ("fast-codecs", cfg!(feature = "fast-codecs")),
        ("http2", cfg!(feature = "http2")),
        ("jemalloc", cfg!(feature = "jemalloc")),
        ("logins", cfg!(feature = "logins")),
        ("mcp", cfg!(feature = "mcp")),
        ("render", cfg!(feature = "render")),
        ("search", cfg!(feature = "search")),
        ("shared-frontier", cfg!(feature = "shared-frontier")),
        ("shell", cfg!(feature = "shell")),
        ("tables", cfg!(feature = "tables")),
        ("zstd", cfg!(feature = "zstd")),
    ];
    let signs = features.map(|(name, is_built_in)| match is_built_in {
        true => format!("+{name}"),
        false => format!("-{name}"),
    });
    format!(
        "{}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        signs.join(" ")
    )
});

/// A polite web crawler with robots exclusion built in
///
/// `crawl https://example.org/` crawls that site: robots.txt first, one request at a time per host,
/// and a directory of records for other tools. Exit codes: 0 finished; 1 no seed could be fetched,
/// pages failed with --fail-on-error, or a host is incomplete with --fail-on-partial; 2 the command
/// line or the configuration is wrong; 3 the disk or the state failed; 4 a check found a violation,
/// such as `crawl audit` a breach; 130 interrupted, and the same command continues the crawl.
#[derive(Debug, Parser)]
#[command(
    name = "crawl",
    version,
    long_version = LONG_VERSION.as_str(),
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    override_usage = "crawl URL [URL ..] [--output DIR] [FLAGS]\n       crawl --output DIR\n       crawl COMMAND"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) job: CrawlArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CrawlSubcommand>,
}

/// The flags of a crawl.
#[derive(Clone, Debug, Args)]
pub(crate) struct CrawlArgs {
    /// Read settings from this TOML file; flags win
    ///
    /// Keys are named like flags, in tables named like the headings below. `crawl config` prints a
    /// file with every key.
    #[arg(long, value_name = "FILE", display_order = 1)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) layer: SettingsLayer,
}

impl CrawlArgs {
    /// Returns the directory of `--output`.
    fn output(&self) -> Option<&PathBuf> {
        self.layer.output.output.as_ref().map(|dir| &dir.0)
    }
}

/// The other commands.
#[derive(Debug, Subcommand)]
pub(crate) enum CrawlSubcommand {
    Plan(PlanArgs),
    /// Crawl a site, check its links to other sites too, and list the broken ones
    ///
    /// Prints the same list as `crawl report DIR --faults`, by page to fix. Takes the flags of the
    /// crawl, and is as polite, with other defaults: --hops-off-scope 1, --off-scope-method head,
    /// --resources all, and a --content-type for which bodies of images, archives and the like are
    /// not fetched. Each link to another site is requested once, unless that site's robots.txt
    /// disallows it or the link is nofollow; such links are listed as not checked. Without
    /// --output, the crawl's directory is a temporary one that is removed at the end; with
    /// --output, `crawl check --output DIR` continues and `crawl report DIR --faults` reports
    /// again. Exit code 0: no faults, or only those in the baseline; 1: at least one fault, or no
    /// seed could be fetched; 2: the command line is wrong; 3: the disk failed; 130: interrupted,
    /// and the list has what was checked until then.
    Check(CheckArgs),
    Init(InitArgs),
    /// Print the robots.txt verdict for URLs, and the rule that decides
    Robots(RobotsArgs),
    /// Print what the extractor reads in a page, as JSON
    Inspect(InspectArgs),
    /// Print every key of the configuration with its default and meaning
    Config(ConfigArgs),
    /// Summarize a crawl from its records
    Report(ReportArgs),
    /// Repeat a crawl over its archived responses, with the same or other settings
    Replay(ReplayArgs),
    /// Explain why a URL was fetched, was not, or is still pending
    Explain(ExplainArgs),
    /// Check from its records that a crawl respected delays, waits and robots.txt
    Audit(AuditArgs),
    Conformance(ConformanceArgs),
    /// Extract fields from the archived pages of a crawl again, with new rules
    Extract(ExtractArgs),
    /// List the pages of a crawl that today's robots.txt and usage preferences exclude
    Recheck(RecheckArgs),
    /// Verify a crawl's files: digests, counts and cross-references
    Verify(VerifyArgs),
    /// Erase pages or a host from everything in a crawl's directory
    Forget(ForgetArgs),
    /// Combine the directories of several workers of a crawl
    Gather(GatherArgs),
    /// Rebuild the search index of a crawl from its archive
    Index(IndexArgs),
    /// Search the index of a crawl
    Search(SearchArgs),
    /// Export a crawl's records as tables, or its pages for other search engines
    Export(ExportArgs),
    /// Pause, resume and steer a running crawl, or print its state
    Control(ControlArgs),
    /// Serve a search page, the report and the live state in a browser
    Serve(ServeArgs),
    /// Inspect a shared frontier, check its database server, or stop a worker
    Frontier(FrontierArgs),
    /// Create and publish the crawler's signed identity, or verify signed requests
    Identity(IdentityArgs),
    /// Let a language model query a crawl, over the Model Context Protocol
    Mcp(McpArgs),
    /// Read one document from stdin, for the crawl that started this process
    #[command(hide = true)]
    ReadDocument(ReadDocumentArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write a page for each command
    Man(ManArgs),
}

impl CrawlSubcommand {
    /// Returns the output paths in the command's flags, and the crawl directories that the command
    /// reads.
    pub(crate) fn outputs(&self) -> (Vec<&Path>, Vec<&Path>) {
        type Files<'a> = [Option<&'a PathBuf>; 2];
        let (files, dirs): (Files<'_>, Vec<&PathBuf>) = match self {
            CrawlSubcommand::Export(args) => ([Some(&args.out), None], args.dirs.iter().collect()),
            CrawlSubcommand::Report(args) => (
                [args.html.as_ref(), args.write_baseline.as_ref()],
                args.dirs.iter().chain(&args.compare).collect(),
            ),
            CrawlSubcommand::Audit(args) => {
                ([args.html.as_ref(), None], args.dirs.iter().collect())
            }
            CrawlSubcommand::Check(args) => (
                [args.write_baseline.as_ref(), None],
                args.job.output().into_iter().collect(),
            ),
            CrawlSubcommand::Replay(args) => ([args.job.output(), None], vec![&args.dir]),
            CrawlSubcommand::Gather(args) => {
                ([Some(&args.output), None], args.dirs.iter().collect())
            }
            CrawlSubcommand::Frontier(FrontierArgs {
                command: FrontierCommand::Export { dirs, output, .. },
            }) => ([Some(output), None], dirs.iter().collect()),
            _ => ([None, None], Vec::new()),
        };
        let files = files.into_iter().flatten().map(PathBuf::as_path);
        let dirs = dirs.into_iter().map(PathBuf::as_path);
        (files.collect(), dirs.collect())
    }
}

/// Estimate what a crawl would cost its hosts, from robots.txt and sitemaps alone
///
/// Takes the flags of the crawl, and is as polite. Prints for each host and in total: known pages,
/// exclusions by rule, Crawl-delay, time, bytes, and usage preferences against --purpose. If
/// --output holds a crawl, page sizes are those it measured. Nothing is written to disk. Exit code
/// 0: at least one host responded; 1: none did; 2: the command line is wrong; 3: the disk failed;
/// 130: interrupted.
#[derive(Debug, Args)]
#[command(override_usage = "crawl plan URL [URL ..] [FLAGS]\n       crawl plan --config FILE")]
pub(crate) struct PlanArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML page to this file instead
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) job: CrawlArgs,
}

/// Crawl a site, check its links to other sites too, and list the broken ones
#[derive(Debug, Args)]
#[command(override_usage = "crawl check URL [URL ..] [FLAGS]\n       crawl check --output DIR")]
pub(crate) struct CheckArgs {
    /// List only these kinds of faults, separated by commas
    #[arg(long, display_order = 0, value_name = "KINDS", value_delimiter = ',', value_parser = fault_kind)]
    pub(crate) kinds: Vec<FaultKind>,
    /// Output format
    #[arg(long, display_order = 0, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: FaultFormat,
    /// Skip faults listed in this file, written by --write-baseline
    #[arg(long, display_order = 0, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the faults to this file, as a baseline for later checks, and exit with 0
    #[arg(long, display_order = 0, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) job: CrawlArgs,
}

/// Write a config file by asking what to crawl
///
/// Asks for the URL, for your contact and for the purpose (search index, site check or research
/// archive), and writes a commented file with only the keys that matter. Without a terminal it
/// reads one answer per line from stdin; an empty line takes the default. An existing file is never
/// overwritten. Exit code 0: the file was written; 2: an answer is missing or unusable, or the file
/// exists; 3: the file can't be written; 130: interrupted.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// File to write
    #[arg(value_name = "FILE", default_value = DEFAULT_CONFIG)]
    pub(crate) file: PathBuf,
}

/// Repeat a crawl over its archived responses, with the same or other settings
///
/// Runs frontier, policy and scheduler over the archive in virtual time, without any request.
/// Fetches that the archive can't serve are listed as `not_archived`. Without --config and flags,
/// the crawl's own settings apply, and each request takes place at its recorded time. The rows and
/// the report of the replay are written to --output, a new directory, without an archive or index;
/// no crawl can continue there. Then the two are compared, as by `crawl report --compare DIR NEW`.
/// Exit code 0: the crawl was replayed; 2: the command line is wrong, or DIR has no archive; 3: the
/// disk failed.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) job: CrawlArgs,
}

/// Print the robots.txt verdict for URLs, and the rule that decides
///
/// robots.txt is fetched from the URLs' hosts unless --file is given. Exit code 0: all URLs are
/// allowed; 1: one is not; 2: error.
#[derive(Debug, Args)]
pub(crate) struct RobotsArgs {
    /// Product token to judge for
    #[arg(long, value_name = "NAME", default_value = "crawl")]
    pub(crate) agent: String,
    /// Rules for reading robots.txt: rfc9309, koster1994, extended1997 or strictest
    #[arg(
        long,
        value_name = "PROFILE",
        value_enum,
        hide_possible_values = true,
        default_value = "rfc9309"
    )]
    pub(crate) robots: ProfileName,
    /// Read robots.txt from this file; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "fetch")]
    pub(crate) file: Option<PathBuf>,
    /// Fetch robots.txt from the URLs' hosts, the default without --file
    #[arg(long)]
    pub(crate) fetch: bool,
    /// Email address or URL where site owners can reach you
    #[arg(
        long,
        value_name = "MAIL-OR-URL",
        env = "CRAWL_CONTACT",
        hide_env_values = true
    )]
    pub(crate) contact: Option<String>,
    /// Print one JSON object per URL
    #[arg(long)]
    pub(crate) json: bool,
    /// Judge JSON lines from stdin: {"robots": TEXT or {"base64": ..}, "agent": .., "url": ..}
    ///
    /// Writes one line for each, in the same order: {"allowed": .., "line": .., "rule": ..}. Exit
    /// code 0: all lines were judged; 2: one could not be.
    #[arg(long, conflicts_with_all = ["file", "fetch", "url"])]
    pub(crate) batch: bool,
    /// URLs to judge; with --file, a path is enough
    #[arg(value_name = "URL", required_unless_present = "batch")]
    pub(crate) url: Vec<String>,
}

/// Print what the extractor reads in a page, as JSON
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// File with the page; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// URL of the page
    #[arg(long, value_name = "URL")]
    pub(crate) base: String,
    /// Content-Type of the page
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Print instead the fields that the rules of this file extract, one JSON object per rule
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print instead the tree of elements, as html5ever parses it for extraction
    #[arg(long, conflicts_with = "config")]
    pub(crate) tree: bool,
}

/// Inspect a shared frontier, check its database server, import or export a crawl, stop a worker,
/// or recover from the loss of a worker's directory
#[derive(Debug, Args)]
pub(crate) struct FrontierArgs {
    #[command(subcommand)]
    pub(crate) command: FrontierCommand,
}

/// A command of `crawl frontier`.
#[derive(Debug, Subcommand)]
pub(crate) enum FrontierCommand {
    /// Print the state of the crawls on a database server, and of their workers
    ///
    /// Exit code 0: success; 2: there is no such crawl; 3: the server can't be reached.
    Status {
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a database server against the contract of frontiers, in crawls removed afterwards
    ///
    /// Exit code 0: it satisfies all clauses; 4: it violates some, which are listed; 3: it can't be
    /// reached.
    Check {
        /// Connection string of the database server; several are checked one after another
        #[arg(value_name = "URL", required = true)]
        urls: Vec<String>,
    },
    /// Import a crawl from its directory into a shared frontier
    ///
    /// Moves URLs, hosts, politeness, copies of robots.txt and visits. Rows and archive stay in the
    /// directory, which becomes a worker's directory. Refused while the crawl runs, or if the
    /// frontier has a crawl with this name. Everything goes into one server group; other groups
    /// join when a worker names them. Exit code 0: imported; 2: it can't be imported; 3: the disk
    /// or the database server failed, and the same command continues.
    Import {
        /// Directory of the crawl
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// Name of the worker that gets the directory
        #[arg(long, value_name = "NAME", default_value = "w1")]
        worker: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// Print a summary as JSON
        #[arg(long)]
        json: bool,
    },
    /// Export a shared crawl into a directory, where it continues alone
    ///
    /// Give the directories of all its workers: they are combined as by `crawl gather`. URLs,
    /// hosts, politeness, copies of robots.txt and visits are copied. The directory appears
    /// complete or not at all. The crawl stays on the database server, but no worker can continue
    /// it. Refused while a worker is running. Exit code 0: exported; 2: it can't be exported; 3:
    /// the disk or the database server failed, and the same command starts over; 4: two rows settle
    /// the same URL in the same round.
    Export {
        /// Directories of the workers
        #[arg(value_name = "DIR", required = true)]
        dirs: Vec<PathBuf>,
        /// Directory to create; it may exist if it is empty
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// Print a summary as JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch the pages of a worker again, because its directory is lost
    ///
    /// Afterwards a worker with an empty directory may use its name. Pages it fetched become
    /// pending again with the current owner of their host; its exclusions are listed there. Refused
    /// while the worker is running or its lease holds. Exit code 0: done, now or before; 2: it is
    /// running, or there is no such worker; 3: the database server can't be reached.
    Reopen {
        /// Name of the worker
        #[arg(value_name = "WORKER")]
        worker: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop a worker, and hand its hosts over to the others
    ///
    /// The worker finishes in-flight requests first. Exit code 0: the worker was notified; 2: no
    /// such worker is running; 3: the database server can't be reached.
    Drain {
        /// Name of the worker
        #[arg(value_name = "WORKER")]
        worker: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
    },
    /// Move buckets of hosts between server groups while the crawl runs
    ///
    /// Name all groups of the crawl. The owner hands the buckets over, their rows are copied, and
    /// workers of the other group acquire them. Moving buckets to their current group cancels a
    /// move in progress. Exit code 0: they are there; 2: they can't be moved; 3: a database server
    /// failed, and the same command continues.
    Move {
        /// Bucket numbers, such as `0-99,512`; or `all-of:GROUP`
        #[arg(value_name = "BUCKETS")]
        buckets: String,
        /// Target group: its number in `crawl frontier status`, or its URL
        #[arg(long, value_name = "GROUP")]
        to: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// Print a summary as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The place of a shared frontier.
#[derive(Debug, Args)]
pub(crate) struct FrontierPlaceArgs {
    /// Connection string of the database server, once per group [default: those of --config]
    #[arg(long, value_name = "URL")]
    pub(crate) frontier: Vec<String>,
    /// Name of the crawl [default: that of --config; for `crawl frontier status`: all crawls]
    #[arg(long, value_name = "NAME")]
    pub(crate) crawl: Option<String>,
    /// Settings file of the workers
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Print every key of the configuration with its default and meaning
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Print the settings in force with the given flags and files instead
    #[arg(long, conflicts_with_all = ["check", "schema"])]
    pub(crate) effective: bool,
    /// Check this file, together with the given flags, and list all problems instead
    ///
    /// Makes no requests. Exit code 0: no problems; 2: problems found.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "schema"])]
    pub(crate) check: Option<PathBuf>,
    /// Print the JSON Schema of a settings file instead, for completion and validation in editors
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) job: CrawlArgs,
}

/// Explain why a URL was fetched, was not, or is still pending
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Directory of the crawl; the directories of all its workers are combined
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read: the only one of `dirs`, or the one that combines them. Set after
    /// parsing.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// URL to explain
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check from its records that a crawl respected delays, waits and robots.txt
///
/// Recomputes from requests.jsonl, crawl.toml and the archived robots.txt exchanges what was due to
/// each host, and lists the rows that show a breach. Signatures of archived requests are verified
/// with the keys of --keys, or with those that the crawl's own settings name. Exit code 0: no
/// breach; 4: a breach was found; 2: no crawl in DIR; 3: a file can't be read.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Directory of the crawl; the directories of all its workers are combined
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read, after those of several workers were combined.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// Public keys of the crawl's signatures: the URL in Signature-Agent, and a file with what it
    /// returned (may be repeated)
    #[arg(long, value_name = "URL=FILE")]
    pub(crate) keys: Vec<PublishedKeysArgument>,
    /// Write every request to this host as a page for its owner, to the file of --html
    ///
    /// The page has the pause before each request, the robots.txt in force with the line that
    /// allowed it, and what was kept. If the crawl's own settings name a key, the page is signed,
    /// and `crawl identity verify` verifies it.
    #[arg(long, value_name = "HOST", requires = "html")]
    pub(crate) host: Option<String>,
    /// HTML file to write about --host
    #[arg(long, value_name = "FILE", requires = "host")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Extract fields from the archived pages of a crawl again, with new rules
///
/// Applies the rules `[[extract]]` of FILE to the pages in the archive, without a request, and
/// replaces extracts.jsonl, the report, and the rules in crawl.toml, which later rounds use. Pages
/// whose site or operator forbids keeping them are left out. Prints how often each field was found.
/// Exit code 0: done; 2: the rules are wrong, or no crawl in DIR or a running one; 3: the disk
/// failed; 130: interrupted, and the old rows are unchanged.
#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// File with the rules; its other settings have no effect
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the pages of a crawl that today's robots.txt and usage preferences exclude
///
/// Fetches robots.txt from the crawl's hosts, and tdmrep.json if the purpose is ai-input or
/// train-ai, as politely as the crawl did, for its agent and purpose. Writes only recheck.jsonl in
/// DIR, with the results and their time, for `crawl forget DIR --because robots`. If rules can't be
/// fetched, pages are unknown rather than excluded. Exit code 0: at least one host responded; 1:
/// none did; 2: no crawl in DIR, or a running one; 3: the disk failed; 130: interrupted.
#[derive(Debug, Args)]
pub(crate) struct RecheckArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print one JSON object per page, as in recheck.jsonl
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verify a crawl's files: digests, counts and cross-references
///
/// Compares everything that a crawl's directory records twice: archive records with their digests
/// and lengths, the index with the records, rows with records and requests, the report with the
/// rows. In a bundle, every byte is checked against the digests in its manifests, and the tables
/// against the rows. Each defect is listed with its file, and its line or offset. Exit code 0: no
/// defects; 4: defects found; 2: neither a crawl nor a bundle; 3: a file can't be read.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Directory of the crawl, or folder of a bundle; the directories of all workers are combined
    #[arg(value_name = "DIR|BUNDLE", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read, after those of several workers were combined.
    #[arg(skip)]
    #[cfg_attr(
        not(feature = "tables"),
        expect(dead_code, reason = "nothing verifies it")
    )]
    pub(crate) dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Erase pages or a host from everything in a crawl's directory
///
/// Erases from the archive, rows, index, report and state. A tombstone remains, with time, reason
/// and a keyed digest of the name, so that this crawl never fetches it again. Links to it in the
/// archived bytes of other pages remain. The erasure is atomic, even if the process is killed. Exit
/// code 0: done; 2: the crawl is running, or has nothing of it; 3: the disk failed.
#[derive(Debug, Args)]
#[command(
    override_usage = "crawl forget [OPTIONS] <DIR> <URL|HOST>\n       crawl forget [OPTIONS] <DIR> --because robots"
)]
pub(crate) struct ForgetArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// URL of a page, or a host as named in requests.jsonl
    #[arg(
        value_name = "URL|HOST",
        required_unless_present_any = ["because", "finish"],
        conflicts_with = "because"
    )]
    pub(crate) what: Option<String>,
    /// Erase the pages that the last `crawl recheck` found excluded
    #[arg(long, value_name = "robots", value_enum, hide_possible_values = true)]
    pub(crate) because: Option<ForgetReason>,
    /// Finish an interrupted erasure whose list of files isn't signed with this user's key
    #[arg(long, conflicts_with_all = ["what", "because", "reason", "dry_run", "json"])]
    pub(crate) finish: bool,
    /// Reason for the tombstone; it must not name what is erased
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Count what would be erased without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A reason that selects which pages to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ForgetReason {
    /// Exclusion by the rules that the last recheck fetched
    Robots,
}

/// Rebuild the search index of a crawl from its archive
///
/// The old index serves queries until the new one replaces it. A crawl with `--index on` builds its
/// index as it runs, and needs this only if the index was lost or has an older format.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Document types to index, as for a crawl (html, text, markdown, docx, pdf, all)
    ///
    /// Defaults to the crawl's settings.
    #[arg(long, value_name = "TYPES")]
    pub(crate) index_types: Option<IndexedDocumentTypes>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Read one PDF or DOCX from stdin, and write it to stdout as HTML
///
/// A crawl with an index starts this command for each such document.
#[derive(Debug, Args)]
pub(crate) struct ReadDocumentArgs {
    /// docx, pdf or markdown
    #[arg(value_name = "KIND")]
    pub(crate) kind: DocumentKind,
    /// Maximum memory, in bytes
    #[arg(long)]
    pub(crate) memory: u64,
    /// Maximum processor time, in seconds
    #[arg(long)]
    pub(crate) timeout: u64,
    /// Maximum HTML, in bytes
    #[arg(long)]
    pub(crate) html_bytes: usize,
    /// Date of the last change, in any HTTP date format
    #[arg(long)]
    pub(crate) last_modified: Option<String>,
}

/// Search the index of a crawl
///
/// Matches all forms of a word, and tolerates a wrong letter. `"two words"` is a phrase, `-word`
/// excludes a word, `word*` is a prefix, `title:word` matches titles, `site:example.org/docs` is a
/// host or a folder. Give the directories of several workers one after another: a temporary index
/// of all their pages is built, which takes as long as `crawl index`. Exit code 0, even if nothing
/// is found.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Words to search for; put those that start with `-` after `--`
    #[arg(value_name = "QUERY", required = true)]
    pub(crate) query: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Number of results to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: usize,
    /// Use the search rules in this TOML file: synonyms, and pages that come first
    #[arg(long, value_name = "FILE")]
    pub(crate) search_rules: Option<PathBuf>,
    /// Count matching pages by folder, version, language and type
    #[arg(long)]
    pub(crate) facets: bool,
    /// Only pages with this facet value: folder=, version=, language= or type= (may be repeated). A
    /// folder is `example.org/docs`, or `docs` on any host
    #[arg(long, value_name = "FACET=VALUE")]
    pub(crate) filter: Vec<SearchFilter>,
}

/// Export a crawl's archive as one replayable file or a local mirror, its records as tables, its
/// links as a graph, or its index for other search engines
///
/// wacz writes the archive with its index and the texts of the pages. mirror writes a file per page
/// and resource, with links between the files, so that a browser opens them without a server.
/// bundle writes the archive,
/// the records, tables, the configuration without secrets, and descriptions and digests of all of
/// it, for a repository; `crawl verify` checks it. parquet and csv write all records, one file per
/// table; docs/tables.md lists the columns. graph writes pages.graphml, with pages and links, and
/// hosts.csv, with links between pairs of hosts. The other formats write the pages of the search
/// index, without duplicates and expired pages; docs/export.md describes them. The output appears
/// complete or not at all.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Directory of the crawl; the directories of all its workers are combined
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read, after those of several workers were combined.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// Format: wacz, mirror, bundle, parquet, csv, graph, opensearch, meilisearch, static,
    /// markdown, llms-txt or sitemap
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub(crate) to: ExportFormat,
    /// Output folder for mirror, bundle, tables, graph, static, markdown or sitemap, otherwise the
    /// output file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// With wacz: only this round, starting at 1. With tables and graph: pages, links and final
    /// exclusions as of the end of this round, or `all` for every visit [default: the last visit of
    /// each URL]
    #[arg(long, value_name = "N|all")]
    pub(crate) round: Option<RoundChoice>,
    /// With wacz and --round: the WACZ file of an earlier round, which revisit records of its
    /// payloads then reference (may be repeated)
    #[arg(long, value_name = "FILE", requires = "round")]
    pub(crate) earlier: Vec<PathBuf>,
    /// With static: use the search rules in this TOML file: synonyms, and pages that come first
    #[arg(long, value_name = "FILE")]
    pub(crate) search_rules: Option<PathBuf>,
}

/// Selects one round or all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundChoice {
    All,
    /// The round with this number, starting at 1.
    One(u32),
}

impl FromStr for RoundChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<RoundChoice, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(RoundChoice::All),
            (_, Ok(0)) | (_, Err(_)) => {
                Err("give the number of a round, counted from 1, or `all`".to_owned())
            }
            (_, Ok(round)) => Ok(RoundChoice::One(round)),
        }
    }
}

/// The formats of `crawl export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// Bulk API lines for OpenSearch and Elasticsearch
    Opensearch,
    /// Lines for Meilisearch, one per section
    Meilisearch,
    /// A folder with a search page that only needs a file server
    Static,
    /// A folder with one Markdown file per page
    Markdown,
    /// A list of the pages for language models (llms.txt)
    LlmsTxt,
    /// A folder with one sitemap.xml per host
    Sitemap,
    /// A folder with one Parquet file per table
    Parquet,
    /// A folder with one CSV file per table
    Csv,
    /// A folder with the links as GraphML, and links between hosts as CSV
    Graph,
    /// The archive as one file that replays in a browser
    Wacz,
    /// A folder with one file per page and resource, which a browser opens without a server
    Mirror,
    /// A folder with everything needed to cite and check the crawl
    Bundle,
}

/// Pause, resume and steer a running crawl, or print its state
///
/// Uses the socket in DIR/state; docs/operating.md describes the protocol. Exit code 0: done; 2:
/// refused, or no crawl is running there; 3: the crawl could not be reached.
#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(subcommand)]
    pub(crate) command: protocol::ControlCommand,
}

/// Let a language model query a crawl, over the Model Context Protocol
///
/// Communicates over stdin and stdout, for a client that starts this program. The tools are search,
/// page (as Markdown), sections, explain and report; all are read-only. Responses leave out
/// whatever a page forbids (noindex, nosnippet, max-snippet) and whatever its site refuses to
/// models (ai-input). Exit code 0: stdin was closed, or a signal arrived; 2: no crawl in DIR or
/// no index; 3: the index can't be read.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Directory of the crawl, with a search index
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Serve a search page, the report and the live state in a browser
///
/// The search page is at / if the crawl has a search index (`crawl index DIR`, or `--index on`),
/// the JSON API at /api/search (described by /api/openapi.json), the script that embeds a search
/// box in another page at /embed.js, the report and the running crawl at /crawl. Stops on SIGINT
/// and SIGTERM after finishing open requests. Exit code 0: stopped by a signal; 2: DIR holds no
/// crawl, or a flag is wrong; 3: the index can't be read, or the port is in use.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Directory of the crawl
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Address to listen on; port 0 picks a free one, and the address is printed
    ///
    /// A token is required except on loopback.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: String,
    /// Use the search rules in this TOML file: synonyms, and pages that come first
    #[arg(long, value_name = "FILE")]
    pub(crate) search_rules: Option<PathBuf>,
    /// Read the token that controls the crawl from this file; or env CRAWL_SERVE_TOKEN
    ///
    /// Without a token the crawl can't be controlled from here, not even from this machine; use
    /// `crawl control DIR` on the machine where the crawl runs. Control means to pause, resume, add
    /// a URL, change the delay, or park a host.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let pages of this origin show results, such as `https://www.example.org` (may be repeated)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Requests per second per client; bursts may have twice as many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) rate: u32,
    /// Title of the search page [default: Search HOST]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Clients connect through a reverse proxy that sets X-Forwarded-For
    ///
    /// The server then accepts any Host, counts requests by the last client in the header, and
    /// allows any number of connections from one address, the proxy's. The token is still required.
    #[arg(long)]
    pub(crate) behind_proxy: bool,
}

/// Print the manual page, or write a page for each command
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write crawl.1, crawl-report.1 and so on into this directory instead
    #[arg(long, value_name = "DIR")]
    pub(crate) all: Option<PathBuf>,
}

/// Returns the clap command, with the built-in defaults and examples in its help.
pub(crate) fn command() -> clap::Command {
    super::short_help::with_examples(Cli::command())
        .mut_args(with_default)
        .mut_subcommand("config", |config| config.mut_args(with_default))
        .mut_subcommand("plan", |plan| plan.mut_args(with_default))
        .mut_subcommand("check", |check| check.mut_args(with_default))
        .mut_subcommand("replay", |replay| replay.mut_args(with_default))
}

/// Adds the default to a flag's help. The default is not set in clap, because a flag that wasn't
/// typed must not win over a file.
fn with_default(flag: clap::Arg) -> clap::Arg {
    let Some(default) = default_of(flag.get_id().as_str()) else {
        return flag;
    };
    let note = |text: Option<&clap::builder::StyledStr>| {
        text.map(|text| format!("{text} [default: {default}]"))
    };
    let (short, long) = (note(flag.get_help()), note(flag.get_long_help()));
    match (short, long) {
        (Some(short), Some(long)) => flag.help(short).long_help(long),
        (Some(short), None) => flag.help(short),
        _ => flag,
    }
}

#[cfg(test)]
mod tests {
    use clap::error::{ContextKind, ContextValue};
    use clap::{Arg, Command, Parser as _};

    use super::{Cli, command};

    #[test]
    fn definitions_hold_together() {
        command().debug_assert();
    }

    #[test]
    fn every_flag_has_short_and_long_help() {
        for flag in command().get_arguments() {
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                help.len() > 3 && help.len() < 100,
                "{}: {help}",
                flag.get_id()
            );
            assert!(!help.ends_with('.'), "{help}");
        }
    }

    /// Returns the flags that `flag` requires.
    fn required_flags<'c>(command: &'c Command, flag: &Arg) -> Vec<&'c Arg> {
        let takes_any_value = |arg: Arg| match arg.get_action().takes_values() {
            true => arg.value_parser(clap::value_parser!(String)),
            false => arg,
        };
        let value = flag.get_action().takes_values().then_some("=1");
        let word = format!(
            "--{}{}",
            flag.get_long().unwrap(),
            value.unwrap_or_default()
        );
        let lenient = command.clone().mut_args(takes_any_value);
        let Err(error) = lenient.try_get_matches_from([command.get_name(), &word]) else {
            return Vec::new();
        };
        let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
            return Vec::new();
        };
        let args = command.get_arguments().filter(|arg| !arg.is_required_set());
        args.filter(|arg| missing.contains(&arg.to_string()))
            .collect()
    }

    fn are_in_conflict(command: &Command, one: &Arg, other: &Arg) -> bool {
        let excludes = |one: &Arg, other: &Arg| {
            let conflicts = command.get_arg_conflicts_with(one);
            conflicts.iter().any(|arg| arg.get_id() == other.get_id())
        };
        excludes(one, other) || excludes(other, one)
    }

    #[test]
    fn a_flag_conflicts_with_all_that_its_required_flags_conflict_with() {
        // Otherwise clap drops the requirement, and the flag is ignored.
        let (command, mut tried) = (super::super::preprocess::built(), 0);
        for command in command.get_subcommands() {
            let flags = || command.get_arguments().filter(|arg| !arg.is_positional());
            for flag in flags() {
                for required in required_flags(command, flag) {
                    let conflicts = flags().filter(|arg| are_in_conflict(command, required, arg));
                    for other in conflicts.filter(|arg| arg.get_id() != flag.get_id()) {
                        let name = command.get_name();
                        let is_refused = are_in_conflict(command, flag, other);
                        assert!(is_refused, "crawl {name}: {flag} with {other}");
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 40, "{tried}");
    }

    #[test]
    fn flags_of_the_job_are_refused_before_a_command() {
        assert!(Cli::try_parse_from(["crawl", "--seed", "http://a/", "man"]).is_err());
        assert!(Cli::try_parse_from(["crawl", "man"]).is_ok());
    }
}
