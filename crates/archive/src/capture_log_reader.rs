//! Reads the capture log, which has a line for each capture in the order of the archive.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::archive_layout::{CAPTURES, FOLDER};
use crate::bounded_read::{BoundedLineResult, LineReader, MAX_LINE_BYTES};
use crate::cdxj;
use crate::regular_file::open_regular;
use crate::timestamp::Timestamp;

/// A capture in the capture log: the file and offset of its response or revisit record, and its
/// index line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureLine {
    /// The name of the file in the folder `archive`.
    pub file: Arc<str>,
    /// Offset of the compressed record, in bytes.
    pub offset: u64,
    /// Length of the compressed record, in bytes.
    pub length: u64,
    /// The beginning of the index line: key, time, and all JSON fields before the length.
    pub(crate) head: Box<str>,
}

/// The JSON fields of an index line that locate the record. CDXJ writes numbers as strings.
#[derive(Deserialize)]
struct RecordPlaceFields {
    filename: Arc<str>,
    offset: String,
    length: String,
}

impl CaptureLine {
    /// Parses a line of the capture log or of the index. `None` if `line` is not such a line.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<CaptureLine> {
        let line = std::str::from_utf8(line).ok()?;
        // The JSON begins after the second space: neither the key nor the time contains a space.
        let json = line.splitn(3, ' ').nth(2)?;
        let place: RecordPlaceFields = serde_json::from_str(json).ok()?;
        // Quotes in a value are escaped, so this text can't occur within a value.
        let (head, _) = line.rsplit_once(", \"length\": \"")?;
        Some(CaptureLine {
            file: place.filename,
            offset: place.offset.parse().ok()?,
            length: place.length.parse().ok()?,
            head: head.into(),
        })
    }

    /// Returns the URL of the capture, and the time of its request to the second.
    #[must_use]
    pub fn url_and_time(&self) -> Option<(String, Timestamp)> {
        #[derive(Deserialize)]
        struct Head {
            url: String,
        }
        let mut parts = self.head.splitn(3, ' ').skip(1);
        let time = Timestamp::parse_fourteen_digits(parts.next()?.as_bytes())?;
        let head: Head = serde_json::from_str(&format!("{}}}", parts.next()?)).ok()?;
        Some((head.url, time))
    }

    /// Returns the capture's index line (with its line end) after its record moved to `offset` in
    /// the same file.
    #[must_use]
    pub fn moved_to(&self, offset: u64, length: u64) -> String {
        cdxj::line(&self.head, offset, length, &self.file)
    }
}

/// Reads the captures in a crawl's capture log, in order. Invalid lines are skipped.
#[derive(Debug)]
pub struct CaptureLogReader {
    lines: LineReader<BufReader<File>>,
}

impl CaptureLogReader {
    /// Opens the capture log of the crawl in `dir`. `None` if the crawl has no archive.
    ///
    /// # Errors
    /// The errors of [`open_regular`].
    pub fn open(dir: &Path) -> io::Result<Option<CaptureLogReader>> {
        match open_regular(&dir.join(FOLDER).join(CAPTURES)) {
            Ok(file) => Ok(Some(CaptureLogReader {
                lines: LineReader::new(BufReader::new(file), MAX_LINE_BYTES),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the next capture. `None` at the end.
    ///
    /// # Errors
    /// I/O errors.
    pub fn next_capture(&mut self) -> io::Result<Option<CaptureLine>> {
        while let Some(line) = self.lines.next_line()? {
            if let BoundedLineResult::Whole(line) = line
                && let Some(capture) = CaptureLine::parse(line)
            {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::CaptureLine;

    #[test]
    fn a_moved_capture_keeps_its_line_except_for_the_place() {
        let line = |place: &str| {
            format!(
                "org,e)/?a=\", 20261120235959 {{\"url\": \"http://e.org/?a=\\\", \
                 \\\"length\\\": \\\"\", \"status\": \"200\", {place}, \"filename\": \
                 \"a.warc.gz\"}}\n"
            )
        };
        let first = line("\"length\": \"300\", \"offset\": \"7\"");
        let capture = CaptureLine::parse(first.as_bytes()).unwrap();
        assert_eq!(
            (capture.offset, capture.length, &*capture.file),
            (7, 300, "a.warc.gz")
        );
        assert_eq!(capture.moved_to(7, 300), first);
        let moved = capture.moved_to(0, 9);
        assert_eq!(moved, line("\"length\": \"9\", \"offset\": \"0\""));
        let (url, time) = capture.url_and_time().unwrap();
        assert_eq!(url, r#"http://e.org/?a=", "length": ""#);
        assert_eq!(time.rfc3339_millis(), "2026-11-20T23:59:59.000Z");
        assert_eq!(CaptureLine::parse(b"org,e)/ 20261120235959 {}\n"), None);
    }
}
