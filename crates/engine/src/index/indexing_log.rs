//! The log that a crawl's search index follows, and how far the index has read it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_archive::{BoundedLineResult, LineReader, RowFileWriter};
use crawl_frontier::{Frontier, FrontierError};
use crawl_index::{EntryVisitor, IndexError, IndexLogEntry, PendingEntrySource, visit_read_ahead};
use serde::{Deserialize, Serialize};

use super::{INDEX_FOLDER, LOG, OLD_FOLDER};
use crate::error::EngineError;
use crate::frontier_meta_keys::META_INDEX;

/// Maximum bytes of a line of `state/indexing.jsonl`. The limits on a page's indexed parts add up
/// to less.
/// Beyond the limit: the index stops until `crawl index DIR`.
const MAX_ENTRY_BYTES: usize = 64 * 1024 * 1024;

/// How far an index has read an indexing log. This value is stored with each commit of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexingLogPosition {
    pub(crate) log: u64,
    #[serde(rename = "octets")]
    pub(crate) bytes: u64,
}

/// Returns the position where an index must start to read the indexing log with this `number`, from
/// the note stored with the index. The error is the reason why the index can't follow the log.
pub(crate) fn place(
    note: Option<&str>,
    number: u64,
    committed: u64,
) -> Result<IndexingLogPosition, String> {
    let begin = IndexingLogPosition {
        log: number,
        bytes: 0,
    };
    match note.map(serde_json::from_str::<IndexingLogPosition>) {
        None if number == 1 => Ok(begin),
        None => Err("it is missing".to_owned()),
        Some(Ok(read)) if read.log == number && read.bytes <= committed => Ok(read),
        // The index has read an older log. A new log is started only once the index has read the
        // old one to its end, so begin this log at its start.
        Some(Ok(read)) if read.log < number => Ok(begin),
        Some(_) => Err("it belongs to another log".to_owned()),
    }
}

/// Finishes an interrupted replacement of the index, or undoes it if the new index was not in
/// place yet.
pub(crate) fn mend_swap(dir: &Path) -> Result<(), EngineError> {
    let (folder, old) = (dir.join(INDEX_FOLDER), dir.join(OLD_FOLDER));
    match (folder.exists(), old.exists()) {
        (false, true) => fs::rename(&old, &folder).map_err(EngineError::disk(&old)),
        _ => Ok(crawl_index::remove(&old)?),
    }
}

/// Starts a new indexing log. No index follows it until [`follow_log`] is called.
pub(crate) fn begin_log_unfollowed(
    dir: &Path,
    frontier: &dyn Frontier,
    number: u64,
) -> Result<u64, EngineError> {
    let mut transaction = frontier.begin()?;
    transaction.mark(LOG, 0);
    transaction.commit()?;
    RowFileWriter::open(&log_path(dir), Some(0))?;
    Ok(number)
}

/// Records in the frontier that the index follows the indexing log with this number.
pub(crate) fn follow_log(frontier: &dyn Frontier, number: u64) -> Result<(), FrontierError> {
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_INDEX, &number.to_be_bytes());
    transaction.commit().map(drop)
}

/// Starts a new indexing log for an index that contains everything from the old log. Returns the
/// new log's number.
pub(crate) fn begin_log(
    dir: &Path,
    frontier: &dyn Frontier,
    number: u64,
) -> Result<u64, EngineError> {
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_INDEX, &number.to_be_bytes());
    transaction.mark(LOG, 0);
    transaction.commit()?;
    RowFileWriter::open(&log_path(dir), Some(0))?;
    Ok(number)
}

/// Returns the note of an index that has read all indexing logs before `number`, and nothing of log
/// `number`.
pub(crate) fn note_of(number: u64) -> String {
    note(IndexingLogPosition {
        log: number,
        bytes: 0,
    })
}

pub(crate) fn note(read: IndexingLogPosition) -> String {
    serde_json::to_string(&read).unwrap_or_default()
}

pub(crate) fn log_path(dir: &Path) -> PathBuf {
    dir.join("state").join(LOG)
}

/// A reader of `state/indexing.jsonl` that can start at any entry.
pub(crate) struct IndexingLogReader {
    dir: PathBuf,
    path: PathBuf,
    lines: LineReader<BufReader<File>>,
    /// The byte offset of the next entry.
    at: u64,
}

impl IndexingLogReader {
    /// Opens the indexing log of the crawl in `dir`, at the byte offset `at`.
    pub(crate) fn open(dir: &Path, at: u64) -> Result<IndexingLogReader, IndexError> {
        let path = log_path(dir);
        let file = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(at))?;
            Ok(file)
        });
        Ok(IndexingLogReader {
            dir: dir.to_path_buf(),
            lines: LineReader::new(BufReader::new(file.map_err(disk(&path))?), MAX_ENTRY_BYTES),
            path,
            at,
        })
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Returns the next entry. Call this only if there is one.
    pub(crate) fn next_entry(&mut self) -> Result<IndexLogEntry, IndexError> {
        let at = self.at;
        let bad = |why: &dyn std::fmt::Display| IndexError::Damaged {
            dir: self.dir.join(INDEX_FOLDER),
            what: format!("no entry begins at byte {at} of its log: {why}"),
        };
        match self.lines.next_line().map_err(disk(&self.path))? {
            Some(BoundedLineResult::Whole(line)) => {
                let entry = serde_json::from_slice(line).map_err(|why| bad(&why))?;
                self.at += line.len() as u64;
                Ok(entry)
            }
            Some(BoundedLineResult::TooLong { bytes }) => {
                Err(bad(&format_args!("a line of {bytes} bytes")))
            }
            Some(BoundedLineResult::Torn { .. }) | None => Err(bad(&"the file ends")),
        }
    }
}

/// Returns a closure for `map_err` that reports a failure to read or write `path`.
pub(crate) fn disk(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
    let path = path.to_path_buf();
    |source| IndexError::Disk {
        path,
        source: Arc::new(source),
    }
}

/// The part of the indexing log that is unread when a run ends.
pub(crate) struct IndexingLogTail {
    pub(crate) dir: PathBuf,
    /// The byte offset up to which the index has read the indexing log.
    pub(crate) from: u64,
    /// The byte offset of the end of the indexing log.
    pub(crate) end: u64,
    /// The number of pages in the unread part that are not indexed, by reason, as counted by the
    /// last call of `each`.
    pub(crate) left_out: RefCell<BTreeMap<String, u64>>,
}

impl PendingEntrySource for IndexingLogTail {
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        let mut left_out = BTreeMap::new();
        if self.from < self.end {
            let mut log = IndexingLogReader::open(&self.dir, self.from)?;
            let end = self.end;
            let next = || (log.at() < end).then(|| log.next_entry());
            let walk = visit_read_ahead(&self.dir, next, &mut |entry| {
                count_left_out(&mut left_out, &entry);
                visit(entry)
            })?;
            if walk.is_break() {
                return Ok(walk);
            }
        }
        self.left_out.replace(left_out);
        Ok(ControlFlow::Continue(()))
    }
}

/// Counts an entry if it keeps its page out of the index.
pub(crate) fn count_left_out(left_out: &mut BTreeMap<String, u64>, entry: &IndexLogEntry) {
    if let Some(why) = entry.left_out() {
        *left_out.entry(why.to_owned()).or_default() += 1;
    }
}
