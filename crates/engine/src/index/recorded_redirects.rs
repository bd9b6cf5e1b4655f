//! The redirects of URLs, according to the rows of a crawl.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crawl_archive::{ReadError, RowReader};
use crawl_index::IndexError;
use serde::Deserialize;

/// The fields of a `pages.jsonl` row that describe a redirect.
#[derive(Deserialize)]
struct RedirectRow {
    url: String,
    redirect: Option<String>,
}

/// Returns the targets of those `urls` that redirected at their last visits, as recorded in the
/// first `committed` bytes of `pages.jsonl`, or in the whole file if `None`. Skips lines that are
/// not rows.
pub(crate) fn redirects_of(
    dir: &Path,
    committed: Option<u64>,
    urls: &BTreeSet<String>,
) -> Result<HashMap<String, String>, IndexError> {
    let path = dir.join("pages.jsonl");
    let failed = |why: ReadError| IndexError::Disk {
        path: path.clone(),
        source: Arc::new(io::Error::other(why)),
    };
    let mut redirects = HashMap::new();
    for row in RowReader::<RedirectRow>::open(&path, committed).map_err(failed)? {
        let row = match row {
            Ok(row) => row,
            Err(ReadError::Row { .. }) => continue,
            Err(why) => return Err(failed(why)),
        };
        if !urls.contains(&row.url) {
            continue;
        }
        match row.redirect {
            Some(to) => drop(redirects.insert(row.url, to)),
            None => drop(redirects.remove(&row.url)),
        }
    }
    Ok(redirects)
}
