//! The errors of writing and of reading.

use std::io;
use std::path::{Path, PathBuf};

use crate::bounded_read::BadLine;

/// The reason why something could not be written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// No room is left (`ENOSPC`, a quota, or a limit on the size of files). What had
    /// been written of the record or row was cut off again, so the file stays readable.
    #[error("no room left to write to {}", file.display())]
    Full {
        /// The file that was being written.
        file: PathBuf,
    },
    /// The file lost bytes that a transaction had committed: the disk or a person took
    /// them, and what the state says about this file is no longer true.
    #[error("{} is shorter than the state says: {committed} bytes were committed, {found} are there", file.display())]
    Short {
        /// The damaged file; where it is missing, `found` is 0.
        file: PathBuf,
        /// The committed length in bytes.
        committed: u64,
        /// The length that was found in bytes.
        found: u64,
    },
    /// A committed length for something that is no file of the archive folder.
    #[error("the state names a file that is not the archive's: {name}")]
    ForeignMark {
        /// The name as the state has it.
        name: String,
    },
    /// A row that can't be written as JSON.
    #[error("a row for {} is not JSON", file.display())]
    Row {
        /// The row file.
        file: PathBuf,
        /// The error of serde.
        source: serde_json::Error,
    },
    /// Something stands in a crawl's directory that would have us write elsewhere.
    #[error("`{}` {what}", path.display())]
    Unsafe {
        /// The entry.
        path: PathBuf,
        /// The thing that it is.
        what: String,
    },
    /// Any other failure of the file system.
    #[error("can't {doing} {}", file.display())]
    Io {
        /// The operation that was tried: `open`, `write to`, `sync`, `cut back` ..
        doing: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl ArchiveError {
    pub(crate) fn io(doing: &'static str, file: &Path, source: io::Error) -> ArchiveError {
        let file = file.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => ArchiveError::Full { file },
            _ => ArchiveError::Io {
                doing,
                file,
                source,
            },
        }
    }
}

/// The reason why records or rows could not be read back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file system refused.
    #[error("can't read {}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The gzip member that begins at `offset` is cut short or damaged.
    #[error("damaged record at offset {offset} of {}", file.display())]
    Torn {
        /// The file.
        file: PathBuf,
        /// The place at which the member begins, in bytes.
        offset: u64,
        /// The error of the decoder.
        source: io::Error,
    },
    /// The member at `offset` does not hold exactly one WARC record.
    #[error("no WARC record at offset {offset} of {}: {what}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The place at which the member begins, in bytes.
        offset: u64,
        /// The defect.
        what: &'static str,
    },
    /// The record at `offset` is longer than it may be, and was passed over.
    #[error("a record of {bytes} bytes at offset {offset} of {}, {max} are read", file.display())]
    TooLong {
        /// The file.
        file: PathBuf,
        /// The place at which the member begins, in bytes.
        offset: u64,
        /// The length of the block, by the record's own word.
        bytes: u64,
        /// The greatest length of a block.
        max: u64,
    },
    /// A name that is none of a file in the archive's folder.
    #[error("`{name}` is no name of a file in the archive")]
    ForeignName {
        /// The name, or its beginning.
        name: String,
    },
    /// A line of a row file that is not the row it should be.
    #[error("line {line} of {} is not a row", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The defect.
        source: BadLine,
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
