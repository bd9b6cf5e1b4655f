//! The disk with the files that a crawl appends to. A simulation replaces the real disk by one with
//! faults.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Decides for each operation on a file whether it succeeds. Files are identified by their paths.
pub trait DiskFaultInjector: fmt::Debug + Send + Sync {
    /// Returns how many of the `length` bytes to append to a file are written.
    ///
    /// # Errors
    /// The error that the write reports. Nothing is written then.
    fn write(&self, path: &Path, length: usize) -> io::Result<usize>;

    /// Decides whether a file can be truncated to `length` bytes.
    ///
    /// # Errors
    /// The error that the truncation reports. The file stays unchanged then.
    fn cut(&self, path: &Path, length: u64) -> io::Result<()>;

    /// Simulates the sync of a file, which replaces the real sync.
    ///
    /// # Errors
    /// The error that the sync reports.
    fn sync(&self, path: &Path) -> io::Result<()>;
}

/// The disk that files are opened on. The default is the real one.
#[derive(Clone, Debug, Default)]
pub struct Disk(Option<Arc<dyn DiskFaultInjector>>);

impl Disk {
    /// Returns a disk on which `faults` decides how operations end.
    #[must_use]
    pub fn with_faults(faults: Arc<dyn DiskFaultInjector>) -> Disk {
        Disk(Some(faults))
    }

    /// Syncs a file.
    pub(crate) fn sync(&self, path: &Path, file: &File) -> io::Result<()> {
        match &self.0 {
            None => file.sync_data(),
            Some(faults) => faults.sync(path),
        }
    }
}

/// The file operations that an appender needs. A trait, so that tests can use a failing disk.
pub(crate) trait AppendableFile {
    /// Appends all bytes or only the first few, and returns how many were written.
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Truncates the file to `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Waits until all written bytes are on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file on a [`Disk`].
pub(crate) struct DiskFile {
    pub(crate) file: File,
    path: PathBuf,
    disk: Disk,
}

impl DiskFile {
    pub(crate) fn new(file: File, path: &Path, disk: &Disk) -> DiskFile {
        DiskFile {
            file,
            path: path.to_owned(),
            disk: disk.clone(),
        }
    }
}

impl AppendableFile for DiskFile {
    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = match &self.disk.0 {
            None => bytes.len(),
            Some(faults) => faults.write(&self.path, bytes.len())?.min(bytes.len()),
        };
        self.file.write(&bytes[..length])
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        if let Some(faults) = &self.disk.0 {
            faults.cut(&self.path, length)?;
        }
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.sync(&self.path, &self.file)
    }
}
