//! One crawl at a time asks a host, of all that a user runs on a machine.
//!
//! A host's lock is one octet of a file that all crawls share, at a place that follows from
//! its name: as many hosts as there are, and one open file. The system frees the octets of
//! a process that dies.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use crawl_weburl::HostKey;

/// The locks that this crawl holds.
#[derive(Debug, Default)]
pub struct HostLocks {
    file: Option<File>,
    held: HashSet<HostKey>,
}

impl HostLocks {
    /// No lock is needed: nobody else is there.
    #[must_use]
    pub fn none() -> HostLocks {
        HostLocks::default()
    }

    /// Locks in this file; it and its folder are made where they are missing.
    ///
    /// # Errors
    /// The file can't be opened for writing.
    pub fn open(path: &Path) -> io::Result<HostLocks> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        Ok(HostLocks {
            file: Some(file),
            held: HashSet::new(),
        })
    }

    /// Whether this crawl may ask the host: it holds the lock now. Never waits. A system
    /// that can't lock lets everybody ask.
    pub fn hold(&mut self, host: &HostKey) -> bool {
        let Some(file) = &self.file else {
            return true;
        };
        if self.held.contains(host) {
            return true;
        }
        let is_ours = octet::lock(file, place(host)).unwrap_or_else(|why| {
            tracing::warn!(%host, %why, "hosts can't be locked against other crawls");
            true
        });
        if is_ours {
            self.held.insert(host.clone());
        }
        is_ours
    }

    /// Another crawl may ask the host.
    pub fn free(&mut self, host: &HostKey) {
        if let Some(file) = &self.file
            && self.held.remove(host)
        {
            // At worst it is held until the end.
            let _ = octet::unlock(file, place(host));
        }
    }
}

/// A place in the file: 62 bits of FNV-1a, the same in each program. Two hosts at one place
/// would wait for each other, no more.
fn place(host: &HostKey) -> u64 {
    let octets = host.as_str().bytes();
    let hash = octets.fold(0xCBF2_9CE4_8422_2325, |hash: u64, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01B3)
    });
    hash >> 2
}

/// Locks of single octets that belong to an open file (fcntl, `F_OFD_SETLK`).
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod octet {
    use std::fs::File;
    use std::io;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    /// Whether the octet is ours now.
    pub(super) fn lock(file: &File, at: u64) -> io::Result<bool> {
        match set(file, at, libc::F_WRLCK) {
            Ok(()) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    pub(super) fn unlock(file: &File, at: u64) -> io::Result<()> {
        Ok(set(file, at, libc::F_UNLCK)?)
    }

    fn set(file: &File, at: u64, kind: i32) -> nix::Result<()> {
        let narrow = |number: i32| libc::c_short::try_from(number).unwrap_or_default();
        let lock = libc::flock {
            l_type: narrow(kind),
            l_whence: narrow(libc::SEEK_SET),
            l_start: libc::off_t::try_from(at).unwrap_or_default(),
            l_len: 1,
            // The system asks for 0 here.
            l_pid: 0,
        };
        fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop)
    }
}

/// Elsewhere nobody is kept from a host.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod octet {
    use std::fs::File;
    use std::io;

    pub(super) fn lock(_: &File, _: u64) -> io::Result<bool> {
        Ok(true)
    }

    pub(super) fn unlock(_: &File, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostKey {
        HostKey::parse(name).unwrap()
    }

    #[test]
    fn one_crawl_at_a_time_holds_a_host() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep").join("hosts.lock");
        let mut one = HostLocks::open(&path).unwrap();
        let mut other = HostLocks::open(&path).unwrap();
        assert!(one.hold(&host("a.example")) && one.hold(&host("a.example")));
        assert!(!other.hold(&host("a.example")));
        assert!(other.hold(&host("b.example")), "another host is free");
        one.free(&host("a.example"));
        assert!(other.hold(&host("a.example")));
        assert!(!one.hold(&host("a.example")) && !one.hold(&host("b.example")));
        drop(other);
        assert!(one.hold(&host("b.example")), "who is gone holds nothing");
        assert!(HostLocks::none().hold(&host("a.example")));
    }
}
