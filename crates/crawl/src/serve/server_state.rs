//! The state of `crawl serve`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::access_guard::AccessGuard;
use super::assets::StaticFiles;
use super::live_state_feed::LiveStateFeed;
use super::rate_limit::ClientRateLimits;
use super::report_cache::ReportCache;
use super::search_executor::SearchExecutor;
use super::serve_options::ServeOptions;

/// Maximum size of a request body in bytes.
/// Beyond the limit: 413.
pub(crate) const MAX_BODY_BYTES: usize = 16 * 1024;

/// State that the handlers of all requests share.
pub(crate) struct ServerState {
    pub(crate) dir: PathBuf,
    pub(crate) title: Option<String>,
    pub(crate) searcher: SearchExecutor,
    pub(crate) reports: ReportCache,
    pub(crate) live: Arc<LiveStateFeed>,
    pub(crate) guard: AccessGuard,
    pub(crate) assets: StaticFiles,
    pub(super) rates: ClientRateLimits,
}

impl ServerState {
    /// Creates the initial state. Must be called within a tokio runtime.
    pub(super) fn new(
        options: &ServeOptions,
        searcher: SearchExecutor,
        stop: watch::Receiver<bool>,
    ) -> ServerState {
        ServerState {
            dir: options.dir.clone(),
            title: options.title.clone(),
            searcher,
            reports: ReportCache::new(options.dir.clone()),
            live: LiveStateFeed::start(options.dir.clone(), stop),
            guard: AccessGuard::new(options),
            assets: StaticFiles::new(),
            rates: ClientRateLimits::new(options.rate),
        }
    }
}

/// Returns the seconds since 1970 UTC.
pub(crate) fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}
