//! Stores the entries of a run in a file until the run ends, so that a single pass can write each
//! page once, with all facts about it. Another thread reads the entries ahead of this pass.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};

use crate::cross_page_update::{EntryVisitor, PendingEntrySource};
use crate::error::IndexError;
use crate::summing_sorter::unnamed_file;
use crawl_index_entry::{BytesInTransitLimit, IndexLogEntry};

/// Maximum number of entries that are read ahead of the visitor.
const MAX_READ_AHEAD_ENTRIES: usize = 64;
/// Maximum bytes of entries that are read ahead of the visitor. An entry that doesn't fit waits. An
/// entry larger than the limit waits until it is the only one.
const MAX_READ_AHEAD_BYTES: usize = 4 << 20;

/// A file of index entries, deleted when its handle is closed. First push entries, then flush, then
/// read.
#[derive(Debug)]
pub struct PendingEntriesFile {
    dir: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl PendingEntriesFile {
    /// Creates an empty file in the folder of the index.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn new(dir: &Path) -> Result<PendingEntriesFile, IndexError> {
        let file = unnamed_file(dir).map_err(IndexError::disk(dir))?;
        Ok(PendingEntriesFile {
            dir: dir.to_path_buf(),
            file: BufWriter::new(file),
            bytes: 0,
        })
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn push(&mut self, entry: &IndexLogEntry) -> Result<(), IndexError> {
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.push(b'\n');
        self.bytes += line.len() as u64;
        let written = self.file.write_all(&line);
        written.map_err(IndexError::disk(&self.dir))
    }

    /// Returns the total size of all entries in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes buffered entries to the file. Must be called before the entries are read.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn flush(&mut self) -> Result<(), IndexError> {
        self.file.flush().map_err(IndexError::disk(&self.dir))
    }
}

impl PendingEntrySource for PendingEntriesFile {
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        let disk = || IndexError::disk(&self.dir);
        let mut file = self.file.get_ref().try_clone().map_err(disk())?;
        file.rewind().map_err(disk())?;
        let (mut lines, mut line) = (BufReader::new(file), Vec::new());
        let next = || {
            line.clear();
            match lines.read_until(b'\n', &mut line) {
                Err(error) => Some(Err(disk()(error))),
                Ok(0) => None,
                Ok(_) => Some(serde_json::from_slice(&line).map_err(|_| {
                    IndexError::damaged(&self.dir, "an entry that waits can't be read")
                })),
            }
        };
        visit_read_ahead(&self.dir, next, visit)
    }
}

/// Reads entries with `next` on another thread, until it returns `None` or an error, and passes
/// them to `visit`. The thread saves time, because parsing an entry takes about as long as visiting
/// it. `dir` is the directory to name in an error.
///
/// # Errors
/// The error of `next` or `visit`, or if the thread can't be started.
pub fn visit_read_ahead(
    dir: &Path,
    mut next: impl FnMut() -> Option<Result<IndexLogEntry, IndexError>> + Send,
    visit: &mut EntryVisitor<'_>,
) -> Result<ControlFlow<()>, IndexError> {
    let in_transit = BytesInTransitLimit::new(MAX_READ_AHEAD_BYTES);
    let (sender, entries) = sync_channel(MAX_READ_AHEAD_ENTRIES);
    let read = move || {
        while let Some(entry) = next() {
            let is_last = entry.is_err();
            let permit = in_transit.enter(entry.as_ref().map_or(0, IndexLogEntry::bytes));
            // Sending fails if the visitor has stopped.
            if sender.send((entry, permit)).is_err() || is_last {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let reader = Builder::new().name("crawl-index-log".to_owned());
        reader
            .spawn_scoped(scope, read)
            .map_err(IndexError::disk(dir))?;
        for (entry, _permit) in entries {
            if visit(entry?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;

    use super::{MAX_READ_AHEAD_BYTES, visit_read_ahead};
    use crate::error::IndexError;
    use crawl_index_entry::{IndexLogEntry, IndexedPage};

    fn page(n: usize) -> IndexLogEntry {
        IndexLogEntry::Put(Box::new(IndexedPage {
            url: n.to_string(),
            text: "x".repeat(MAX_READ_AHEAD_BYTES / 3),
            ..IndexedPage::default()
        }))
    }

    /// Visits 200 large pages, or an error at `error`, and stops at `stop`.
    fn visited(error: usize, stop: usize) -> (usize, Result<ControlFlow<()>, IndexError>) {
        let (mut read, mut visited) = (0, 0);
        let dir = Path::new("index");
        let next = || {
            read += 1;
            match read - 1 {
                n if n == error => Some(Err(IndexError::damaged(dir, "x"))),
                n => (n < 200).then(|| Ok(page(n))),
            }
        };
        let end = visit_read_ahead(dir, next, &mut |entry| {
            assert_eq!(entry.url(), visited.to_string());
            visited += 1;
            match visited == stop {
                true => Ok(ControlFlow::Break(())),
                false => Ok(ControlFlow::Continue(())),
            }
        });
        (visited, end)
    }

    #[test]
    fn entries_read_ahead_are_visited_in_order_until_the_end_an_error_or_a_stop() {
        let (count, end) = visited(1000, 1000);
        assert!(count == 200 && end.unwrap().is_continue());
        let (count, end) = visited(1000, 3);
        assert!(count == 3 && end.unwrap().is_break());
        let (count, end) = visited(100, 1000);
        assert!(count == 100 && end.is_err());
    }
}
