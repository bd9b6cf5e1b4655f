//! Errors of writing a mirror.

use std::io;
use std::path::{Path, PathBuf};

use crawl_archive::AtomicFileError;
use crawl_records::RecordsError;

/// The reason why a mirror could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The records could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The folder could not be created or moved to its path, or the path exists but is not a
    /// mirror.
    #[error(transparent)]
    Folder(#[from] AtomicFileError),
    /// The archive contains no body that may be exported.
    #[error("`{}` has no pages in its archive that may be exported", dir.display())]
    NoFiles {
        /// The directory of the crawl.
        dir: PathBuf,
    },
    /// A file could not be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl MirrorError {
    /// Returns a closure for `map_err` that reports a failure to write `path`.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> MirrorError + use<> {
        let path = path.to_owned();
        move |source| MirrorError::Write {
            path: path.clone(),
            source,
        }
    }
}
