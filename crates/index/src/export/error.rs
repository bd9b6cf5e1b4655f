//! Errors of an export.

use std::io;
use std::path::Path;

use crawl_archive::AtomicFileError;

use crate::error::IndexError;

/// Why an export could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The index could not be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The output could not be written, or something else is in its place.
    #[error(transparent)]
    File(#[from] AtomicFileError),
    /// The output stream failed.
    #[error("can't write: {0}")]
    Stream(#[source] io::Error),
}

impl ExportError {
    /// Returns a closure for `map_err`: writing to `path` failed.
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> ExportError {
        let path = path.to_path_buf();
        move |source| {
            ExportError::File(AtomicFileError::Write {
                path: path.clone(),
                source,
            })
        }
    }
}
