//! One crawl at a time asks a host, of all that a user runs on a machine.
//!
//! A host's lock is one byte of a file that all crawls share, at a place that follows from
//! its name: as many hosts as there are, and one open file. The system frees the bytes of
//! a process that dies. Which crawl holds a host is told by the folder `running` beside the file.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use crawl_archive::Timestamp;
use crawl_scheduler::Tick;
use crawl_weburl::HostKey;

use super::byte_lock;
use super::running_crawls::{Running, RunningCrawl};
use crate::config::Config;

/// The folder beside the file of locks that names the crawls that run.
const RUNNING: &str = "running";
/// Hosts of which it is told that another crawl asks them; the rest waits without a word.
const MAX_TOLD: usize = 10;

/// The locks that this crawl holds.
#[derive(Debug, Default)]
pub struct HostLocks {
    file: Option<File>,
    held: HashSet<HostKey>,
    /// Hosts of which it was told that another crawl asks them.
    told: HashSet<HostKey>,
    running: Option<Running>,
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
        let running = Running::enter(&folder.join(RUNNING), crawl);
        Ok(HostLocks {
            file: Some(file),
            running: running
                .inspect_err(|why| tracing::warn!(%why, "other crawls can't be told of this one"))
                .ok(),
            ..HostLocks::default()
        })
    }

    /// Returns whether this crawl may ask the host: it holds the lock now. Never waits. A system
    /// that can't lock lets everybody ask.
    pub fn hold(&mut self, host: &HostKey) -> bool {
        let Some(file) = &self.file else {
            return true;
        };
        if self.held.contains(host) {
            return true;
        }
        let is_ours = byte_lock::lock(file, place(host)).unwrap_or_else(|why| {
            tracing::warn!(%host, %why, "hosts can't be locked against other crawls");
            true
        });
        if is_ours {
            self.held.insert(host.clone());
            self.told.remove(host);
            if let Some(running) = &self.running {
                running.hold(place(host));
            }
        }
        is_ours
    }

    /// The words for a host that another crawl asks: which crawl that is, where it can be told.
    pub(crate) fn who_asks(&self, host: &HostKey) -> String {
        match self
            .running
            .as_ref()
            .and_then(|running| running.holder(place(host)))
        {
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
        if let Some(file) = &self.file
            && self.held.remove(host)
        {
            // At worst it is held until the end.
            let _ = byte_lock::unlock(file, place(host));
            if let Some(running) = &self.running {
                running.free(place(host));
            }
        }
    }
}

/// A place in the file: 62 bits of FNV-1a, the same in each program. Two hosts at one place
/// would wait for each other, no more.
fn place(host: &HostKey) -> u64 {
    let bytes = host.as_str().bytes();
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    hash >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostKey {
        HostKey::parse(name).unwrap()
    }

    /// Programs of other versions run beside this one.
    #[test]
    fn ours_a_host_is_locked_at_the_same_place_for_ever() {
        assert_eq!(place(&host("a.example")), 712_529_663_959_018_250);
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
}
