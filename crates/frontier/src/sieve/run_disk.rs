//! The disk that the sieve writes to. It is a trait, so that tests can inject failures.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The disk that sorted runs are written to. [`SystemDisk`] is the system's real disk. Tests use
/// disks that are full or lose power.
pub trait RunDisk: Send + Sync {
    /// Creates a file, replacing one of the same name.
    ///
    /// # Errors
    /// Any I/O error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Syncs the names in a directory, and returns when they are on disk.
    ///
    /// # Errors
    /// Any I/O error.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Any I/O error.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// A file of a `RunDisk`, open for sequential writing.
pub trait DiskFile: Send {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// Any I/O error; some of the bytes may have been written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Syncs the written bytes, and returns when they are on disk.
    ///
    /// # Errors
    /// Any I/O error.
    fn sync(&mut self) -> io::Result<()>;
}

/// The real disk, through the operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl RunDisk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }
}

impl DiskFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Fills `bytes` from an offset in a file, without moving the file's cursor.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}
