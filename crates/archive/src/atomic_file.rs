//! Files and folders that appear at their path only when they are complete.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::iter;
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
/// old file stays. Dropping an unfinished file removes the temporary file. A symbolic link at the
/// path stays, and the file that it leads to is created or replaced. Anything else at the path,
/// such as a pipe or a device, is written to directly.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    /// `None` if the file is written to directly.
    temporary: Option<PathBuf>,
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    /// [`AtomicFileError::Write`] if the temporary file can't be created.
    pub fn create(path: &Path) -> Result<AtomicFile, AtomicFileError> {
        let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let (path, temporary) = match is_special {
            true => (path.to_path_buf(), None),
            false => {
                let path = end_of_links(path);
                let temporary = temporary_path(&path, "new");
                (path, Some(temporary))
            }
        };
        let file = File::create(temporary.as_ref().unwrap_or(&path));
        let file = file.map_err(AtomicFileError::at(&path))?;
        Ok(AtomicFile {
            path,
            temporary,
            file: Some(BufWriter::with_capacity(1 << 16, file)),
        })
    }

    /// Sets the permissions of the file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        fs::set_permissions(self.temporary.as_ref().unwrap_or(&self.path), permissions)
    }

    /// Syncs the file and renames it to its path.
    ///
    /// # Errors
    /// [`AtomicFileError::Write`] if the file can't be written or renamed.
    pub fn finish(mut self) -> Result<(), AtomicFileError> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let written = file.flush();
        let Some(temporary) = &self.temporary else {
            return written.map_err(AtomicFileError::at(&self.path));
        };
        written
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| fs::rename(temporary, &self.path))
            .inspect_err(|_| drop(fs::remove_file(temporary)))
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
        if self.file.take().is_some()
            && let Some(temporary) = &self.temporary
        {
            let _ = fs::remove_file(temporary);
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
    /// Begins a folder that will be at `path`, or where the symbolic link at `path` leads. Only
    /// replaces an empty folder, or a folder for which `is_ours` returns true.
    ///
    /// # Errors
    /// [`AtomicFileError::Occupied`] if anything else is at `path`; [`AtomicFileError::Write`] if
    /// the temporary folder can't be created.
    pub fn create(
        path: &Path,
        is_ours: impl Fn(&Path) -> bool,
    ) -> Result<AtomicFolder, AtomicFileError> {
        let path = end_of_links(path);
        let is_free = match fs::read_dir(&path) {
            Ok(mut entries) => entries.next().is_none() || is_ours(&path),
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) if error.kind() == ErrorKind::NotADirectory => false,
            Err(error) => return Err(AtomicFileError::at(&path)(error)),
        };
        if !is_free {
            return Err(AtomicFileError::Occupied { path });
        }
        let temporary = temporary_path(&path, "new");
        remove(&temporary)?;
        fs::create_dir_all(&temporary).map_err(AtomicFileError::at(&path))?;
        Ok(AtomicFolder {
            path,
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

/// Returns whether `path`, or a folder on the way to it, is a symbolic link that leads nowhere.
#[must_use]
pub fn is_behind_dangling_link(path: &Path) -> bool {
    // Remove a slash at the end of the path, because the system follows a link before a slash.
    let path: PathBuf = path.components().collect();
    path.ancestors()
        .any(|part| part.is_symlink() && !part.exists())
}

/// Returns the path that `path` leads to through symbolic links, whether or not anything exists at
/// that path.
#[must_use]
pub fn end_of_links(path: &Path) -> PathBuf {
    // Remove a slash at the end of the path, because the system follows a link before a slash.
    let path: PathBuf = path.components().collect();
    if !path.is_symlink() {
        return path;
    }
    match fs::canonicalize(&path) {
        Ok(target) => target,
        Err(why) if why.kind() == ErrorKind::NotFound => {
            let next = |link: &PathBuf| Some(link.parent()?.join(fs::read_link(link).ok()?));
            let chain = iter::successors(Some(path), next);
            chain.last().unwrap_or_default()
        }
        Err(_) => path,
    }
}

/// Returns a hidden name such as `.NAME.new` in the same folder. A file can be renamed from there
/// to its final path, because both are on the same disk.
fn temporary_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_else(|| "export".as_ref()));
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn remove(folder: &Path) -> Result<(), AtomicFileError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(AtomicFileError::at(folder)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

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

    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("disk")).unwrap();
        for link in ["file", "folder"] {
            symlink(format!("disk/{link}"), at(link)).unwrap();
        }
        // The targets don't exist at first.
        for text in ["one", "two"] {
            let mut file = AtomicFile::create(&at("file")).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert_eq!(fs::read_to_string(at("disk/file")).unwrap(), text);
            let folder = AtomicFolder::create(&at("folder/"), |_| true).unwrap();
            fs::write(folder.beside().join("mark"), text).unwrap();
            folder.finish().unwrap();
            assert_eq!(fs::read_to_string(at("disk/folder/mark")).unwrap(), text);
        }
        assert!(at("file").is_symlink() && at("folder").is_symlink());
        for (folder, entries) in [("", 3), ("disk", 2)] {
            assert_eq!(fs::read_dir(at(folder)).unwrap().count(), entries);
        }
        // A link to a pipe.
        let (mut reader, writer) = std::io::pipe().unwrap();
        symlink(format!("/proc/self/fd/{}", writer.as_raw_fd()), at("pipe")).unwrap();
        let mut file = AtomicFile::create(&at("pipe")).unwrap();
        file.write_all(b"three").unwrap();
        file.finish().unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "three");
        assert!(at("pipe").is_symlink());
    }
}
