//! Finishes a `crawl forget` that a crash interrupted.

use std::path::Path;

use crawl_engine::{RemovedDerivedFiles, finish_forget};

use crate::error::CommandError;
use crate::error::engine::of_engine;
use crate::settings::{FileMarkCheckResult, MarkPurpose, UserFolders, verify};

/// Finishes the erasure in `dir` that a crash interrupted, if there is one. Returns which of the
/// report and the search index the erasure removed, or `None` if no erasure was interrupted. A run
/// of the crawl rebuilds both itself; other callers must do so.
///
/// # Errors
/// The erasure isn't proven to be this user's, or can't be finished.
pub(crate) fn finish_interrupted(dir: &Path) -> Result<Option<RemovedDerivedFiles>, CommandError> {
    let is_ours = |list: &[u8], mark: Option<&str>| {
        let around = UserFolders::of_process();
        verify(&around, dir, MarkPurpose::Forget, list, mark) == FileMarkCheckResult::Ours
    };
    finish_forget(dir, &is_ours).map_err(|why| of_engine(&why, dir))
}
