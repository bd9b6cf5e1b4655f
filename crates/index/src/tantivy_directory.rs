//! The directory of an index, as tantivy sees it, with file modes that follow the umask.
//!
//! By default, tantivy makes files that it replaces (`meta.json`) accessible only to their owner,
//! and opens the lock file for writing. So other users could not search an index, and an index on a
//! read-only disk could not be searched at all. In this directory, file modes follow the umask, and
//! a process without write permission locks through a file opened for reading.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

use crate::error::IndexError;
use crate::read_ahead_file::ReadAheadFile;

/// The file in which tantivy lists the segments of the last commit.
pub(crate) const META_FILE: &str = "meta.json";
/// The suffix of a temporary file that is renamed to replace another file.
const BESIDE: &str = ".new";

/// A tantivy `Directory`: the folder of an index. File modes follow the umask.
#[derive(Clone, Debug)]
pub(crate) struct IndexDirectory {
    files: MmapDirectory,
    path: PathBuf,
    ahead: ReadAheadExtensions,
}

/// The extensions of files that are read piece by piece instead of mapped into memory. A map would
/// stay in memory after a file was read from start to end.
type ReadAheadExtensions = &'static [&'static str];

/// No read-ahead: searches use random access, so all files are mapped into memory.
const NONE: ReadAheadExtensions = &[];
/// Files of postings and positions, which merges read from start to end.
const POSTINGS: ReadAheadExtensions = &["idx", "pos"];
/// The file of stored pages, which is read from start to end to visit all pages.
const PAGES: ReadAheadExtensions = &["store"];

impl IndexDirectory {
    pub(crate) fn open(path: &Path) -> tantivy::Result<IndexDirectory> {
        Ok(IndexDirectory {
            files: MmapDirectory::open(path)?,
            path: path.to_owned(),
            ahead: NONE,
        })
    }

    /// Opens the folder for writing and merging.
    pub(crate) fn open_to_write(path: &Path) -> tantivy::Result<IndexDirectory> {
        Ok(IndexDirectory {
            ahead: POSTINGS,
            ..IndexDirectory::open(path)?
        })
    }

    /// Opens the folder for reading all pages.
    pub(crate) fn open_to_read_pages(path: &Path) -> tantivy::Result<IndexDirectory> {
        Ok(IndexDirectory {
            ahead: PAGES,
            ..IndexDirectory::open(path)?
        })
    }
}

/// Checks that all files of an index are regular files, before any is opened. Opening a FIFO would
/// block. A symbolic link as the lock file would make us lock or create its target.
pub(crate) fn check_files(dir: &Path) -> Result<(), IndexError> {
    let entries = match fs::read_dir(dir) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(IndexError::disk(dir))?,
    };
    for entry in entries {
        let path = entry.map_err(IndexError::disk(dir))?.path();
        match fs::symlink_metadata(&path) {
            // A writer may delete files at any time.
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            found if found.as_ref().is_ok_and(fs::Metadata::is_file) => {}
            Err(why) => return Err(IndexError::disk(&path)(why)),
            Ok(_) => {
                let message = format!("{} isn't a regular file", path.display());
                return Err(IndexError::damaged(dir, message));
            }
        }
    }
    Ok(())
}

impl Directory for IndexDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let end = path.extension().unwrap_or_default();
        if !self.ahead.iter().any(|ahead| end == *ahead) {
            return self.files.get_file_handle(path);
        }
        match ReadAheadFile::open(&self.path.join(path)) {
            Ok(file) => Ok(Arc::new(file)),
            Err(why) if why.kind() == ErrorKind::NotFound => {
                Err(OpenReadError::FileDoesNotExist(path.to_owned()))
            }
            Err(why) => Err(OpenReadError::IoError {
                io_error: Arc::new(why),
                filepath: path.to_owned(),
            }),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.files.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let place = self.path.join(path);
        let mut temporary = place.clone().into_os_string();
        temporary.push(BESIDE);
        // Delete the file first: a killed process may have left it, or it may be a link. No other
        // writer uses it, because a folder has only one writer at a time.
        match fs::remove_file(&temporary) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(&temporary)?;
        file.write_all(data)?;
        file.sync_data()?;
        fs::rename(&temporary, &place)?;
        match path == Path::new(META_FILE) {
            // tantivy syncs the folder only before this write. Sync it again, because the crawl
            // deletes its log after a commit and could not repeat a lost commit.
            true => self.files.sync_directory(),
            false => Ok(()),
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        // Of tantivy's locks, only the writer's is taken without waiting. A writer needs write
        // access anyway, so it never has to lock through a file opened for reading.
        if !lock.is_blocking {
            return try_lock(&self.path.join(&lock.filepath));
        }
        match self.files.acquire_lock(lock) {
            Err(LockError::IoError(why)) if is_read_only(&why) => {
                lock_by_reading(&self.path.join(&lock.filepath))
                    .map_err(|why| LockError::IoError(Arc::new(why)))
            }
            taken => taken,
        }
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

fn is_read_only(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// A file lock that is released when dropped.
///
/// The lock must be released explicitly. Closing the file isn't enough: a child process has a copy
/// of each open file until it executes its program, and this copy keeps the lock.
#[derive(Debug)]
struct HeldLock(File);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // If unlocking fails, the lock ends when the last copy of the file is closed.
        let _ = self.0.unlock();
    }
}

/// Locks a file without waiting, and creates it if necessary.
fn try_lock(path: &Path) -> Result<DirectoryLock, LockError> {
    let failed = |why| LockError::IoError(Arc::new(why));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(DirectoryLock::from(Box::new(HeldLock(file)))),
        Err(TryLockError::WouldBlock) => Err(LockError::LockBusy),
        Err(TryLockError::Error(why)) => Err(failed(why)),
    }
}

/// Waits for the lock, using a file opened for reading. If the lock file does not exist, the index
/// was never opened for writing here, so there is nothing to wait for.
fn lock_by_reading(path: &Path) -> io::Result<DirectoryLock> {
    let file = match File::open(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => None,
        file => Some(file?),
    };
    if let Some(file) = &file {
        file.lock()?;
    }
    Ok(DirectoryLock::from(Box::new(file)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt as _;

    use tantivy::directory::Directory as _;

    use tantivy::directory::error::LockError;

    use super::{HeldLock, IndexDirectory, check_files, lock_by_reading, try_lock};

    fn mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn replaced_files_have_the_mode_of_the_umask() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        File::create(&plain).unwrap();
        let index = IndexDirectory::open(dir.path()).unwrap();
        for text in ["a", "b"] {
            index
                .atomic_write("meta.json".as_ref(), text.as_bytes())
                .unwrap();
            assert_eq!(
                index.atomic_read("meta.json".as_ref()).unwrap(),
                text.as_bytes()
            );
        }
        assert_eq!(mode(&dir.path().join("meta.json")), mode(&plain));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn replacing_a_file_does_not_follow_links() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "theirs").unwrap();
        let folder = dir.path().join("index");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("meta.json.new")).unwrap();
        let index = IndexDirectory::open(&folder).unwrap();
        index.atomic_write("meta.json".as_ref(), b"ours").unwrap();
        assert_eq!(fs::read(&outside).unwrap(), b"theirs");
        assert_eq!(fs::read(folder.join("meta.json")).unwrap(), b"ours");
    }

    #[test]
    fn an_index_has_regular_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        check_files(&dir.path().join("none")).unwrap();
        fs::write(dir.path().join("meta.json"), "").unwrap();
        check_files(dir.path()).unwrap();
        std::os::unix::fs::symlink("/nowhere", dir.path().join(".tantivy-meta.lock")).unwrap();
        let error = check_files(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(".tantivy-meta.lock isn't a regular file"),
            "{error}"
        );
    }

    #[test]
    fn a_lock_ends_although_a_process_being_started_has_a_copy_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        file.try_lock().unwrap();
        let copy = file.try_clone().unwrap();
        let held = HeldLock(file);
        assert!(matches!(try_lock(&path), Err(LockError::LockBusy)));
        drop(held);
        assert!(try_lock(&path).is_ok());
        drop(copy);
    }

    #[test]
    fn a_read_only_process_waits_for_the_same_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        lock_by_reading(&path).unwrap();
        File::create(&path).unwrap();
        let held = lock_by_reading(&path).unwrap();
        assert!(
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .try_lock()
                .is_err()
        );
        drop(held);
        assert!(File::open(&path).unwrap().try_lock().is_ok());
    }
}
