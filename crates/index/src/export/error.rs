//! Errors of exporting an index.

use std::io;
use std::path::Path;

use crawl_archive::AtomicFileError;

use crate::error::IndexError;

/// The reason why an export could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The index could not be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The output could not be written, or its path is in use for something else.
    #[error(transparent)]
    File(#[from] AtomicFileError),
    /// The output stream could not be written.
    #[error("can't write: {0}")]
    Stream(#[source] io::Error),
}

impl ExportError {
    /// Returns a closure for `map_err` that reports a failure to write `path`.
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
