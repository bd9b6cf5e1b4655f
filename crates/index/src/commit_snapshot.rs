//! Keeps the files of one commit of an index readable while later commits replace them.
//!
//! When the writer of an index commits, it replaces `meta.json` and deletes the files of segments
//! that no commit uses any more, unless someone holds the meta lock. If a reader opened the files
//! one by one without this lock, files could disappear before they are opened. So a snapshot maps
//! all files of a commit into memory under the lock. The maps stay valid when the files are
//! deleted.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, META_LOCK, OwnedBytes, WatchCallback, WatchHandle,
    WritePtr,
};
use tantivy::{Index, IndexMeta};

use crate::error::IndexError;
use crate::file_check::{ChecksumFileFilter, check_segments, files, read_small};
use crate::tantivy_directory::{IndexDirectory, META_FILE};

/// A read-only directory that contains the files of one commit, mapped into memory.
#[derive(Clone, Debug)]
pub(crate) struct CommitSnapshotDirectory {
    meta: Arc<[u8]>,
    files: Arc<HashMap<PathBuf, Arc<dyn FileHandle>>>,
}

impl CommitSnapshotDirectory {
    /// Maps the files of the last commit of the index in `dir`.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if a file is missing, or an I/O error.
    pub(crate) fn open(dir: &Path) -> Result<CommitSnapshotDirectory, IndexError> {
        CommitSnapshotDirectory::of(dir, IndexDirectory::open(dir))
    }

    /// Maps the files of the last commit like [`CommitSnapshotDirectory::open`], for a caller that
    /// reads all pages. The file of stored pages is not mapped, because it would stay in memory,
    /// but read with read-ahead.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if a file is missing, or an I/O error.
    pub(crate) fn open_to_read_pages(dir: &Path) -> Result<CommitSnapshotDirectory, IndexError> {
        CommitSnapshotDirectory::of(dir, IndexDirectory::open_to_read_pages(dir))
    }

    fn of(
        dir: &Path,
        place: tantivy::Result<IndexDirectory>,
    ) -> Result<CommitSnapshotDirectory, IndexError> {
        let error = IndexError::of(dir);
        let place = place.map_err(&error)?;
        let lock = place.acquire_lock(&META_LOCK);
        let _lock = lock.map_err(|why| error(why.into()))?;
        let mut snapshot = CommitSnapshotDirectory {
            meta: read_small(dir, META_FILE)?.into(),
            files: Arc::default(),
        };
        let mut mapped = HashMap::new();
        for segment in &snapshot.metas().map_err(&error)?.segments {
            for file in files(segment) {
                let handle = place.get_file_handle(&file);
                mapped.insert(file, handle.map_err(|why| error(why.into()))?);
            }
        }
        snapshot.files = Arc::new(mapped);
        Ok(snapshot)
    }

    /// Returns the content of `meta.json`.
    pub(crate) fn metas(&self) -> tantivy::Result<IndexMeta> {
        Index::open(self.clone())?.load_metas()
    }

    /// Compares the files with their checksums. `dir` is the directory of the index.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] with the name of the file, or an I/O error.
    pub(crate) fn check(&self, dir: &Path, checked: ChecksumFileFilter) -> Result<(), IndexError> {
        let metas = self.metas().map_err(IndexError::of(dir))?;
        // Read from disk rather than from the memory map, because reading a whole map would keep it
        // in memory. If the file has been deleted, use the map.
        let open = |file: &Path| -> io::Result<Box<dyn ReadSeek>> {
            match File::open(dir.join(file)) {
                Err(why) if why.kind() == ErrorKind::NotFound => {
                    Ok(Box::new(Cursor::new(self.bytes(file)?)))
                }
                opened => Ok(Box::new(opened?)),
            }
        };
        check_segments(dir, &metas, open, checked, &|| false).map(drop)
    }

    fn bytes(&self, file: &Path) -> io::Result<OwnedBytes> {
        let handle = self.files.get(file).ok_or(ErrorKind::NotFound)?;
        handle.read_bytes(0..handle.len())
    }
}

/// Combines `Read` and `Seek`, for use as one trait object.
trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

impl Directory for CommitSnapshotDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let handle = self.files.get(path).cloned();
        handle.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(path == Path::new(META_FILE) || self.files.contains_key(path))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        match path == Path::new(META_FILE) {
            true => Ok(self.meta.to_vec()),
            false => Err(OpenReadError::FileDoesNotExist(path.to_owned())),
        }
    }

    /// Returns a lock that locks nothing. The files are already mapped, so no lock is needed.
    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError {
            io_error: Arc::new(ErrorKind::ReadOnlyFilesystem.into()),
            filepath: path.to_owned(),
        })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::IoError {
            io_error: Arc::new(ErrorKind::ReadOnlyFilesystem.into()),
            filepath: path.to_owned(),
        })
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::index_writer::IndexWriter;
    use crawl_index_entry::IndexedPage;

    #[test]
    fn a_commit_stays_readable_after_later_commits() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = IndexWriter::open(dir.path()).unwrap();
        let page = IndexedPage {
            url: "http://a.example/".to_owned(),
            text: "tea".to_owned(),
            ..IndexedPage::default()
        };
        writer.put(&page).unwrap();
        writer.commit("1").unwrap();
        let snapshot = CommitSnapshotDirectory::open(dir.path()).unwrap();
        // The next commits delete all files of the first one.
        for note in ["2", "3"] {
            writer.drop_url(&page.url);
            writer.commit(note).unwrap();
        }
        let [segment] = &snapshot.metas().unwrap().segments[..] else {
            panic!("one page is one segment")
        };
        let mut of_the_first = files(segment);
        assert!(of_the_first.all(|file| !fs::exists(dir.path().join(file)).unwrap()));
        snapshot
            .check(dir.path(), ChecksumFileFilter::Whole)
            .unwrap();
        let reader = Index::open(snapshot).unwrap().reader().unwrap();
        assert_eq!(reader.searcher().num_docs(), 1);
    }
}
