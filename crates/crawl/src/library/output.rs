//! The directory of a crawl.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::CrawlError;

/// The directory that a crawl writes to.
#[derive(Debug)]
pub(super) enum Output {
    /// A directory named by the user, which is kept.
    Kept(PathBuf),
    /// A temporary directory, which is removed when the last page is dropped.
    Temporary(TempDir),
}

impl Output {
    /// Returns the directory named by the user, or creates a temporary one.
    pub(super) fn new(named: Option<PathBuf>) -> Result<Output, CrawlError> {
        match named {
            Some(dir) => Ok(Output::Kept(dir)),
            None => match TempDir::with_prefix("crawl-") {
                Ok(dir) => Ok(Output::Temporary(dir)),
                Err(source) => Err(CrawlError::Folder {
                    dir: std::env::temp_dir(),
                    source,
                }),
            },
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Output::Kept(dir) => dir,
            Output::Temporary(dir) => dir.path(),
        }
    }
}
