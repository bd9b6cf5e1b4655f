//! Replaces the frontier in PostgreSQL in a build without the feature `shared-frontier`.

use std::time::Duration;

use crawl_engine::OpenFrontier;

use crate::error::{CommandError, left_out};

/// Refuses every connection string.
pub(crate) fn check_url(_url: &str) -> Result<(), CommandError> {
    Err(left_out("--frontier", "shared-frontier"))
}

/// Returns an opener that opens nothing. It is never called, since `check_url` has already rejected
/// the settings.
pub(crate) fn opener(
    _urls: Vec<String>,
    _crawl: &str,
    _worker: &str,
    _lease: Duration,
    _settings: String,
) -> OpenFrontier {
    std::sync::Arc::new(|_| Err("this build doesn't include --frontier".into()))
}
