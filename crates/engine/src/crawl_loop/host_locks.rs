//! Host locks: if a user runs several crawls on a machine, they never fetch from a host at the same
//! time, and each respects the gap after the last request of another.
//!
//! Each crawl lists the hosts that it holds in its own file in the folder `running`. A crawl takes
//! a host after checking that no other crawl lists it. Only one crawl checks at a time: it locks a
//! file that all crawls share. There is no file lock per host, because the system keeps a file's
//! locks in a list, so each further lock would take longer to set.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crawl_archive::Timestamp;
use crawl_scheduler::{OtherCrawlsGap, Tick};
use crawl_weburl::HostKey;

use super::file_byte_lock;
use super::running_crawls::{OtherCrawlHoldingHost, RunningCrawlDescription, RunningCrawlFile};
use crate::config::Config;

/// The file with an identifier that changes at each start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Maximum bytes to read of the shared file. The file is always shorter.
const MAX_BYTES: u64 = 1000;
/// The folder with the files of running crawls, next to the shared lock file.
const RUNNING: &str = "running";
/// If this crawl must wait longer than this because another crawl fetched from a host, the wait is
/// reported together with the name of the other crawl.
const MAX_UNREPORTED_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How often to remove the files of ended crawls.
const CLEANING_INTERVAL: Duration = Duration::from_secs(60);
/// How long to wait for a host that another crawl holds.
const HELD_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of hosts to log as held by another crawl. Further such hosts wait without a log
/// message.
const MAX_LOGGED: usize = 10;
/// The offset of the byte in the shared file that a crawl locks while it takes a host.
const LOCKED_BYTE: u64 = 0;
/// Maximum tries to lock the shared file. If all fail, the host counts as held by another crawl.
/// Crawls lock the file only for microseconds, so this happens only if the process with the lock
/// was suspended.
const MAX_LOCK_TRIES: u32 = 10_000;

/// The host locks of this crawl.
///
/// [`hold`](Self::hold) locks a host and [`free`](Self::free) unlocks it. If no file is shared with
/// other crawls, this crawl can hold every host.
#[derive(Debug, Default)]
pub struct HostLocks {
    shared: Option<SharedLockFiles>,
    /// Hosts that were logged as held by another crawl.
    logged: HashSet<HostKey>,
}

/// The files that the user's crawls share.
#[derive(Debug)]
struct SharedLockFiles {
    /// Dropped before `lock` is closed, so no other crawl reads the list while it is shortened.
    running: RunningCrawlFile,
    lock: File,
    clock: SharedClock,
    /// When the files of ended crawls were last removed.
    cleaned: Option<Tick>,
}

/// Converts between this crawl's time and the time in the shared files. The first crawl after the
/// machine starts sets the shared time. A later crawl's time differs if the system clock was set in
/// between.
#[derive(Clone, Copy, Debug, Default)]
struct SharedClock {
    /// The shared time minus this crawl's time, in microseconds.
    ahead: i64,
}

/// Why this crawl may not fetch from a host now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRefusal {
    /// Another crawl fetched from the host. The request ended at this time, and the gap after it
    /// has this length.
    WithinGap(Tick, Duration),
    /// Another crawl holds the host, or the host demanded a wait from that crawl. Try again at this
    /// time.
    TryAgainAt(Tick),
}

impl HostLocks {
    /// Returns locks that are not shared with any other crawl, so this crawl can hold every host.
    #[must_use]
    pub fn none() -> HostLocks {
        HostLocks::default()
    }

    /// Opens the locks that this crawl shares with the user's other crawls. `zero` is when the
    /// monotonic clock was zero, in this crawl's time. `None` if the settings name no file to
    /// share, or the file can't be opened.
    pub(crate) fn shared(config: &Config, zero: Option<Tick>, now: Tick) -> Option<HostLocks> {
        let path = config.host_locks.as_ref()?;
        let directory = std::path::absolute(&config.output);
        let this = RunningCrawlDescription {
            directory: directory
                .unwrap_or_else(|_| config.output.clone())
                .display()
                .to_string(),
            since: Timestamp::from_micros(now.as_micros()).rfc3339_millis(),
        };
        let opened = HostLocks::open_at(path, &this, zero, now);
        opened
            .inspect_err(|why| {
                tracing::warn!(path = %path.display(), %why, "other crawls are not minded");
            })
            .ok()
    }

    /// Opens the host locks in the file at `path`. The file and its folder are created if missing.
    /// `crawl` describes this crawl to the others.
    ///
    /// # Errors
    /// The file can't be opened for writing.
    pub fn open(path: &Path, crawl: &RunningCrawlDescription, now: Tick) -> io::Result<HostLocks> {
        HostLocks::open_at(path, crawl, None, now)
    }

    fn open_at(
        path: &Path,
        crawl: &RunningCrawlDescription,
        zero: Option<Tick>,
        now: Tick,
    ) -> io::Result<HostLocks> {
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let is_locked = lock(&file)?;
        let clock = match zero {
            Some(zero) if is_locked => SharedClock::of(&file, zero)?,
            _ => SharedClock::default(),
        };
        let running = RunningCrawlFile::enter(&folder.join(RUNNING), crawl, clock.shared(now));
        if is_locked {
            file_byte_lock::unlock(&file, LOCKED_BYTE)?;
        }
        Ok(HostLocks {
            shared: Some(SharedLockFiles {
                running: running?,
                lock: file,
                clock,
                cleaned: None,
            }),
            logged: HashSet::new(),
        })
    }

    /// Locks a host before each request to it. Never waits for another crawl. If the system can't
    /// lock files, every crawl may fetch from the host.
    ///
    /// `delay` is the gap that this crawl keeps between its own requests to the host.
    ///
    /// # Errors
    /// Another crawl holds the host, or fetched from it less than a gap ago.
    pub fn hold(&mut self, host: &HostKey, delay: Duration, now: Tick) -> Result<(), HostRefusal> {
        let Some(shared) = &mut self.shared else {
            return Ok(());
        };
        let held = shared
            .hold(host_number(host), delay, now)
            .unwrap_or_else(|why| {
                tracing::warn!(%host, %why, "hosts can't be locked against other crawls");
                Ok(())
            });
        match held {
            Ok(()) if self.logged.is_empty() => {}
            Ok(()) => drop(self.logged.remove(host)),
            // The delay after a request is not worth a message.
            Err(HostRefusal::WithinGap(..)) => {}
            Err(HostRefusal::TryAgainAt(_)) => self.log_holder(host, delay, now),
        }
        held
    }

    /// Describes the other crawl that keeps this crawl from a host, if known.
    pub(crate) fn describe_holder(&self, host: &HostKey, delay: Duration, now: Tick) -> String {
        let shared = self.shared.as_ref();
        let holder = shared.and_then(|shared| shared.holder(host_number(host), delay, now));
        let (crawl, gap) = holder.map_or((None, None), |holder| (holder.crawl, holder.gap));
        let since = |crawl: RunningCrawlDescription| (crawl.since, crawl.directory);
        match (gap, crawl.map(since)) {
            (None, None) => "another crawl is fetching from it".to_owned(),
            (None, Some((since, directory))) => {
                format!("another crawl is fetching from it, since {since}: {directory}")
            }
            (Some(gap), crawl) => {
                let ends_at = gap.since + gap.for_delay(delay);
                let ends_at = Timestamp::from_micros(ends_at.as_micros()).rfc3339_millis();
                let directory = crawl.map(|(_, directory)| format!(": {directory}"));
                format!(
                    "another crawl was asked to wait until {ends_at}{}",
                    directory.unwrap_or_default()
                )
            }
        }
    }

    /// Logs that another crawl keeps this crawl from a host: once per host, and only for the first
    /// few hosts.
    fn log_holder(&mut self, host: &HostKey, delay: Duration, now: Tick) {
        if self.logged.len() < MAX_LOGGED && self.logged.insert(host.clone()) {
            tracing::warn!(
                "{host} is waited for: {}",
                self.describe_holder(host, delay, now)
            );
        }
    }

    /// Returns whether other crawls of the user see this crawl's locks.
    pub(crate) fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Notes the gap after the last request to a host that this crawl holds, and whether another
    /// request is in flight.
    /// `gap` is `None` if no request has ended.
    pub fn note_gap(&mut self, host: &HostKey, gap: Option<OtherCrawlsGap>, is_in_flight: bool) {
        if let Some(shared) = &mut self.shared {
            let gap = gap.map(|gap| OtherCrawlsGap {
                since: shared.clock.shared(gap.since),
                ..gap
            });
            shared
                .running
                .note_gap(host_number(host), gap, is_in_flight);
        }
    }

    /// Unlocks all hosts that have no request in flight.
    pub fn free_all(&mut self, now: Tick) {
        if let Some(shared) = &mut self.shared {
            shared.running.free_all(shared.clock.shared(now));
        }
    }

    /// Unlocks all hosts, because no request is sent any more. Requests in flight count as ended
    /// now.
    pub fn end(&mut self, now: Tick) {
        if let Some(shared) = &mut self.shared {
            shared.running.end(shared.clock.shared(now));
        }
    }

    /// Unlocks a host. Other crawls still wait for the end of its gap.
    pub fn free(&mut self, host: &HostKey, now: Tick) {
        if let Some(shared) = &mut self.shared {
            shared
                .running
                .free(host_number(host), shared.clock.shared(now));
        }
    }
}

impl SharedClock {
    /// Reads the shared time from the shared file, or sets it if no crawl has done so since the
    /// machine was started. `zero` is when the monotonic clock was zero, in this crawl's time. Call
    /// this while the file is locked.
    fn of(file: &File, zero: Tick) -> io::Result<SharedClock> {
        // Other systems than Linux have no such file. There, each crawl uses its own time.
        let Ok(boot) = fs::read_to_string(BOOT_ID) else {
            return Ok(SharedClock::default());
        };
        let mut noted = String::new();
        // Ignore errors: a damaged file is written again.
        let _ = file.take(MAX_BYTES).read_to_string(&mut noted);
        let noted = noted.split_once(' ').filter(|(id, _)| *id == boot.trim());
        if let Some((_, shared_zero)) = noted
            && let Ok(shared_zero) = shared_zero.trim().parse::<u64>()
        {
            let ahead = shared_zero.cast_signed() - zero.as_micros().cast_signed();
            return Ok(SharedClock { ahead });
        }
        let line = format!("{} {}\n", boot.trim(), zero.as_micros());
        file.set_len(0)?;
        file.write_all_at(line.as_bytes(), 0)?;
        Ok(SharedClock::default())
    }

    fn shared(self, own: Tick) -> Tick {
        Tick::from_micros(own.as_micros().saturating_add_signed(self.ahead))
    }

    fn own(self, shared: Tick) -> Tick {
        Tick::from_micros(shared.as_micros().saturating_add_signed(-self.ahead))
    }
}

impl SharedLockFiles {
    /// Returns the other crawl that keeps this crawl from a host.
    fn holder(&self, place: u64, delay: Duration, now: Tick) -> Option<OtherCrawlHoldingHost> {
        let holder = self.running.holder(place, delay, self.clock.shared(now))?;
        let gap = holder.gap.map(|gap| OtherCrawlsGap {
            since: self.clock.own(gap.since),
            ..gap
        });
        Some(OtherCrawlHoldingHost { gap, ..holder })
    }

    fn hold(
        &mut self,
        place: u64,
        delay: Duration,
        now: Tick,
    ) -> io::Result<Result<(), HostRefusal>> {
        if self.running.holds(place) {
            self.running.note_start(place, self.clock.shared(now));
            return Ok(Ok(()));
        }
        let later = HostRefusal::TryAgainAt(now + HELD_WAIT);
        if !lock(&self.lock)? {
            return Ok(Err(later));
        }
        if self
            .cleaned
            .is_none_or(|cleaned| cleaned + CLEANING_INTERVAL <= now)
        {
            self.running.remove_ended(self.clock.shared(now));
            self.cleaned = Some(now);
        }
        let held = match self.holder(place, delay, now).map(|holder| holder.gap) {
            None => self.running.hold(place, self.clock.shared(now)).map(Ok),
            Some(None) => Ok(Err(later)),
            Some(Some(gap)) => {
                let length = gap.for_delay(delay);
                let is_wait = gap.wait > gap.pace && gap.wait == length;
                Ok(Err(match is_wait || length > MAX_UNREPORTED_WAIT {
                    true => HostRefusal::TryAgainAt(gap.since + length),
                    false => HostRefusal::WithinGap(gap.since, length),
                }))
            }
        };
        file_byte_lock::unlock(&self.lock, LOCKED_BYTE)?;
        held
    }
}

impl Drop for SharedLockFiles {
    fn drop(&mut self) {
        // Dropping `self.lock` unlocks the file. An error is ignored: without the lock, the worst
        // case is that another crawl misses a gap.
        let _ = lock(&self.lock);
    }
}

/// Locks the file that all crawls share. Returns false if another crawl keeps it locked.
fn lock(file: &File) -> io::Result<bool> {
    for _ in 0..MAX_LOCK_TRIES {
        if file_byte_lock::lock(file, LOCKED_BYTE)? {
            return Ok(true);
        }
        thread::yield_now();
    }
    Ok(false)
}

/// Returns the number under which crawls list a host: 62 bits of FNV-1a, the same in every version
/// of the program. If two hosts have the same number, a crawl of one only waits for a crawl of the
/// other.
fn host_number(host: &HostKey) -> u64 {
    let bytes = host.as_str().bytes();
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    hash >> 2
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at, config};
    use super::*;

    /// The delay of the crawls.
    const DELAY: Duration = Duration::ZERO;

    fn host(name: &str) -> HostKey {
        HostKey::parse(name).unwrap()
    }

    /// Programs of different versions may run at the same time, so they must use the same numbers.
    #[test]
    fn a_host_is_locked_at_the_same_place_for_ever() {
        assert_eq!(host_number(&host("a.example")), 712_529_663_959_018_250);
    }

    /// To set a file lock, the system searches all locks of the file. So the number of locks must
    /// not grow with the number of hosts.
    #[test]
    fn locks_of_the_system_do_not_grow_with_the_hosts() {
        use std::os::unix::fs::MetadataExt as _;

        let dir = tempfile::tempdir().unwrap();
        let crawl = RunningCrawlDescription {
            directory: "/one".to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        };
        let mut locks = HostLocks::open(&dir.path().join("hosts.lock"), &crawl, at(10)).unwrap();
        assert!((0..100).all(|n| {
            locks
                .hold(&host(&format!("{n}.example")), DELAY, at(10))
                .is_ok()
        }));
        let running = fs::read_dir(dir.path().join(RUNNING)).unwrap();
        let all = fs::read_dir(dir.path()).unwrap().chain(running);
        let inodes: Vec<String> = all
            .map(|entry| format!(":{} ", entry.unwrap().metadata().unwrap().ino()))
            .collect();
        let locked = fs::read_to_string("/proc/locks").unwrap();
        // While other processes set locks, the system may list a lock twice, with another number.
        let locks = locked.lines().filter_map(|line| line.split_once(": "));
        let ours = locks.filter(|(_, lock)| inodes.iter().any(|inode| lock.contains(inode)));
        let ours: HashSet<&str> = ours.map(|(_, lock)| lock).collect();
        assert_eq!(ours.len(), 1, "that it lives\n{locked}");
    }

    #[test]
    fn one_crawl_at_a_time_holds_a_host() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep").join("hosts.lock");
        let crawl = |directory: &str| RunningCrawlDescription {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        };
        let mut one = HostLocks::open(&path, &crawl("/one"), at(10)).unwrap();
        let mut second = HostLocks::open(&path, &crawl("/other"), at(10)).unwrap();
        assert!(
            one.hold(&host("a.example"), DELAY, at(10)).is_ok()
                && one.hold(&host("a.example"), DELAY, at(10)).is_ok()
        );
        assert!(second.hold(&host("a.example"), DELAY, at(10)).is_err());
        assert_eq!(
            second.describe_holder(&host("a.example"), DELAY, at(10)),
            "another crawl is fetching from it, since 2026-11-21T23:00:00Z: /one"
        );
        assert!(
            second.hold(&host("b.example"), DELAY, at(10)).is_ok(),
            "another host is free"
        );
        one.free(&host("a.example"), at(10));
        assert!(second.hold(&host("a.example"), DELAY, at(10)).is_ok());
        assert!(
            one.hold(&host("a.example"), DELAY, at(10)).is_err()
                && one.hold(&host("b.example"), DELAY, at(10)).is_err()
        );
        drop(second);
        assert!(
            one.hold(&host("b.example"), DELAY, at(10)).is_ok(),
            "who is gone holds nothing"
        );
        assert!(
            HostLocks::none()
                .hold(&host("a.example"), DELAY, at(10))
                .is_ok()
        );
    }

    #[test]
    fn a_crawl_waits_for_the_gap_after_the_last_request_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts.lock");
        let crawl = |directory: &str| RunningCrawlDescription {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        };
        let open = |name: &str, now| HostLocks::open(&path, &crawl(name), now).unwrap();
        let gap = |since, seconds| OtherCrawlsGap {
            since: at(since),
            pace: Duration::from_secs(seconds),
            wait: Duration::ZERO,
            kept: Duration::from_secs(seconds),
        };
        let refused = |since, seconds| {
            Err(HostRefusal::WithinGap(
                at(since),
                Duration::from_secs(seconds),
            ))
        };
        let [a, b, c, d] = ["a.example", "b.example", "c.example", "d.example"].map(host);
        let mut one = open("/one", at(10));
        for (host, seconds) in [(&a, 4), (&b, 2), (&c, 0)] {
            one.hold(host, DELAY, at(10)).unwrap();
            one.note_gap(host, Some(gap(10, seconds)), false);
            one.free(host, at(10));
        }
        let mut second = open("/second", at(11));
        assert_eq!(second.hold(&a, DELAY, at(11)), refused(10, 4));
        assert_eq!(
            second.describe_holder(&a, DELAY, at(11)),
            "another crawl was asked to wait until 1970-01-01T00:00:14.000Z: /one"
        );
        assert_eq!(second.hold(&c, DELAY, at(11)), Ok(()), "no gap");
        assert_eq!(
            one.hold(&a, DELAY, at(11)),
            Ok(()),
            "a crawl keeps its own gaps"
        );
        one.free(&a, at(11));
        assert_eq!(second.hold(&b, DELAY, at(12)), Ok(()), "the gap has passed");
        // The gap that counts is the delay of the crawl that wants to fetch, not of the one that
        // fetched.
        let own = OtherCrawlsGap {
            pace: Duration::ZERO,
            ..gap(12, 9)
        };
        one.hold(&c, DELAY, at(12)).unwrap_err();
        second.note_gap(&c, Some(own), false);
        second.free(&c, at(12));
        assert_eq!(one.hold(&c, Duration::from_secs(2), at(13)), refused(12, 2));
        assert_eq!(one.hold(&c, DELAY, at(13)), Ok(()));
        one.free(&c, at(13));
        // Here the host demanded a wait that is longer than its usual gap.
        one.hold(&d, DELAY, at(12)).unwrap();
        let wait = OtherCrawlsGap {
            wait: Duration::from_secs(3600),
            kept: Duration::from_secs(3600),
            ..gap(12, 0)
        };
        one.note_gap(&d, Some(wait), false);
        one.free(&d, at(12));
        // Other crawls still respect the gap after the crawl has ended, and after a new crawl has
        // started.
        drop(one);
        let mut third = open("/third", at(13));
        for locks in [&mut second, &mut third] {
            assert_eq!(locks.hold(&a, DELAY, at(13)), refused(10, 4));
            assert_eq!(
                locks.hold(&d, DELAY, at(13)),
                Err(HostRefusal::TryAgainAt(at(3612)))
            );
        }
        assert_eq!(third.hold(&a, DELAY, at(14)), Ok(()));
        // A gap that begins far in the future blocks no crawl: the clock was ahead when it was
        // noted.
        third.note_gap(&a, Some(gap(1_000_000, 60)), false);
        third.free(&a, at(14));
        assert_eq!(second.hold(&a, DELAY, at(14)), Ok(()));
        drop((second, third));
        drop(open("/last", at(4000)));
        let left = fs::read_dir(dir.path().join(RUNNING)).unwrap();
        assert_eq!(left.count(), 0);
    }

    /// Each crawl reads the system clock once, and the clock may be set between two crawls.
    #[cfg(target_os = "linux")]
    #[test]
    fn crawls_agree_on_gaps_after_the_clock_was_set() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        config.host_locks = Some(dir.path().join("hosts.lock"));
        let host = host("a.example");
        let delay = Duration::from_secs(5);
        let gap = |since| OtherCrawlsGap {
            since,
            kept: Duration::from_secs(60),
            ..OtherCrawlsGap::NONE
        };
        let mut started: Vec<(HostLocks, Tick)> = Vec::new();
        // The machine was started at 1,000 s, by the clock of the first crawl.
        for (zero, last_end) in [(1_000, 1_001), (1_500, 1_511), (400, 421)] {
            let mut locks = HostLocks::shared(&config, Some(at(zero)), at(last_end)).unwrap();
            if let Some((before, now)) = started.last_mut() {
                before.free(&host, *now);
                // The earlier crawl's last request ended ten seconds before, by the monotonic
                // clock.
                let refused = Err(HostRefusal::WithinGap(at(last_end - 10), delay));
                assert_eq!(locks.hold(&host, delay, at(last_end - 6)), refused);
            }
            assert_eq!(locks.hold(&host, delay, at(last_end)), Ok(()));
            locks.note_gap(&host, Some(gap(at(last_end))), false);
            started.push((locks, at(last_end)));
        }
    }

    /// An entry of a host whose gap has passed must not hide the host's newer entry.
    #[test]
    fn a_host_that_returns_to_memory_is_held_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts.lock");
        let crawl = RunningCrawlDescription {
            directory: "/one".to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        };
        let mut one = HostLocks::open(&path, &crawl, at(10)).unwrap();
        let mut second = HostLocks::open(&path, &crawl, at(10)).unwrap();
        let hosts = ["a.example", "b.example", "c.example"].map(host);
        for host in &hosts {
            one.hold(host, DELAY, at(10)).unwrap();
            one.note_gap(
                host,
                Some(OtherCrawlsGap {
                    since: at(10),
                    kept: Duration::from_secs(1),
                    ..OtherCrawlsGap::NONE
                }),
                false,
            );
            one.free(host, at(10));
        }
        for host in &hosts {
            one.hold(host, DELAY, at(20)).unwrap();
        }
        for host in &hosts {
            assert_eq!(
                second.hold(host, DELAY, at(20)),
                Err(HostRefusal::TryAgainAt(at(30)))
            );
        }
    }

    #[test]
    fn crawls_that_name_the_same_file_share_its_locks() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        let shared = |config: &Config| HostLocks::shared(config, None, at(10));
        assert!(shared(&config).is_none(), "no file is named");
        config.host_locks = Some(dir.path().join("hosts.lock"));
        let (mut one, mut second) = (shared(&config).unwrap(), shared(&config).unwrap());
        let host = host("a.example");
        assert!(
            one.hold(&host, DELAY, at(10)).is_ok() && second.hold(&host, DELAY, at(10)).is_err()
        );
        let words = second.describe_holder(&host, DELAY, at(10));
        let directory = std::path::absolute(&config.output).unwrap();
        let end = format!("since 1970-01-01T00:00:10.000Z: {}", directory.display());
        assert!(words.ends_with(&end), "{words}");
        // This path needs `hosts.lock` to be a folder, but it is a file. The crawl then runs
        // without locks.
        config.host_locks = Some(dir.path().join("hosts.lock").join("hosts.lock"));
        assert!(shared(&config).is_none());
    }

    #[test]
    fn ten_hosts_that_another_crawl_holds_are_logged_until_they_are_held() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        config.host_locks = Some(dir.path().join("hosts.lock"));
        let mut locks = HostLocks::shared(&config, None, at(10)).unwrap();
        for number in 0..MAX_LOGGED + 1 {
            let host = host(&format!("{number}.example"));
            locks.log_holder(&host, DELAY, at(10));
            locks.log_holder(&host, DELAY, at(10));
            assert_eq!(locks.logged.len(), MAX_LOGGED.min(number + 1));
        }
        assert!(locks.hold(&host("0.example"), DELAY, at(10)).is_ok());
        assert_eq!(locks.logged.len(), MAX_LOGGED - 1);
    }

    #[test]
    fn a_crawl_that_was_stopped_while_it_held_the_lock_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        let path = dir.path().join("hosts.lock");
        config.host_locks = Some(path.clone());
        let mut locks = HostLocks::shared(&config, None, at(10)).unwrap();
        let lock = File::options().write(true).open(path).unwrap();
        assert!(file_byte_lock::lock(&lock, LOCKED_BYTE).unwrap());
        assert!(locks.hold(&host("a.example"), DELAY, at(10)).is_err());
        file_byte_lock::unlock(&lock, LOCKED_BYTE).unwrap();
        assert!(locks.hold(&host("a.example"), DELAY, at(10)).is_ok());
    }
}
