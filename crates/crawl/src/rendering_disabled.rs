//! Replaces the browser in a build without the feature `render`.

use std::sync::Arc;

use crawl_engine::{NoBrowserRenderer, Renderer};

use crate::error::{CommandError, left_out};
use crate::values::BrowserSettings;

/// Returns an error, because this build has no browser.
pub(crate) fn renderer(_terms: BrowserSettings) -> Result<Arc<dyn Renderer>, CommandError> {
    Err(left_out("--render", "render").about("render"))
}

/// Returns a renderer without a browser, with which a replay reads the archived DOMs.
pub(crate) fn renderer_of_replay(
    _terms: BrowserSettings,
) -> Result<Arc<dyn Renderer>, CommandError> {
    Ok(Arc::new(NoBrowserRenderer {
        why: "this build of crawl can't run a browser".to_owned(),
    }))
}
