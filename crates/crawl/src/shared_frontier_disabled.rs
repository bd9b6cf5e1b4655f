//! Replaces the frontier in PostgreSQL in a build without the feature `shared-frontier`.

use std::time::Duration;

use crawl_engine::SharedFrontierOpener;

use crate::error::{CommandError, left_out};

/// Returns an error for every connection string, because this build has no shared frontier.
pub(crate) fn check_url(_url: &str) -> Result<(), CommandError> {
    Err(left_out("--frontier", "shared-frontier"))
}

/// Returns an opener that is never called, because [`check_url`] has already rejected the settings.
pub(crate) fn opener(
    _urls: Vec<String>,
    _crawl: &str,
    _worker: &str,
    _lease: Duration,
    _settings: String,
) -> SharedFrontierOpener {
    std::sync::Arc::new(|_| Err("this build doesn't include --frontier".into()))
}
