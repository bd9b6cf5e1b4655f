//! Replaces the search index in a build without the feature `search`.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use crawl_archive::RowFileWriter;
use crawl_frontier::Frontier;

use super::followed_indexing_log::forget;
use crate::config::Config;
use crate::error::EngineError;
use crate::summary::IndexSummary;

/// A function that returns whether the crawl keeps the processors busy.
pub(crate) type ProcessorsBusyCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Replaces the type that stops indexing early. Does nothing, since nothing is indexed.
#[derive(Clone)]
pub(crate) struct IndexingStopCondition;

impl IndexingStopCondition {
    pub(crate) fn when(
        _is_due: impl Fn() -> bool + Send + Sync + 'static,
    ) -> IndexingStopCondition {
        IndexingStopCondition
    }
}

/// Fails if the configuration wants an index. Otherwise records that no index follows the crawl,
/// because this build can't update an existing one, and returns no log.
pub(crate) fn open_log(
    config: &Config,
    frontier: &dyn Frontier,
    _has_pages: bool,
) -> Result<Option<IndexingStartState>, EngineError> {
    match config.index {
        true => Err(EngineError::NoSearch),
        false => Ok(forget(frontier).map(|()| None)?),
    }
}

/// The log and the index, neither of which exists in this build.
pub(crate) enum IndexingStartState {}

/// The thread that follows the indexing log, which does not exist in this build.
pub(crate) enum Indexer {}

/// The result of the thread, which does not exist in this build.
pub(crate) enum IndexerOutcome {}

impl Indexer {
    pub(crate) fn start(
        _config: &Config,
        _frontier: Arc<dyn Frontier>,
        indexing: IndexingStartState,
        _when: (IndexingStopCondition, ProcessorsBusyCheck),
        _failed: impl FnMut(EngineError) + Send + 'static,
    ) -> Result<(Indexer, RowFileWriter), EngineError> {
        match indexing {}
    }

    pub(crate) fn lengths(&self) -> Sender<u64> {
        match *self {}
    }

    pub(crate) fn join(self, _leaves_rest: bool) -> Result<IndexerOutcome, EngineError> {
        match self {}
    }
}

impl IndexerOutcome {
    pub(crate) fn end(
        self,
        _is_whole: bool,
        _frontier: &dyn Frontier,
        _now: i64,
    ) -> Result<IndexSummary, EngineError> {
        match self {}
    }
}
