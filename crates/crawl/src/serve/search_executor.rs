//! Runs searches on separate threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use crawl_index::{
    IndexError, IndexSearcher, IndexStats, IndexedPage, SearchOptions, SearchResults, SearchRules,
};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::error_response::ErrorResponse;
use super::search_request::SearchRequest;
use crate::error::CommandError;
use crate::search_index_opener;

/// Maximum wait of a search for a thread.
/// Beyond the limit: 503.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the index statistics are cached.
const MAX_STATS_AGE: Duration = Duration::from_secs(3);
/// Maximum threads that search, regardless of the number of processors.
/// Beyond the limit: searches wait.
const MAX_THREADS: usize = 16;

/// Runs about one search per processor at a time. Further searches wait, so that slow ones don't
/// block the rest of the server.
pub(crate) struct SearchExecutor {
    dir: PathBuf,
    rules: SearchRules,
    /// The index of the crawl. Not set until the crawl has an index.
    index: OnceLock<Arc<IndexSearcher>>,
    turns: Arc<Semaphore>,
    stats: Mutex<Option<(Instant, Arc<IndexStats>)>>,
}

impl SearchExecutor {
    /// Opens the index of the crawl in `dir`. If there is no index yet, a later search opens it.
    /// `rules` is a file of search rules.
    pub(crate) fn open(dir: &Path, rules: Option<&Path>) -> Result<SearchExecutor, CommandError> {
        let rules = search_index_opener::rules(rules)?;
        let index = search_index_opener::open_if_any(dir)?;
        if let Some(index) = &index {
            // Resolve the pins only to warn about pages that aren't indexed. Each search resolves
            // the pins again, because pages may be indexed later.
            search_index_opener::resolve_pins(index, rules.clone(), dir)?;
        }
        let index = index.map(|index| Arc::new(index.with_rules(rules.clone())));
        let threads = available_parallelism().map_or(2, usize::from);
        Ok(SearchExecutor {
            dir: dir.to_owned(),
            rules,
            index: index.map(OnceLock::from).unwrap_or_default(),
            turns: Arc::new(Semaphore::new(threads.clamp(2, MAX_THREADS))),
            stats: Mutex::new(None),
        })
    }

    /// Returns whether the crawl has an index.
    pub(crate) fn has_index(&self) -> bool {
        self.index().is_ok()
    }

    fn index(&self) -> Result<&Arc<IndexSearcher>, ErrorResponse> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        match search_index_opener::open_if_any(&self.dir) {
            Ok(Some(index)) => {
                let rules = self.rules.clone();
                Ok(self.index.get_or_init(|| Arc::new(index.with_rules(rules))))
            }
            Ok(None) => {
                let error = "this crawl has no search index";
                let problem = ErrorResponse::new(StatusCode::NOT_FOUND, error);
                Err(problem.hint("build one with `crawl index`; `/crawl` shows the crawl"))
            }
            Err(why) => {
                tracing::error!(%why, "the index can't be opened");
                Err(unreadable())
            }
        }
    }

    /// Returns the results of a search. An empty query has no results. `now` is in seconds since
    /// 1970 UTC.
    pub(crate) async fn search(
        &self,
        request: SearchRequest,
        now: i64,
    ) -> Result<SearchResults, ErrorResponse> {
        if request.query.is_empty() {
            return Ok(SearchResults::default());
        }
        let options = SearchOptions {
            limit: request.limit,
            offset: request.offset,
            now,
            filters: request.filters,
            facets: request.facets,
            ..SearchOptions::default()
        };
        self.run(move |index| index.search(&request.query, &options))
            .await
    }

    /// Returns the indexed page of a URL.
    pub(crate) async fn page(&self, url: String) -> Result<Option<IndexedPage>, ErrorResponse> {
        self.run(move |index| index.page(&url)).await
    }

    /// Returns the counts of the index, which may be a few seconds old.
    pub(crate) async fn stats(&self) -> Result<Arc<IndexStats>, ErrorResponse> {
        if let Some(stats) = self.cached_stats() {
            return Ok(stats);
        }
        let stats = Arc::new(self.run(IndexSearcher::stats).await?);
        let mut cache = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        *cache = Some((Instant::now(), Arc::clone(&stats)));
        Ok(stats)
    }

    fn cached_stats(&self) -> Option<Arc<IndexStats>> {
        let cache = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, stats) = cache.as_ref()?;
        (at.elapsed() < MAX_STATS_AGE).then(|| Arc::clone(stats))
    }

    async fn run<T: Send + 'static>(
        &self,
        question: impl FnOnce(&IndexSearcher) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let index = Arc::clone(self.index()?);
        let turn = timeout(QUEUE_TIMEOUT, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(ErrorResponse::busy("too many searches are running"));
        };
        let answer = spawn_blocking(move || {
            let answer = question(&index);
            // Hold the permit until the search ends, even if the client has disconnected.
            drop(turn);
            answer
        });
        match answer.await {
            Ok(answer) => answer.map_err(|why| problem(&why)),
            Err(why) => {
                tracing::error!(%why, "a search broke off");
                Err(ErrorResponse::internal("the search failed"))
            }
        }
    }
}

/// Converts an error from searching the index.
fn problem(why: &IndexError) -> ErrorResponse {
    match why {
        IndexError::Query(why) => ErrorResponse::bad_request(why.to_string()),
        why => {
            tracing::error!(%why, "the index can't be searched");
            unreadable()
        }
    }
}

/// Returns an error that hides the paths of this machine from clients.
fn unreadable() -> ErrorResponse {
    ErrorResponse::internal("can't read the search index").hint("the server's log has the reason")
}
