//! Records the order of a crawl for a replay: which host got a turn to send requests, what happened
//! to the pages that are rendered, and when the writer committed which messages.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_archive::rows::{ReplayOrderRow, RunStartEvent};
use crawl_archive::{ArchiveWriteError, RowLogWriter, SerializedRequestRow};

use crate::messages::ReplayOrderLogEntry;

/// The path of the file within the crawl directory.
pub(crate) const ORDER: &str = "state/order.jsonl";

/// The file `state/order.jsonl`, to which the loop and the writer append. The file is never
/// synced, so a power cut may lose the end of the log. A replay then follows the log only up to
/// its last row.
#[derive(Clone)]
pub(crate) struct ReplayOrderLog(Arc<Mutex<OrderFile>>);

/// The file of the log, and rows held in memory. Held rows are written together: before the next
/// group is committed, or when a request ends that began after the oldest of these rows was added.
struct OrderFile {
    file: RowLogWriter,
    /// The time of the oldest row in memory, in milliseconds since the Unix epoch.
    waits_since: Option<u64>,
}

impl ReplayOrderLog {
    /// Opens the log of the crawl in `dir` for a new run.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(
        dir: &Path,
        run: RunStartEvent,
    ) -> Result<ReplayOrderLog, ArchiveWriteError> {
        let mut file = RowLogWriter::open(&dir.join(ORDER))?;
        file.append(&ReplayOrderRow {
            run: Some(run),
            ..ReplayOrderRow::default()
        })?;
        let waits_since = None;
        Ok(ReplayOrderLog(Arc::new(Mutex::new(OrderFile {
            file,
            waits_since,
        }))))
    }

    /// Appends facts in order. A command is written at once. Other facts are held in memory until
    /// [`ReplayOrderLog::begin_rows`] is called for a request that began later, or until a group or
    /// a command is appended.
    ///
    /// # Errors
    /// I/O errors, or a row that can't be serialized.
    pub(crate) fn note<'t>(
        &self,
        facts: impl Iterator<Item = ReplayOrderLogEntry<'t>>,
    ) -> Result<(), ArchiveWriteError> {
        let mut facts = facts.peekable();
        if facts.peek().is_none() {
            return Ok(());
        }
        let mut order = self.order();
        let OrderFile { file, waits_since } = &mut *order;
        let mut is_due = false;
        file.hold_all(facts.inspect(|fact| {
            is_due |= matches!(fact, ReplayOrderLogEntry::Command(_));
            waits_since.get_or_insert(fact.at());
        }))?;
        if is_due {
            file.flush_held()?;
            *waits_since = None;
        }
        Ok(())
    }

    /// Writes the turns (uses of permits) that led to these requests. Called before the rows of the
    /// requests are written.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn begin_rows<'l>(
        &self,
        lines: impl Iterator<Item = &'l SerializedRequestRow>,
    ) -> Result<(), ArchiveWriteError> {
        let Some(newest) = lines.map(|line| line.row().start).max() else {
            return Ok(());
        };
        let mut order = self.order();
        if order.waits_since.is_some_and(|since| since <= newest) {
            order.file.flush_held()?;
            order.waits_since = None;
        }
        Ok(())
    }

    /// Writes the turns (uses of permits) that are still in memory at the end of the run.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn end(&self) -> Result<(), ArchiveWriteError> {
        let mut order = self.order();
        order.waits_since = None;
        order.file.flush_held()
    }

    /// Appends the keys of a group of messages. Called before the group is committed.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn note_group(&self, keys: Vec<String>) -> Result<(), ArchiveWriteError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut order = self.order();
        order.file.append(&ReplayOrderRow {
            group: Some(keys),
            ..ReplayOrderRow::default()
        })?;
        order.waits_since = None;
        Ok(())
    }

    /// Locks the file. Ignores a panic of another thread, since rows are appended whole.
    fn order(&self) -> MutexGuard<'_, OrderFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_archive::SerializedRequestRow;
    use crawl_archive::rows::{HostTurn, RequestRow, RunStartEvent};

    use super::{ORDER, ReplayOrderLog};
    use crate::messages::ReplayOrderLogEntry;

    /// Returns the kind of each row in the log as one letter: run, turn or group.
    fn kinds(dir: &std::path::Path) -> String {
        let text = fs::read_to_string(dir.join(ORDER)).unwrap();
        text.lines().map(|line| &line[2..3]).collect()
    }

    #[test]
    fn turns_are_written_before_the_rows_of_their_requests_and_before_the_next_group() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        let order = ReplayOrderLog::open(dir.path(), RunStartEvent::default()).unwrap();
        let took = |at| {
            let turn = HostTurn {
                at,
                ..HostTurn::default()
            };
            order
                .note([ReplayOrderLogEntry::Turn(&turn)].into_iter())
                .unwrap();
        };
        let ended = |start| {
            let line = SerializedRequestRow::of(RequestRow {
                start,
                ..RequestRow::default()
            });
            order.begin_rows([line].iter()).unwrap();
            kinds(dir.path())
        };
        took(10);
        took(11);
        assert_eq!(kinds(dir.path()), "r");
        assert_eq!(ended(9), "r", "an earlier one");
        assert_eq!(ended(10), "rtt");
        assert_eq!(ended(11), "rtt");
        took(12);
        order.note_group(vec!["e1".to_owned()]).unwrap();
        assert_eq!(kinds(dir.path()), "rtttg");
        took(13);
        order.end().unwrap();
        assert_eq!(kinds(dir.path()), "rtttgt");
    }
}
