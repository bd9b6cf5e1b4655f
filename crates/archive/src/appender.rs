//! Appends to a file so that a failed write leaves nothing behind.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::disk_interface::{AppendableFile, Disk, DiskFile};
use crate::error::ArchiveWriteError;
use crate::regular_file::{options, regular};

/// Appends pieces to a file. Each piece is written whole or not at all.
pub(crate) struct Appender<S = DiskFile> {
    store: S,
    path: PathBuf,
    /// Length of all pieces that were written whole, in bytes. If `torn`, a part of another piece
    /// may follow.
    length: u64,
    torn: bool,
    /// Whether anything was written since the last sync.
    dirty: bool,
}

impl Appender<DiskFile> {
    /// Opens or creates the file, and cuts off bytes beyond the committed length.
    pub(crate) fn open(
        disk: &Disk,
        path: &Path,
        committed: u64,
    ) -> Result<Appender, ArchiveWriteError> {
        check_length(path, committed)?;
        let (file, file_length) = open_file(path)?;
        let mut appender = Appender::new(DiskFile::new(file, path, disk), path, committed);
        appender.torn = file_length > committed;
        if appender.torn && !appender.has_one_name()? {
            let message = "it has other names (hard links), which would lose the same bytes";
            let error = io::Error::new(io::ErrorKind::InvalidInput, message);
            return Err(ArchiveWriteError::io("cut back", path, error));
        }
        appender.mend()?;
        Ok(appender)
    }

    /// Opens or creates the file, and cuts off an incomplete piece at its end. `whole` is called
    /// with the file and its length, and returns the total length of the complete pieces.
    pub(crate) fn open_with(
        disk: &Disk,
        path: &Path,
        whole: impl FnOnce(&mut File, u64) -> io::Result<u64>,
    ) -> Result<Appender, ArchiveWriteError> {
        let (mut file, file_length) = open_file(path)?;
        let length = whole(&mut file, file_length)
            .map_err(|error| ArchiveWriteError::io("read", path, error))?;
        let mut appender = Appender::new(DiskFile::new(file, path, disk), path, length);
        appender.torn = file_length > length;
        appender.mend()?;
        Ok(appender)
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.store.file
    }

    /// Returns whether the file has no other names (hard links).
    pub(crate) fn has_one_name(&self) -> Result<bool, ArchiveWriteError> {
        let names = names(&self.store.file);
        let names = names.map_err(|error| ArchiveWriteError::io("open", &self.path, error))?;
        Ok(names == 1)
    }
}

impl<S: AppendableFile> Appender<S> {
    pub(crate) fn new(store: S, path: &Path, length: u64) -> Appender<S> {
        Appender {
            store,
            path: path.to_owned(),
            length,
            torn: false,
            dirty: false,
        }
    }

    /// Returns the length of all whole pieces, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a piece, whole or not at all, and returns its offset in the file.
    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<u64, ArchiveWriteError> {
        self.mend()?;
        let begin = self.length;
        // If a write below fails, `mend` must cut off the bytes beyond `length`.
        self.torn = true;
        self.dirty = true;
        let mut rest = piece;
        while !rest.is_empty() {
            match self.store.write_some(rest) {
                Ok(0) => return Err(self.failed(io::ErrorKind::WriteZero.into())),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.torn = false;
        self.length += piece.len() as u64;
        Ok(begin)
    }

    /// Waits until everything appended is on the disk.
    pub(crate) fn sync(&mut self) -> Result<(), ArchiveWriteError> {
        if self.dirty {
            self.store
                .sync()
                .map_err(|error| ArchiveWriteError::io("sync", &self.path, error))?;
            self.dirty = false;
        }
        Ok(())
    }

    /// Cuts off the remains of a piece that was not written whole. If this fails, the next append
    /// tries again before it writes.
    fn mend(&mut self) -> Result<(), ArchiveWriteError> {
        if self.torn {
            self.store
                .cut(self.length)
                .map_err(|error| ArchiveWriteError::io("cut back", &self.path, error))?;
            self.torn = false;
            self.dirty = true;
        }
        Ok(())
    }

    fn failed(&mut self, error: io::Error) -> ArchiveWriteError {
        // If cutting off the partial piece fails too, report only the write error.
        let _ = self.mend();
        ArchiveWriteError::io("write to", &self.path, error)
    }
}

/// Syncs a folder. Without this, a power loss may undo the creation, renaming or removal of a file
/// in the folder.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ArchiveWriteError> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| ArchiveWriteError::io("sync", folder, error))
}

/// Reads `out.len()` bytes at offset `at` of a file, regardless of the file's cursor.
pub(crate) fn read_at(file: &mut File, at: u64, out: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(out)
}

/// Checks that the file has at least its committed length, without changing it. A missing file has
/// length 0.
pub(crate) fn check_length(path: &Path, committed: u64) -> Result<(), ArchiveWriteError> {
    let length = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(ArchiveWriteError::io("open", path, error)),
    };
    if length < committed {
        return Err(ArchiveWriteError::Short {
            file: path.to_owned(),
            committed,
            found: length,
        });
    }
    Ok(())
}

fn open_file(path: &Path) -> Result<(File, u64), ArchiveWriteError> {
    let file = options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .and_then(regular)
        .and_then(|file| file.metadata().map(|metadata| (file, metadata.len())));
    file.map_err(|error| ArchiveWriteError::io("open", path, error))
}

/// Returns the number of names (hard links) of a file.
fn names(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.nlink())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use proptest::prelude::*;

    use super::Appender;
    use crate::ArchiveWriteError;
    use crate::disk_interface::AppendableFile;

    /// A small in-memory disk that writes a few bytes at a time.
    struct SmallDisk {
        bytes: Vec<u8>,
        room: usize,
        at_once: usize,
        interrupted: bool,
        cuts_fail: u32,
    }

    impl AppendableFile for SmallDisk {
        fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let fits = (self.room - self.bytes.len()).min(self.at_once);
            if fits == 0 {
                return Err(io::Error::from_raw_os_error(28));
            }
            let written = bytes.len().min(fits);
            self.bytes.extend(&bytes[..written]);
            Ok(written)
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            if self.cuts_fail > 0 {
                self.cuts_fail -= 1;
                return Err(io::ErrorKind::Other.into());
            }
            self.bytes.truncate(length as usize);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn small(room: usize, at_once: usize, cuts_fail: u32) -> Appender<SmallDisk> {
        let disk = SmallDisk {
            bytes: Vec::new(),
            room,
            at_once,
            interrupted: false,
            cuts_fail,
        };
        Appender::new(disk, Path::new("full.warc.gz"), 0)
    }

    #[test]
    fn short_writes_are_continued() {
        let mut file = small(100, 3, 0);
        assert_eq!(file.append(b"0123456789").unwrap(), 0);
        assert_eq!(file.append(b"abc").unwrap(), 10);
        assert_eq!(file.store.bytes, b"0123456789abc");
    }

    #[test]
    fn a_full_disk_is_reported_and_no_partial_piece_stays() {
        let mut file = small(12, 5, 0);
        file.append(b"0123456789").unwrap();
        let error = file.append(b"abc").unwrap_err();
        assert!(matches!(error, ArchiveWriteError::Full { .. }));
        assert_eq!(error.to_string(), "no space left to write to full.warc.gz");
        assert_eq!(file.store.bytes, b"0123456789");
        assert_eq!(file.append(b"ab").unwrap(), 10);
    }

    #[test]
    fn a_failed_cut_is_repeated_before_the_next_piece() {
        let mut file = small(12, 5, 1);
        file.append(b"0123456789").unwrap();
        file.append(b"abc").unwrap_err();
        assert_eq!(file.store.bytes, b"0123456789ab");
        assert_eq!(file.append(b"x").unwrap(), 10);
        assert_eq!(file.store.bytes, b"0123456789x");
    }

    proptest! {
        #[test]
        fn only_whole_pieces_stay(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
            room in 0usize..120,
            at_once in 1usize..9,
            cuts_fail in 0u32..3,
        ) {
            let mut file = small(room, at_once, cuts_fail);
            let mut expected: Vec<u8> = Vec::new();
            for piece in &pieces {
                if let Ok(begin) = file.append(piece) {
                    prop_assert_eq!(begin, expected.len() as u64);
                    expected.extend(piece);
                }
            }
            prop_assert_eq!(file.length(), expected.len() as u64);
            prop_assert_eq!(&file.store.bytes[..expected.len()], &expected[..]);
        }
    }
}
