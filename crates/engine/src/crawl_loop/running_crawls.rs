//! The running crawls of one user, to find out which one holds a host.
//!
//! Each running crawl has a file in a common folder. The file contains the crawl's directory and
//! start time, followed by a list of the hosts that the crawl holds, by number. While a crawl runs,
//! it keeps one byte of its file locked. If the byte is not locked, the crawl is dead, and the next
//! crawl that starts removes the file.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashMapExt as _};
use serde::{Deserialize, Serialize};

use super::file_byte_lock;

/// The offset of the byte that a running crawl keeps locked in its file. No file of this kind is
/// that large.
const ALIVE: u64 = 1 << 62;
/// The offset of the list of hosts. The crawl's directory and start time come before the list, and
/// fit, since paths have at most 4,096 bytes.
const HOSTS_AT: u64 = 64 << 10;
/// Bytes per entry of the list of hosts: the host's number plus one, or zero if the entry is free.
const HOST_BYTES: u64 = 8;
/// Maximum number of hosts to read from the list of another crawl.
const MAX_HOSTS: u64 = 16 << 20;
/// Maximum number of files to search for the crawl that holds a host.
const MAX_FILES: usize = 1000;
/// Maximum attempts to create a file. Several may be needed: if another crawl sees the new file
/// before it is locked, that crawl takes the file for a dead crawl's and removes it.
const MAX_TRIES: u32 = 10;

/// A crawl's description of itself for other crawls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCrawlDescription {
    /// The directory of the crawl.
    pub directory: String,
    /// The start time, RFC 3339.
    pub since: String,
}

/// This crawl's file in the folder of running crawls.
#[derive(Debug)]
pub(crate) struct RunningCrawlFile {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    /// The numbers of the hosts that this crawl holds, each with its index in the list.
    held: HashMap<u64, u64>,
    /// Free indexes in the list.
    free: Vec<u64>,
}

/// The other crawl that holds a host. `None` inside if that crawl's file can't be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostHolder(Option<RunningCrawlDescription>);

impl HostHolder {
    pub(crate) fn into_crawl(self) -> Option<RunningCrawlDescription> {
        self.0
    }
}

impl RunningCrawlFile {
    /// Creates the file of a crawl in `folder`, and the folder if it is missing. Removes the files
    /// of dead crawls.
    pub(crate) fn enter(
        folder: &Path,
        crawl: &RunningCrawlDescription,
    ) -> io::Result<RunningCrawlFile> {
        fs::create_dir_all(folder)?;
        for (path, file) in files(folder, None) {
            // If the byte can't be locked, the crawl of this file is alive, so keep the file.
            if file_byte_lock::lock(&file, ALIVE).unwrap_or(false) {
                // Ignore errors, since another crawl may have just removed the file.
                let _ = fs::remove_file(path);
            }
        }
        for number in 0..MAX_TRIES {
            let path = folder.join(format!("{}-{number}.json", std::process::id()));
            let file = match options().create_new(true).open(&path) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            if file_byte_lock::lock(&file, ALIVE)? && path.exists() {
                (&file).write_all(&serde_json::to_vec(crawl)?)?;
                let folder = folder.to_owned();
                return Ok(RunningCrawlFile {
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

    /// Adds a host to the list of this crawl.
    pub(crate) fn hold(&mut self, host: u64) -> io::Result<()> {
        // This is the length of the list, since each index in the list is either in use or free.
        let end = (self.held.len() + self.free.len()) as u64;
        let place = self.free.pop().unwrap_or(end);
        if let Err(why) = self.write(place, host + 1) {
            self.free.push(place);
            return Err(why);
        }
        self.held.insert(host, place);
        Ok(())
    }

    /// Removes a host from the list of this crawl.
    pub(crate) fn free(&mut self, host: u64) {
        if let Some(place) = self.held.remove(&host) {
            // If this write fails, other crawls see the host as held until this crawl ends.
            let _ = self.write(place, 0);
            self.free.push(place);
        }
    }

    fn write(&self, place: u64, number: u64) -> io::Result<()> {
        let at = HOSTS_AT + place * HOST_BYTES;
        self.file.write_all_at(&number.to_le_bytes(), at)
    }

    /// Returns the other crawl that holds a host.
    pub(crate) fn holder(&self, host: u64) -> Option<HostHolder> {
        let mut files = files(&self.folder, Some(&self.path));
        let (_, file) = files
            .find(|(_, file)| file_byte_lock::is_locked(file, ALIVE) && lists(file, host + 1))?;
        Some(HostHolder(described(&file)))
    }
}

/// Returns whether the list of hosts in a file contains a host's number.
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

/// Reads the description of a crawl from its file.
fn described(mut file: &File) -> Option<RunningCrawlDescription> {
    file.rewind().ok()?;
    let mut text = String::new();
    file.take(HOSTS_AT).read_to_string(&mut text).ok()?;
    // The space between the description and the list is filled with zeros.
    serde_json::from_str(text.trim_end_matches('\0')).ok()
}

impl Drop for RunningCrawlFile {
    fn drop(&mut self) {
        // If this removal fails, the next crawl that starts removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the files of all running crawls, except the file at `own`.
fn files(folder: &Path, own: Option<&Path>) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.take(MAX_FILES).flatten().filter_map(move |entry| {
        let path = entry.path();
        // Crawls create only regular files, so skip links and pipes.
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

    fn crawl(directory: &str) -> RunningCrawlDescription {
        RunningCrawlDescription {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        }
    }

    fn by(crawl: RunningCrawlDescription) -> Option<HostHolder> {
        Some(HostHolder(Some(crawl)))
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_crawl_is_found_by_the_host_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("running");
        let mut one = RunningCrawlFile::enter(&folder, &crawl("/a")).unwrap();
        let mut second = RunningCrawlFile::enter(&folder, &crawl("/b")).unwrap();
        let third = RunningCrawlFile::enter(&folder, &crawl("/c")).unwrap();
        one.hold(7).unwrap();
        second.hold(8).unwrap();
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
        drop(second);
        assert_eq!((third.holder(8), names(&folder)), (None, 2));
    }

    #[test]
    fn the_file_of_a_dead_crawl_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1-0.json");
        fs::write(&path, serde_json::to_vec(&crawl("/dead")).unwrap()).unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a")).unwrap();
        assert!(!path.exists());
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b")).unwrap();
        one.hold(1).unwrap();
        assert_eq!(second.holder(1), by(crawl("/a")), "who lives stays");
        one.file.write_all_at(b"[", 0).unwrap();
        assert_eq!(
            second.holder(1),
            Some(HostHolder(None)),
            "who that is can't be told"
        );
    }

    #[test]
    fn the_file_of_a_dead_crawl_holds_no_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a")).unwrap();
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b")).unwrap();
        one.hold(1).unwrap();
        // A copy without a lock looks like the file of a killed process.
        fs::copy(&one.path, dir.path().join("1-0.json")).unwrap();
        assert_eq!(second.holder(1), by(crawl("/a")));
        drop(one);
        assert_eq!(names(dir.path()), 2);
        assert_eq!(second.holder(1), None);
    }
}
