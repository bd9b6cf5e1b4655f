//! Errors of gathering.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crawl_archive::{ArchiveWriteError, ReadError};
use crawl_records::RecordsError;

/// The reason why directories could not be gathered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    /// A directory does not contain a crawl, or its records can't be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A process is using a directory.
    #[error("the crawl in `{}` runs", dir.display())]
    Running {
        /// The directory.
        dir: PathBuf,
    },
    /// The last run in a directory was killed. Only the frontier knows which rows of that run are
    /// committed.
    #[error("the last run of the crawl in `{}` has not ended, or was killed", dir.display())]
    NotEnded {
        /// The directory.
        dir: PathBuf,
    },
    /// A `crawl forget` was killed before it finished, so a directory is half erased.
    #[error("`crawl forget` was killed in `{}` before it was done", dir.display())]
    HalfForgotten {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory contains a replay, whose times are simulated.
    #[error("`{}` is the replay of a crawl, and no request was sent for it", dir.display())]
    Replay {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory contains a sample or a random walk. The probabilities in it hold only for one
    /// worker, so they can't be combined with those of other workers.
    #[error("the crawl in `{}` drew a sample or took a walk, each worker its own", dir.display())]
    Sampled {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory was given twice.
    #[error("`{}` and `{}` are one directory", one.display(), other.display())]
    SameDirectory {
        /// The path as first given.
        one: PathBuf,
        /// The path as given again.
        other: PathBuf,
    },
    /// Two directories belong to different crawls.
    #[error(
        "`{}` and `{}` are not of one crawl: `{key}` differs in crawl.toml",
        one.display(),
        other.display()
    )]
    OtherCrawl {
        /// The first directory.
        one: PathBuf,
        /// The other directory.
        other: PathBuf,
        /// The key that differs, with the name of its table.
        key: String,
    },
    /// Several rows of `pages.jsonl` are about the same URL and round, which a correct crawl never
    /// writes.
    #[error(
        "{count} rows of pages.jsonl settle a URL that another row settled already: {}",
        CommaSeparated(first)
    )]
    SettledTwice {
        /// The number of rows that repeat a URL.
        count: u64,
        /// The first few repeated URLs, each with two rows.
        first: Vec<TwiceSettledUrl>,
    },
    /// A record of the archive can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file of the archive can't be written.
    #[error(transparent)]
    Archive(#[from] ArchiveWriteError),
    /// A file can't be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A URL that two rows of `pages.jsonl` settle in the same round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwiceSettledUrl {
    /// The URL.
    pub url: String,
    /// The round of the rows.
    pub round: u32,
    /// The worker and line number (from 1) of the first row.
    pub one: (String, u64),
    /// The worker and line number (from 1) of the second row.
    pub other: (String, u64),
}

impl fmt::Display for TwiceSettledUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((one, line), (other, other_line)) = (&self.one, &self.other);
        write!(
            f,
            "{} (line {line} of {one}, line {other_line} of {other})",
            self.url
        )
    }
}

struct CommaSeparated<'a>(&'a [TwiceSettledUrl]);

impl fmt::Display for CommaSeparated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, twice) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { ", " };
            write!(f, "{between}{twice}")?;
        }
        Ok(())
    }
}

impl GatherError {
    /// Returns a closure for `map_err` that attaches `path` to an I/O error.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> GatherError {
        let path = path.to_owned();
        move |source| GatherError::Io { path, source }
    }
}
