//! A disk for tests that fails after a given number of operations, and that can lose unsynced data,
//! as in a power cut.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sieve::{DiskFile, RunDisk};

/// A [`RunDisk`] on which a given number of operations succeed, and all later ones fail. The first
/// failing write still writes half of its bytes.
#[derive(Clone, Debug)]
pub struct FaultyDisk(Arc<Mutex<FaultyDiskState>>);

#[derive(Debug)]
struct FaultyDiskState {
    remaining: u64,
    files: BTreeMap<PathBuf, SyncedPart>,
}

/// How much of a file survives a power cut: its name, if that was synced, and the bytes that were
/// synced.
#[derive(Clone, Copy, Debug, Default)]
struct SyncedPart {
    named: bool,
    synced: u64,
}

impl FaultyDisk {
    /// Creates a disk on which the first `operations` operations succeed.
    #[must_use]
    pub fn failing_after(operations: u64) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(FaultyDiskState {
            remaining: operations,
            files: BTreeMap::new(),
        })))
    }

    /// Removes everything written through this disk that was not synced, including file names.
    pub fn cut_power(&self) {
        for (path, written) in &self.state().files {
            if !written.named {
                let _ = fs::remove_file(path);
            } else if let Ok(file) = File::options().write(true).open(path) {
                file.set_len(written.synced).unwrap();
            }
        }
    }

    /// Counts an operation. Fails if no operations remain.
    fn step(&self) -> io::Result<()> {
        let mut state = self.state();
        match state.remaining.checked_sub(1) {
            Some(remaining) => {
                state.remaining = remaining;
                Ok(())
            }
            None => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn note(&self, path: &Path, change: impl FnOnce(&mut SyncedPart)) {
        change(self.state().files.entry(path.to_owned()).or_default());
    }

    fn state(&self) -> MutexGuard<'_, FaultyDiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    path: PathBuf,
    file: File,
    written: u64,
}

impl RunDisk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.step()?;
        let file = File::create(path)?;
        self.note(path, |written| *written = SyncedPart::default());
        Ok(Box::new(FaultyFile {
            disk: self.clone(),
            path: path.to_owned(),
            file,
            written: 0,
        }))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.step()?;
        for (path, written) in &mut self.state().files {
            written.named |= path.parent() == Some(dir);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.state().files.remove(path);
        fs::remove_file(path)
    }
}

impl DiskFile for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(full) = self.disk.step() {
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(full);
        }
        self.written += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()?;
        let synced = self.written;
        self.disk
            .note(&self.path, |written| written.synced = synced);
        Ok(())
    }
}
