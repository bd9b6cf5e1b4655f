//! Errors of packaging a crawl.

use std::io;
use std::path::{Path, PathBuf};

use crawl_archive::{ArchiveWriteError, ReadError};
use crawl_records::RecordsError;

/// The reason why a crawl could not be packaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaczError {
    /// The records could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The archive could not be read.
    #[error(transparent)]
    Archive(#[from] ReadError),
    /// The archive contains no captures to replay.
    #[error("`{}` has no captures in its archive", dir.display())]
    NoCaptures {
        /// The directory of the crawl.
        dir: PathBuf,
    },
    /// No page was visited in the requested round.
    #[error("no page was visited in round {0}")]
    EmptyRound(u32),
    /// The crawl has no such round.
    #[error("there is no round {round}: the last one is round {last}")]
    NoRound {
        /// The requested round.
        round: u32,
        /// The crawl's last round.
        last: u32,
    },
    /// A file given as a package of earlier rounds is not such a package.
    #[error("`{}` isn't the WACZ file of an earlier round: {what}", path.display())]
    NotEarlier {
        /// The file.
        path: PathBuf,
        /// A description of what is wrong with the file.
        what: String,
    },
    /// A file could not be written: the package, or a temporary file for sorting.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The index could not be sorted.
    #[error(transparent)]
    Index(#[from] ArchiveWriteError),
}

impl WaczError {
    /// Returns a closure for `map_err` that reports a failure to write `path`.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> WaczError + use<> {
        let path = path.to_owned();
        move |source| WaczError::Write {
            path: path.clone(),
            source,
        }
    }

    /// Returns a closure for `map_err` that reports a failure to read `path`.
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> WaczError + use<> {
        let path = path.to_owned();
        move |source| {
            WaczError::Records(RecordsError::Io {
                path: path.clone(),
                source,
            })
        }
    }
}
