//! Finds the URLs whose last answer, by the rows of a crawl, is a redirect or stands in place of a
//! page.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crawl_archive::{ReadError, RowReader};
use crawl_fetcher::Interstitial;
use crawl_index::{IndexError, RecordedAnswer};
use serde::Deserialize;

/// The fields of a `pages.jsonl` row that describe an answer without a page.
#[derive(Deserialize)]
struct RecordedAnswerRow {
    url: String,
    status: Option<u16>,
    redirect: Option<String>,
    error: Option<String>,
}

impl RecordedAnswerRow {
    fn answer(self) -> Option<RecordedAnswer> {
        let error = self.error.unwrap_or_default();
        let is_in_place =
            matches!(self.status, Some(401 | 403)) || Interstitial::named(&error).is_some();
        match self.redirect {
            Some(to) => Some(RecordedAnswer::Redirect(to)),
            None => is_in_place.then_some(RecordedAnswer::InPlace),
        }
    }
}

/// Returns the last answer of each URL in `urls`, if the answer is a redirect or replaces a page.
/// Reads the first `committed` bytes of `pages.jsonl`, or the whole file if `None`. Skips lines
/// that are not rows.
pub(crate) fn answers_of(
    dir: &Path,
    committed: Option<u64>,
    urls: &BTreeSet<String>,
) -> Result<HashMap<String, RecordedAnswer>, IndexError> {
    let path = dir.join("pages.jsonl");
    let failed = |why: ReadError| IndexError::Disk {
        path: path.clone(),
        source: Arc::new(io::Error::other(why)),
    };
    let mut answers = HashMap::new();
    for row in RowReader::<RecordedAnswerRow>::open(&path, committed).map_err(failed)? {
        let row = match row {
            Ok(row) => row,
            Err(ReadError::Row { .. }) => continue,
            Err(why) => return Err(failed(why)),
        };
        if !urls.contains(&row.url) {
            continue;
        }
        let url = row.url.clone();
        match row.answer() {
            Some(answer) => drop(answers.insert(url, answer)),
            None => drop(answers.remove(&url)),
        }
    }
    Ok(answers)
}
