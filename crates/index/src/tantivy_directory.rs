//! The folder of an index as tantivy sees it, with the modes that a user asks for.
//!
//! tantivy keeps what it replaces whole (`meta.json`) in files that only their owner may read, and
//! locks by a file that it opens for writing. So another user could not search an index, nor
//! anyone on a disk that is read-only. Here files have the modes that the umask gives, and who may
//! only read locks by what can be read.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

use crate::error::IndexError;
use crate::read_ahead::ReadAhead;

/// The file that names the segments of the last commit.
pub(crate) const META_FILE: &str = "meta.json";
/// The end of the name of a file that is to take another's place.
const BESIDE: &str = ".new";

/// A folder that holds an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexDirectory {
    files: MmapDirectory,
    path: PathBuf,
    ahead: ReadsAhead,
}

/// The ends of the names of files that are read ahead, a piece at a time, as they are read from
/// begin to end: what was read of a map would stay in memory. Others are mapped.
type ReadsAhead = &'static [&'static str];

/// None: searches jump.
const NONE: ReadsAhead = &[];
/// Lists of postings and positions, for merges.
const POSTINGS: ReadsAhead = &["idx", "pos"];
/// The store of pages, for readers of all of them.
const PAGES: ReadsAhead = &["store"];

impl IndexDirectory {
    pub(crate) fn open(path: &Path) -> tantivy::Result<IndexDirectory> {
        Ok(IndexDirectory {
            files: MmapDirectory::open(path)?,
            path: path.to_owned(),
            ahead: NONE,
        })
    }

    /// Opens the folder for who writes and merges.
    pub(crate) fn open_to_write(path: &Path) -> tantivy::Result<IndexDirectory> {
        Ok(IndexDirectory {
            ahead: POSTINGS,
            ..IndexDirectory::open(path)?
        })
    }

    /// Opens the folder for who reads all pages of it.
    pub(crate) fn open_to_read_pages(path: &Path) -> tantivy::Result<IndexDirectory> {
        Ok(IndexDirectory {
            ahead: PAGES,
            ..IndexDirectory::open(path)?
        })
    }
}

/// Looks at the files of an index before one is opened: a FIFO would be waited for, and a link
/// would have us lock, or make, what it points to.
pub(crate) fn check_files(dir: &Path) -> Result<(), IndexError> {
    let entries = match fs::read_dir(dir) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(IndexError::disk(dir))?,
    };
    for entry in entries {
        let path = entry.map_err(IndexError::disk(dir))?.path();
        match fs::symlink_metadata(&path) {
            // Whoever writes takes files away.
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            found if found.as_ref().is_ok_and(fs::Metadata::is_file) => {}
            Err(why) => return Err(IndexError::disk(&path)(why)),
            Ok(_) => {
                let what = format!("{} is no regular file", path.display());
                return Err(IndexError::damaged(dir, what));
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
        match ReadAhead::open(&self.path.join(path)) {
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
        let mut beside = place.clone().into_os_string();
        beside.push(BESIDE);
        // What a death left goes, and so does a link; one writer at a time is at it.
        match fs::remove_file(&beside) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(&beside)?;
        file.write_all(data)?;
        file.sync_data()?;
        fs::rename(&beside, &place)?;
        match path == Path::new(META_FILE) {
            // tantivy syncs the folder only before this write. After a commit the crawl drops the
            // log, so a lost commit could not be repeated.
            true => self.files.sync_directory(),
            false => Ok(()),
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        // The lock of the writer: the only one that tantivy does not wait for.
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

/// A lock of a file, released when it is dropped.
///
/// Closing the file isn't enough: a process that is just being started holds a copy of each open
/// file until it executes its program, and with it the lock.
#[derive(Debug)]
struct HeldLock(File);

impl Drop for HeldLock {
    fn drop(&mut self) {
        // On failure the lock ends with the last copy of the file.
        let _ = self.0.unlock();
    }
}

/// Locks a file, which is made if there is none, without waiting for another holder.
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

/// Waits for the lock through a file that can't be written. Where there is none, nobody has
/// written since the index was put there, and nobody holds it.
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
    fn what_is_replaced_has_the_mode_that_the_umask_gives() {
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
    fn what_is_replaced_is_written_through_no_link() {
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
            error.contains(".tantivy-meta.lock is no regular file"),
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
    fn who_may_only_read_waits_for_the_same_lock() {
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
