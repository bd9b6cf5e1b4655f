//! The crawls of one user that run just now, so that one can say which other one asks a host.
//!
//! Each is a file in a folder: its directory, and since when it runs. A crawl locks one byte of
//! its file as long as it lives, and one for each host that it holds, at the host's place in the
//! file of all hosts: the system tells that such a byte is locked, though not by whom. A file
//! whose crawl has died is locked no more, and is removed by the next crawl that starts.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::byte_lock;

/// The byte of its file that a crawl locks as long as it lives; places of hosts are less.
const ALIVE: u64 = 1 << 62;
/// Bytes of such a file that are read. Paths have at most 4,096.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Files that are looked at for the one that holds a host.
const MAX_FILES: usize = 1000;
/// A new file may be taken for one that a dead crawl left, and removed: then another is made.
const MAX_TRIES: u32 = 10;

/// A crawl's entry for others to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCrawl {
    /// Its directory.
    pub directory: String,
    /// When it was started, RFC 3339.
    pub since: String,
}

/// This crawl's file among those of the others.
#[derive(Debug)]
pub(crate) struct Running {
    folder: PathBuf,
    path: PathBuf,
    file: File,
}

impl Running {
    /// Enters a crawl in the folder, which is made where it is missing, and removes what dead
    /// ones left there.
    pub(crate) fn enter(folder: &Path, crawl: &RunningCrawl) -> io::Result<Running> {
        fs::create_dir_all(folder)?;
        for (path, file) in files(folder) {
            // Whoever has locked this byte lives.
            if byte_lock::lock(&file, ALIVE).unwrap_or(false) {
                // Another crawl may have removed it just now.
                let _ = fs::remove_file(path);
            }
        }
        for number in 0..MAX_TRIES {
            let path = folder.join(format!("{}-{number}.json", std::process::id()));
            let file = match options().create_new(true).open(&path) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            if byte_lock::lock(&file, ALIVE)? && path.exists() {
                (&file).write_all(&serde_json::to_vec(crawl)?)?;
                let folder = folder.to_owned();
                return Ok(Running { folder, path, file });
            }
        }
        Err(io::Error::other("no file of this crawl stays there"))
    }

    /// Tells others that this crawl holds the host at a place.
    pub(crate) fn hold(&self, place: u64) {
        // At worst nobody can say who holds the host.
        let _ = byte_lock::lock(&self.file, place);
    }

    /// Tells others that it does no more.
    pub(crate) fn free(&self, place: u64) {
        let _ = byte_lock::unlock(&self.file, place);
    }

    /// The other crawl that holds the host at a place.
    pub(crate) fn holder(&self, place: u64) -> Option<RunningCrawl> {
        let mut others = files(&self.folder).filter(|(path, _)| *path != self.path);
        let (_, file) = others.find(|(_, file)| byte_lock::is_locked(file, place))?;
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // At worst the next crawl that starts removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The files of all crawls, opened.
fn files(folder: &Path) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.take(MAX_FILES).flatten().filter_map(|entry| {
        // A link or a pipe is no file of ours.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let path = entry.path();
        let file = is_file.then(|| options().open(&path))?.ok()?;
        Some((path, file))
    })
}

fn options() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crawl(directory: &str) -> RunningCrawl {
        RunningCrawl {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        }
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_crawl_is_found_by_the_host_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("running");
        let one = Running::enter(&folder, &crawl("/a")).unwrap();
        let other = Running::enter(&folder, &crawl("/b")).unwrap();
        let third = Running::enter(&folder, &crawl("/c")).unwrap();
        one.hold(7);
        other.hold(8);
        assert_eq!(third.holder(7), Some(crawl("/a")));
        assert_eq!(third.holder(8), Some(crawl("/b")));
        assert_eq!(third.holder(9), None);
        assert_eq!(one.holder(7), None, "itself is no other");
        one.free(7);
        assert_eq!(third.holder(7), None);
        assert_eq!(names(&folder), 3);
        drop(other);
        assert_eq!((third.holder(8), names(&folder)), (None, 2));
    }

    #[test]
    fn what_a_dead_crawl_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("1-0.json");
        fs::write(&left, serde_json::to_vec(&crawl("/dead")).unwrap()).unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        let one = Running::enter(dir.path(), &crawl("/a")).unwrap();
        assert!(!left.exists());
        let other = Running::enter(dir.path(), &crawl("/b")).unwrap();
        one.hold(1);
        assert_eq!(other.holder(1), Some(crawl("/a")), "who lives stays");
        fs::write(&one.path, "{").unwrap();
        assert_eq!(other.holder(1), None, "a broken file says nothing");
    }
}
