//! The errors of gathering.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crawl_archive::{ArchiveError, ReadError};
use crawl_records::RecordsError;

/// The reason why directories could not be gathered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    /// A directory holds no crawl, or its records can't be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A process works in a directory.
    #[error("the crawl in `{}` runs", dir.display())]
    Running {
        /// The directory.
        dir: PathBuf,
    },
    /// The last run in a directory was killed: which of its rows are committed its frontier knows.
    #[error("the last run of the crawl in `{}` has not ended, or was killed", dir.display())]
    NotEnded {
        /// The directory.
        dir: PathBuf,
    },
    /// A `crawl forget` was killed there.
    #[error("`crawl forget` was killed in `{}` before it was done", dir.display())]
    HalfForgotten {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory is that of a replay, whose times are virtual.
    #[error("`{}` is the replay of a crawl, and no request was sent for it", dir.display())]
    Replay {
        /// The directory.
        dir: PathBuf,
    },
    /// A crawl drew a sample or took a walk: each worker's probabilities are those of its own frame.
    #[error("the crawl in `{}` drew a sample or took a walk, each worker its own", dir.display())]
    Sampled {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory was given twice.
    #[error("`{}` and `{}` are one directory", one.display(), other.display())]
    SameDirectory {
        /// As it was given first.
        one: PathBuf,
        /// As it was given again.
        other: PathBuf,
    },
    /// The directories are of two crawls.
    #[error(
        "`{}` and `{}` are not of one crawl: `{key}` differs in crawl.toml",
        one.display(),
        other.display()
    )]
    OtherCrawl {
        /// The first directory.
        one: PathBuf,
        /// The other one.
        other: PathBuf,
        /// The key, with its table.
        key: String,
    },
    /// URLs were settled twice in one round.
    #[error(
        "{count} rows of pages.jsonl settle a URL that another row settled already: {}",
        ListOf(first)
    )]
    SettledTwice {
        /// The number of rows beyond the first of each URL.
        count: u64,
        /// The first of them.
        first: Vec<SettledTwice>,
    },
    /// A record of the archive can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file can't be written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file can't be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A URL that two rows of `pages.jsonl` settle in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledTwice {
    /// The URL.
    pub url: String,
    /// The round.
    pub round: u32,
    /// The worker and the line of the first row, from 1.
    pub one: (String, u64),
    /// Those of the other.
    pub other: (String, u64),
}

impl fmt::Display for SettledTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((one, line), (other, other_line)) = (&self.one, &self.other);
        write!(
            f,
            "{} (line {line} of {one}, line {other_line} of {other})",
            self.url
        )
    }
}

struct ListOf<'a>(&'a [SettledTwice]);

impl fmt::Display for ListOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, twice) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { ", " };
            write!(f, "{between}{twice}")?;
        }
        Ok(())
    }
}

impl GatherError {
    /// For `map_err`: something failed at `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> GatherError {
        let path = path.to_owned();
        move |source| GatherError::Io { path, source }
    }
}
