//! The search index in a crawl's directory, opened for reading.

use std::path::Path;

use crawl_index::SearchIndex;

use crate::error::CommandError;
use crate::error::index::of_index;

/// The folder of the index in a crawl's directory.
const FOLDER: &str = "index";

/// Opens the index of the crawl in `dir`.
pub(crate) fn open(dir: &Path) -> Result<SearchIndex, CommandError> {
    let is_crawl = dir.join("pages.jsonl").exists() || dir.join("state").exists();
    let folder = dir.join(FOLDER);
    if !is_crawl && !folder.exists() {
        let message = format!("`{}` holds no crawl", dir.display());
        return Err(CommandError::usage(message)
            .hint("give the directory that a crawl left, such as crawl-example.org"));
    }
    SearchIndex::open(&folder).map_err(|error| of_index(&error, dir))
}
