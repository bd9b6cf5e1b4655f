//! The search index in a crawl's directory, opened for reading.

use std::path::Path;

use crawl_index::SearchIndex;

use crate::error::index::of_index;
use crate::error::{CommandError, no_crawl};

/// The folder of the index in a crawl's directory.
const FOLDER: &str = "index";

/// Opens the index of the crawl in `dir`.
pub(crate) fn open(dir: &Path) -> Result<SearchIndex, CommandError> {
    let is_crawl = dir.join("pages.jsonl").exists() || dir.join("state").exists();
    let folder = dir.join(FOLDER);
    if !is_crawl && !folder.exists() {
        return Err(no_crawl(dir));
    }
    SearchIndex::open(&folder).map_err(|error| of_index(&error, dir))
}
