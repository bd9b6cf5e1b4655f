//! The errors of writing and reading the files of a crawl.

use std::io;
use std::path::{Path, PathBuf};

use crate::bounded_read::BadLineReason;

/// The reason why writing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveWriteError {
    /// No space is left (`ENOSPC`, a quota, or a limit on file size). The record or row that was
    /// only partly written was cut off again, so the file stays readable.
    #[error("no space left to write to {}", file.display())]
    Full {
        /// The file that was being written.
        file: PathBuf,
    },
    /// The file is shorter than its committed length in the state: it was truncated, or the disk
    /// lost data.
    #[error("{} is shorter than the state says: {committed} bytes committed, {found} found", file.display())]
    Short {
        /// The damaged file.
        file: PathBuf,
        /// The committed length in bytes.
        committed: u64,
        /// The actual length in bytes; 0 if the file is missing.
        found: u64,
    },
    /// The state has a committed length for a file name that is not valid in the archive's folder.
    #[error("the state names a file that is not the archive's: {name}")]
    ForeignMark {
        /// The name that the state has.
        name: String,
    },
    /// A row can't be written as JSON.
    #[error("a row for {} is not JSON", file.display())]
    Row {
        /// The row file.
        file: PathBuf,
        /// The error of serde.
        source: serde_json::Error,
    },
    /// An entry of a crawl's directory is unsafe to write to, such as a link.
    #[error("`{}` {what}", path.display())]
    Unsafe {
        /// The entry.
        path: PathBuf,
        /// A description of the entry.
        what: String,
    },
    /// Any other I/O error.
    #[error("can't {doing} {}", file.display())]
    Io {
        /// The failed operation: `open`, `write to`, `sync`, `cut back` ..
        doing: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

impl ArchiveWriteError {
    pub(crate) fn io(doing: &'static str, file: &Path, source: io::Error) -> ArchiveWriteError {
        let file = file.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => ArchiveWriteError::Full { file },
            _ => ArchiveWriteError::Io {
                doing,
                file,
                source,
            },
        }
    }
}

/// The reason why reading records or rows failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An I/O error.
    #[error("can't read {}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The compressed record that begins at `offset` is cut short or damaged.
    #[error("damaged record at offset {offset} of {}", file.display())]
    Torn {
        /// The file.
        file: PathBuf,
        /// Offset of the record, in bytes.
        offset: u64,
        /// The error of the decoder.
        source: io::Error,
    },
    /// The gzip member or Zstandard frame at `offset` doesn't contain exactly one WARC record.
    #[error("no WARC record at offset {offset} of {}: {what}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Offset of the record, in bytes.
        offset: u64,
        /// The defect.
        what: &'static str,
    },
    /// The record at `offset` is longer than the maximum, and was skipped.
    #[error("the record at offset {offset} of {} has {bytes} bytes, more than the maximum of {max}", file.display())]
    TooLong {
        /// The file.
        file: PathBuf,
        /// Offset of the record, in bytes.
        offset: u64,
        /// Length of the block, as the record declares it.
        bytes: u64,
        /// Maximum length of a block in bytes.
        max: u64,
    },
    /// A row or an index line has a file name that is not valid in the archive's folder.
    #[error("`{name}` is not the name of a file in the archive")]
    ForeignName {
        /// The name; only its beginning if it is long.
        name: String,
    },
    /// A line of a row file is not a row of the expected form.
    #[error("line {line} of {} is not a row", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// The defect of the line.
        source: BadLineReason,
    },
}

impl ReadError {
    pub(crate) fn io(file: &Path, source: io::Error) -> ReadError {
        ReadError::Io {
            file: file.to_owned(),
            source,
        }
    }
}
