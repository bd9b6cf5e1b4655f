//! The errors of an index.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError};

/// Bytes of what is said of a damage.
const MAX_DAMAGE_BYTES: usize = 300;

/// The reason why an index could not be opened, written or searched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There is none.
    #[error("{} holds no search index", dir.display())]
    Missing {
        /// The folder in which it was looked for.
        dir: PathBuf,
    },
    /// It was written in another format.
    #[error("the search index in {} is of format {found}, and this program reads {wanted}", dir.display())]
    OtherFormat {
        /// The folder in which it lies.
        dir: PathBuf,
        /// Its format.
        found: u32,
        /// That of this program.
        wanted: u32,
    },
    /// Another process writes to it.
    #[error("another process writes to the search index in {}", dir.display())]
    InUse {
        /// The folder in which it lies.
        dir: PathBuf,
    },
    /// The files are not those that were written.
    #[error("the search index in {} is damaged: {what}", dir.display())]
    Damaged {
        /// The folder in which it lies.
        dir: PathBuf,
        /// The defect.
        what: String,
    },
    /// The disk failed.
    #[error("can't read or write {}: {source}", path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// A query that can't be read.
    #[error("{0}")]
    Query(#[from] QueryError),
}

/// The reason why a query can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// It is too long to be a question.
    #[error("the query has {bytes} bytes, and at most {most} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// [`MAX_QUERY_BYTES`](crate::MAX_QUERY_BYTES).
        most: usize,
    },
    /// More results are skipped than are ranked.
    #[error("results are ranked up to the {most}th, and {asked} were asked for")]
    TooFar {
        /// The number that was asked for, the skipped ones included.
        asked: usize,
        /// [`MAX_RESULTS`](crate::MAX_RESULTS).
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

    pub(crate) fn damaged(dir: &Path, what: impl Into<String>) -> IndexError {
        let mut what = what.into();
        // It may quote the file.
        what.truncate(what.floor_char_boundary(MAX_DAMAGE_BYTES));
        IndexError::Damaged {
            dir: dir.to_path_buf(),
            what,
        }
    }

    /// The error of the library beneath, in our words.
    pub(crate) fn of(dir: &Path) -> impl Fn(TantivyError) -> IndexError {
        let dir = dir.to_path_buf();
        move |error| match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => {
                IndexError::InUse { dir: dir.clone() }
            }
            // What is no file of the kind that it should be is told as a failure of the disk.
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

/// Returns whether a file was read, and is not what it should be.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// Bytes that are no index may lead the library beneath into a panic: that is a damaged index,
/// and no more.
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
