//! Errors of reading records and writing reports.

use std::io;
use std::path::PathBuf;

use crawl_archive::{BadLineReason, FOLDER, ReadError};

/// Why records can't be read, or a report can't be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The crawl has no such round.
    #[error("the crawl in `{}` has no round {round}", dir.display())]
    NoRound {
        /// The crawl's directory.
        dir: PathBuf,
        /// The requested round.
        round: u32,
        /// The number of the last round.
        rounds: u32,
    },
    /// There is no crawl in the directory.
    #[error("no crawl in `{}`", dir.display())]
    NoCrawl {
        /// The directory.
        dir: PathBuf,
    },
    /// A file could not be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A complete line is not a row.
    #[error("`{}` line {line}: {source}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, starting at 1.
        line: u64,
        /// The defect.
        source: BadLineReason,
    },
    /// A line of a baseline (a file of known faults) does not describe a fault.
    #[error("`{}` line {line}: {why}", path.display())]
    Baseline {
        /// The file.
        path: PathBuf,
        /// The line, starting at 1.
        line: u64,
        /// The defect.
        why: serde_json::Error,
    },
    /// `crawl.toml` has an unreadable value.
    #[error("`{}`: {what}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
}

impl RecordsError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RecordsError {
        let path = path.into();
        move |source| RecordsError::Io { path, source }
    }
}

impl From<ReadError> for RecordsError {
    fn from(why: ReadError) -> RecordsError {
        match why {
            ReadError::Row { file, line, source } => RecordsError::Row {
                path: file,
                line,
                source,
            },
            ReadError::Io { file, source } | ReadError::Torn { file, source, .. } => {
                RecordsError::Io { path: file, source }
            }
            why => RecordsError::Io {
                path: PathBuf::from(FOLDER),
                source: io::Error::new(io::ErrorKind::InvalidData, why.to_string()),
            },
        }
    }
}
