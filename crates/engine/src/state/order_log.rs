//! Records the order of a crawl for a replay: which host got a turn to send requests, and when the
//! writer committed which messages.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_archive::rows::{CommandTaken, HostTurn, OrderRow, RunBegan};
use crawl_archive::{ArchiveError, LogFile, RequestLine};
use serde::Serialize;

/// The path of the file within the crawl directory.
pub(crate) const ORDER: &str = "state/order.jsonl";

/// The file `state/order.jsonl`, to which the loop and the writer append. The file is never synced.
/// If a power cut loses its end, a replay continues from there without the order.
#[derive(Clone)]
pub(crate) struct OrderLog(Arc<Mutex<OrderFile>>);

/// Holds rows of turns in memory, to write many at once: when a request of one of the turns ends,
/// or before the next group is committed.
struct OrderFile {
    file: LogFile,
    /// The time of the oldest turn (use of a permit) in memory, in milliseconds since the Unix
    /// epoch.
    waits_since: Option<u64>,
}

/// An [`OrderRow`] that contains only a turn.
#[derive(Serialize)]
struct TurnRow<'t> {
    turn: &'t HostTurn,
}

impl OrderLog {
    /// Opens the log of the crawl in `dir` for a new run.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(dir: &Path, run: RunBegan) -> Result<OrderLog, ArchiveError> {
        let mut file = LogFile::open(&dir.join(ORDER))?;
        file.append(&OrderRow {
            run: Some(run),
            ..OrderRow::default()
        })?;
        let waits_since = None;
        Ok(OrderLog(Arc::new(Mutex::new(OrderFile {
            file,
            waits_since,
        }))))
    }

    /// Appends turns of hosts. A turn is on disk once [`OrderLog::begin_rows`] was called for one
    /// of its requests, or a later group or command was appended.
    ///
    /// # Errors
    /// A row that can't be serialized.
    pub(crate) fn note_turns<'t>(
        &self,
        turns: impl Iterator<Item = &'t HostTurn>,
    ) -> Result<(), ArchiveError> {
        let mut turns = turns.peekable();
        if turns.peek().is_none() {
            return Ok(());
        }
        let mut order = self.order();
        let OrderFile { file, waits_since } = &mut *order;
        file.hold_all(turns.map(|turn| {
            waits_since.get_or_insert(turn.at);
            TurnRow { turn }
        }))
    }

    /// Appends an operator's command after all turns so far.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn note_command(&self, command: CommandTaken) -> Result<(), ArchiveError> {
        let mut order = self.order();
        order.file.append(&OrderRow {
            command: Some(command),
            ..OrderRow::default()
        })?;
        order.waits_since = None;
        Ok(())
    }

    /// Writes the turns that led to these requests. Called before the rows of the requests are
    /// written.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn begin_rows<'l>(
        &self,
        lines: impl Iterator<Item = &'l RequestLine>,
    ) -> Result<(), ArchiveError> {
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
    pub(crate) fn end(&self) -> Result<(), ArchiveError> {
        let mut order = self.order();
        order.waits_since = None;
        order.file.flush_held()
    }

    /// Appends the keys of a group of messages. Called before the group is committed.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn note_group(&self, keys: Vec<String>) -> Result<(), ArchiveError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut order = self.order();
        order.file.append(&OrderRow {
            group: Some(keys),
            ..OrderRow::default()
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

    use crawl_archive::RequestLine;
    use crawl_archive::rows::{HostTurn, RequestRow, RunBegan};

    use super::{ORDER, OrderLog};

    /// Returns the kind of each row in the log as one letter: run, turn or group.
    fn kinds(dir: &std::path::Path) -> String {
        let text = fs::read_to_string(dir.join(ORDER)).unwrap();
        text.lines().map(|line| &line[2..3]).collect()
    }

    #[test]
    fn turns_are_written_before_the_rows_of_their_requests_and_before_the_next_group() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        let order = OrderLog::open(dir.path(), RunBegan::default()).unwrap();
        let took = |at| {
            let turn = HostTurn {
                at,
                ..HostTurn::default()
            };
            order.note_turns([turn].iter()).unwrap();
        };
        let ended = |start| {
            let line = RequestLine::of(RequestRow {
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
