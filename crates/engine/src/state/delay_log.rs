//! Records the delays that an operator sets during a run, and the previous settings whenever
//! settings are reloaded. An audit of the crawl needs both in addition to `crawl.toml`.

use std::path::{Path, PathBuf};

use crawl_archive::rows::DelayRow;
use crawl_archive::{ArchiveError, LogFile};
use crawl_scheduler::Tick;

/// The file `state/delays.jsonl`. The first change creates it.
pub(crate) struct DelayLog {
    path: PathBuf,
    file: Option<LogFile>,
}

impl DelayLog {
    /// Opens the log of the crawl in `dir`. If the log exists, records that the delays from earlier
    /// runs no longer apply.
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

    /// Appends a change of a delay.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn note(&mut self, row: &DelayRow) -> Result<(), ArchiveError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(LogFile::open(&self.path)?),
        };
        file.append(row)?;
        // Sync each change, since an audit judges every later request by it. Changes are rare.
        file.sync()
    }
}
