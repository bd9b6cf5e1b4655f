//! Output that appears whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The reason why a file or folder could not be written as a whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewFileError {
    /// The file or folder could not be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Something else is in its place, which is not replaced.
    #[error("{} is there already", path.display())]
    Occupied {
        /// The folder, or the file in its place.
        path: PathBuf,
    },
}

impl NewFileError {
    /// For `map_err`: writing to `path` failed.
    fn at(path: &Path) -> impl Fn(io::Error) -> NewFileError {
        let path = path.to_path_buf();
        move |source| NewFileError::Write {
            path: path.clone(),
            source,
        }
    }
}

/// A file that is written beside its place, and takes it when it is finished. What was there
/// before stays until then; one that is dropped before leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    beside: PathBuf,
    file: Option<BufWriter<File>>,
}

impl NewFile {
    /// Begins a file that is to stand at `path`.
    ///
    /// # Errors
    /// It can't be written there.
    pub fn create(path: &Path) -> Result<NewFile, NewFileError> {
        let beside = beside(path, "new");
        let file = File::create(&beside).map_err(NewFileError::at(path))?;
        Ok(NewFile {
            path: path.to_path_buf(),
            beside,
            file: Some(BufWriter::with_capacity(1 << 16, file)),
        })
    }

    /// Puts it into its place.
    ///
    /// # Errors
    /// It can't be written to the end, or not put there.
    pub fn finish(mut self) -> Result<(), NewFileError> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let written = file.flush().and_then(|()| file.get_ref().sync_all());
        written
            .and_then(|()| fs::rename(&self.beside, &self.path))
            .inspect_err(|_| drop(fs::remove_file(&self.beside)))
            .map_err(NewFileError::at(&self.path))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// A folder likewise.
#[derive(Debug)]
pub struct NewFolder {
    path: PathBuf,
    beside: PathBuf,
    is_finished: bool,
}

impl NewFolder {
    /// Begins a folder that is to stand at `path`, where nothing may be but an empty folder or
    /// one that `is_ours`.
    ///
    /// # Errors
    /// [`NewFileError::Occupied`] where something else is there; it can't be written there.
    pub fn create(path: &Path, is_ours: impl Fn(&Path) -> bool) -> Result<NewFolder, NewFileError> {
        let is_free = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none() || is_ours(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => !path.is_symlink(),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
            Err(error) => return Err(NewFileError::at(path)(error)),
        };
        if !is_free {
            let path = path.to_path_buf();
            return Err(NewFileError::Occupied { path });
        }
        let beside = beside(path, "new");
        remove(&beside)?;
        fs::create_dir_all(&beside).map_err(NewFileError::at(path))?;
        Ok(NewFolder {
            path: path.to_path_buf(),
            beside,
            is_finished: false,
        })
    }

    /// The folder in which its files are written.
    #[must_use]
    pub fn beside(&self) -> &Path {
        &self.beside
    }

    /// Puts it into its place, in place of what was there.
    ///
    /// # Errors
    /// It can't be put there.
    pub fn finish(mut self) -> Result<(), NewFileError> {
        let error = NewFileError::at(&self.path);
        let before = beside(&self.path, "old");
        remove(&before)?;
        let was_there = self.path.exists();
        if was_there {
            fs::rename(&self.path, &before).map_err(&error)?;
        }
        if let Err(why) = fs::rename(&self.beside, &self.path) {
            if was_there {
                let _ = fs::rename(&before, &self.path);
            }
            return Err(error(why));
        }
        self.is_finished = true;
        remove(&before)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(&self.beside);
        }
    }
}

/// `.NAME.new` in the same folder, so that it is on the same disk.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_else(|| "export".as_ref()));
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn remove(folder: &Path) -> Result<(), NewFileError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(NewFileError::at(folder)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::{NewFile, NewFolder};

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.ndjson");
        fs::write(&path, "before").unwrap();
        let mut dropped = NewFile::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_takes_the_place_of_its_like_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let is_ours = |path: &std::path::Path| path.join("mark").exists();
        let make = |text: &str| {
            let folder = NewFolder::create(&path, is_ours)?;
            fs::write(folder.beside().join("mark"), text).unwrap();
            folder.finish()
        };
        make("one").unwrap();
        make("two").unwrap();
        assert_eq!(fs::read_to_string(path.join("mark")).unwrap(), "two");
        drop(NewFolder::create(&path, is_ours).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::remove_file(path.join("mark")).unwrap();
        make("into an empty folder").unwrap();
        fs::rename(path.join("mark"), path.join("letters")).unwrap();
        let refused = make("three").unwrap_err().to_string();
        assert!(refused.ends_with("out is there already"), "{refused}");
        assert!(path.join("letters").exists());
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        make("four").unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
    }
}
