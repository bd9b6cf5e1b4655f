//! The facts by which a replay comes to the same order: whose turn it was, and in which order the
//! writer settled what came.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_archive::rows::{CommandTaken, HostTurn, OrderRow, RunBegan};
use crawl_archive::{ArchiveError, LogFile, RequestLine};
use serde::Serialize;

/// The name of the file, as seen from the crawl's directory.
pub(crate) const ORDER: &str = "state/order.jsonl";

/// `state/order.jsonl`, to which the loop and the writer append. Never synced: a power cut may take
/// its end, and then a replay is on its own from there on.
#[derive(Clone)]
pub(crate) struct OrderLog(Arc<Mutex<OrderFile>>);

/// Turns wait for the first request among them that ends, or for the next group: of those that are
/// under way at a host, nearly all stand in one write.
struct OrderFile {
    file: LogFile,
    /// The time of the first turn that waits. Milliseconds since the Unix epoch.
    waits_since: Option<u64>,
}

/// An [`OrderRow`] of a turn alone.
#[derive(Serialize)]
struct TurnRow<'t> {
    turn: &'t HostTurn,
}

impl OrderLog {
    /// Opens the log of the crawl in `dir` for a run that begins.
    ///
    /// # Errors
    /// Those of the file system.
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

    /// Notes turns of hosts. They are in the file before [`OrderLog::begin_rows`] returns for any of
    /// their requests, and before the next group that names messages.
    ///
    /// # Errors
    /// A row that can't be put into JSON.
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
    /// Those of the file system.
    pub(crate) fn note_command(&self, command: CommandTaken) -> Result<(), ArchiveError> {
        let mut order = self.order();
        order.file.append(&OrderRow {
            command: Some(command),
            ..OrderRow::default()
        })?;
        order.waits_since = None;
        Ok(())
    }

    /// Writes the turns of these requests, whose rows are about to be written.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn begin_rows<'l>(
        &self,
        lines: impl Iterator<Item = &'l RequestLine>,
    ) -> Result<(), ArchiveError> {
        let Some(newest) = lines.map(|line| line.row().start).max() else {
            return Ok(());
        };
        let mut order = self.order();
        if order.waits_since.is_some_and(|since| since <= newest) {
            order.file.write_held()?;
            order.waits_since = None;
        }
        Ok(())
    }

    /// Writes what waits: the run is over.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn end(&self) -> Result<(), ArchiveError> {
        let mut order = self.order();
        order.waits_since = None;
        order.file.write_held()
    }

    /// Notes a group of messages, before it is committed.
    ///
    /// # Errors
    /// Those of the file system.
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

    /// Rows are appended whole, so a panic elsewhere leaves nothing half done.
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

    /// The kind of each row by its first letter: a run, a turn or a group.
    fn kinds(dir: &std::path::Path) -> String {
        let text = fs::read_to_string(dir.join(ORDER)).unwrap();
        text.lines().map(|line| &line[2..3]).collect()
    }

    #[test]
    fn ours_turns_are_written_before_the_rows_of_their_requests_and_before_the_next_group() {
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
