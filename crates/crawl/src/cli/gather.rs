//! The flags of `crawl gather`.

use std::path::PathBuf;

use clap::Args;

/// Read the directories of several workers of one crawl as one
///
/// Writes a directory that the commands for records take: report, audit, explain, index and search,
/// export, verify, serve. Rows are merged by time, WARC files get a second name (a hard link) where
/// the disk allows it and are copied elsewhere, and report, digests and the index of the archive are
/// made anew. The workers' directories stay as they are. It appears whole or not at all. No crawl
/// goes on in it, as it has no frontier. Exit code 0: it is written; 2: a directory holds no crawl,
/// or one that runs, was killed, or is another crawl's; 3: the disk failed; 4: two rows settle one
/// URL in the same round, and nothing is written.
#[derive(Debug, Args)]
pub(crate) struct GatherArgs {
    /// The directories of the workers
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The directory that is made: a new or an empty one
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// What was gathered of each worker, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
