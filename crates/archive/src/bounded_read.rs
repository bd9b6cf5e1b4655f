//! Reads untrusted files with a maximum length for each line or text.
//!
//! A crawl's directory may come from an untrusted source, or from a disk that lost writes. For
//! example, a file may have 30 GB without a line end.

use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::regular_file::open_regular;

/// Maximum length of a line of a row file or a log, in bytes. Valid rows are far shorter, because
/// their longest values (URLs, a site's statements, a title) have limits.
/// Beyond the limit: the line is skipped, and counted as bad.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes to skip in search of the end of an overlong line. Skipping more would take
/// minutes, and disk errors don't make such long lines.
/// Beyond the limit: the rest of the file is not read.
const MAX_PASSED_OVER_BYTES: u64 = 1024 * 1024 * 1024;

/// Maximum length of a `crawl.toml`, in bytes.
/// Beyond the limit: refused.
pub const MAX_CONFIG_BYTES: u64 = 4 * 1024 * 1024;

/// Reads a regular file of at most `max_bytes` as text.
///
/// # Errors
/// The errors of [`open_regular`]; [`ErrorKind::FileTooLarge`] for a longer file,
/// [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    let mut file = open_regular(path)?.take(max_bytes.saturating_add(1));
    if file.read_to_string(&mut text)? as u64 > max_bytes {
        let message = format!("longer than {max_bytes} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// The reason why a line is not a row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLineReason {
    /// The line is longer than [`MAX_LINE_BYTES`] and was skipped.
    #[error("it has {bytes} bytes, more than the maximum of {MAX_LINE_BYTES} for a line")]
    TooLong {
        /// Length of the line in bytes, including its line end.
        bytes: u64,
    },
    /// The line is not JSON of the expected form.
    #[error(transparent)]
    Json(serde_json::Error),
}

/// The result of reading a line with a [`LineReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundedLineResult<'a> {
    /// A line with its line end.
    Whole(&'a [u8]),
    /// A line that was skipped, because it is longer than the maximum.
    TooLong {
        /// Length of the line in bytes, including its line end. If reading stopped within the line,
        /// the number of bytes up to there.
        bytes: u64,
    },
    /// Bytes after the last line end. A writer is still appending them, or crashed while doing so.
    Torn {
        /// Number of bytes, at least 1.
        bytes: u64,
    },
}

impl BoundedLineResult<'_> {
    /// Parses the row in the line. `None` for a torn line.
    #[must_use]
    pub fn row<T: DeserializeOwned>(self) -> Option<Result<T, BadLineReason>> {
        match self {
            BoundedLineResult::Whole(line) => {
                Some(serde_json::from_slice(line).map_err(BadLineReason::Json))
            }
            BoundedLineResult::TooLong { bytes } => Some(Err(BadLineReason::TooLong { bytes })),
            BoundedLineResult::Torn { .. } => None,
        }
    }
}

/// Reads lines of at most `max_bytes` (with the line end), one line in memory at a time.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    max_bytes: usize,
    /// Maximum bytes to skip after the first `max_bytes` of an overlong line. If the line is
    /// longer, reading ends.
    max_passed_over: u64,
    line: Vec<u8>,
    number: u64,
    ended: bool,
}

impl<R: BufRead> LineReader<R> {
    /// Creates a reader that starts at the input's current position.
    pub fn new(input: R, max_bytes: usize) -> LineReader<R> {
        LineReader {
            input,
            max_bytes,
            max_passed_over: MAX_PASSED_OVER_BYTES,
            line: Vec::new(),
            number: 0,
            ended: false,
        }
    }

    /// Returns the number of the last line read, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line. Returns `None` at the end of the input.
    ///
    /// # Errors
    /// I/O errors of the input.
    pub fn next_line(&mut self) -> io::Result<Option<BoundedLineResult<'_>>> {
        self.line.clear();
        if self.ended {
            return Ok(None);
        }
        let max_bytes = self.max_bytes as u64;
        let read = (&mut self.input)
            .take(max_bytes)
            .read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            return Ok(Some(BoundedLineResult::Whole(&self.line)));
        }
        if read < self.max_bytes {
            return Ok(Some(BoundedLineResult::Torn { bytes: read as u64 }));
        }
        // Free the memory of the long line.
        self.line = Vec::new();
        let mut rest = (&mut self.input).take(self.max_passed_over);
        let rest = rest.skip_until(b'\n')? as u64;
        self.ended = rest == self.max_passed_over;
        let bytes = max_bytes + rest;
        Ok(Some(BoundedLineResult::TooLong { bytes }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{BufReader, ErrorKind, Seek as _, SeekFrom, Write as _};

    use proptest::prelude::*;

    use super::{BoundedLineResult, LineReader, MAX_LINE_BYTES, read_text};
    use crate::{RowReader, open_regular};

    /// Returns each line or, if the line is too long or torn, its length.
    fn read(text: &[u8], max_bytes: usize) -> Vec<Result<Vec<u8>, u64>> {
        // The buffer is shorter than the lines, so that a line takes several reads.
        let mut lines = LineReader::new(BufReader::with_capacity(3, text), max_bytes);
        let mut lines_read = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            lines_read.push(match line {
                BoundedLineResult::Whole(line) => Ok(line.to_vec()),
                BoundedLineResult::TooLong { bytes } | BoundedLineResult::Torn { bytes } => {
                    Err(bytes)
                }
            });
            assert!(lines.line.capacity() <= (2 * max_bytes).max(8));
        }
        assert_eq!(lines.number(), lines_read.len() as u64);
        lines_read
    }

    #[test]
    fn a_long_line_is_skipped_and_reported() {
        let whole = |line: &str| Ok(line.as_bytes().to_vec());
        let text = b"123\n1234\n12\n12345\n\n1";
        let lines = read(text, 4);
        let expected = [
            whole("123\n"),
            Err(5),
            whole("12\n"),
            Err(6),
            whole("\n"),
            Err(1),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn reading_stops_at_a_line_that_is_far_too_long() {
        let mut lines = LineReader::new(&b"1\n12345678\n12345678901234\n2\n"[..], 4);
        lines.max_passed_over = 8;
        let mut next = || lines.next_line().unwrap().map(|line| format!("{line:?}"));
        assert_eq!(next().unwrap(), "Whole([49, 10])");
        assert_eq!(next().unwrap(), "TooLong { bytes: 9 }");
        assert_eq!(next().unwrap(), "TooLong { bytes: 12 }");
        assert_eq!(next(), None);
    }

    proptest! {
        #[test]
        fn bounded_lines_are_those_of_the_text(
            text in prop::collection::vec(prop_oneof![Just(b'\n'), Just(0), Just(b'a')], 0..200),
            max_bytes in 1usize..20,
        ) {
            let lines = text.split_inclusive(|&byte| byte == b'\n');
            let expected: Vec<_> = lines
                .map(|line| match line.ends_with(b"\n") && line.len() <= max_bytes {
                    true => Ok(line.to_vec()),
                    false => Err(line.len() as u64),
                })
                .collect();
            prop_assert_eq!(read(&text, max_bytes), expected);
        }
    }

    #[test]
    fn a_line_of_nuls_is_a_bad_line_of_any_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pages.jsonl");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"1\n\0\0\0\n2\n").unwrap();
        // Seek past the end to make a hole in the file, as a power cut may.
        file.seek(SeekFrom::Current(3 * MAX_LINE_BYTES as i64))
            .unwrap();
        file.write_all(b"\n3\n").unwrap();
        let rows: Vec<_> = RowReader::<u32>::open(&path, None).unwrap().collect();
        let messages: Vec<_> = rows
            .iter()
            .map(|row| match row {
                Ok(row) => row.to_string(),
                Err(why) => std::error::Error::source(why).unwrap().to_string(),
            })
            .collect();
        assert_eq!(
            messages,
            [
                "1",
                "expected value at line 1 column 1",
                "2",
                "it has 50331649 bytes, more than the maximum of 16777216 for a line",
                "3"
            ]
        );
    }

    #[test]
    fn only_regular_files_are_read_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("file"), "text").unwrap();
        let check = |name: &str, expected: Result<(), &str>| {
            let actual = open_regular(&path(name)).map(drop);
            let actual = actual.map_err(|why| why.to_string());
            assert_eq!(actual, expected.map_err(str::to_owned), "{name}");
        };
        check("file", Ok(()));
        check("fifo", Err("not a regular file"));
        check("folder", Err("not a regular file"));
        check("link", Err("a link, which is not followed"));
        let missing = open_regular(&path("missing")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert_eq!(read_text(&path("file"), 4).unwrap(), "text");
        let long = read_text(&path("file"), 3).unwrap_err();
        assert_eq!(long.to_string(), "longer than 3 bytes");
    }
}
