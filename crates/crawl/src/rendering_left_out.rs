//! Replaces the browser in a build without the feature `render`.

use std::sync::Arc;

use crawl_engine::Renderer;

use crate::error::{CommandError, left_out};
use crate::values::BrowserTerms;

/// Refuses to render.
pub(crate) fn renderer(_terms: BrowserTerms) -> Result<Arc<dyn Renderer>, CommandError> {
    Err(left_out("--render", "render").about("render"))
}
