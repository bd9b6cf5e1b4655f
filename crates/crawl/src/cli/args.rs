//! The command line.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use crawl_documents::DocumentKind;

use crate::cli::gather::GatherArgs;
use crate::cli::report::ReportArgs;
use crate::cli::search_filter::SearchFilter;
use crate::control::protocol;
use crate::settings::{IndexTypes, Layer, ProfileName, default_of};

/// The output of `crawl --version`: the version and the features of this build.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("documents", cfg!(feature = "documents")),
        ("jemalloc", cfg!(feature = "jemalloc")),
        ("mcp", cfg!(feature = "mcp")),
        ("search", cfg!(feature = "search")),
        ("shared-frontier", cfg!(feature = "shared-frontier")),
        ("tables", cfg!(feature = "tables")),
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

/// A polite web crawler with exclusion built in
///
/// `crawl https://example.org/` crawls that site: robots.txt first, one request at a time per
/// host, and a directory of records that other tools read. Exit codes: 0 finished; 1 no seed
/// could be fetched, pages failed under --fail-on-error, or a host is not complete under
/// --fail-on-partial; 2 the command line or the
/// configuration is wrong; 3 the disk or the state failed; 4 `crawl audit` found a breach, or
/// `crawl verify` a defect; 130 interrupted, and the same command goes on from there.
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
    pub(crate) job: JobArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags of the main job.
#[derive(Clone, Debug, Args)]
pub(crate) struct JobArgs {
    /// Read settings from this TOML file; flags win
    ///
    /// Keys are the flags' names in the tables that stand in the headings below:
    /// `crawl config` prints a file with every key.
    #[arg(long, value_name = "FILE", display_order = 1)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) layer: Layer,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell what a crawl would cost its hosts: from robots.txt and sitemaps alone
    Plan(PlanArgs),
    /// May we? The robots.txt verdict for URLs, and the line that decides
    Robots(RobotsArgs),
    /// Show what the extractor reads in a page, as JSON
    Inspect(InspectArgs),
    /// Print every key of the configuration with its default and meaning
    Config(ConfigArgs),
    /// Summarise a crawl from its records
    Report(ReportArgs),
    /// Tell what other settings would have fetched: the crawl again, over its archived answers
    Replay(ReplayArgs),
    /// Tell why a URL was, was not, or is not yet fetched
    Explain(ExplainArgs),
    /// Check by its records that a crawl kept gaps, waits and robots rules
    Audit(AuditArgs),
    /// Tell which pages of a crawl today's robots.txt and usage preferences exclude
    Recheck(RecheckArgs),
    /// Check that what a crawl left is whole: digests, counts and cross-references
    Verify(VerifyArgs),
    /// Take pages or a host out of everything that a crawl's directory holds
    Forget(ForgetArgs),
    /// Read the directories of several workers of one crawl as one
    Gather(GatherArgs),
    /// Build the search index of a crawl anew, from its archive
    Index(IndexArgs),
    /// Search the index of a crawl
    Search(SearchArgs),
    /// Write a crawl's records as tables, or the pages of its index for other searches
    Export(ExportArgs),
    /// Pause, resume and steer a crawl that runs, or tell its state
    Control(ControlArgs),
    /// Serve a search page, the report and the live state in a browser
    Serve(ServeArgs),
    /// Look at a frontier that workers share, check its engine, or have a worker end
    Frontier(FrontierArgs),
    /// Answer a language model's questions about a crawl, over the Model Context Protocol
    Mcp(McpArgs),
    /// Read one document from stdin, for a crawl that started this process
    #[command(hide = true)]
    ReadDocument(ReadDocumentArgs),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// Tell what a crawl would cost its hosts: from robots.txt and sitemaps alone
///
/// Takes the flags of the crawl, and asks as politely as that would. For each host and in all:
/// pages that are known, what is excluded and by which rule, Crawl-delay, hours, bytes, and
/// preferences about use against --purpose. Where --output holds a crawl, sizes of pages are those
/// that it measured. Nothing is left on the disk. Exit code 0: a host could be asked; 1: none
/// could; 2: the command line is wrong; 3: the disk failed; 130: interrupted.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write it to this file as a page instead
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

/// Tell what other settings would have fetched: the crawl again, over its archived answers
///
/// Runs frontier, policy and scheduler over the archive in virtual time. Nobody is asked for
/// anything: what these settings would ask for and the archive does not have is listed as
/// `not_archived`. Without --config and flags the crawl's own settings hold, and each request has
/// the time that the records say. Rows and report of the replay stand in --output, which is new;
/// nothing is archived or indexed there, and no crawl goes on with it. Then both are compared, as
/// `crawl report --compare DIR NEW` does. Exit code 0: it was replayed; 2: the command line is
/// wrong, or DIR has no archive; 3: the disk failed.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

/// May we? The robots.txt verdict for URLs, and the line that decides
///
/// robots.txt is fetched from the URLs' hosts unless --file gives one. Exit code 0: all
/// are allowed; 1: one is not; 2: error.
#[derive(Debug, Args)]
pub(crate) struct RobotsArgs {
    /// Product token to judge for
    #[arg(long, value_name = "NAME", default_value = "crawl")]
    pub(crate) agent: String,
    /// The rules for reading robots.txt: rfc9309, koster1994, extended1997 or strictest
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
    /// Fetch robots.txt from the URLs' hosts, which is what happens without --file
    #[arg(long)]
    pub(crate) fetch: bool,
    /// Mail address or URL where the owner of the asked host reaches you
    #[arg(
        long,
        value_name = "MAIL-OR-URL",
        env = "CRAWL_CONTACT",
        hide_env_values = true
    )]
    pub(crate) contact: Option<String>,
    /// A JSON object on a line for each URL
    #[arg(long)]
    pub(crate) json: bool,
    /// Judge JSON lines from stdin: {"robots": TEXT or {"base64": ..}, "agent": .., "url": ..}
    ///
    /// For each line one is written in the same order: {"allowed": .., "line": .., "rule": ..}.
    /// Exit code 0: all lines were judged; 2: one could not be.
    #[arg(long, conflicts_with_all = ["file", "fetch", "url"])]
    pub(crate) batch: bool,
    /// The URLs in question; with --file a path will do
    #[arg(value_name = "URL", required_unless_present = "batch")]
    pub(crate) url: Vec<String>,
}

/// Show what the extractor reads in a page, as JSON
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The page; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The URL that the page was found at
    #[arg(long, value_name = "URL")]
    pub(crate) base: String,
    /// The Content-Type that it came with
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
}

/// Look at a frontier that workers share, check its engine, move a crawl there, have a worker end, or
/// make up for one whose directory is lost
#[derive(Debug, Args)]
pub(crate) struct FrontierArgs {
    #[command(subcommand)]
    pub(crate) command: FrontierCommand,
}

/// Subcommands of `crawl frontier`.
#[derive(Debug, Subcommand)]
pub(crate) enum FrontierCommand {
    /// Tell how the crawls of an engine stand, and their workers
    ///
    /// Exit code 0: told; 2: there is no such crawl; 3: the engine can't be asked.
    Status {
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Hold the contract of frontiers against an engine, in crawls that are removed again
    ///
    /// Exit code 0: it keeps all clauses; 4: it breaks some, which are named; 3: it can't be asked.
    Check {
        /// The connection string of the engine; several are checked one after the other
        #[arg(value_name = "URL", required = true)]
        urls: Vec<String>,
    },
    /// Move the crawl of a directory into a frontier that workers share
    ///
    /// URLs, hosts, politeness, copies of robots.txt and visits are moved; rows and archive stay, and
    /// the directory is that of a worker from then on. Refused where the crawl runs, or the frontier
    /// has one of that name. It is moved into one group of engines: others join where a worker names
    /// them. Exit code 0: moved; 2: it can't be; 3: the disk or the engine failed, and the same
    /// command goes on.
    Import {
        /// The directory of the crawl
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The name of the worker whose directory it is from then on
        #[arg(long, value_name = "NAME", default_value = "w1")]
        worker: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// What was moved, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Move a crawl that workers shared into a directory, where it goes on by itself
    ///
    /// The directories of all its workers are named, and are gathered as `crawl gather` does; URLs,
    /// hosts, politeness, copies of robots.txt and visits are moved there. It appears whole or not at
    /// all. The crawl stays in the engine, and no worker goes on with it. Refused while a worker is at
    /// work. Exit code 0: moved; 2: it can't be; 3: the disk or the engine failed, and the same command
    /// begins anew; 4: two rows settle one URL in the same round.
    Export {
        /// The directories of the workers
        #[arg(value_name = "DIR", required = true)]
        dirs: Vec<PathBuf>,
        /// The directory that is made: a new or an empty one
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// What was moved, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have what a worker settled fetched again, since its directory is lost
    ///
    /// Its name is free for a worker with an empty directory then. What it fetched is pending again
    /// at whoever has those hosts, what it excluded is listed there. Refused while it is at work, or
    /// its lease holds. Exit code 0: done, also if it was before; 2: it is at work, or there is no
    /// such worker; 3: the engine can't be asked.
    Reopen {
        /// The name of the worker
        #[arg(value_name = "WORKER")]
        worker: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// What was lost, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have a worker hand its hosts over to the others, and end
    ///
    /// It ends what is in flight first. Exit code 0: it was asked to; 2: no such worker is at work;
    /// 3: the engine can't be asked.
    Drain {
        /// The name of the worker
        #[arg(value_name = "WORKER")]
        worker: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
    },
    /// Move buckets of hosts from one group of engines to another, while the crawl runs
    ///
    /// All groups of the crawl are named. Whoever has the buckets hands them over, their rows are
    /// copied, and workers of the other group take them. Moved to the group that has them, they stay,
    /// and a move that was begun is taken back. Exit code 0: they are there; 2: they can't be moved; 3:
    /// an engine failed, and the same command goes on.
    Move {
        /// Their numbers, such as `0-99,512`; or `all-of:GROUP`
        #[arg(value_name = "BUCKETS")]
        buckets: String,
        /// The group that they are moved to: its number in `crawl frontier status`, or its URL
        #[arg(long, value_name = "GROUP")]
        to: String,
        #[command(flatten)]
        place: FrontierPlaceArgs,
        /// What was moved, as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Location of a shared frontier.
#[derive(Debug, Args)]
pub(crate) struct FrontierPlaceArgs {
    /// The connection string of the engine, once for each group of engines [default: those of --config]
    #[arg(long, value_name = "URL")]
    pub(crate) frontier: Vec<String>,
    /// The name of the crawl [default: that of --config; status: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) crawl: Option<String>,
    /// The file of settings of its workers
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Print every key of the configuration with its default and meaning
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Print instead what would be in force with the flags and files given
    #[arg(long, conflicts_with_all = ["check", "schema"])]
    pub(crate) effective: bool,
    /// Tell instead all that is wrong with this file, and with it and the flags given
    ///
    /// Nobody is asked for anything. Exit code 0: nothing is wrong; 2: something is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "schema"])]
    pub(crate) check: Option<PathBuf>,
    /// Print instead the JSON Schema of a file of settings, by which editors complete and check it
    #[arg(long)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

/// Tell why a URL was, was not, or is not yet fetched
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The crawl's directory; those of all its workers are read as one
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read: the only one given, or the gathered one.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// The URL in question
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check by its records that a crawl kept gaps, waits and robots rules
///
/// Derives anew from requests.jsonl, crawl.toml and the archived robots.txt exchanges what
/// each host was owed, and names the rows that show a breach. Exit code 0: all was kept; 4:
/// something was not; 2: DIR holds no crawl; 3: a file can't be read.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The crawl's directory; those of all its workers are read as one
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read: the only one given, or the gathered one.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Tell which pages of a crawl today's robots.txt and usage preferences exclude
///
/// Asks the hosts of the crawl for robots.txt, and for tdmrep.json where the purpose is ai-input or
/// train-ai, as politely as the crawl did, for its agent and purpose. Nothing in DIR is changed but
/// recheck.jsonl, which says what was learnt and when: `crawl forget DIR --because robots` goes by
/// it. Where rules can't be had, pages are unknown, and not excluded. Exit code 0: a host could be
/// asked; 1: none could; 2: DIR holds no crawl, or one that runs; 3: the disk failed; 130:
/// interrupted.
#[derive(Debug, Args)]
pub(crate) struct RecheckArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A JSON object on a line for each page, as recheck.jsonl has it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check that what a crawl left is whole: digests, counts and cross-references
///
/// Holds all that the directory of a crawl says twice against each other: records of the archive
/// against their digests and lengths, the index against the records, rows against records and
/// requests, the report against the rows. Of a bundle each byte is checked, by the digests of its
/// manifests, and the tables against the rows. Each defect is named by file, and by line or offset.
/// Exit code 0: nothing is wrong; 4: something is; 2: there is no crawl and no bundle; 3: a file
/// can't be read.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The crawl's directory, or the folder of a bundle; those of all its workers are read as one
    #[arg(value_name = "DIR|BUNDLE", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read: the only one given, or the gathered one.
    #[arg(skip)]
    #[cfg_attr(
        not(feature = "tables"),
        expect(dead_code, reason = "nothing verifies it")
    )]
    pub(crate) dir: PathBuf,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take pages or a host out of everything that a crawl's directory holds
///
/// Out of archive, rows, index, report and state. A tombstone stays: when and why, and a keyed
/// digest of the name, by which it is never asked for again in this crawl. Links to it in the
/// archived bytes of other pages stay. It is done wholly or not at all, whenever it is killed.
/// Exit code 0: it is done; 2: the crawl runs, or has nothing of it; 3: the disk failed.
#[derive(Debug, Args)]
#[command(
    override_usage = "crawl forget [OPTIONS] <DIR> <URL|HOST>\n       crawl forget [OPTIONS] <DIR> --because robots"
)]
pub(crate) struct ForgetArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A page by its URL, or a host as requests.jsonl names it
    #[arg(
        value_name = "URL|HOST",
        required_unless_present_any = ["because", "finish"],
        conflicts_with = "because"
    )]
    pub(crate) what: Option<String>,
    /// Take out the pages that the last `crawl recheck` found excluded
    #[arg(long, value_name = "robots", value_enum, hide_possible_values = true)]
    pub(crate) because: Option<Because>,
    /// Finish an interrupted erasure whose list of files this user's key did not mark
    #[arg(long, conflicts_with_all = ["what", "because", "reason", "dry_run", "json"])]
    pub(crate) finish: bool,
    /// Why, for the tombstone; it must not name what is forgotten
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Count what would go, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The counts, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The criterion that selects the pages to forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Because {
    /// The rules that the last recheck was told
    Robots,
}

/// Build the search index of a crawl anew, from its archive
///
/// The index that is there answers until the other takes its place. A crawl with `--index on`
/// builds its index as it goes, and needs this only where that was lost, or is of an older
/// format.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Documents that go into it, as for a crawl (html, text, markdown, docx, pdf, all)
    ///
    /// As the crawl's settings have it if not given.
    #[arg(long, value_name = "TYPES")]
    pub(crate) index_types: Option<IndexTypes>,
    /// The result, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Read one PDF or DOCX from stdin, and write it to stdout as HTML
///
/// A crawl with an index starts it for each such document.
#[derive(Debug, Args)]
pub(crate) struct ReadDocumentArgs {
    /// docx, pdf or markdown
    #[arg(value_name = "KIND")]
    pub(crate) kind: DocumentKind,
    /// Bytes of memory
    #[arg(long)]
    pub(crate) memory: u64,
    /// Seconds of processor time
    #[arg(long)]
    pub(crate) timeout: u64,
    /// Bytes of HTML
    #[arg(long)]
    pub(crate) html_bytes: usize,
    /// The date of its last change, in any form that HTTP has
    #[arg(long)]
    pub(crate) last_modified: Option<String>,
}

/// Search the index of a crawl
///
/// Words are found in all their forms, and where they are typed a letter wrong. `"two words"`
/// stand beside each other, `-word` must not be there, `word*` is a beginning, `title:word`
/// stands in the title, `site:example.org/docs` is a host or a folder. Directories of several
/// workers stand one behind the other: an index of all their pages is built for this search alone,
/// which takes as long as `crawl index` does. Exit code 0, also where nothing is found.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The words to look for; those that begin with `-` come after `--`
    #[arg(value_name = "QUERY", required = true)]
    pub(crate) query: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Results, at most
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Results that are skipped
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: usize,
    /// Search by the rules in this TOML file: words that stand for each other, and pages that come
    /// first
    #[arg(long, value_name = "FILE")]
    pub(crate) search_rules: Option<PathBuf>,
    /// Count the pages that fit by folder, version, language and type
    #[arg(long)]
    pub(crate) facets: bool,
    /// Only pages with this value of a facet: folder=, version=, language= or type=; repeatable. A
    /// folder is `example.org/docs`, or `docs` on any host
    #[arg(long, value_name = "FACET=VALUE")]
    pub(crate) filter: Vec<SearchFilter>,
}

/// Write a crawl's archive as one file that replays, its records as tables, its links as a graph,
/// or its index for other searches
///
/// wacz writes the archive with its index and the texts of the pages. bundle writes the archive,
/// the records, tables, the configuration without secrets, and descriptions and digests of all of
/// it, for a repository; `crawl verify` checks it. parquet and csv write all records, a file for
/// each table; docs/tables.md has their columns. graph writes pages.graphml, with pages and links,
/// and hosts.csv, with links by pairs of hosts. The other formats write the pages of the search
/// index, without duplicates and pages whose time is over; docs/export.md describes them. What is
/// written appears whole or not at all.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The crawl's directory; those of all its workers are read as one
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory to read: the only one given, or the gathered one.
    #[arg(skip)]
    pub(crate) dir: PathBuf,
    /// The format: wacz, bundle, parquet, csv, graph, opensearch, meilisearch, static, markdown,
    /// llms-txt or sitemap
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub(crate) to: ExportFormat,
    /// The folder of a bundle, of tables, of a graph, of a static search, of Markdown or of sitemaps,
    /// else the file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// With wacz: only this round, from 1. With tables and graph: pages, links and exclusions as of the
    /// end of this round, or `all` for every visit [default: the last visit of each URL]
    #[arg(long, value_name = "N|all")]
    pub(crate) round: Option<RoundChoice>,
    /// With wacz and --round: the WACZ file of an earlier round, to which revisits of its payloads
    /// then point (may be repeated)
    #[arg(long, value_name = "FILE", requires = "round")]
    pub(crate) earlier: Vec<PathBuf>,
    /// With static: search by the rules in this TOML file: words that stand for each other, and pages
    /// that come first
    #[arg(long, value_name = "FILE")]
    pub(crate) search_rules: Option<PathBuf>,
}

/// Selects one round or all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundChoice {
    All,
    /// Numbered from 1.
    One(u32),
}

impl FromStr for RoundChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<RoundChoice, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(RoundChoice::All),
            (_, Ok(0)) | (_, Err(_)) => {
                Err("give the number of a round, from 1, or `all`".to_owned())
            }
            (_, Ok(round)) => Ok(RoundChoice::One(round)),
        }
    }
}

/// Formats of `crawl export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// Lines for the bulk interface of OpenSearch and Elasticsearch
    Opensearch,
    /// Lines for Meilisearch, one for each section
    Meilisearch,
    /// A folder with a search that needs a file server only
    Static,
    /// A folder with a Markdown file for each page
    Markdown,
    /// A list of the pages for language models (llms.txt)
    LlmsTxt,
    /// A folder with a sitemap.xml for each host
    Sitemap,
    /// A folder with a Parquet file for each table
    Parquet,
    /// A folder with a CSV file for each table
    Csv,
    /// A folder with the links as GraphML, and those between hosts as CSV
    Graph,
    /// The archive as one file that replays in a browser
    Wacz,
    /// A folder with all that is needed to cite and to check the crawl
    Bundle,
}

/// Pause, resume and steer a crawl that runs, or tell its state
///
/// Speaks to the socket in DIR/state, as docs/control.md has it. Exit code 0: it is done; 2: it
/// was refused, or no crawl runs there; 3: the crawl could not be asked.
#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(subcommand)]
    pub(crate) command: protocol::Command,
}

/// Answer a language model's questions about a crawl, over the Model Context Protocol
///
/// Speaks on stdin and stdout, as programs expect that start it themselves. Its tools are search,
/// page (as Markdown), sections, explain and report. They only read. What a page forbids
/// (noindex, nosnippet, max-snippet) and what its site refuses to models (ai-input) is in no
/// answer. Exit code 0: stdin ended, or a signal came; 2: DIR holds no crawl or no index; 3: the
/// index can't be read.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// The crawl's directory, with a search index
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Serve a search page, the report and the live state in a browser
///
/// The search page is at / where the crawl has a search index (`crawl index DIR`, or `--index on`),
/// the JSON API at /api/search (described by /api/openapi.json), the snippet that puts a
/// search box on another page at /embed.js, the report and the running crawl at /crawl. Ends on
/// SIGINT and SIGTERM once what is under way has ended. Exit code 0: it ended so; 2: DIR holds
/// no crawl, or a flag is wrong; 3: the index can't be read, or the port is taken.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The crawl's directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The address to listen on; port 0 takes a free one, and the address is printed
    ///
    /// Off loopback a token is required.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: String,
    /// Search by the rules in this TOML file: words that stand for each other, and pages that come
    /// first
    #[arg(long, value_name = "FILE")]
    pub(crate) search_rules: Option<PathBuf>,
    /// Read from this file the token that controls the crawl; or env CRAWL_SERVE_TOKEN
    ///
    /// Without one, nobody controls it from here, not even this machine; `crawl control DIR` does,
    /// on the machine where the crawl runs. To control is to pause, resume, add a URL, change the
    /// delay, park a host.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let pages of this origin show results, as `https://www.example.org` (may be repeated)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Requests a second from one client; twice as many at once
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) rate: u32,
    /// The name of the search page [default: Search HOST]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Clients come by way of a reverse proxy, which names them in X-Forwarded-For
    ///
    /// Then the server answers to any name, counts requests for the client that the proxy names
    /// last, and takes any number of connections from one address, as they are the proxy's. The
    /// token is needed as ever.
    #[arg(long)]
    pub(crate) behind_proxy: bool,
}

/// Returns the clap command, with the built-in defaults in its help.
pub(crate) fn command() -> clap::Command {
    Cli::command()
        .mut_args(with_default)
        .mut_subcommand("config", |config| config.mut_args(with_default))
        .mut_subcommand("plan", |plan| plan.mut_args(with_default))
        .mut_subcommand("replay", |replay| replay.mut_args(with_default))
}

/// Appends the default to a flag's help. The default isn't a clap default value: a flag that was
/// not given must not override a configuration file.
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
    use clap::Parser as _;

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

    #[test]
    fn flags_of_the_job_are_refused_before_a_command() {
        assert!(Cli::try_parse_from(["crawl", "--seed", "http://a/", "man"]).is_err());
        assert!(Cli::try_parse_from(["crawl", "man"]).is_ok());
    }
}
