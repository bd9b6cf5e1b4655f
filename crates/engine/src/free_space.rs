//! The free disk space of the crawl directory.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use nix::sys::statvfs::statvfs;

/// The interval between two measurements.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Measures how many bytes are free on the disk that contains a path.
#[derive(Clone)]
pub struct FreeSpaceMeter(Arc<MeasureFree>);

type MeasureFree = dyn Fn(&Path) -> Option<u64> + Send + Sync;

impl FreeSpaceMeter {
    /// Returns a `FreeSpaceMeter` that asks the file system how many bytes this process may still
    /// write.
    #[must_use]
    pub fn of_file_system() -> FreeSpaceMeter {
        FreeSpaceMeter::measured_by(|path| {
            let stats = statvfs(path).ok()?;
            let (blocks, bytes) = (stats.blocks_available(), stats.fragment_size());
            blocks.checked_mul(bytes)
        })
    }

    /// Returns a `FreeSpaceMeter` that measures with the given function.
    pub fn measured_by(
        measure: impl Fn(&Path) -> Option<u64> + Send + Sync + 'static,
    ) -> FreeSpaceMeter {
        FreeSpaceMeter(Arc::new(measure))
    }

    pub(crate) fn of(&self, path: &Path) -> Option<u64> {
        (self.0)(path)
    }
}

impl fmt::Debug for FreeSpaceMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreeSpaceMeter")
    }
}

/// The thread that measures the free disk space. Dropping this value ends the thread. Nothing waits
/// for the thread, so a disk that does not respond delays only the thread.
#[derive(Debug)]
pub(crate) struct FreeSpaceWatcher {
    _stop: Sender<()>,
}

impl FreeSpaceWatcher {
    /// Starts the thread, which passes each measurement to `send` until `send` returns false.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(crate) fn start(
        space: FreeSpaceMeter,
        path: PathBuf,
        mut send: impl FnMut(u64) -> bool + Send + 'static,
    ) -> std::io::Result<FreeSpaceWatcher> {
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            while stopped.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if space.of(&path).is_some_and(|free| !send(free)) {
                    return;
                }
            }
        };
        let named = std::thread::Builder::new().name("crawl-disk".to_owned());
        named.spawn(watch)?;
        Ok(FreeSpaceWatcher { _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use super::FreeSpaceMeter;

    #[test]
    fn the_file_system_reports_free_space() {
        let dir = tempfile::tempdir().unwrap();
        let space = FreeSpaceMeter::of_file_system();
        assert!(space.of(dir.path()).is_some());
        assert_eq!(space.of(&dir.path().join("missing")), None);
    }
}
