//! The running crawls of one user, to find out which one holds a host or fetched from it last.
//!
//! Each crawl has a file in a common folder. The file contains the crawl's directory and start
//! time, followed by a list of hosts, by number: those that the crawl holds, and those that it no
//! longer holds but whose gap has not passed. While a crawl runs, it keeps one byte of its file
//! locked. If the byte is not locked, the crawl has ended and holds nothing, but the gaps in its
//! list still apply. A crawl removes its file when it ends, or the next crawl that starts does so
//! after the last gap.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use std::collections::BTreeSet;

use crawl_scheduler::Tick;
use foldhash::{HashMap, HashMapExt as _};
use serde::{Deserialize, Serialize};

use super::file_byte_lock;

/// The offset of the byte that a running crawl keeps locked in its file. No file of this kind is
/// that large.
const ALIVE: u64 = 1 << 62;
/// The offset of the list of hosts. The crawl's directory and start time come before the list, and
/// fit, since paths have at most 4,096 bytes.
const HOSTS_AT: u64 = 64 << 10;
/// Bytes per entry of the list of hosts: the host's number plus one, or zero if the entry is free;
/// and when the host may get its next request, in microseconds since the epoch, or zero while the
/// crawl holds the host.
const HOST_BYTES: u64 = 16;
/// Maximum time for which a gap in the list of another crawl is respected. A later time comes from a
/// clock that was ahead.
/// Beyond the limit: the gap is ignored.
const MAX_GAP: Duration = Duration::from_secs(24 * 60 * 60);
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
    /// The numbers of the hosts that this crawl holds.
    held: HashMap<u64, HeldHost>,
    /// The hosts that this crawl no longer holds, but whose gap has not passed.
    recent: HashMap<u64, HeldHost>,
    /// The end of each gap in `recent`, with the number of the host.
    gap_ends: BTreeSet<(Tick, u64)>,
    /// Free indexes in the list.
    free: Vec<u64>,
    /// The latest time that this crawl reported.
    now: Tick,
}

/// A host in the list of this crawl.
#[derive(Clone, Copy, Debug)]
struct HeldHost {
    /// The index in the list.
    index: u64,
    /// When the host may get its next request. Zero if this crawl sent it none.
    next_at: Tick,
}

/// Another crawl that keeps this crawl from a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostHolder {
    /// The crawl. `None` if its file can't be read.
    pub(crate) crawl: Option<RunningCrawlDescription>,
    /// When the gap ends that the crawl has left behind. `None` if it still holds the host.
    pub(crate) next_at: Option<Tick>,
}

impl RunningCrawlFile {
    /// Creates the file of a crawl in `folder`, and the folder if it is missing. Removes the files
    /// of crawls that ended, once their gaps have passed.
    pub(crate) fn enter(
        folder: &Path,
        crawl: &RunningCrawlDescription,
        now: Tick,
    ) -> io::Result<RunningCrawlFile> {
        fs::create_dir_all(folder)?;
        for (path, file) in files(folder, None) {
            // If the byte can't be locked, the crawl of this file is alive, so keep the file.
            let is_over = || entries(&file).all(|(_, next_at)| gap_after(now, next_at).is_none());
            if file_byte_lock::lock(&file, ALIVE).unwrap_or(false) && is_over() {
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
                    recent: HashMap::new(),
                    gap_ends: BTreeSet::new(),
                    free: Vec::new(),
                    now,
                });
            }
        }
        Err(io::Error::other("no file of this crawl stays there"))
    }

    pub(crate) fn holds(&self, host: u64) -> bool {
        self.held.contains_key(&host)
    }

    /// Adds a host to the list of this crawl.
    pub(crate) fn hold(&mut self, host: u64, now: Tick) -> io::Result<()> {
        self.forget_past_gaps(now);
        let recent = self.recent.remove(&host);
        if let Some(recent) = recent {
            self.gap_ends.remove(&(recent.next_at, host));
        }
        // This is the length of the list, since each index in the list is either in use or free.
        let end = (self.held.len() + self.recent.len() + self.free.len()) as u64;
        let index = recent
            .map(|recent| recent.index)
            .or_else(|| self.free.pop());
        let index = index.unwrap_or(end);
        if let Err(why) = self.write(index, host + 1, Tick::ZERO) {
            self.free.push(index);
            return Err(why);
        }
        let next_at = recent.map_or(Tick::ZERO, |recent| recent.next_at);
        self.held.insert(host, HeldHost { index, next_at });
        Ok(())
    }

    /// Notes when a host that this crawl holds may get its next request.
    pub(crate) fn note_next(&mut self, host: u64, next_at: Tick) {
        if let Some(held) = self.held.get_mut(&host) {
            held.next_at = next_at;
        }
    }

    /// Stops holding a host. If its gap has not passed, the gap stays in the list.
    pub(crate) fn free(&mut self, host: u64, now: Tick) {
        self.forget_past_gaps(now);
        let Some(held) = self.held.remove(&host) else {
            return;
        };
        // If a write fails, other crawls see the host as held until this crawl ends.
        if held.next_at > now {
            let _ = self.write(held.index, host + 1, held.next_at);
            self.recent.insert(host, held);
            self.gap_ends.insert((held.next_at, host));
        } else {
            let _ = self.write(held.index, 0, Tick::ZERO);
            self.free.push(held.index);
        }
    }

    fn forget_past_gaps(&mut self, now: Tick) {
        self.now = now;
        while let Some((next_at, host)) = self.gap_ends.first().copied()
            && next_at <= now
        {
            self.gap_ends.remove(&(next_at, host));
            self.free
                .extend(self.recent.remove(&host).map(|recent| recent.index));
        }
    }

    fn write(&self, index: u64, number: u64, next_at: Tick) -> io::Result<()> {
        let mut entry = [0; HOST_BYTES as usize];
        entry[..8].copy_from_slice(&number.to_le_bytes());
        entry[8..].copy_from_slice(&next_at.as_micros().to_le_bytes());
        self.file
            .write_all_at(&entry, HOSTS_AT + index * HOST_BYTES)
    }

    /// Returns the crawl that keeps this crawl from a host for the longest time.
    pub(crate) fn holder(&self, host: u64, now: Tick) -> Option<HostHolder> {
        let mut longest: Option<(Tick, File)> = None;
        for (_, file) in files(&self.folder, Some(&self.path)) {
            let Some((_, next_at)) = entries(&file).find(|(number, _)| *number == host + 1) else {
                continue;
            };
            if next_at == Tick::ZERO && file_byte_lock::is_locked(&file, ALIVE) {
                return Some(HostHolder {
                    crawl: described(&file),
                    next_at: None,
                });
            }
            let is_longer = longest
                .as_ref()
                .is_none_or(|(longest, _)| next_at > *longest);
            if gap_after(now, next_at).is_some() && is_longer {
                longest = Some((next_at, file));
            }
        }
        longest.map(|(next_at, file)| HostHolder {
            crawl: described(&file),
            next_at: Some(next_at),
        })
    }
}

/// Returns the rest of a gap that ends at `next_at`. `None` if it has passed, or can't be right.
fn gap_after(now: Tick, next_at: Tick) -> Option<Duration> {
    let rest = next_at.since(now);
    (!rest.is_zero() && rest <= MAX_GAP).then_some(rest)
}

/// Iterates over the list of hosts in a file: each host's number plus one, and when it may get its
/// next request, or zero if the crawl holds it.
fn entries(mut file: &File) -> impl Iterator<Item = (u64, Tick)> {
    let is_there = file.seek(SeekFrom::Start(HOSTS_AT)).is_ok();
    let length = if is_there { MAX_HOSTS * HOST_BYTES } else { 0 };
    let mut hosts = BufReader::with_capacity(64 << 10, file.take(length));
    std::iter::from_fn(move || {
        let mut halves = [[0; 8]; 2];
        for half in &mut halves {
            hosts.read_exact(half).ok()?;
        }
        let [number, next_at] = halves.map(u64::from_le_bytes);
        Some((number, Tick::from_micros(next_at)))
    })
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
        let held: Vec<u64> = self.held.keys().copied().collect();
        for host in held {
            self.free(host, self.now);
        }
        if self.recent.is_empty() {
            // If this removal fails, the next crawl that starts removes the file.
            let _ = fs::remove_file(&self.path);
        }
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

    const NOW: Tick = Tick::from_micros(1_000_000);

    fn crawl(directory: &str) -> RunningCrawlDescription {
        RunningCrawlDescription {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        }
    }

    fn by(crawl: RunningCrawlDescription) -> Option<HostHolder> {
        Some(HostHolder {
            crawl: Some(crawl),
            next_at: None,
        })
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_crawl_is_found_by_the_host_that_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("running");
        let mut one = RunningCrawlFile::enter(&folder, &crawl("/a"), NOW).unwrap();
        let mut second = RunningCrawlFile::enter(&folder, &crawl("/b"), NOW).unwrap();
        let third = RunningCrawlFile::enter(&folder, &crawl("/c"), NOW).unwrap();
        one.hold(7, NOW).unwrap();
        second.hold(8, NOW).unwrap();
        assert_eq!(third.holder(7, NOW), by(crawl("/a")));
        assert_eq!(third.holder(8, NOW), by(crawl("/b")));
        assert_eq!(third.holder(9, NOW), None);
        assert_eq!(one.holder(7, NOW), None, "itself is no other");
        one.free(7, NOW);
        assert_eq!(third.holder(7, NOW), None);
        one.hold(0, NOW).unwrap();
        one.hold(5, NOW).unwrap();
        let holders = [0, 5, 7].map(|host| third.holder(host, NOW).is_some());
        assert_eq!(holders, [true, true, false], "0 took the place of 7");
        assert_eq!(names(&folder), 3);
        drop(second);
        assert_eq!((third.holder(8, NOW), names(&folder)), (None, 2));
    }

    #[test]
    fn the_file_of_a_dead_crawl_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1-0.json");
        fs::write(&path, serde_json::to_vec(&crawl("/dead")).unwrap()).unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        assert!(!path.exists());
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        assert_eq!(second.holder(1, NOW), by(crawl("/a")), "who lives stays");
        one.file.write_all_at(b"[", 0).unwrap();
        assert_eq!(
            second.holder(1, NOW),
            Some(HostHolder {
                crawl: None,
                next_at: None,
            }),
            "who that is can't be told"
        );
    }

    #[test]
    fn the_file_of_a_dead_crawl_holds_no_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        // A copy without a lock looks like the file of a killed process.
        fs::copy(&one.path, dir.path().join("1-0.json")).unwrap();
        assert_eq!(second.holder(1, NOW), by(crawl("/a")));
        drop(one);
        assert_eq!(names(dir.path()), 2);
        assert_eq!(second.holder(1, NOW), None);
    }
}
