//! An exclusive lock on a file.

use std::fs::{File, TryLockError};
use std::io;

/// An exclusive lock on a file, released when dropped.
///
/// Dropping the lock unlocks the file explicitly. Closing the file would not be enough: a child
/// process has a copy of each open file until it executes its program, and this copy keeps the
/// lock.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks a file without waiting. Returns `None` if it is locked already, by this process or
    /// another.
    ///
    /// # Errors
    ///
    /// The error of the operating system, if the file can't be locked.
    pub fn try_acquire(file: File) -> io::Result<Option<FileLock>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If unlocking fails, the lock ends when the last copy of the file is closed.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::FileLock;

    #[test]
    fn a_lock_ends_although_a_process_being_started_has_a_copy_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        let copy = file.try_clone().unwrap();
        let lock = FileLock::try_acquire(file).unwrap().unwrap();
        let try_again = || FileLock::try_acquire(File::open(&path).unwrap()).unwrap();
        assert!(try_again().is_none());
        drop(lock);
        assert!(try_again().is_some());
        drop(copy);
    }
}
