//! Which delays were set while a crawl ran, and what held before its settings were read again: what
//! its audit needs to know beside `crawl.toml`.

use std::path::{Path, PathBuf};

use crawl_archive::rows::DelayRow;
use crawl_archive::{ArchiveError, LogFile};
use crawl_scheduler::Tick;

/// `state/delays.jsonl`, made when the first of that happens.
pub(crate) struct DelayLog {
    path: PathBuf,
    file: Option<LogFile>,
}

impl DelayLog {
    /// The log of the crawl in `dir`. Where there is one, what was set before holds no more.
    ///
    /// # Errors
    /// Those of the file system.
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

    /// Notes a delay.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn note(&mut self, row: &DelayRow) -> Result<(), ArchiveError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(LogFile::open(&self.path)?),
        };
        file.append(row)?;
        // A person sets one now and then, and an audit judges each later request by it.
        file.sync()
    }
}
