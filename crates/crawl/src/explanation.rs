//! Explains what became of a URL, from the records of a crawl, its state and its tombstones.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crawl_archive::Timestamp;
use crawl_engine::find_tombstone;
use crawl_records::{Explanation, StateAvailability};
use crawl_weburl::CanonicalUrl;

use crate::clock;
use crate::error::CommandError;
use crate::error::engine::of_engine;
use crate::error::records::of_records;

/// Explains a URL of the crawl in `dir`.
pub(crate) fn explain(dir: &Path, url: &CanonicalUrl) -> Result<Explanation, CommandError> {
    // The crawl's state can be open only once at a time, but clients of `crawl mcp` request
    // explanations in parallel.
    static IS_STATE_OPEN: Mutex<()> = Mutex::new(());
    let _guard = IS_STATE_OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let now = clock::now().as_microsecond();
    let now = Timestamp::from_micros(u64::try_from(now).unwrap_or_default());
    let mut explanation = crawl_records::explain(dir, url, now).map_err(of_records)?;
    // While a crawl runs, its state can't be read. The explanation already reports this, so skip
    // the tombstones.
    if explanation.state_read == StateAvailability::Read {
        let tombstone = find_tombstone(dir, url);
        if let Some(tombstone) = tombstone.map_err(|error| of_engine(&error, dir))? {
            explanation.forget(tombstone);
        }
    }
    Ok(explanation)
}
