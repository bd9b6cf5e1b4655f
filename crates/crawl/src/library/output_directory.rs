//! The directory of a crawl.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::CrawlError;

/// The directory that a crawl writes to.
#[derive(Debug)]
pub(super) enum OutputDirectory {
    /// A directory named by the user, which is kept.
    Kept(PathBuf),
    /// A temporary directory, which is removed when the last page is dropped.
    Temporary(TempDir),
}

impl OutputDirectory {
    /// Returns the directory named by the user, or creates a temporary one.
    pub(super) fn new(named: Option<PathBuf>) -> Result<OutputDirectory, CrawlError> {
        match named {
            Some(dir) => Ok(OutputDirectory::Kept(dir)),
            None => match TempDir::with_prefix("crawl-") {
                Ok(dir) => Ok(OutputDirectory::Temporary(dir)),
                Err(source) => Err(CrawlError::Folder {
                    dir: std::env::temp_dir(),
                    source,
                }),
            },
        }
    }

    /// Adopts the output path of the final configuration. If
    /// [`Crawl::configure`](crate::Crawl::configure) changed it, `path` differs from the path of
    /// `self`. In that case, returns `path` as a directory named by the user, which is kept.
    pub(super) fn changed_to(self, path: &Path) -> OutputDirectory {
        match self.path() == path {
            true => self,
            false => OutputDirectory::Kept(path.to_owned()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            OutputDirectory::Kept(dir) => dir,
            OutputDirectory::Temporary(dir) => dir.path(),
        }
    }
}
