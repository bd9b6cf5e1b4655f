//! Reads row files one row at a time.

use std::path::Path;

use crawl_archive::RowReader;
use crawl_archive::rows::{
    DelayRow, ExcludedRow, ExtractRow, LinkRow, PageRow, PendingOriginRow, RandomWalkStep,
    RequestRow,
};
use serde::de::DeserializeOwned;

use crate::error::RecordsError;

/// The file that lists the workers whose records `crawl gather` brought together. Only gathered
/// directories have this file.
pub const WORKERS: &str = "workers.jsonl";
/// The file of a gathered directory with the delays that operators set during the crawl.
pub const GATHERED_DELAYS: &str = "delays.jsonl";

/// Returns the rows of `pages.jsonl`. Each row is about the exchange that settled a URL. A URL has at
/// most one row per round.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn pages(dir: &Path) -> Result<RowFileReader<PageRow>, RecordsError> {
    RowFileReader::open(dir, "pages.jsonl")
}

/// Returns the rows of `requests.jsonl`: the requests sent, in the order in which they ended.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn requests(dir: &Path) -> Result<RowFileReader<RequestRow>, RecordsError> {
    RowFileReader::open(dir, "requests.jsonl")
}

/// Returns the rows of `excluded.jsonl`: known URLs that were not fetched.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn excluded(dir: &Path) -> Result<RowFileReader<ExcludedRow>, RecordsError> {
    RowFileReader::open(dir, "excluded.jsonl")
}

/// Returns the rows of `waiting.jsonl`. The first row has the reason why the last run ended, and
/// the others have the waiting URLs of each origin. The file is empty or missing if the last run
/// has not ended, or was killed.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn waiting(dir: &Path) -> Result<RowFileReader<PendingOriginRow>, RecordsError> {
    RowFileReader::open(dir, "waiting.jsonl")
}

/// Returns the round of the last run, from 1. It may be later than the last round with a page.
/// `None` if the last run has not ended, was killed, or was made by an older version.
///
/// # Errors
/// File system errors. Malformed lines are skipped.
pub fn round_of_last_run(dir: &Path) -> Result<Option<u32>, RecordsError> {
    let first = waiting(dir)?.next_sound().transpose()?;
    Ok(first.and_then(|row| row.round))
}

/// Returns the rows of `links.jsonl`: links of pages.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn links(dir: &Path) -> Result<RowFileReader<LinkRow>, RecordsError> {
    RowFileReader::open(dir, "links.jsonl")
}

/// Returns the rows of `extracts.jsonl`: fields that rules extracted from pages.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn extracts(dir: &Path) -> Result<RowFileReader<ExtractRow>, RecordsError> {
    RowFileReader::open(dir, "extracts.jsonl")
}

/// Returns the rows of `walk.jsonl`: the steps of a random walk, in order for each walker.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn walk(dir: &Path) -> Result<RowFileReader<RandomWalkStep>, RecordsError> {
    RowFileReader::open(dir, "walk.jsonl")
}

/// Returns the rows of `state/delays.jsonl`: delays set while the crawl ran. In a gathered
/// directory they are in `delays.jsonl`.
///
/// # Errors
/// As for [`RowFileReader`]; a file that is missing has no rows.
pub fn delays(dir: &Path) -> Result<RowFileReader<DelayRow>, RecordsError> {
    match dir.join(WORKERS).exists() {
        true => RowFileReader::open(dir, GATHERED_DELAYS),
        false => RowFileReader::open(dir, "state/delays.jsonl"),
    }
}

/// Iterates over the rows of one file, which [`RowReader`] reads.
#[derive(Debug)]
pub struct RowFileReader<T>(RowReader<T>);

impl<T: DeserializeOwned> RowFileReader<T> {
    pub(crate) fn open(dir: &Path, name: &str) -> Result<RowFileReader<T>, RecordsError> {
        Ok(RowFileReader(RowReader::open_if_any(&dir.join(name))?))
    }

    /// Returns whether the file ends in the middle of a line. Only valid after all rows were read.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.0.is_torn()
    }

    /// Returns the line of the last row read, starting at 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.0.line()
    }

    /// Returns the next row that is not malformed. `None` at the end of the file.
    pub(crate) fn next_sound(&mut self) -> Option<Result<T, RecordsError>> {
        self.find(|row| !matches!(row, Err(RecordsError::Row { .. })))
    }

    /// Returns the next row whose line contains `bytes`. Other lines are skipped without parsing
    /// them. `None` at the end of the file.
    pub(crate) fn next_with(&mut self, bytes: &[u8]) -> Option<Result<T, RecordsError>> {
        let next = self
            .0
            .next_matching(|line| memchr::memmem::find(line, bytes).is_some());
        next.map(|row| Ok(row?))
    }
}

impl<T: DeserializeOwned> Iterator for RowFileReader<T> {
    type Item = Result<T, RecordsError>;

    fn next(&mut self) -> Option<Result<T, RecordsError>> {
        self.0.next().map(|row| Ok(row?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{excluded, links};

    const ROW: &str =
        r#"{"url":"http://e.example/p","reason":"robots","rule":null,"line":2,"found_on":null}"#;

    #[test]
    fn torn_last_line_is_tolerated_and_reported() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("{ROW}\n{ROW}\n{}", &ROW[..20]);
        fs::write(dir.path().join("excluded.jsonl"), text).unwrap();
        let mut rows = excluded(dir.path()).unwrap();
        assert_eq!(rows.by_ref().map(Result::unwrap).count(), 2);
        assert!(rows.is_torn());
        fs::write(dir.path().join("excluded.jsonl"), format!("{ROW}\n")).unwrap();
        let mut rows = excluded(dir.path()).unwrap();
        assert_eq!(rows.by_ref().map(Result::unwrap).count(), 1);
        assert!(!rows.is_torn());
    }

    #[test]
    fn broken_line_is_named_and_passed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("excluded.jsonl"), format!("{{}}\n{ROW}\n")).unwrap();
        let rows: Vec<_> = excluded(dir.path()).unwrap().collect();
        let message = rows[0].as_ref().unwrap_err().to_string();
        assert!(
            message.contains("excluded.jsonl` line 1: missing field"),
            "{message}"
        );
        assert!(rows[1].is_ok());
    }

    #[test]
    fn missing_file_has_no_rows() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(links(dir.path()).unwrap().count(), 0);
    }
}
