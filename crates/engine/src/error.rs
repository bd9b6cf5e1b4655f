//! Errors that end a crawl early.

use std::io;
use std::path::PathBuf;

use crawl_archive::ArchiveWriteError;
use crawl_frontier::worker_frontier::BoxError;
use crawl_frontier::{DiskOpenError, FrontierError};

use crate::control::CommandRefusal;

/// Why a crawl could not start or had to stop. Everything fetched before stays readable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The path of the output directory is empty.
    #[error("the path of the output directory is empty (the current directory is `.`)")]
    OutputUnnamed,
    /// The path of the output directory belongs to a file, or to a link that leads nowhere.
    #[error("`{}` is not a directory", dir.display())]
    NotADirectory {
        /// The path.
        dir: PathBuf,
    },
    /// The output directory holds something that is not a crawl.
    #[error("no crawl in `{}`, which is not empty: found `{found}`", dir.display())]
    OutputForeign {
        /// The output directory.
        dir: PathBuf,
        /// An entry that does not belong to a crawl.
        found: String,
    },
    /// The output directory contains a crawl, but also something else.
    #[error("`{found}` in `{}` was not written by this program", dir.display())]
    BesideCrawl {
        /// The output directory.
        dir: PathBuf,
        /// An entry that does not belong to a crawl.
        found: String,
    },
    /// The output directory contains records of a crawl, but no state to resume from.
    #[error("`{}` holds `{found}` of a crawl, but its `state` is missing", dir.display())]
    StateMissing {
        /// The output directory.
        dir: PathBuf,
        /// A record file in the directory.
        found: String,
    },
    /// Another process, or another crawl in this process, uses the output directory.
    #[error("`{}` is in use by another crawl or command", dir.display())]
    OutputInUse {
        /// The output directory.
        dir: PathBuf,
    },
    /// The run was stopped before the shared frontier answered.
    #[error("stopped before the shared frontier answered")]
    StoppedEarly,
    /// No seed was given, and there is no crawl to resume.
    #[error("no crawl in `{}` to continue, and no seed was given", dir.display())]
    NothingToDo {
        /// The output directory.
        dir: PathBuf,
    },
    /// Erasing pages or hosts was interrupted after the commit. Some old files have not been
    /// replaced by their new versions yet.
    #[error("erasing pages from `{}` was interrupted", dir.display())]
    UnfinishedForget {
        /// The output directory.
        dir: PathBuf,
    },
    /// The directory contains a list of files that an interrupted erasure still has to replace, but
    /// this user did not write the list.
    #[error("`{}` lists files to replace, but the list was not written by you: {why}", dir.join("forget.json").display())]
    ForeignForget {
        /// The output directory.
        dir: PathBuf,
        /// Why the list is refused.
        why: String,
    },
    /// The directory holds a replay, which no crawl can resume.
    #[error("`{}` holds the replay of another crawl, which can't be continued", dir.display())]
    IsReplay {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory was gathered from the directories of several workers, and has no frontier.
    #[error("`{}` was gathered from the directories of several workers, and has no frontier", dir.display())]
    IsGathered {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory for a replay's output is not new.
    #[error("`{}` already holds a crawl or a replay; a replay needs a directory of its own", dir.display())]
    ReplayOutput {
        /// The output directory.
        dir: PathBuf,
    },
    /// The crawl to replay has no archived responses.
    #[error("`{}` has no archive to replay", dir.display())]
    NothingToReplay {
        /// The directory to replay.
        dir: PathBuf,
    },
    /// A pattern of the scope is not a valid regular expression.
    #[error(transparent)]
    Pattern(#[from] crawl_scope::BadScopePattern),
    /// Two seeds have different settings for the same area (part of the web).
    #[error(transparent)]
    SeedArea(#[from] crawl_scope::AreaConflict),
    /// The fetcher can't be built from its configuration.
    #[error(transparent)]
    Fetcher(#[from] crawl_fetcher::FetcherSetupError),
    /// A command can't be carried out.
    #[error(transparent)]
    Refused(#[from] CommandRefusal),
    /// A file could not be read or written.
    #[error("`{}`: {source}", path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The archive or a row file failed.
    #[error(transparent)]
    Archive(#[from] ArchiveWriteError),
    /// The stored state of the crawl's round can't be read.
    #[error("the stored round of the crawl can't be read: {why}")]
    Round {
        /// The parser's error.
        why: serde_json::Error,
    },
    /// A run of the crawl had no sample. A later run can't draw one, because the probabilities of
    /// the pages that were fetched are unknown.
    #[error("this crawl already fetched pages without a sample")]
    FetchedWithoutSample,
    /// The crawl's sample or random walk has a design that differs from the configured one, or none
    /// is configured.
    #[error("this crawl samples its pages with different settings")]
    SampleDrawn,
    /// The stored state could not be opened.
    #[error("`{}`: {source}", dir.display())]
    Open {
        /// The directory of the state.
        dir: PathBuf,
        /// The frontier's error.
        source: DiskOpenError,
    },
    /// The shared frontier could not be opened.
    #[error(transparent)]
    Shared(BoxError),
    /// A shared frontier was requested, but the directory contains a crawl with its own frontier.
    #[error("`{}` holds a crawl with its own frontier, which is not shared with other workers", dir.display())]
    OwnFrontier {
        /// The output directory.
        dir: PathBuf,
    },
    /// The directory belongs to another worker of a shared frontier.
    #[error("`{}` is the directory of worker `{worker}` of crawl `{crawl}`", dir.display())]
    OtherWorker {
        /// The output directory.
        dir: PathBuf,
        /// The crawl of the directory's worker.
        crawl: String,
        /// The worker that owns the directory.
        worker: String,
    },
    /// This worker's records are in another directory.
    #[error("worker `{worker}` of crawl `{crawl}` has records in a directory other than `{}`", dir.display())]
    WorkerElsewhere {
        /// The output directory that was given.
        dir: PathBuf,
        /// The crawl.
        crawl: String,
        /// The worker.
        worker: String,
    },
    /// An import of the directory into a shared frontier was interrupted.
    #[error("the import of `{}` into a shared frontier is not finished", dir.display())]
    HalfImported {
        /// The directory.
        dir: PathBuf,
    },
    /// The crawl in the directory can't be imported.
    #[error("the crawl in `{}` can't be imported: {what}", dir.display())]
    NotImportable {
        /// The directory.
        dir: PathBuf,
        /// Why the crawl can't be imported.
        what: &'static str,
    },
    /// One of the given directories belongs to a worker of another crawl.
    #[error("the crawl has no worker `{worker}`, but its directory was given")]
    NotItsWorker {
        /// The name of the worker.
        worker: String,
    },
    /// The directory of one of the crawl's workers was not given.
    #[error("the directory of worker `{worker}`, with {pages} pages, is not among those given")]
    WorkerMissing {
        /// The name of the worker.
        worker: String,
        /// Rows of `pages.jsonl` that the worker committed.
        pages: u64,
    },
    /// A worker's directory does not match what the worker committed.
    #[error(
        "the directory of worker `{worker}` does not match what it committed; {file}: {found} found, {committed} committed"
    )]
    RecordsDiffer {
        /// The name of the worker.
        worker: String,
        /// The name of the file, or `the rows of pages.jsonl`.
        file: String,
        /// The number found: bytes of the file, or rows of pages.
        found: u64,
        /// The number that the worker committed.
        committed: u64,
    },
    /// After an export, the directory does not contain the same URLs as the shared frontier.
    #[error("the directory has {found}, but {expected} were to be moved")]
    ExportDiffers {
        /// The number of URLs in each state in the shared frontier.
        expected: crawl_frontier::parts::CommittedUrlCounts,
        /// URLs in each state in the directory.
        found: crawl_frontier::parts::CommittedUrlCounts,
    },
    /// The command needs the directory to have its own frontier, but this one belongs to a worker
    /// on a shared frontier.
    #[error("`{}` is the directory of worker `{worker}` of crawl `{crawl}`, whose frontier is elsewhere", dir.display())]
    SharedState {
        /// The directory.
        dir: PathBuf,
        /// The crawl.
        crawl: String,
        /// The worker.
        worker: String,
    },
    /// The stored state failed during the crawl.
    #[error(transparent)]
    State(#[from] FrontierError),
    /// A row file can't be read.
    #[error(transparent)]
    Read(#[from] crawl_archive::ReadError),
    /// The search index failed.
    #[cfg(feature = "search")]
    #[error(transparent)]
    Index(crawl_index::IndexError),
    /// A search index was requested, but this build can't create one.
    #[error("this build has no search index")]
    NoSearch,
    /// The search index can't be rebuilt, because there is no archive.
    #[error("the search index of `{}` must be rebuilt from its archive, but there is none", dir.display())]
    NoArchive {
        /// The crawl directory.
        dir: PathBuf,
    },
    /// A thread of the engine failed.
    #[error("an engine thread ended: {what}")]
    Thread {
        /// Which thread, and its message.
        what: String,
    },
}

impl EngineError {
    pub(crate) fn disk(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> EngineError {
        let path = path.into();
        move |source| EngineError::Disk { path, source }
    }
}

#[cfg(feature = "search")]
impl From<crawl_index::IndexError> for EngineError {
    fn from(error: crawl_index::IndexError) -> EngineError {
        EngineError::Index(error)
    }
}
