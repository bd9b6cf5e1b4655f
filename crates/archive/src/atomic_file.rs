//! Files and folders that appear at their path only when they are complete.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The reason why a file or folder could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomicFileError {
    /// The file or folder could not be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A file or folder that must not be replaced is already at this path.
    #[error("{} already exists", path.display())]
    Occupied {
        /// The path of the existing file or folder.
        path: PathBuf,
    },
}

impl AtomicFileError {
    /// Returns a closure for `map_err` that reports a failure to write `path`.
    fn at(path: &Path) -> impl Fn(io::Error) -> AtomicFileError {
        let path = path.to_path_buf();
        move |source| AtomicFileError::Write {
            path: path.clone(),
            source,
        }
    }
}

/// A file that is written under a temporary name, and renamed when it is finished. Until then, the
/// old file stays. Dropping an unfinished file removes the temporary file.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    /// [`AtomicFileError::Write`] if the temporary file can't be created.
    pub fn create(path: &Path) -> Result<AtomicFile, AtomicFileError> {
        let temporary = temporary_path(path, "new");
        let file = File::create(&temporary).map_err(AtomicFileError::at(path))?;
        Ok(AtomicFile {
            path: path.to_path_buf(),
            temporary,
            file: Some(BufWriter::with_capacity(1 << 16, file)),
        })
    }

    /// Sets the permissions of the file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        fs::set_permissions(&self.temporary, permissions)
    }

    /// Syncs the file and renames it to its path.
    ///
    /// # Errors
    /// [`AtomicFileError::Write`] if the file can't be written or renamed.
    pub fn finish(mut self) -> Result<(), AtomicFileError> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let written = file.flush().and_then(|()| file.get_ref().sync_all());
        written
            .and_then(|()| fs::rename(&self.temporary, &self.path))
            .inspect_err(|_| drop(fs::remove_file(&self.temporary)))
            .map_err(AtomicFileError::at(&self.path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A folder that is written under a temporary name, like [`AtomicFile`].
#[derive(Debug)]
pub struct AtomicFolder {
    path: PathBuf,
    temporary: PathBuf,
    is_finished: bool,
}

impl AtomicFolder {
    /// Begins a folder that will be at `path`. Only replaces an empty folder, or a folder for which
    /// `is_ours` returns true.
    ///
    /// # Errors
    /// [`AtomicFileError::Occupied`] if anything else is at `path`; [`AtomicFileError::Write`] if
    /// the temporary folder can't be created.
    pub fn create(
        path: &Path,
        is_ours: impl Fn(&Path) -> bool,
    ) -> Result<AtomicFolder, AtomicFileError> {
        let is_free = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none() || is_ours(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => !path.is_symlink(),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
            Err(error) => return Err(AtomicFileError::at(path)(error)),
        };
        if !is_free {
            let path = path.to_path_buf();
            return Err(AtomicFileError::Occupied { path });
        }
        let temporary = temporary_path(path, "new");
        remove(&temporary)?;
        fs::create_dir_all(&temporary).map_err(AtomicFileError::at(path))?;
        Ok(AtomicFolder {
            path: path.to_path_buf(),
            temporary,
            is_finished: false,
        })
    }

    /// Returns the temporary folder, into which the caller writes the files.
    #[must_use]
    pub fn beside(&self) -> &Path {
        &self.temporary
    }

    /// Renames the folder to its path, in place of the old folder.
    ///
    /// # Errors
    /// [`AtomicFileError::Write`] if the folder can't be renamed.
    pub fn finish(mut self) -> Result<(), AtomicFileError> {
        let error = AtomicFileError::at(&self.path);
        let before = temporary_path(&self.path, "old");
        remove(&before)?;
        let was_there = self.path.exists();
        if was_there {
            fs::rename(&self.path, &before).map_err(&error)?;
        }
        if let Err(why) = fs::rename(&self.temporary, &self.path) {
            if was_there {
                let _ = fs::rename(&before, &self.path);
            }
            return Err(error(why));
        }
        self.is_finished = true;
        remove(&before)
    }
}

impl Drop for AtomicFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(&self.temporary);
        }
    }
}

/// Returns a hidden name such as `.NAME.new` in the same folder, and so on the same disk.
fn temporary_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_else(|| "export".as_ref()));
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn remove(folder: &Path) -> Result<(), AtomicFileError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(AtomicFileError::at(folder)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::{AtomicFile, AtomicFolder};

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.ndjson");
        fs::write(&path, "before").unwrap();
        let mut dropped = AtomicFile::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_only_replaces_one_of_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let is_ours = |path: &std::path::Path| path.join("mark").exists();
        let make = |text: &str| {
            let folder = AtomicFolder::create(&path, is_ours)?;
            fs::write(folder.beside().join("mark"), text).unwrap();
            folder.finish()
        };
        make("one").unwrap();
        make("two").unwrap();
        assert_eq!(fs::read_to_string(path.join("mark")).unwrap(), "two");
        drop(AtomicFolder::create(&path, is_ours).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::remove_file(path.join("mark")).unwrap();
        make("into an empty folder").unwrap();
        fs::rename(path.join("mark"), path.join("letters")).unwrap();
        let refused = make("three").unwrap_err().to_string();
        assert!(refused.ends_with("out already exists"), "{refused}");
        assert!(path.join("letters").exists());
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        make("four").unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
    }
}
