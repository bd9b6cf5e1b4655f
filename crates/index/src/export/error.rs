//! The errors of an export.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::IndexError;

/// The reason why an export could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The index could not be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The output could not be written to.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The stream that it is written to failed.
    #[error("can't write: {0}")]
    Stream(#[source] io::Error),
    /// The files there are not of an earlier export that may be replaced.
    #[error("{} is there already", path.display())]
    Occupied {
        /// The folder, or the file in its place.
        path: PathBuf,
    },
}

impl ExportError {
    /// For `map_err`: writing to `path` failed.
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> ExportError {
        let path = path.to_path_buf();
        move |source| ExportError::Write {
            path: path.clone(),
            source,
        }
    }
}
