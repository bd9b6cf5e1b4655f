//! The delays set during a run, and the settings in force before they were reloaded. An audit needs
//! both in addition to `crawl.toml`.

use std::path::{Path, PathBuf};

use crawl_archive::rows::DelayRow;
use crawl_archive::{ArchiveError, LogFile};
use crawl_scheduler::Tick;

/// `state/delays.jsonl`, created on the first change.
pub(crate) struct DelayLog {
    path: PathBuf,
    file: Option<LogFile>,
}

impl DelayLog {
    /// Opens the log of the crawl in `dir`. If it exists, ends all delays set before.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(dir: &Path, now: Tick) -> Result<DelayLog, ArchiveError> {
        let mut log = DelayLog {
            path: dir.join("state").join("delays.jsonl"),
            file: None,
        };
        if log.path.exists() {
            log.note(&DelayRow {
                at: now.as_millis(),
                ..DelayRow::default()
            })?;
        }
        Ok(log)
    }

    /// Appends a delay.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn note(&mut self, row: &DelayRow) -> Result<(), ArchiveError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(LogFile::open(&self.path)?),
        };
        file.append(row)?;
        // Operators set delays rarely, and an audit judges every later request by them, so sync.
        file.sync()
    }
}
