//! The log that the search index of a crawl follows, and how far an index has read it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crawl_archive::{BoundedLine, LineReader, RowFile};
use crawl_frontier::{Frontier, FrontierError};
use crawl_index::{EntryVisitor, IndexEntry, IndexError, PendingEntries};
use serde::{Deserialize, Serialize};

use super::{INDEX_FOLDER, LOG, OLD_FOLDER};
use crate::error::EngineError;
use crate::meta_keys::META_INDEX;

/// A longer line of the log is no entry: what is indexed of a page has bounds that together stay
/// below. Bytes.
const MAX_ENTRY_BYTES: usize = 64 * 1024 * 1024;

/// The place that an index has read to: stored with each of its commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) log: u64,
    #[serde(rename = "octets")]
    pub(crate) bytes: u64,
}

/// From where on an index with this note has to read a log; or why it can't.
pub(crate) fn place(note: Option<&str>, number: u64, committed: u64) -> Result<Read, String> {
    let begin = Read {
        log: number,
        bytes: 0,
    };
    match note.map(serde_json::from_str::<Read>) {
        None if number == 1 => Ok(begin),
        None => Err("it is not there".to_owned()),
        Some(Ok(read)) if read.log == number && read.bytes <= committed => Ok(read),
        // The log was begun anew as the index had come to its end.
        Some(Ok(read)) if read.log < number => Ok(begin),
        Some(_) => Err("it is not of this crawl's log".to_owned()),
    }
}

/// Ends what a kill cut short as one index took the place of another: the older one stays where
/// the newer did not come to stand.
pub(crate) fn mend_swap(dir: &Path) -> Result<(), EngineError> {
    let (folder, old) = (dir.join(INDEX_FOLDER), dir.join(OLD_FOLDER));
    match (folder.exists(), old.exists()) {
        (false, true) => fs::rename(&old, &folder).map_err(EngineError::disk(&old)),
        _ => Ok(crawl_index::remove(&old)?),
    }
}

/// Begins the log anew where no index follows it yet: that is committed by [`follow_log`].
pub(crate) fn begin_log_unfollowed(
    dir: &Path,
    frontier: &dyn Frontier,
    number: u64,
) -> Result<u64, EngineError> {
    let mut transaction = frontier.begin()?;
    transaction.mark(LOG, 0);
    transaction.commit()?;
    RowFile::open(&log_path(dir), Some(0))?;
    Ok(number)
}

/// That the index follows the log of that number.
pub(crate) fn follow_log(frontier: &dyn Frontier, number: u64) -> Result<(), FrontierError> {
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_INDEX, &number.to_be_bytes());
    transaction.commit().map(drop)
}

/// Begins the log anew: the index has read all of it, or was built without it. The number of the
/// one that begins.
pub(crate) fn begin_log(
    dir: &Path,
    frontier: &dyn Frontier,
    number: u64,
) -> Result<u64, EngineError> {
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_INDEX, &number.to_be_bytes());
    transaction.mark(LOG, 0);
    transaction.commit()?;
    RowFile::open(&log_path(dir), Some(0))?;
    Ok(number)
}

/// The note of an index that has all of the logs before `number`.
pub(crate) fn note_of(number: u64) -> String {
    note(Read {
        log: number,
        bytes: 0,
    })
}

pub(crate) fn note(read: Read) -> String {
    serde_json::to_string(&read).unwrap_or_default()
}

pub(crate) fn log_path(dir: &Path) -> PathBuf {
    dir.join("state").join(LOG)
}

/// Reads the log from some entry on.
pub(crate) struct LogReader {
    dir: PathBuf,
    path: PathBuf,
    lines: LineReader<BufReader<File>>,
    /// The place of the next entry. Bytes.
    at: u64,
}

impl LogReader {
    /// Reads that of the crawl in `dir`.
    pub(crate) fn open(dir: &Path, at: u64) -> Result<LogReader, IndexError> {
        let path = log_path(dir);
        let file = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(at))?;
            Ok(file)
        });
        Ok(LogReader {
            dir: dir.to_path_buf(),
            lines: LineReader::new(BufReader::new(file.map_err(disk(&path))?), MAX_ENTRY_BYTES),
            path,
            at,
        })
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The next entry: there must be one.
    pub(crate) fn next_entry(&mut self) -> Result<IndexEntry, IndexError> {
        let at = self.at;
        let bad = |why: &dyn std::fmt::Display| IndexError::Damaged {
            dir: self.dir.join(INDEX_FOLDER),
            what: format!("byte {at} of its log begins no entry: {why}"),
        };
        match self.lines.next_line().map_err(disk(&self.path))? {
            Some(BoundedLine::Whole(line)) => {
                let entry = serde_json::from_slice(line).map_err(|why| bad(&why))?;
                self.at += line.len() as u64;
                Ok(entry)
            }
            Some(BoundedLine::TooLong { bytes }) => {
                Err(bad(&format_args!("a line of {bytes} bytes")))
            }
            Some(BoundedLine::Torn { .. }) | None => Err(bad(&"the file ends")),
        }
    }
}

fn disk(path: &Path) -> impl FnOnce(io::Error) -> IndexError {
    let path = path.to_path_buf();
    |source| IndexError::Disk {
        path,
        source: Arc::new(source),
    }
}

/// What an index has not read of the log when a run ends.
pub(crate) struct RestOfLog {
    pub(crate) dir: PathBuf,
    /// The place that the index has read to, and the end of the log. Bytes.
    pub(crate) from: u64,
    pub(crate) end: u64,
    /// Pages in it that are not indexed, by the reason, as they were read last.
    pub(crate) left_out: RefCell<BTreeMap<String, u64>>,
}

impl PendingEntries for RestOfLog {
    fn each(&self, visit: &mut EntryVisitor<'_>) -> Result<ControlFlow<()>, IndexError> {
        let mut left_out = BTreeMap::new();
        if self.from < self.end {
            let mut log = LogReader::open(&self.dir, self.from)?;
            while log.at() < self.end {
                let entry = log.next_entry()?;
                count_left_out(&mut left_out, &entry);
                if visit(entry)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        self.left_out.replace(left_out);
        Ok(ControlFlow::Continue(()))
    }
}

/// Counts an entry that keeps its page out.
pub(crate) fn count_left_out(left_out: &mut BTreeMap<String, u64>, entry: &IndexEntry) {
    if let Some(why) = entry.left_out() {
        *left_out.entry(why.to_owned()).or_default() += 1;
    }
}
