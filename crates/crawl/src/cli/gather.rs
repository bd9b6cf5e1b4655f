//! The flags of `crawl gather`.

use std::path::PathBuf;

use clap::Args;

/// Combine the directories of several workers of a crawl
///
/// Writes a directory for the commands that read records: report, audit, explain, index and search,
/// export, verify, serve. Rows are merged by time, WARC files are hard-linked if possible and
/// copied otherwise, and the report, digests and archive index are rebuilt. The workers'
/// directories don't change. The output appears complete or not at all. A crawl can't continue in
/// it, as it has no frontier. Exit code 0: success; 2: a directory has no crawl, a running or
/// killed one, or a different one; 3: disk failure; 4: two rows settle the same URL in the same
/// round, and nothing is written.
#[derive(Debug, Args)]
pub(crate) struct GatherArgs {
    /// Directories of the workers
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Directory to create; it may exist if it is empty
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Print a summary per worker as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
