//! The running crawls of one user, to find out which one holds a host or fetched from it last.
//!
//! Each crawl has a file in a common folder. The file contains the crawl's directory and start
//! time, followed by a list of hosts, by number: those that the crawl holds, and those that it no
//! longer holds but whose gap has not passed. While a crawl runs, it keeps one byte of its file
//! locked. If the byte is not locked, the crawl has ended and holds nothing, but the gaps in its
//! list still apply. If it was killed during a request, the gap after this request counts from when
//! another crawl notices. Once all gaps have passed, another crawl removes the file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crawl_scheduler::{OtherCrawlsGap, Tick};
use foldhash::{HashMap, HashMapExt as _};
use serde::{Deserialize, Serialize};

use super::file_byte_lock;

/// The offset of the byte that a running crawl keeps locked in its file. No file of this kind is
/// that large.
const ALIVE: u64 = 1 << 62;
/// The offset of the list of hosts. The crawl's directory and start time come before the list, and
/// fit, since paths have at most 4,096 bytes.
const HOSTS_AT: u64 = 64 << 10;
/// Bytes per entry of the list of hosts. An entry has five numbers, with times in microseconds:
///
/// - the host's number plus one, or zero if the entry is free
/// - the end of the last request since the Unix epoch, or the start of the one in flight
/// - the pace of the host, with the two flags below
/// - the wait that the host demanded
/// - how long the request matters to other crawls
const ENTRY_BYTES: usize = 40;
/// The flag in an entry of a host that its crawl holds.
const HELD: u64 = 1 << 63;
/// The flag in an entry of a host that has a request in flight.
const IN_FLIGHT: u64 = 1 << 62;
/// Maximum time by which the end of a request may be in the future. A later end comes from a clock
/// that was ahead, so the gap after it is ignored.
const MAX_SKEW: Duration = Duration::from_secs(1);
/// Minimum time between two writes of an entry when requests end, unless the gap has a new length.
/// Without delays, requests end too often for a system call each time. An entry that is not
/// rewritten still marks the request as in flight.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of hosts to read from the list of another crawl.
const MAX_HOSTS: u64 = 16 << 20;
/// Maximum number of files to search for the crawl that holds a host.
const MAX_FILES: usize = 1000;
/// Maximum attempts to create a file, each with another name.
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
    held: HashMap<u64, ListedHost>,
    /// The hosts that this crawl no longer holds, but whose gap has not passed.
    recent: HashMap<u64, ListedHost>,
    /// The end of each gap in `recent`, with the number of the host.
    gap_ends: BTreeSet<(Tick, u64)>,
    /// Free indexes in the list.
    free: Vec<u64>,
    /// The latest time that this crawl reported.
    now: Tick,
}

/// A host in the list of this crawl.
#[derive(Clone, Copy, Debug)]
struct ListedHost {
    /// The index in the list.
    index: u64,
    /// The gap after the last request that ended.
    gap: OtherCrawlsGap,
    /// The start of the last request, if it has not ended.
    started: Option<Tick>,
    /// The time in the entry of the list.
    written: Tick,
    /// Whether a request is in flight according to the entry.
    is_in_flight_written: bool,
}

/// An entry of the list of a crawl.
#[derive(Clone, Copy, Debug)]
struct ListEntry {
    /// The number of the host plus one. Zero if the entry is free.
    number: u64,
    is_held: bool,
    is_in_flight: bool,
    gap: OtherCrawlsGap,
}

/// Another crawl that keeps this crawl from a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtherCrawlHoldingHost {
    /// The crawl. `None` if its file can't be read.
    pub(crate) crawl: Option<RunningCrawlDescription>,
    /// The gap after that crawl's last request to the host. `None` if that crawl still holds the
    /// host.
    pub(crate) gap: Option<OtherCrawlsGap>,
}

impl RunningCrawlFile {
    /// Creates the file of a crawl in `folder`, and the folder if it is missing. No other crawl may
    /// do so at the same time.
    pub(crate) fn enter(
        folder: &Path,
        crawl: &RunningCrawlDescription,
        now: Tick,
    ) -> io::Result<RunningCrawlFile> {
        fs::create_dir_all(folder)?;
        for (path, file) in files(folder, None) {
            if !file_byte_lock::is_locked(&file, ALIVE) && is_over(&file, now) {
                // Ignore errors, since the file doesn't disturb.
                let _ = fs::remove_file(path);
            }
        }
        let id = std::process::id();
        for number in 0..MAX_TRIES {
            let path = folder.join(format!("{id}-{}-{number}.json", now.as_micros()));
            let file = match options().create_new(true).open(&path) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            if file_byte_lock::lock(&file, ALIVE)? {
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
        Err(io::Error::other("can't create a file for this crawl"))
    }

    pub(crate) fn holds(&self, host: u64) -> bool {
        self.held.contains_key(&host)
    }

    /// Adds a host to the list of this crawl, which is about to send a request to it.
    pub(crate) fn hold(&mut self, host: u64, now: Tick) -> io::Result<()> {
        self.forget_past_gaps(now);
        let recent = self.recent.remove(&host);
        if let Some(recent) = recent {
            self.gap_ends.remove(&(kept_until(recent.gap), host));
        }
        // This is the length of the list, since each index in the list is either in use or free.
        let end = (self.held.len() + self.recent.len() + self.free.len()) as u64;
        let index = recent.map(|recent| recent.index);
        let listed = ListedHost {
            index: index.or_else(|| self.free.pop()).unwrap_or(end),
            gap: recent.map_or(OtherCrawlsGap::NONE, |recent| recent.gap),
            started: Some(now),
            written: now,
            is_in_flight_written: true,
        };
        if let Err(why) = self.write(listed, host + 1, true) {
            self.free.push(listed.index);
            return Err(why);
        }
        self.held.insert(host, listed);
        Ok(())
    }

    /// Notes that this crawl is about to send a request to a host that it holds.
    pub(crate) fn note_start(&mut self, host: u64, now: Tick) {
        self.now = self.now.max(now);
        if let Some(held) = self.held.get_mut(&host) {
            held.started = Some(now);
            if !held.is_in_flight_written {
                held.written = Tick::ZERO;
            }
            self.write_after_while(host, now);
        }
    }

    /// Notes the gap after the last request to a host that this crawl holds, and whether another
    /// request is in flight. `gap` is `None` if no request has ended. Written now, and not when the
    /// host is freed, because it must outlive a crawl that is killed.
    pub(crate) fn note_gap(&mut self, host: u64, gap: Option<OtherCrawlsGap>, is_in_flight: bool) {
        let Some(held) = self.held.get_mut(&host) else {
            return;
        };
        let gap = gap.unwrap_or(held.gap);
        self.now = self.now.max(gap.since);
        held.started = held.started.filter(|_| is_in_flight);
        let before = std::mem::replace(&mut held.gap, gap);
        let lengths = |gap: &OtherCrawlsGap| (gap.pace, gap.wait, gap.kept);
        if lengths(&before) != lengths(&gap) {
            held.written = Tick::ZERO;
        }
        let time = held.started.unwrap_or(gap.since);
        self.write_after_while(host, time);
    }

    /// Writes the entry of a host that this crawl holds, unless it was written just before `time`.
    fn write_after_while(&mut self, host: u64, time: Tick) {
        if let Some(held) = self.held.get_mut(&host)
            && time.since(held.written) >= WRITE_INTERVAL
        {
            held.written = time;
            held.is_in_flight_written = held.started.is_some();
            let held = *held;
            let _ = self.write(held, host + 1, true);
        }
    }

    /// Stops holding a host. If its gap has not passed, the gap stays in the list.
    pub(crate) fn free(&mut self, host: u64, now: Tick) {
        self.forget_past_gaps(now);
        let Some(held) = self.held.remove(&host) else {
            return;
        };
        // If a write fails, other crawls see the host as held until this crawl ends.
        if matters(held.gap, now) {
            let _ = self.write(held, host + 1, false);
            self.recent.insert(host, held);
            self.gap_ends.insert((kept_until(held.gap), host));
        } else {
            self.clear(held.index);
        }
    }

    /// Stops holding all hosts that have no request in flight.
    pub(crate) fn free_all(&mut self, now: Tick) {
        let held = self.held.iter().filter(|(_, held)| held.started.is_none());
        let held: Vec<u64> = held.map(|(host, _)| *host).collect();
        for host in held {
            self.free(host, now);
        }
    }

    /// Stops holding all hosts. Requests in flight count as ended now.
    pub(crate) fn end(&mut self, now: Tick) {
        for held in self.held.values_mut() {
            if held.started.take().is_some() {
                held.gap = held.gap.after_lost_request(now);
            }
        }
        self.free_all(now);
    }

    fn forget_past_gaps(&mut self, now: Tick) {
        self.now = now;
        while let Some((ends_at, host)) = self.gap_ends.first().copied()
            && ends_at <= now
        {
            self.gap_ends.remove(&(ends_at, host));
            if let Some(recent) = self.recent.remove(&host) {
                self.clear(recent.index);
            }
        }
    }

    fn clear(&mut self, index: u64) {
        let empty = ListedHost {
            index,
            gap: OtherCrawlsGap::NONE,
            started: None,
            written: Tick::ZERO,
            is_in_flight_written: false,
        };
        let _ = self.write(empty, 0, false);
        self.free.push(index);
    }

    fn write(&self, listed: ListedHost, number: u64, is_held: bool) -> io::Result<()> {
        let started = listed.started.filter(|_| is_held);
        let entry = ListEntry {
            number,
            is_held,
            is_in_flight: started.is_some(),
            gap: started.map_or(listed.gap, |at| listed.gap.after_lost_request(at)),
        };
        entry.write(&self.file, listed.index)
    }

    /// Returns the crawl that keeps this crawl from a host: the one that holds it, or the one whose
    /// gap lasts longest. `delay` is this crawl's own delay for the host.
    pub(crate) fn holder(
        &self,
        host: u64,
        delay: Duration,
        now: Tick,
    ) -> Option<OtherCrawlHoldingHost> {
        let mut longest: Option<(Duration, OtherCrawlsGap, File)> = None;
        for (_, file) in files(&self.folder, Some(&self.path)) {
            let is_alive = file_byte_lock::is_locked(&file, ALIVE);
            let of_host = (0..).zip(entries(&file));
            let of_host = of_host.filter(|(_, entry)| entry.number == host + 1);
            let mut of_host: Vec<(u64, ListEntry)> = of_host.collect();
            for (index, entry) in &mut of_host {
                if !is_alive && entry.is_in_flight && matters(entry.gap, now) {
                    entry.end_lost_request(now);
                    // Ignore errors: the next crawl that reads the entry ends the request instead.
                    let _ = entry.write(&file, *index);
                }
            }
            if is_alive && of_host.iter().any(|(_, entry)| entry.is_held) {
                return Some(OtherCrawlHoldingHost {
                    crawl: described(&file),
                    gap: None,
                });
            }
            let rests = of_host
                .iter()
                .filter_map(|(_, entry)| Some((rest(entry.gap, delay, now)?, entry.gap)));
            let Some((rest, gap)) = rests.max_by_key(|(rest, _)| *rest) else {
                continue;
            };
            if longest.as_ref().is_none_or(|(longest, ..)| rest > *longest) {
                longest = Some((rest, gap, file));
            }
        }
        longest.map(|(_, gap, file)| OtherCrawlHoldingHost {
            crawl: described(&file),
            gap: Some(gap),
        })
    }

    /// Removes the files of crawls that ended and whose gaps have passed. No other crawl may create
    /// a file at the same time.
    pub(crate) fn remove_ended(&self, now: Tick) {
        for (path, file) in files(&self.folder, Some(&self.path)) {
            if !file_byte_lock::is_locked(&file, ALIVE) && is_over(&file, now) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl ListEntry {
    fn write(&self, file: &File, index: u64) -> io::Result<()> {
        let micros = |gap: Duration| u64::try_from(gap.as_micros()).unwrap_or(u64::MAX);
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let flags = flag(self.is_held, HELD) | flag(self.is_in_flight, IN_FLIGHT);
        let values = [
            self.number,
            self.gap.since.as_micros(),
            micros(self.gap.pace).min(IN_FLIGHT - 1) | flags,
            micros(self.gap.wait),
            micros(self.gap.kept),
        ];
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        file.write_all_at(&bytes, HOSTS_AT + index * ENTRY_BYTES as u64)
    }

    /// Notes that the request in flight ended now, because the crawl that sent it was killed.
    fn end_lost_request(&mut self, now: Tick) {
        self.is_in_flight = false;
        self.gap = self.gap.after_lost_request(now);
    }
}

/// Returns whether all gaps in the list of a crawl that ended have passed.
fn is_over(file: &File, now: Tick) -> bool {
    entries(file).all(|entry| entry.number == 0 || !matters(entry.gap, now))
}

/// Returns when a request no longer matters to other crawls.
fn kept_until(gap: OtherCrawlsGap) -> Tick {
    gap.since + gap.kept
}

/// Returns whether a request still matters to other crawls. False if it comes from a clock that was
/// ahead.
fn matters(gap: OtherCrawlsGap, now: Tick) -> bool {
    kept_until(gap) > now && gap.since.since(now) <= MAX_SKEW
}

/// Returns how much longer a crawl with this `delay` must wait after the request that `gap`
/// describes. `None` if the wait is over.
fn rest(gap: OtherCrawlsGap, delay: Duration, now: Tick) -> Option<Duration> {
    let rest = (gap.since.min(now) + gap.for_delay(delay)).since(now);
    (!rest.is_zero() && matters(gap, now)).then_some(rest)
}

/// Iterates over the list of hosts in a file.
fn entries(mut file: &File) -> impl Iterator<Item = ListEntry> {
    let is_there = file.seek(SeekFrom::Start(HOSTS_AT)).is_ok();
    let max_bytes = if is_there {
        MAX_HOSTS * ENTRY_BYTES as u64
    } else {
        0
    };
    let mut hosts = BufReader::with_capacity(64 << 10, file.take(max_bytes));
    std::iter::from_fn(move || {
        let mut bytes = [0; ENTRY_BYTES];
        hosts.read_exact(&mut bytes).ok()?;
        let (values, _) = bytes.as_chunks();
        let value = |index: usize| u64::from_le_bytes(values[index]);
        let [pace, wait, kept] = [value(2) & (IN_FLIGHT - 1), value(3), value(4)];
        Some(ListEntry {
            number: value(0),
            is_held: value(2) & HELD > 0,
            is_in_flight: value(2) & IN_FLIGHT > 0,
            gap: OtherCrawlsGap {
                since: Tick::from_micros(value(1)),
                pace: Duration::from_micros(pace),
                wait: Duration::from_micros(wait),
                kept: Duration::from_micros(kept),
            },
        })
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
        self.end(self.now);
        if self.recent.is_empty() {
            // If this removal fails, another crawl removes the file.
            let _ = fs::remove_file(&self.path);
            return;
        }
        // Shorten the list, because other crawls read it as long as a gap lasts.
        let recent: Vec<_> = self.recent.drain().collect();
        for (index, (host, listed)) in (0..).zip(&recent) {
            let _ = self.write(ListedHost { index, ..*listed }, host + 1, false);
        }
        let length = HOSTS_AT + (recent.len() * ENTRY_BYTES) as u64;
        let _ = self.file.set_len(length);
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
    /// How long the gap after a lost request is kept.
    const MAX_LOST: Duration = Duration::from_secs(600);

    fn crawl(directory: &str) -> RunningCrawlDescription {
        RunningCrawlDescription {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        }
    }

    fn by(crawl: RunningCrawlDescription) -> Option<OtherCrawlHoldingHost> {
        Some(OtherCrawlHoldingHost {
            crawl: Some(crawl),
            gap: None,
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
        assert_eq!(third.holder(7, Duration::ZERO, NOW), by(crawl("/a")));
        assert_eq!(third.holder(8, Duration::ZERO, NOW), by(crawl("/b")));
        assert_eq!(third.holder(9, Duration::ZERO, NOW), None);
        assert_eq!(
            one.holder(7, Duration::ZERO, NOW),
            None,
            "itself is no other"
        );
        one.free(7, NOW);
        assert_eq!(third.holder(7, Duration::ZERO, NOW), None);
        one.hold(0, NOW).unwrap();
        one.hold(5, NOW).unwrap();
        let holders = [0, 5, 7].map(|host| third.holder(host, Duration::ZERO, NOW).is_some());
        assert_eq!(holders, [true, true, false], "0 took the place of 7");
        assert_eq!(names(&folder), 3);
        second.note_gap(8, Some(OtherCrawlsGap::NONE), false);
        drop(second);
        assert_eq!(
            (third.holder(8, Duration::ZERO, NOW), names(&folder)),
            (None, 2)
        );
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
        assert_eq!(
            second.holder(1, Duration::ZERO, NOW),
            by(crawl("/a")),
            "who lives stays"
        );
        one.file.write_all_at(b"[", 0).unwrap();
        assert_eq!(
            second.holder(1, Duration::ZERO, NOW),
            Some(OtherCrawlHoldingHost {
                crawl: None,
                gap: None,
            }),
            "who that is can't be told"
        );
    }

    #[test]
    fn a_gap_is_written_when_it_changes_or_after_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        let minute = Duration::from_secs(60);
        let gap = |after: u64, pace| OtherCrawlsGap {
            since: NOW + Duration::from_millis(after),
            pace,
            wait: Duration::ZERO,
            kept: minute,
        };
        let zero = Duration::ZERO;
        for (noted, written) in [
            (gap(0, zero), gap(0, zero)),
            (gap(99, zero), gap(0, zero)),
            (gap(100, zero), gap(100, zero)),
            (gap(110, minute), gap(110, minute)),
            (gap(120, zero), gap(120, zero)),
            (gap(130, zero), gap(120, zero)),
        ] {
            one.note_gap(1, Some(noted), false);
            let listed: Vec<OtherCrawlsGap> = entries(&one.file).map(|entry| entry.gap).collect();
            assert_eq!(listed, [written]);
        }
        one.free(1, NOW + Duration::from_millis(130));
        let last = entries(&one.file).next().unwrap();
        assert_eq!((last.is_held, last.gap), (false, gap(130, zero)));
    }

    #[test]
    fn the_file_of_a_dead_crawl_holds_no_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        // A copy without a lock looks like the file of a killed process.
        fs::copy(&one.path, dir.path().join("1-0.json")).unwrap();
        assert_eq!(second.holder(1, Duration::ZERO, NOW), by(crawl("/a")));
        one.note_gap(1, Some(OtherCrawlsGap::NONE), false);
        drop(one);
        assert_eq!(names(dir.path()), 2);
        assert_eq!(second.holder(1, Duration::ZERO, NOW), None);
    }

    #[test]
    fn a_crawl_that_ends_leaves_the_gap_after_a_slow_answer() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        let answered = NOW + 2 * MAX_SKEW;
        let gap = OtherCrawlsGap {
            since: answered,
            kept: Duration::from_secs(60),
            ..OtherCrawlsGap::NONE
        };
        one.note_gap(1, Some(gap), false);
        drop(one);
        let holder = second.holder(1, Duration::from_secs(1), answered);
        assert_eq!(holder.and_then(|holder| holder.gap), Some(gap));
    }

    #[test]
    fn the_gap_after_a_lost_request_counts_from_when_it_is_noticed() {
        let second = |after: u64| NOW + Duration::from_secs(after);
        let seconds = Duration::from_secs;
        let gap = |pace, wait| OtherCrawlsGap {
            since: NOW,
            pace: seconds(pace),
            wait: seconds(wait),
            kept: seconds(60),
        };
        for (before, pace, wait_at_20) in [
            (None, 0, 0),
            (Some(gap(7, 0)), 7, 0),
            (Some(gap(7, 9)), 7, 0),
            // Another request to the host was in flight when this wait was demanded.
            (Some(gap(7, 50)), 7, 30),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
            let other = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
            one.hold(1, NOW).unwrap();
            one.note_gap(1, before, false);
            one.note_start(1, second(10));
            // A copy without a lock looks like the file of a killed process.
            fs::copy(&one.path, dir.path().join("1-0.json")).unwrap();
            one.note_gap(1, Some(OtherCrawlsGap::NONE), false);
            drop(one);
            let expected = OtherCrawlsGap {
                since: second(20),
                pace: seconds(pace),
                wait: seconds(wait_at_20),
                kept: MAX_LOST,
            };
            for after in [20, 22] {
                let holder = other.holder(1, seconds(5), second(after)).unwrap();
                assert_eq!(
                    (holder.crawl, holder.gap),
                    (Some(crawl("/a")), Some(expected))
                );
            }
            let over = 20 + pace.max(wait_at_20).max(5);
            assert_eq!(other.holder(1, seconds(5), second(over)), None);
            other.remove_ended(second(19) + MAX_LOST);
            assert_eq!(names(dir.path()), 2);
            other.remove_ended(second(20) + MAX_LOST);
            assert_eq!(names(dir.path()), 1);
        }
    }

    #[test]
    fn requests_in_flight_when_a_crawl_ends_count_as_ended_then() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        let ended = NOW + Duration::from_secs(30);
        one.end(ended);
        let holder = second.holder(1, Duration::from_secs(5), ended).unwrap();
        assert_eq!(holder.gap.map(|gap| gap.since), Some(ended));
        drop(one);
        let holder = second.holder(1, Duration::from_secs(5), ended).unwrap();
        assert_eq!(holder.gap.map(|gap| gap.since), Some(ended));
    }

    /// A host is held before the look-up of its address, which may fail.
    #[test]
    fn a_host_is_freed_if_its_only_request_was_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = RunningCrawlFile::enter(dir.path(), &crawl("/a"), NOW).unwrap();
        let second = RunningCrawlFile::enter(dir.path(), &crawl("/b"), NOW).unwrap();
        one.hold(1, NOW).unwrap();
        one.free_all(NOW);
        assert!(one.holds(1));
        one.note_gap(1, None, false);
        one.free_all(NOW);
        assert_eq!(second.holder(1, Duration::from_secs(5), NOW), None);
    }
}
