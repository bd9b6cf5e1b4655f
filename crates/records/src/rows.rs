//! Row files, read one row at a time.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crawl_archive::rows::{DelayRow, ExcludedRow, LinkRow, PageRow, RequestRow};
use crawl_archive::{BoundedLine, LineReader, MAX_LINE_BYTES, open_regular};
use serde::de::DeserializeOwned;

use crate::error::RecordsError;

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

/// The rows of `links.jsonl`: links of pages.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn links(dir: &Path) -> Result<RowsOf<LinkRow>, RecordsError> {
    RowsOf::open(dir, "links.jsonl")
}

/// The rows of `state/delays.jsonl`: delays that were set while the crawl ran.
///
/// # Errors
/// As for [`RowsOf`]; a file that is missing has no rows.
pub fn delays(dir: &Path) -> Result<RowsOf<DelayRow>, RecordsError> {
    RowsOf::open(dir, "state/delays.jsonl")
}

/// The rows of one file.
///
/// Yields an error for a line that is whole and no row, one of more than [`MAX_LINE_BYTES`]
/// among them, and goes on behind it; after an error of the file system it ends. A last line
/// without its end is no row: a writer may be at it, or died over it. [`RowsOf::is_torn`]
/// tells.
#[derive(Debug)]
pub struct RowsOf<T> {
    path: PathBuf,
    /// None where the file is missing or has ended.
    lines: Option<LineReader<BufReader<File>>>,
    number: u64,
    torn: bool,
    row: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> RowsOf<T> {
    fn open(dir: &Path, name: &str) -> Result<RowsOf<T>, RecordsError> {
        let path = dir.join(name);
        let lines = match open_regular(&path) {
            Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
            Err(why) if why.kind() == ErrorKind::NotFound => None,
            Err(why) => return Err(RecordsError::io(path)(why)),
        };
        Ok(RowsOf {
            path,
            lines: lines.map(|lines| LineReader::new(lines, MAX_LINE_BYTES)),
            number: 0,
            torn: false,
            row: PhantomData,
        })
    }

    /// Returns whether the file ended in the midst of a line; known once all rows are read.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// The line of the row that came last, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.number
    }

    /// The next row among the lines that hold `bytes`; others are skipped unread.
    pub(crate) fn next_with(&mut self, bytes: &[u8]) -> Option<Result<T, RecordsError>> {
        self.next_among(|line| memchr::memmem::find(line, bytes).is_some())
    }

    fn next_among(&mut self, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Result<T, RecordsError>> {
        loop {
            let line = match self.lines.as_mut()?.next_line() {
                Ok(line) => line,
                Err(why) => {
                    self.lines = None;
                    return Some(Err(RecordsError::io(&self.path)(why)));
                }
            };
            self.number += 1;
            let row = match line {
                Some(BoundedLine::Whole(line)) if !is_wanted(line) => continue,
                Some(line) => line.row(),
                None => None,
            };
            let Some(row) = row else {
                self.torn = line.is_some();
                self.lines = None;
                return None;
            };
            return Some(row.map_err(|source| RecordsError::Row {
                path: self.path.clone(),
                line: self.number,
                source,
            }));
        }
    }
}

impl<T: DeserializeOwned> Iterator for RowsOf<T> {
    type Item = Result<T, RecordsError>;

    fn next(&mut self) -> Option<Result<T, RecordsError>> {
        self.next_among(|_| true)
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
