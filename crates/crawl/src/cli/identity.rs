//! The arguments of `crawl identity`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::identity::PublishedKeysArgument;
use crate::settings::OperatorLayer;
use crate::values::DurationSetting;

/// Create and publish the crawler's signed identity, or verify signed requests
#[derive(Debug, Args)]
pub(crate) struct IdentityArgs {
    #[command(subcommand)]
    pub(crate) command: IdentityCommand,
}

/// A command of `crawl identity`.
#[derive(Debug, Subcommand)]
pub(crate) enum IdentityCommand {
    /// Create a private key, or add one that signs later
    ///
    /// Writes an Ed25519 key to the file of --signature-key, which only you may read, and prints
    /// the key's thumbprint. Exit code 0: done; 2: the file exists, or can't be used; 3: the disk
    /// failed.
    New {
        /// File for the private key
        #[arg(long, value_name = "FILE")]
        signature_key: PathBuf,
        /// Add a key to the file that signs after this time, so that it can be published first
        #[arg(long, value_name = "DURATION")]
        start_in: Option<DurationSetting>,
    },
    /// Write the public keys and the card that describes the crawler, to publish on your site
    ///
    /// Publish the contents of FOLDER in the root folder of the host of --signature-agent. Exit code
    /// 0: done; 2: a setting is missing or wrong; 3: the disk failed.
    Directory {
        /// Folder for the files
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        #[command(flatten)]
        who: CrawlerIdentityArgs,
    },
    /// Fetch the published keys and list their faults
    ///
    /// Sends one request, to the URL of --signature-agent. Exit code 0: verifiers can use the keys;
    /// 1: they can't; 2: a setting is missing or wrong.
    Check {
        #[command(flatten)]
        who: CrawlerIdentityArgs,
    },
    /// Report which requests in a log are signed, and whether the signatures are valid
    ///
    /// Reads WARC files and lines with the header fields of each request: JSON, such as Caddy's log
    /// or nginx's with `log_format escape=json`, or the combined format followed by Host,
    /// Signature-Agent, Signature-Input and Signature in quotes. Logs may be compressed with gzip.
    /// A file signed by `crawl audit --html` is verified as a whole. Sends no requests: fetch the
    /// keys of the crawlers yourself and name them with --keys.
    ///
    /// Signatures by other keys count as unknown. Signatures are invalid if they are for another
    /// host than --host or the URL in a WARC file, are replays, were used before or after their
    /// time, or aren't the key's signature of the request. Exit code 0: every signature by a key of
    /// --keys holds; 1: there is none by such a key; 4: a signature doesn't hold; 2: the command
    /// line is wrong, or a file isn't a log; 3: a file can't be read.
    Verify {
        /// Log files; `-` is stdin
        #[arg(value_name = "LOG", required = true)]
        logs: Vec<PathBuf>,
        /// Keys of a crawler: the URL in Signature-Agent, and a file with what it returned (may be
        /// repeated)
        #[arg(long, value_name = "URL=FILE")]
        keys: Vec<PublishedKeysArgument>,
        /// A name of your host (may be repeated): signatures for other hosts don't hold
        #[arg(long = "host", value_name = "HOST")]
        hosts: Vec<String>,
        /// Maximum time from created to expires: longer signatures don't hold
        #[arg(long, value_name = "DURATION", default_value = "1d")]
        max_lifetime: DurationSetting,
        /// Maximum difference between the clocks of crawler and server
        #[arg(long, value_name = "DURATION", default_value = "5s")]
        clock_tolerance: DurationSetting,
        /// Print each signature as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the page about the crawler that --contact points to
    ///
    /// Exit code 0: done; 2: a setting is missing or wrong; 3: the disk failed.
    Page {
        /// The page's file
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// URL of the list of addresses that the crawler uses
        #[arg(long, value_name = "URL")]
        ip_ranges: Option<String>,
        #[command(flatten)]
        who: CrawlerIdentityArgs,
    },
}

/// Identity of the crawler.
#[derive(Debug, Args)]
pub(crate) struct CrawlerIdentityArgs {
    /// Settings file of the crawl
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operator: OperatorLayer,
}
