//! The directory of a crawl: what tells that it is one, and its `crawl.toml`.

use std::path::Path;

use crawl_archive::{MAX_CONFIG_BYTES, read_text};
use toml::Table;

use crate::error::RecordsError;

/// The `crawl.toml` of a directory; empty where there is none that can be read.
#[must_use]
pub fn stored_settings(dir: &Path) -> Table {
    let text = read_text(&dir.join("crawl.toml"), MAX_CONFIG_BYTES);
    text.unwrap_or_default().parse().unwrap_or_default()
}

/// Refuses a directory that holds none of these files.
pub(crate) fn holds_any(dir: &Path, files: &[&str]) -> Result<(), RecordsError> {
    match files.iter().any(|file| dir.join(file).is_file()) {
        true => Ok(()),
        false => Err(RecordsError::NoCrawl {
            dir: dir.to_owned(),
        }),
    }
}
