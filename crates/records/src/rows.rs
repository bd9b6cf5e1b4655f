//! Row files, read one row at a time.

use std::path::Path;

use crawl_archive::RowReader;
use crawl_archive::rows::{
    DelayRow, ExcludedRow, LinkRow, PageRow, RequestRow, WaitingRow, WalkRow,
};
use serde::de::DeserializeOwned;

use crate::error::RecordsError;

/// The file that tells from which workers a directory was gathered; only such a directory has it.
pub const WORKERS: &str = "workers.jsonl";
/// The delays that these workers' operators set.
pub const GATHERED_DELAYS: &str = "delays.jsonl";

/// The rows of `pages.jsonl`: exchanges that settled a URL.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn pages(dir: &Path) -> Result<RowsOf<PageRow>, RecordsError> {
    RowsOf::open(dir, "pages.jsonl")
}

/// The rows of `requests.jsonl`: requests that were sent, in the order of their ends.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn requests(dir: &Path) -> Result<RowsOf<RequestRow>, RecordsError> {
    RowsOf::open(dir, "requests.jsonl")
}

/// The rows of `excluded.jsonl`: URLs that were known and not asked for.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn excluded(dir: &Path) -> Result<RowsOf<ExcludedRow>, RecordsError> {
    RowsOf::open(dir, "excluded.jsonl")
}

/// The rows of `waiting.jsonl`: how the last run ended, then what waits of each origin. None where
/// it has not ended, or was killed.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn waiting(dir: &Path) -> Result<RowsOf<WaitingRow>, RecordsError> {
    RowsOf::open(dir, "waiting.jsonl")
}

/// The rows of `links.jsonl`: links of pages.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn links(dir: &Path) -> Result<RowsOf<LinkRow>, RecordsError> {
    RowsOf::open(dir, "links.jsonl")
}

/// The rows of `walk.jsonl`: the steps of a random walk, those of each walker in their order.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn walk(dir: &Path) -> Result<RowsOf<WalkRow>, RecordsError> {
    RowsOf::open(dir, "walk.jsonl")
}

/// The rows of `state/delays.jsonl`: delays that were set while the crawl ran. A directory that was
/// gathered from those of several workers has them in `delays.jsonl`.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn delays(dir: &Path) -> Result<RowsOf<DelayRow>, RecordsError> {
    match dir.join(WORKERS).exists() {
        true => RowsOf::open(dir, GATHERED_DELAYS),
        false => RowsOf::open(dir, "state/delays.jsonl"),
    }
}

/// The rows of one file, as [`RowReader`] reads them.
#[derive(Debug)]
pub struct RowsOf<T>(RowReader<T>);

impl<T: DeserializeOwned> RowsOf<T> {
    pub(crate) fn open(dir: &Path, name: &str) -> Result<RowsOf<T>, RecordsError> {
        Ok(RowsOf(RowReader::open_if_any(&dir.join(name))?))
    }

    /// Returns whether the file ended in the midst of a line; known once all rows are read.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.0.is_torn()
    }

    /// The line of the row that came last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.0.line()
    }

    /// The next row; lines that are none are passed over.
    pub(crate) fn next_sound(&mut self) -> Option<Result<T, RecordsError>> {
        self.find(|row| !matches!(row, Err(RecordsError::Row { .. })))
    }

    /// The next row among the lines that hold `bytes`; others are skipped unread.
    pub(crate) fn next_with(&mut self, bytes: &[u8]) -> Option<Result<T, RecordsError>> {
        let next = self
            .0
            .next_among(|line| memchr::memmem::find(line, bytes).is_some());
        next.map(|row| Ok(row?))
    }
}

impl<T: DeserializeOwned> Iterator for RowsOf<T> {
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
    fn torn_last_line_is_tolerated_and_told() {
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
        let why = rows[0].as_ref().unwrap_err().to_string();
        assert!(
            why.contains("excluded.jsonl` line 1: missing field"),
            "{why}"
        );
        assert!(rows[1].is_ok());
    }

    #[test]
    fn missing_file_has_no_rows() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(links(dir.path()).unwrap().count(), 0);
    }
}
