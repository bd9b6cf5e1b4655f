//! Folders for the profiles of browsers.
//!
//! This program holds a lock on the profile of its browser. If this program is killed, the shell
//! that started the browser removes the profile. If the shell is killed too, an unlocked profile
//! remains, and [`remove_abandoned`] removes it at the next start.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The prefix of the names of profiles.
const PREFIX: &str = "crawl-browser-";

/// A profile: a folder that only the current user can access. Dropping the value does not remove
/// the folder.
#[derive(Debug)]
pub(crate) struct BrowserProfileFolder {
    pub(crate) path: PathBuf,
    /// Held while this program uses the profile.
    _lock: File,
}

impl BrowserProfileFolder {
    /// Creates an empty profile in `parent`.
    pub(crate) fn create(parent: &Path) -> io::Result<BrowserProfileFolder> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |since| since.as_nanos());
        let mut count = 0;
        loop {
            let name = format!("{PREFIX}{}-{}", std::process::id(), nanos + count);
            let path = parent.join(name);
            count += 1;
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                lock => {
                    let lock = lock?;
                    // Ignore errors: some file systems don't support locks, and on these no profile
                    // counts as abandoned.
                    let _ = lock.lock();
                    // Check that the folder exists: another program may have removed it before it
                    // was locked.
                    if path.exists() {
                        return Ok(BrowserProfileFolder { path, _lock: lock });
                    }
                }
            }
        }
    }
}

/// Removes the unlocked profiles in `parent`. Such a profile remains if both the program and the
/// shell that started the browser were killed.
pub(crate) fn remove_abandoned(parent: &Path) {
    let Ok(user) = fs::metadata("/proc/self").map(|process| process.uid()) else {
        return;
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_profile = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_own = || {
            let folder = entry.metadata();
            folder.is_ok_and(|folder| folder.is_dir() && folder.uid() == user)
        };
        if !is_profile || !is_own() {
            continue;
        }
        let path = entry.path();
        let Ok(lock) = File::open(&path) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            // Ignore errors: the next start tries again.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{BrowserProfileFolder, remove_abandoned};

    #[test]
    fn only_abandoned_profiles_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let used = BrowserProfileFolder::create(folder.path()).unwrap();
        let abandoned = BrowserProfileFolder::create(folder.path()).unwrap();
        fs::write(abandoned.path.join("file"), "of a browser").unwrap();
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        let path = abandoned.path.clone();
        remove_abandoned(folder.path());
        assert!(path.exists());
        drop(abandoned);
        remove_abandoned(folder.path());
        assert!(!path.exists());
        assert!(used.path.exists() && other.exists());
        remove_abandoned(&other.join("nothing"));
    }
}
