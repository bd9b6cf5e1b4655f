//! Records the settings of each run, and the delays and settings that an operator changes during a
//! run. An audit of the crawl judges each request by the settings of its time.

use crawl_archive::rows::DelayRow;
use crawl_archive::{ArchiveWriteError, RowLogWriter};
use crawl_scheduler::Tick;

use crate::config::Config;

/// Number of rows at the end of the file to search for the last recorded settings. If these rows
/// contain no settings, the settings are recorded again.
const MAX_COMPARED_ROWS: usize = 1_000;

/// The file `state/delays.jsonl`.
pub(crate) struct SettingsAndDelaysLog(RowLogWriter);

impl SettingsAndDelaysLog {
    /// Opens the log of a crawl, and appends a row for the start of a run. From that row on,
    /// delays set during earlier runs no longer apply. The row contains the settings of the run,
    /// unless they equal the last recorded settings.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(
        config: &Config,
        now: Tick,
    ) -> Result<SettingsAndDelaysLog, ArchiveWriteError> {
        let path = config.output.join("state").join("delays.jsonl");
        let mut file = RowLogWriter::open(&path)?;
        let rows = file.tail::<DelayRow>(MAX_COMPARED_ROWS)?.rows;
        // If the crawl was gathered from several workers, skip the workers' rows, because these
        // rows don't apply to this process.
        let own = rows.into_iter().rev().filter(|row| row.worker.is_none());
        let recorded = own.filter_map(|row| row.settings).next();
        let settings = Some(&config.audited).filter(|now| recorded.as_ref() != Some(*now));
        let mut log = SettingsAndDelaysLog(file);
        log.note(&DelayRow {
            at: now.as_millis(),
            settings: settings.cloned(),
            ..DelayRow::default()
        })?;
        Ok(log)
    }

    /// Appends a change.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn note(&mut self, row: &DelayRow) -> Result<(), ArchiveWriteError> {
        self.0.append(row)?;
        // Sync each change, since an audit judges every later request by it. Changes are rare.
        self.0.sync()
    }
}
