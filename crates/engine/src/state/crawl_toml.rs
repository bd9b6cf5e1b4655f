//! The file `crawl.toml` of a crawl, which has its settings.

use std::path::Path;

use super::durable_files::replace;
use crate::error::EngineError;

/// The name of the file.
pub(super) const CRAWL_TOML: &str = "crawl.toml";
/// The temporary name of the file while it is written, and until the rows of a `crawl extract` that
/// changed its rules are complete.
pub(super) const NEW_CRAWL_TOML: &str = "crawl.toml.new";

/// Replaces `crawl.toml`.
pub(crate) fn write_config(dir: &Path, text: &str) -> Result<(), EngineError> {
    let path = dir.join(CRAWL_TOML);
    replace(&path, &dir.join(NEW_CRAWL_TOML), text.as_bytes()).map_err(EngineError::disk(&path))
}
