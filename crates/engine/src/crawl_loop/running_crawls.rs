//! The crawls of one user that run just now, so that one can say which other one asks a host.
//!
//! Each is a file in a folder: its directory, and since when it runs, and behind that the hosts that
//! it holds, by number. A crawl locks one byte of its file as long as it lives. A file whose crawl
//! has died is locked no more, and is removed by the next crawl that starts.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashMapExt as _};
use serde::{Deserialize, Serialize};

use super::byte_lock;

/// The byte of its file that a crawl locks as long as it lives: behind all that is written.
const ALIVE: u64 = 1 << 62;
/// The place in the file where the list of hosts begins, and so the most bytes of what stands
/// before it. Paths have at most 4,096.
const HOSTS_AT: u64 = 64 << 10;
/// The bytes of a host in the list: its number and one, or zeros where it was taken off.
const HOST_BYTES: u64 = 8;
/// The most hosts in the list of another crawl that are looked at.
const MAX_HOSTS: u64 = 16 << 20;
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
    /// The hosts that this crawl holds, each with its place in the list.
    held: HashMap<u64, u64>,
    /// Places in the list that were given up.
    free: Vec<u64>,
}

/// The other crawl that holds a host; none where its file does not tell who it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder(Option<RunningCrawl>);

impl Holder {
    pub(crate) fn into_crawl(self) -> Option<RunningCrawl> {
        self.0
    }
}

impl Running {
    /// Enters a crawl in the folder, which is made where it is missing, and removes what dead
    /// ones left there.
    pub(crate) fn enter(folder: &Path, crawl: &RunningCrawl) -> io::Result<Running> {
        fs::create_dir_all(folder)?;
        for (path, file) in files(folder, None) {
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
                return Ok(Running {
                    folder,
                    path,
                    file,
                    held: HashMap::new(),
                    free: Vec::new(),
                });
            }
        }
        Err(io::Error::other("no file of this crawl stays there"))
    }

    pub(crate) fn holds(&self, host: u64) -> bool {
        self.held.contains_key(&host)
    }

    /// Tells others that this crawl holds a host.
    pub(crate) fn hold(&mut self, host: u64) -> io::Result<()> {
        // The places in use and those given up are all there are.
        let end = (self.held.len() + self.free.len()) as u64;
        let place = self.free.pop().unwrap_or(end);
        if let Err(why) = self.write(place, host + 1) {
            self.free.push(place);
            return Err(why);
        }
        self.held.insert(host, place);
        Ok(())
    }

    /// Tells others that it does no more.
    pub(crate) fn free(&mut self, host: u64) {
        if let Some(place) = self.held.remove(&host) {
            // At worst it is held until the end.
            let _ = self.write(place, 0);
            self.free.push(place);
        }
    }

    fn write(&self, place: u64, number: u64) -> io::Result<()> {
        let at = HOSTS_AT + place * HOST_BYTES;
        self.file.write_all_at(&number.to_le_bytes(), at)
    }

    /// The other crawl that holds a host.
    pub(crate) fn holder(&self, host: u64) -> Option<Holder> {
        let mut others = files(&self.folder, Some(&self.path));
        let (_, file) =
            others.find(|(_, file)| byte_lock::is_locked(file, ALIVE) && lists(file, host + 1))?;
        Some(Holder(described(&file)))
    }
}

/// Returns whether a number stands in the list of a file.
fn lists(mut file: &File, number: u64) -> bool {
    if file.seek(SeekFrom::Start(HOSTS_AT)).is_err() {
        return false;
    }
    let mut hosts = BufReader::with_capacity(64 << 10, file.take(MAX_HOSTS * HOST_BYTES));
    let mut bytes = [0; HOST_BYTES as usize];
    while hosts.read_exact(&mut bytes).is_ok() {
        if u64::from_le_bytes(bytes) == number {
            return true;
        }
    }
    false
}

/// The crawl that a file names.
fn described(mut file: &File) -> Option<RunningCrawl> {
    file.rewind().ok()?;
    let mut text = String::new();
    file.take(HOSTS_AT).read_to_string(&mut text).ok()?;
    // Nothing was written between it and the list.
    serde_json::from_str(text.trim_end_matches('\0')).ok()
}

impl Drop for Running {
    fn drop(&mut self) {
        // At worst the next crawl that starts removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The files of all crawls, or of the others, opened.
fn files(folder: &Path, own: Option<&Path>) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.take(MAX_FILES).flatten().filter_map(move |entry| {
        let path = entry.path();
        // A link or a pipe is no file of ours.
        let is_wanted = Some(&*path) != own && entry.file_type().is_ok_and(|kind| kind.is_file());
        let file = is_wanted.then(|| options().open(&path))?.ok()?;
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

    fn by(crawl: RunningCrawl) -> Option<Holder> {
        Some(Holder(Some(crawl)))
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_crawl_is_found_by_the_host_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("running");
        let mut one = Running::enter(&folder, &crawl("/a")).unwrap();
        let mut other = Running::enter(&folder, &crawl("/b")).unwrap();
        let third = Running::enter(&folder, &crawl("/c")).unwrap();
        one.hold(7).unwrap();
        other.hold(8).unwrap();
        assert_eq!(third.holder(7), by(crawl("/a")));
        assert_eq!(third.holder(8), by(crawl("/b")));
        assert_eq!(third.holder(9), None);
        assert_eq!(one.holder(7), None, "itself is no other");
        one.free(7);
        assert_eq!(third.holder(7), None);
        one.hold(0).unwrap();
        one.hold(5).unwrap();
        let holders = [0, 5, 7].map(|host| third.holder(host).is_some());
        assert_eq!(holders, [true, true, false], "0 took the place of 7");
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
        let mut one = Running::enter(dir.path(), &crawl("/a")).unwrap();
        assert!(!left.exists());
        let other = Running::enter(dir.path(), &crawl("/b")).unwrap();
        one.hold(1).unwrap();
        assert_eq!(other.holder(1), by(crawl("/a")), "who lives stays");
        one.file.write_all_at(b"[", 0).unwrap();
        assert_eq!(
            other.holder(1),
            Some(Holder(None)),
            "who that is can't be told"
        );
    }

    #[test]
    fn ours_a_file_whose_crawl_died_holds_no_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = Running::enter(dir.path(), &crawl("/a")).unwrap();
        let other = Running::enter(dir.path(), &crawl("/b")).unwrap();
        one.hold(1).unwrap();
        // What a process that is killed leaves: its file, unlocked.
        fs::copy(&one.path, dir.path().join("1-0.json")).unwrap();
        assert_eq!(other.holder(1), by(crawl("/a")));
        drop(one);
        assert_eq!(names(dir.path()), 2);
        assert_eq!(other.holder(1), None);
    }
}
