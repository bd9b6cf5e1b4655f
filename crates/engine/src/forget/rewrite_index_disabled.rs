//! Replaces the rewriting of the search index in a build without the feature `search`.

use std::collections::BTreeMap;
use std::path::Path;

use crawl_archive::RemovalSelection;

use crate::error::EngineError;
use crate::index::INDEX_FOLDER;

/// A rewritten index, which does not exist in this build.
pub(super) enum RewrittenIndex {}

impl RewrittenIndex {
    pub(super) fn log(&self) -> Option<(u64, u64)> {
        match *self {}
    }
}

/// Rewrites no index.
pub(super) fn rewrite_index(
    _dir: &Path,
    _staging: &Path,
    _removal: &RemovalSelection,
    _follows: Option<Vec<u8>>,
    _marks: &BTreeMap<String, u64>,
) -> Result<Option<RewrittenIndex>, EngineError> {
    Ok(None)
}

/// Returns the reason why the index of the crawl in `dir` can't be rewritten. `None` if the index
/// doesn't exist.
pub(super) fn why_not(
    dir: &Path,
    _follows: Option<Vec<u8>>,
    _marks: &BTreeMap<String, u64>,
) -> Result<Option<String>, EngineError> {
    let has_index = dir.join(INDEX_FOLDER).is_dir();
    Ok(has_index.then(|| "this build lacks the search".to_owned()))
}
