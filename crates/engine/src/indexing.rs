//! The search index of a crawl, behind the settling: it follows a log, and loses nothing.
//!
//! What the index is told of a URL is a line of `state/indexing.jsonl`, written in the same
//! group as the page's row and committed by the same transaction. A thread reads the log up to
//! what is committed, and each commit of the index holds how far it came. So the index knows no
//! page that the crawl does not, and after any death it goes on where it was; a slow index slows
//! nothing down, and a log that the index has read to its end is begun anew.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crawl_archive::{Line, LineReader, RowFile};
use crawl_frontier::{Frontier, FrontierError};
use crawl_index::{Entry, IndexError, IndexWriter, Reconciled};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// The folder of the index in a crawl's directory.
pub(crate) const INDEX_FOLDER: &str = "index";
/// Where it lies while another takes its place.
pub(crate) const OLD_FOLDER: &str = "index.old";
/// The log's file in `state/`.
const LOG: &str = "indexing.jsonl";
/// A longer line of the log is no entry: what is indexed of a page has bounds that together stay
/// below. Bytes.
const MAX_ENTRY_BYTES: usize = 64 * 1024 * 1024;
/// Which log it is: grows by one each time that it is begun anew.
const META_INDEX: &str = "index";
/// Pages become visible to a search after so long, while a crawl runs.
const COMMIT_EVERY: Duration = Duration::from_secs(2);

/// How far an index has read: stored with each of its commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Read {
    log: u64,
    octets: u64,
}

/// What became of the index in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Pages that a search can find; none where the run was stopped before they were counted.
    pub pages: Option<u64>,
    /// Pages that stand for others with the same text.
    pub duplicates: u64,
    /// Pages that this run left out, by reason.
    pub left_out: BTreeMap<String, u64>,
}

/// The log and the index behind it, before a run begins.
pub(crate) struct Indexing {
    pub(crate) log: RowFile,
    number: u64,
    read: Read,
    writer: IndexWriter,
}

impl std::fmt::Debug for Indexing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexing")
            .field("read", &self.read)
            .finish_non_exhaustive()
    }
}

impl Indexing {
    /// Opens log and index of a crawl; nothing where the index does not hold what the crawl
    /// settled before, and has to be built anew.
    pub(crate) fn open(
        dir: &Path,
        frontier: &dyn Frontier,
        has_pages: bool,
    ) -> Result<Option<Indexing>, EngineError> {
        let number = number(frontier)?;
        if number.is_none() && has_pages {
            return Ok(None);
        }
        let number = match number {
            Some(number) => number,
            None => begin_log(dir, frontier, 1)?,
        };
        let committed = frontier.marks()?.get(LOG).copied().unwrap_or(0);
        let log = RowFile::open(&log_path(dir), Some(committed))?;
        let folder = dir.join(INDEX_FOLDER);
        mend_swap(dir)?;
        let is_first = !folder.exists();
        let mut writer = IndexWriter::open(&folder)?;
        let read = match writer.note() {
            None if number == 1 => Read { log: 1, octets: 0 },
            None => return Ok(None),
            Some(note) => match serde_json::from_str::<Read>(note) {
                Ok(read) if read.log == number && read.octets <= committed => read,
                // The log was begun anew as the index had come to its end.
                Ok(read) if read.log < number => Read {
                    log: number,
                    octets: 0,
                },
                _ => return Ok(None),
            },
        };
        if is_first {
            // So that a search finds an index from the first moment on.
            writer.commit(&note(read))?;
        }
        Ok(Some(Indexing {
            log,
            number,
            read,
            writer,
        }))
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

/// That the index does not follow what is settled from now on.
pub(crate) fn forget(frontier: &dyn Frontier) -> Result<(), FrontierError> {
    if number(frontier)?.is_none() {
        return Ok(());
    }
    let mut transaction = frontier.begin()?;
    transaction.keep_meta(META_INDEX, b"");
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

/// The number of the log that the index follows; none where it follows none.
pub(crate) fn number(frontier: &dyn Frontier) -> Result<Option<u64>, FrontierError> {
    let stored = frontier.meta(META_INDEX)?;
    let stored = stored.and_then(|bytes| bytes.try_into().ok());
    Ok(stored.map(u64::from_be_bytes))
}

/// The note of an index that has all of the logs before `number`.
pub(crate) fn note_of(number: u64) -> String {
    note(Read {
        log: number,
        octets: 0,
    })
}

fn note(read: Read) -> String {
    serde_json::to_string(&read).unwrap_or_default()
}

fn log_path(dir: &Path) -> PathBuf {
    dir.join("state").join(LOG)
}

/// The thread that follows the log.
pub(crate) struct Indexer {
    thread: JoinHandle<Result<Follower, EngineError>>,
    committed: Sender<u64>,
}

impl Indexer {
    /// Starts to follow. The log stays with the writer.
    pub(crate) fn start(
        dir: &Path,
        indexing: Indexing,
        abandon: &Arc<AtomicBool>,
        mut failed: impl FnMut(EngineError) + Send + 'static,
    ) -> Result<(Indexer, RowFile), EngineError> {
        let Indexing {
            log,
            number,
            read,
            writer,
        } = indexing;
        let path = log_path(dir);
        let mut file = File::open(&path).map_err(EngineError::disk(&path))?;
        let moved = file.seek(SeekFrom::Start(read.octets));
        moved.map_err(EngineError::disk(&path))?;
        let mut follower = Follower {
            dir: dir.to_path_buf(),
            number,
            lines: LineReader::new(BufReader::new(file), MAX_ENTRY_BYTES),
            read,
            kept: read,
            writer,
            left_out: BTreeMap::new(),
        };
        let (committed, lengths) = channel();
        // What an earlier run left unread.
        let _ = committed.send(log.len());
        let abandon = Arc::clone(abandon);
        let follow = move || match follower.follow(&lengths, &abandon) {
            Ok(()) => Ok(follower),
            Err(error) => {
                failed(error);
                Err(EngineError::Thread {
                    what: "the index failed before".to_owned(),
                })
            }
        };
        let thread = Builder::new().name("crawl-index".to_owned()).spawn(follow);
        let thread = thread.map_err(EngineError::disk(dir))?;
        Ok((Indexer { thread, committed }, log))
    }

    /// A sender of the log's committed length.
    pub(crate) fn lengths(&self) -> Sender<u64> {
        self.committed.clone()
    }

    /// Waits until the index has read the log to its end, once all senders are gone.
    pub(crate) fn join(self) -> Result<Follower, EngineError> {
        drop(self.committed);
        let thread = self.thread.join();
        thread.map_err(|_| EngineError::Thread {
            what: "the index".to_owned(),
        })?
    }
}

/// Reads the log into the index.
pub(crate) struct Follower {
    dir: PathBuf,
    number: u64,
    lines: LineReader<BufReader<File>>,
    read: Read,
    /// As of the index's last commit.
    kept: Read,
    writer: IndexWriter,
    left_out: BTreeMap<String, u64>,
}

impl Follower {
    fn follow(&mut self, lengths: &Receiver<u64>, abandon: &AtomicBool) -> Result<(), EngineError> {
        let mut last = Instant::now();
        loop {
            let wait = COMMIT_EVERY.saturating_sub(last.elapsed());
            match lengths.recv_timeout(wait) {
                Ok(length) => {
                    let length = lengths.try_iter().last().unwrap_or(length);
                    self.read_to(length, abandon)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if last.elapsed() >= COMMIT_EVERY {
                self.keep()?;
                last = Instant::now();
            }
        }
        self.keep()
    }

    fn read_to(&mut self, length: u64, abandon: &AtomicBool) -> Result<(), EngineError> {
        let path = log_path(&self.dir);
        while self.read.octets < length && !abandon.load(Ordering::Relaxed) {
            let at = self.read.octets;
            let bad = |why: &dyn std::fmt::Display| EngineError::Disk {
                path: path.clone(),
                source: std::io::Error::other(format!("byte {at} begins no entry: {why}")),
            };
            let (entry, read) = match self.lines.next_line().map_err(EngineError::disk(&path))? {
                Some(Line::Whole(line)) => {
                    let entry: Entry = serde_json::from_slice(line).map_err(|why| bad(&why))?;
                    (entry, line.len())
                }
                Some(Line::TooLong { bytes }) => {
                    return Err(bad(&format_args!("a line of {bytes} bytes")));
                }
                Some(Line::Torn { .. }) | None => return Err(bad(&"the file ends")),
            };
            if let Some(why) = entry.left_out() {
                *self.left_out.entry(why.to_owned()).or_default() += 1;
            }
            self.writer.apply(&entry)?;
            self.read.octets += read as u64;
        }
        Ok(())
    }

    fn keep(&mut self) -> Result<(), EngineError> {
        if self.read != self.kept {
            self.writer.commit(&note(self.read))?;
            self.kept = self.read;
        }
        Ok(())
    }

    /// Settles what only all pages together tell, begins the log anew, and ends.
    pub(crate) fn finish(
        mut self,
        frontier: &dyn Frontier,
        now: i64,
    ) -> Result<Indexed, EngineError> {
        let Reconciled {
            pages, duplicates, ..
        } = self.writer.reconcile(&note(self.read), now)?;
        self.writer.close()?;
        begin_log(&self.dir, frontier, self.number + 1)?;
        Ok(Indexed {
            pages: Some(pages),
            duplicates,
            left_out: self.left_out,
        })
    }

    /// Ends, and leaves the rest to the next run.
    pub(crate) fn leave(self) -> Indexed {
        Indexed {
            left_out: self.left_out,
            ..Indexed::default()
        }
    }
}

impl From<IndexError> for EngineError {
    fn from(error: IndexError) -> EngineError {
        EngineError::Index(error)
    }
}
