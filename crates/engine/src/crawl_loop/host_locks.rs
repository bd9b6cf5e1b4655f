//! One crawl at a time asks a host, of all that a user runs on a machine.
//!
//! Each crawl lists the hosts that it holds in a file of its own, in the folder `running`. One
//! takes a host by looking that no other crawl that lives lists it. Only one looks at a time: it holds
//! the lock of a file that all share. A lock for each host would make each one
//! slower than the one before, as the system keeps the locks of a file in a list.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;

use crawl_archive::Timestamp;
use crawl_scheduler::Tick;
use crawl_weburl::HostKey;

use super::byte_lock;
use super::running_crawls::{Holder, Running, RunningCrawl};
use crate::config::Config;

/// The folder beside the file of locks that names the crawls that run.
const RUNNING: &str = "running";
/// Hosts of which it is told that another crawl asks them; the rest waits without a word.
const MAX_TOLD: usize = 10;
/// The byte of the shared file that is locked while a crawl takes a host.
const LOCKED_BYTE: u64 = 0;
/// Maximum tries to get the lock; then a crawl treats the host as taken. The lock is held for
/// microseconds, unless the process that holds it was suspended.
const MAX_LOCK_TRIES: u32 = 10_000;

/// The locks that this crawl holds.
#[derive(Debug, Default)]
pub struct HostLocks {
    shared: Option<Shared>,
    /// Hosts of which it was told that another crawl asks them.
    told: HashSet<HostKey>,
}

/// The files by which crawls know of each other.
#[derive(Debug)]
struct Shared {
    lock: File,
    running: Running,
}

impl HostLocks {
    /// No lock is needed: nobody else is there.
    #[must_use]
    pub fn none() -> HostLocks {
        HostLocks::default()
    }

    /// The locks that this crawl shares with the user's others, where they can be had.
    pub(crate) fn shared(config: &Config, now: Tick) -> Option<HostLocks> {
        let path = config.host_locks.as_ref()?;
        let directory = std::path::absolute(&config.output);
        let this = RunningCrawl {
            directory: directory
                .unwrap_or_else(|_| config.output.clone())
                .display()
                .to_string(),
            since: Timestamp::from_micros(now.as_micros()).rfc3339_millis(),
        };
        let opened = HostLocks::open(path, &this);
        opened
            .inspect_err(|why| {
                tracing::warn!(path = %path.display(), %why, "other crawls are not minded");
            })
            .ok()
    }

    /// Locks in this file, for the crawl that is named to others; the file and its folder are
    /// made where they are missing.
    ///
    /// # Errors
    /// The file can't be opened for writing.
    pub fn open(path: &Path, crawl: &RunningCrawl) -> io::Result<HostLocks> {
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let running = Running::enter(&folder.join(RUNNING), crawl)?;
        Ok(HostLocks {
            shared: Some(Shared {
                lock: file,
                running,
            }),
            told: HashSet::new(),
        })
    }

    /// Returns whether this crawl may ask the host: it holds it now. Never waits for another crawl
    /// to be done with the host. A system that can't lock lets everybody ask.
    pub fn hold(&mut self, host: &HostKey) -> bool {
        let Some(shared) = &mut self.shared else {
            return true;
        };
        let is_ours = shared.hold(place(host)).unwrap_or_else(|why| {
            tracing::warn!(%host, %why, "hosts can't be locked against other crawls");
            true
        });
        if is_ours && !self.told.is_empty() {
            self.told.remove(host);
        }
        is_ours
    }

    /// The words for a host that another crawl asks: which crawl that is, where it can be told.
    pub(crate) fn who_asks(&self, host: &HostKey) -> String {
        let holder = self
            .shared
            .as_ref()
            .and_then(|shared| shared.running.holder(place(host)));
        match holder.and_then(Holder::into_crawl) {
            Some(RunningCrawl { directory, since }) => {
                format!("another crawl is asking it, since {since}: {directory}")
            }
            None => "another crawl is asking it".to_owned(),
        }
    }

    /// Says once of each of the first such hosts that it is left to another crawl.
    pub(crate) fn tell_who_asks(&mut self, host: &HostKey) {
        if self.told.len() < MAX_TOLD && self.told.insert(host.clone()) {
            tracing::warn!("{host} is waited for: {}", self.who_asks(host));
        }
    }

    /// Another crawl may ask the host.
    pub fn free(&mut self, host: &HostKey) {
        if let Some(shared) = &mut self.shared {
            shared.running.free(place(host));
        }
    }
}

impl Shared {
    fn hold(&mut self, place: u64) -> io::Result<bool> {
        if self.running.holds(place) {
            return Ok(true);
        }
        let mut tries = 0;
        while !byte_lock::lock(&self.lock, LOCKED_BYTE)? {
            tries += 1;
            if tries == MAX_LOCK_TRIES {
                return Ok(false);
            }
            thread::yield_now();
        }
        let is_free = self.running.holder(place).is_none();
        let held = match is_free {
            true => self.running.hold(place),
            false => Ok(()),
        };
        byte_lock::unlock(&self.lock, LOCKED_BYTE)?;
        held.map(|()| is_free)
    }
}

/// The number by which crawls list a host: 62 bits of FNV-1a, the same in each program. Two hosts
/// of one number would wait for each other, no more.
fn place(host: &HostKey) -> u64 {
    let bytes = host.as_str().bytes();
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    hash >> 2
}

#[cfg(test)]
mod tests {
    use super::super::by_itself::{at, config};
    use super::*;

    fn host(name: &str) -> HostKey {
        HostKey::parse(name).unwrap()
    }

    /// Programs of other versions run beside this one.
    #[test]
    fn ours_a_host_is_locked_at_the_same_place_for_ever() {
        assert_eq!(place(&host("a.example")), 712_529_663_959_018_250);
    }

    /// The system goes through all locks of a file to set one more.
    #[test]
    fn ours_locks_of_the_system_do_not_grow_with_the_hosts() {
        use std::os::unix::fs::MetadataExt as _;

        let dir = tempfile::tempdir().unwrap();
        let crawl = RunningCrawl {
            directory: "/one".to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        };
        let mut locks = HostLocks::open(&dir.path().join("hosts.lock"), &crawl).unwrap();
        assert!((0..100).all(|n| locks.hold(&host(&format!("{n}.example")))));
        let running = fs::read_dir(dir.path().join(RUNNING)).unwrap();
        let all = fs::read_dir(dir.path()).unwrap().chain(running);
        let inodes: Vec<String> = all
            .map(|entry| format!(":{} ", entry.unwrap().metadata().unwrap().ino()))
            .collect();
        let locked = fs::read_to_string("/proc/locks").unwrap();
        let ours = locked
            .lines()
            .filter(|line| inodes.iter().any(|inode| line.contains(inode)));
        assert_eq!(ours.count(), 1, "that it lives\n{locked}");
    }

    #[test]
    fn one_crawl_at_a_time_holds_a_host() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep").join("hosts.lock");
        let crawl = |directory: &str| RunningCrawl {
            directory: directory.to_owned(),
            since: "2026-11-21T23:00:00Z".to_owned(),
        };
        let mut one = HostLocks::open(&path, &crawl("/one")).unwrap();
        let mut other = HostLocks::open(&path, &crawl("/other")).unwrap();
        assert!(one.hold(&host("a.example")) && one.hold(&host("a.example")));
        assert!(!other.hold(&host("a.example")));
        assert_eq!(
            other.who_asks(&host("a.example")),
            "another crawl is asking it, since 2026-11-21T23:00:00Z: /one"
        );
        assert!(other.hold(&host("b.example")), "another host is free");
        one.free(&host("a.example"));
        assert!(other.hold(&host("a.example")));
        assert!(!one.hold(&host("a.example")) && !one.hold(&host("b.example")));
        drop(other);
        assert!(one.hold(&host("b.example")), "who is gone holds nothing");
        assert!(HostLocks::none().hold(&host("a.example")));
    }

    #[test]
    fn ours_crawls_that_name_the_same_file_share_its_locks() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        let shared = |config: &Config| HostLocks::shared(config, at(10));
        assert!(shared(&config).is_none(), "no file is named");
        config.host_locks = Some(dir.path().join("hosts.lock"));
        let (mut one, mut other) = (shared(&config).unwrap(), shared(&config).unwrap());
        let host = host("a.example");
        assert!(one.hold(&host) && !other.hold(&host));
        let words = other.who_asks(&host);
        let directory = std::path::absolute(&config.output).unwrap();
        let end = format!("since 1970-01-01T00:00:10.000Z: {}", directory.display());
        assert!(words.ends_with(&end), "{words}");
        // Below a file there is none, and the crawl goes on without.
        config.host_locks = Some(dir.path().join("hosts.lock").join("hosts.lock"));
        assert!(shared(&config).is_none());
    }

    #[test]
    fn ours_ten_hosts_that_another_crawl_asks_are_told_of_until_they_are_ours() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        config.host_locks = Some(dir.path().join("hosts.lock"));
        let mut locks = HostLocks::shared(&config, at(10)).unwrap();
        for number in 0..MAX_TOLD + 1 {
            let host = host(&format!("{number}.example"));
            locks.tell_who_asks(&host);
            locks.tell_who_asks(&host);
            assert_eq!(locks.told.len(), MAX_TOLD.min(number + 1));
        }
        assert!(locks.hold(&host("0.example")));
        assert_eq!(locks.told.len(), MAX_TOLD - 1);
    }

    #[test]
    fn ours_a_crawl_that_was_stopped_while_it_held_the_lock_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        let path = dir.path().join("hosts.lock");
        config.host_locks = Some(path.clone());
        let mut locks = HostLocks::shared(&config, at(10)).unwrap();
        let lock = File::options().write(true).open(path).unwrap();
        assert!(byte_lock::lock(&lock, LOCKED_BYTE).unwrap());
        assert!(!locks.hold(&host("a.example")));
        byte_lock::unlock(&lock, LOCKED_BYTE).unwrap();
        assert!(locks.hold(&host("a.example")));
    }
}
