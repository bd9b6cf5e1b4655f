//! Errors of an index.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError};

/// Maximum length of the message of an [`IndexError::Damaged`], in bytes.
const MAX_DAMAGE_BYTES: usize = 300;

/// The reason why an index could not be opened, written or searched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The folder contains no index.
    #[error("{} holds no search index", dir.display())]
    Missing {
        /// The folder that should contain the index.
        dir: PathBuf,
    },
    /// The index was written in another format.
    #[error("the search index in {} is of format {found}, and this program reads {wanted}", dir.display())]
    OtherFormat {
        /// The folder of the index.
        dir: PathBuf,
        /// The format number of the index.
        found: u32,
        /// The format number that this program reads and writes.
        wanted: u32,
    },
    /// Another process is writing to the index.
    #[error("another process writes to the search index in {}", dir.display())]
    InUse {
        /// The folder of the index.
        dir: PathBuf,
    },
    /// Files of the index have changed since they were written.
    #[error("the search index in {} is damaged: {what}", dir.display())]
    Damaged {
        /// The folder of the index.
        dir: PathBuf,
        /// A description of the damage.
        what: String,
    },
    /// The disk could not be read or written.
    #[error("can't read or write {}: {source}", path.display())]
    Disk {
        /// The path of the file or folder.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The query is not valid.
    #[error("{0}")]
    Query(#[from] QueryError),
}

/// The reason why a query is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The query is too long.
    #[error("the query has {bytes} bytes, and at most {most} are read")]
    TooLong {
        /// The length of the query.
        bytes: usize,
        /// The maximum length: [`MAX_QUERY_BYTES`](crate::MAX_QUERY_BYTES).
        most: usize,
    },
    /// The search requests results beyond the maximum number of results that are ranked.
    #[error("at most {most} results are ranked, but {asked} were requested")]
    TooFar {
        /// The requested number of results, including those to skip.
        asked: usize,
        /// The maximum number of results: [`MAX_RESULTS`](crate::MAX_RESULTS).
        most: usize,
    },
}

impl IndexError {
    pub(crate) fn disk(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
        let path = path.to_path_buf();
        |source| IndexError::Disk {
            path,
            source: Arc::new(source),
        }
    }

    pub(crate) fn damaged(dir: &Path, message: impl Into<String>) -> IndexError {
        let mut message = message.into();
        // Truncate the message, because it may quote the content of the file.
        message.truncate(message.floor_char_boundary(MAX_DAMAGE_BYTES));
        IndexError::Damaged {
            dir: dir.to_path_buf(),
            what: message,
        }
    }

    /// Returns a closure for `map_err` that converts a tantivy error on the index in `dir`.
    pub(crate) fn of(dir: &Path) -> impl Fn(TantivyError) -> IndexError {
        let dir = dir.to_path_buf();
        move |error| match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => {
                IndexError::InUse { dir: dir.clone() }
            }
            // The file was read, but its content is wrong. Without this case, the error would be
            // reported as a disk failure.
            TantivyError::IoError(source) if is_damage(&source) => {
                IndexError::damaged(&dir, source.to_string())
            }
            TantivyError::IoError(source) => IndexError::Disk {
                path: dir.clone(),
                source,
            },
            TantivyError::LockFailure(LockError::IoError(source), _)
            | TantivyError::OpenDirectoryError(OpenDirectoryError::IoError {
                io_error: source,
                ..
            }) => IndexError::Disk {
                path: dir.clone(),
                source,
            },
            TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(path)) => {
                IndexError::damaged(&dir, format!("{} is missing", path.display()))
            }
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath })
                if is_damage(&io_error) =>
            {
                IndexError::damaged(&dir, format!("{}: {io_error}", filepath.display()))
            }
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => {
                IndexError::Disk {
                    path: dir.join(filepath),
                    source: io_error,
                }
            }
            other => IndexError::damaged(&dir, other.to_string()),
        }
    }
}

/// Returns true if the error means that a file could be read but has invalid content.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// Calls `work`, and reports a panic as a damaged index. tantivy may panic on invalid bytes.
pub(crate) fn guarded<T>(
    dir: &Path,
    work: impl FnOnce() -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(|words| (*words).to_owned());
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
        let words = words.unwrap_or_else(|| "its files contradict each other".to_owned());
        Err(IndexError::damaged(dir, words))
    })
}
