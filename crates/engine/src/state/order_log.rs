//! The facts by which a replay comes to the same order: whose turn it was, and in which order the
//! writer settled what came.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crawl_archive::rows::{HostTurn, OrderRow, RunBegan};
use crawl_archive::{ArchiveError, LogFile};
use serde::Serialize;

/// The name of the file, as seen from the crawl's directory.
pub(crate) const ORDER: &str = "state/order.jsonl";

/// `state/order.jsonl`, to which the loop and the writer append. Never synced: a power cut may take
/// its end, and then a replay is on its own from there on.
#[derive(Clone)]
pub(crate) struct OrderLog(Arc<Mutex<LogFile>>);

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
        Ok(OrderLog(Arc::new(Mutex::new(file))))
    }

    /// Notes turns of hosts, before their requests are sent.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn note_turns<'t>(
        &self,
        turns: impl Iterator<Item = &'t HostTurn>,
    ) -> Result<(), ArchiveError> {
        let rows = turns.map(|turn| TurnRow { turn });
        self.file().append_all(rows)
    }

    /// Notes a group of messages, before it is committed.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn note_group(&self, keys: Vec<String>) -> Result<(), ArchiveError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.file().append(&OrderRow {
            group: Some(keys),
            ..OrderRow::default()
        })
    }

    /// Rows are appended whole, so a panic elsewhere leaves nothing half done.
    fn file(&self) -> MutexGuard<'_, LogFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
