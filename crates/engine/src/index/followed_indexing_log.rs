//! The number of the indexing log that the search index of a crawl follows, stored in the frontier.

use crawl_frontier::{Frontier, FrontierError};

use crate::frontier_meta_keys::META_INDEX;

/// Returns the number of the indexing log that the index follows. `None` if the index follows no
/// log.
pub(crate) fn number(frontier: &dyn Frontier) -> Result<Option<u64>, FrontierError> {
    frontier.meta(META_INDEX).map(number_in)
}

/// Returns the number of the indexing log from its stored bytes.
pub(crate) fn number_in(stored: Option<Vec<u8>>) -> Option<u64> {
    let stored = stored.and_then(|bytes| bytes.try_into().ok());
    stored.map(u64::from_be_bytes)
}

/// Records that no index follows the crawl any longer.
pub(crate) fn forget(frontier: &dyn Frontier) -> Result<(), FrontierError> {
    if number(frontier)?.is_none() {
        return Ok(());
    }
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_INDEX, b"");
    transaction.commit().map(drop)
}
