//! Reads a file from start to end in small ranges. Reads ahead, so that not every range costs a
//! system call.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tantivy::HasLen;
use tantivy::directory::{FileHandle, OwnedBytes};

/// Bytes to read at once, unless a longer range is requested.
const PIECE_BYTES: usize = 128 << 10;

/// A file, with the piece of it that was read last.
#[derive(Debug)]
pub(crate) struct ReadAheadFile {
    file: File,
    bytes: usize,
    last: Mutex<ReadAheadPiece>,
}

#[derive(Clone, Debug)]
struct ReadAheadPiece {
    at: usize,
    bytes: OwnedBytes,
}

impl ReadAheadPiece {
    /// Returns the bytes of a range of the file if the piece contains them.
    fn get(&self, range: &Range<usize>) -> Option<OwnedBytes> {
        let from = range.start.checked_sub(self.at)?;
        let end = range.end.checked_sub(self.at)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(from..end))
    }
}

impl ReadAheadFile {
    pub(crate) fn open(path: &Path) -> io::Result<ReadAheadFile> {
        let file = File::open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let last = Mutex::new(ReadAheadPiece {
            at: 0,
            bytes: OwnedBytes::empty(),
        });
        Ok(ReadAheadFile { file, bytes, last })
    }

    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let mut bytes = vec![0; range.len()];
        self.file.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

impl HasLen for ReadAheadFile {
    fn len(&self) -> usize {
        self.bytes
    }
}

impl FileHandle for ReadAheadFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.len() >= PIECE_BYTES {
            return self.read(range);
        }
        // Ignore poisoning. A piece is always replaced as a whole, so it is consistent even after a
        // panic.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = last.get(&range) {
            return Ok(bytes);
        }
        let end = range.start.saturating_add(PIECE_BYTES).min(self.bytes);
        let piece = ReadAheadPiece {
            at: range.start,
            bytes: self.read(range.start..end.max(range.end))?,
        };
        *last = piece;
        last.get(&range)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tantivy::HasLen as _;
    use tantivy::directory::FileHandle as _;

    use super::{PIECE_BYTES, ReadAheadFile};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn ranges_have_the_bytes_of_the_file(
            bytes in 0..3 * PIECE_BYTES,
            ranges in prop::collection::vec((0.0..1.0_f64, prop_oneof![0..300_usize, 0..2 * PIECE_BYTES]), 1..30),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.pos");
            let content: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
            fs::write(&path, &content).unwrap();
            let file = ReadAheadFile::open(&path).unwrap();
            prop_assert_eq!(file.len(), bytes);
            for (at, length) in ranges {
                let start = (at * bytes as f64) as usize;
                let range = start..(start + length).min(bytes);
                prop_assert_eq!(&*file.read_bytes(range.clone()).unwrap(), &content[range]);
            }
            prop_assert!(file.read_bytes(bytes..bytes + 1).is_err());
        }
    }
}
