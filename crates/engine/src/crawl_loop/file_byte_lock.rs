//! Locks on single bytes of a file. The system releases a lock when the process that holds it dies,
//! because locks belong to open file descriptions. Uses `fcntl` with `F_OFD_SETLK` and
//! `F_OFD_GETLK`, which only Linux has.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Locks the byte at an offset. Returns false if another open file has locked it already. Never
/// blocks.
pub(crate) fn lock(file: &File, at: u64) -> io::Result<bool> {
    match set(file, at, libc::F_WRLCK) {
        Ok(()) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// Unlocks the byte at an offset.
pub(crate) fn unlock(file: &File, at: u64) -> io::Result<()> {
    Ok(set(file, at, libc::F_UNLCK)?)
}

/// Returns whether another open file has locked the byte at an offset.
pub(crate) fn is_locked(file: &File, at: u64) -> bool {
    let mut lock = byte_range(at, libc::F_WRLCK);
    let result = fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock));
    result.is_ok() && i32::from(lock.l_type) != libc::F_UNLCK
}

fn set(file: &File, at: u64, kind: i32) -> nix::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&byte_range(at, kind))).map(drop)
}

fn byte_range(at: u64, kind: i32) -> libc::flock {
    let narrow = |number: i32| libc::c_short::try_from(number).unwrap_or_default();
    libc::flock {
        l_type: narrow(kind),
        l_whence: narrow(libc::SEEK_SET),
        l_start: libc::off_t::try_from(at).unwrap_or_default(),
        l_len: 1,
        // Must be 0 for `F_OFD_SETLK` and `F_OFD_GETLK`.
        l_pid: 0,
    }
}
