//! Errors of checking and bundling a crawl.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crawl_archive::ReadError;
use crawl_records::RecordsError;
use crawl_tables::TablesError;

/// The reason why a check could not be made. Defects found by a check are not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerificationRunError {
    /// The records could not be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A file could not be read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The scratch folder for temporary files could not be written.
    #[error("can't write temporary files for sorting: {0}")]
    Scratch(io::Error),
}

impl VerificationRunError {
    /// Returns a closure for `map_err` that reports a failure to read `path`.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> VerificationRunError {
        let path = path.to_owned();
        move |source| VerificationRunError::Read { path, source }
    }

    pub(crate) fn of(path: &Path, why: ReadError) -> VerificationRunError {
        let source = match why {
            ReadError::Io { source, .. } => source,
            why => io::Error::other(why.to_string()),
        };
        VerificationRunError::read(path)(source)
    }
}

/// Returns true if an I/O error is a defect: a file is missing or not a regular file. Any other
/// error means that the check could not be made.
pub(crate) fn is_damage(why: &io::Error) -> bool {
    use ErrorKind::{InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(
        why.kind(),
        InvalidFilename | InvalidInput | IsADirectory | NotADirectory | NotFound
    )
}

/// The reason why a crawl could not be bundled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The crawl's files could not be read.
    #[error(transparent)]
    Read(#[from] VerificationRunError),
    /// The tables could not be written.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The configuration could not be read.
    #[error("crawl.toml can't be read: {what}")]
    Config {
        /// A description of what is wrong with the configuration.
        what: String,
    },
    /// The crawl is still running, or its last run was killed.
    #[error("the last run of the crawl in `{}` has not ended, or was killed", dir.display())]
    NotEnded {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// The crawl sent no requests.
    #[error("the crawl in `{}` sent no requests", dir.display())]
    NoRequests {
        /// The crawl's directory.
        dir: PathBuf,
    },
    /// The crawl is damaged, or changed while it was bundled.
    #[error("`{}` is damaged: {first}", dir.display())]
    Damaged {
        /// The crawl's directory.
        dir: PathBuf,
        /// A description of the first defect.
        first: String,
    },
    /// A file of the bundle could not be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A stream to a file of the bundle failed. Converted to [`BundleError::Write`], which names
    /// the path, before it is returned.
    #[error("{0}")]
    Stream(io::Error),
}

impl BundleError {
    /// Returns a closure for `map_err` that reports a failure to write `path`.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::Write { path, source }
    }

    /// Returns a closure for `map_err` that reports a failure to read `path`.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> BundleError {
        let failed = VerificationRunError::read(path);
        move |source| BundleError::Read(failed(source))
    }
}
