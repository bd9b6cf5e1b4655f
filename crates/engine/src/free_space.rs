//! The room on the disk of a crawl's directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use nix::sys::statvfs::statvfs;

/// The interval at which the room on the disk is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Tells how many bytes are free where a path lies; none where nobody knows.
#[derive(Clone)]
pub struct FreeSpace(Arc<TellFree>);

type TellFree = dyn Fn(&Path) -> Option<u64> + Send + Sync;

impl FreeSpace {
    /// The bytes that this process may still use of the file system.
    #[must_use]
    pub fn of_file_system() -> FreeSpace {
        FreeSpace::told_by(|path| {
            let found = statvfs(path).ok()?;
            let (blocks, bytes) = (found.blocks_available(), found.fragment_size());
            blocks.checked_mul(bytes)
        })
    }

    /// The bytes that this function tells.
    pub fn told_by(told: impl Fn(&Path) -> Option<u64> + Send + Sync + 'static) -> FreeSpace {
        FreeSpace(Arc::new(told))
    }

    pub(crate) fn of(&self, path: &Path) -> Option<u64> {
        (self.0)(path)
    }
}

impl fmt::Debug for FreeSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreeSpace")
    }
}

/// A thread that looks at the room on the disk. It ends with this value, or once the disk answers:
/// nobody waits for one that does not.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    _stop: Sender<()>,
}

impl DiskWatch {
    /// Begins to look, and tells what is free until `tell` wants no more.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub(crate) fn start(
        space: FreeSpace,
        path: PathBuf,
        mut tell: impl FnMut(u64) -> bool + Send + 'static,
    ) -> std::io::Result<DiskWatch> {
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            while stopped.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if space.of(&path).is_some_and(|free| !tell(free)) {
                    return;
                }
            }
        };
        let named = std::thread::Builder::new().name("crawl-disk".to_owned());
        named.spawn(watch)?;
        Ok(DiskWatch { _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use super::FreeSpace;

    #[test]
    fn the_file_system_tells_what_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let space = FreeSpace::of_file_system();
        assert!(space.of(dir.path()).is_some());
        assert_eq!(space.of(&dir.path().join("missing")), None);
    }
}
