//! The search index of a crawl, behind the settling: it follows a log, and loses nothing.
//!
//! The index's entry of a URL is a line of `state/indexing.jsonl`, written in the same
//! group as the page's row and committed by the same transaction. A thread reads the log up to
//! what is committed, and each commit of the index holds how far it came. So the index knows no
//! page that the crawl does not, and after any death it goes on where it was; a slow index slows
//! nothing down, and a log that the index has read to its end is begun anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crawl_archive::{BoundedLine, FOLDER, LineReader, RowFile};
use crawl_frontier::Frontier;
use crawl_index::{Commit, IndexEntry, IndexError, IndexWriter};

use crate::config::Config;
use crate::error::EngineError;
use crate::index::log::{
    INDEX_FOLDER, LOG, Read, begin_log, begin_log_unfollowed, follow_log, forget, log_path,
    mend_swap, note, note_of, number, place,
};
use crate::index::rebuild::{self, Reindex};
use crate::summary::{HasArchive, IndexFault, Indexed};

/// A longer line of the log is no entry: what is indexed of a page has bounds that together stay
/// below. Bytes.
const MAX_ENTRY_BYTES: usize = 64 * 1024 * 1024;
/// Pages become visible to a search after so long, while a crawl runs.
const COMMIT_INTERVAL: Duration = Duration::from_secs(2);

/// Tells indexing when to end before its work is done: between two pages, never within one.
#[derive(Clone)]
pub(crate) struct Halt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Halt {
    /// As soon as `is_due` says so.
    pub(crate) fn when(is_due: impl Fn() -> bool + Send + Sync + 'static) -> Halt {
        Halt(Arc::new(is_due))
    }

    fn is_due(&self) -> bool {
        (self.0)()
    }

    fn question(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        Arc::clone(&self.0)
    }
}

/// The log and the index behind it, before a run begins.
pub(crate) struct Indexing {
    pub(crate) log: RowFile,
    start: Start,
    /// The lengths to which the log and `pages.jsonl` are committed.
    read: Read,
    pages_committed: Option<u64>,
    has_archive: HasArchive,
}

/// The index as the run finds it.
enum Start {
    /// An index that has read the log so far, and whose files are still to be looked at.
    At(Read),
    /// None that holds what was settled before. Why.
    Without(IndexFault),
}

impl Indexing {
    /// Opens the log of a crawl, and finds out how far its index has read it.
    pub(crate) fn open(
        dir: &Path,
        frontier: &dyn Frontier,
        has_pages: bool,
    ) -> Result<Indexing, EngineError> {
        mend_swap(dir)?;
        let folder = dir.join(INDEX_FOLDER);
        let marks = frontier.marks()?;
        let committed = marks.get(LOG).copied().unwrap_or(0);
        let number = number(frontier)?;
        let note = match crawl_index::note_in(&folder) {
            Err(IndexError::Damaged { what, .. }) => Err(what),
            other => Ok(other?),
        };
        let known = match (&note, number) {
            _ if number.is_none() && has_pages => Err(IndexFault::NotBuilt),
            (Err(damage), _) => Err(IndexFault::Damaged(damage.clone())),
            (Ok(None), Some(number)) if number > 1 => Err(IndexFault::NotBuilt),
            (Ok(note), _) => {
                let read = place(note.as_deref(), number.unwrap_or(1), committed);
                read.map_err(IndexFault::Damaged)
            }
        };
        let has_archive = match dir.join(FOLDER).is_dir() {
            true => HasArchive::Yes,
            false => HasArchive::No,
        };
        let is_lost = known.is_err() && note.is_ok();
        if is_lost && has_archive == HasArchive::No {
            return Err(EngineError::NoArchive {
                dir: dir.to_path_buf(),
            });
        }
        let (number, committed) = match number {
            Some(number) if !is_lost => (number, committed),
            // Until it is built anew, no index follows the log.
            _ if known.is_err() => {
                forget(frontier)?;
                (
                    begin_log_unfollowed(dir, frontier, number.unwrap_or(1) + 1)?,
                    0,
                )
            }
            _ => (begin_log(dir, frontier, 1)?, 0),
        };
        let log = RowFile::open(&log_path(dir), Some(committed))?;
        if known.is_ok() && matches!(note, Ok(None)) {
            // So that a search finds an index from the first moment on.
            let mut writer = IndexWriter::open(&folder)?;
            writer.commit(&note_of(number))?;
            writer.close()?;
        }
        let bytes = committed;
        Ok(Indexing {
            log,
            start: known.map_or_else(Start::Without, Start::At),
            read: Read { log: number, bytes },
            pages_committed: marks.get("pages.jsonl").copied(),
            has_archive,
        })
    }
}

/// Opens the log of the search index, where one is built.
pub(crate) fn open_log(
    config: &Config,
    frontier: &dyn Frontier,
    has_pages: bool,
) -> Result<Option<Indexing>, EngineError> {
    if !config.index {
        forget(frontier)?;
        return Ok(None);
    }
    Indexing::open(&config.output, frontier, has_pages).map(Some)
}

/// The thread that follows the log.
pub(crate) struct Indexer {
    thread: JoinHandle<Result<Outcome, EngineError>>,
    committed: Sender<u64>,
}

/// The result of the thread.
pub(crate) enum Outcome {
    /// It read the log to its end, or as far as there was time.
    Read(Box<Follower>),
    /// There is no index that it could read it into.
    Without(Indexed),
}

/// The thread's settings.
pub(crate) struct Setting {
    pub(crate) dir: PathBuf,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) rules: Reindex,
    pub(crate) halt: Halt,
}

impl Indexer {
    /// Starts to follow: first the index is looked at, and built anew where it is damaged or not
    /// there. The log stays with the writer.
    pub(crate) fn start(
        setting: Setting,
        indexing: Indexing,
        mut failed: impl FnMut(EngineError) + Send + 'static,
    ) -> Result<(Indexer, RowFile), EngineError> {
        let Indexing {
            log,
            start,
            read,
            pages_committed,
            has_archive,
        } = indexing;
        let dir = setting.dir.clone();
        let (committed, lengths) = channel();
        // What an earlier run left unread.
        let _ = committed.send(log.len());
        let opening = Opening {
            setting,
            read,
            pages_committed,
            has_archive,
        };
        // What is wrong with the index ends no crawl.
        let work = move || {
            let caught = catch_unwind(AssertUnwindSafe(|| opening.run(start, &lengths)));
            match caught {
                Ok(Err(EngineError::Index(IndexError::Damaged { what, .. }))) => {
                    Ok(opening.without(IndexFault::Damaged(what)))
                }
                Ok(Err(error)) => {
                    failed(error);
                    Err(EngineError::Thread {
                        what: "the index failed before".to_owned(),
                    })
                }
                Ok(ended) => ended,
                Err(_) => {
                    let why = "its thread panicked".to_owned();
                    Ok(opening.without(IndexFault::Damaged(why)))
                }
            }
        };
        let thread = Builder::new().name("crawl-index".to_owned()).spawn(work);
        let thread = thread.map_err(EngineError::disk(&dir))?;
        Ok((Indexer { thread, committed }, log))
    }

    /// A sender of the log's committed length.
    pub(crate) fn lengths(&self) -> Sender<u64> {
        self.committed.clone()
    }

    /// Waits until the index has read the log to its end, once all senders are gone.
    pub(crate) fn join(self) -> Result<Outcome, EngineError> {
        drop(self.committed);
        let thread = self.thread.join();
        thread.map_err(|_| EngineError::Thread {
            what: "the index".to_owned(),
        })?
    }
}

/// The thread before it has an index.
struct Opening {
    setting: Setting,
    /// The length to which the log is committed: where one that is built anew begins to read it.
    read: Read,
    pages_committed: Option<u64>,
    has_archive: HasArchive,
}

impl Opening {
    fn run(&self, start: Start, lengths: &Receiver<u64>) -> Result<Outcome, EngineError> {
        let halt = &self.setting.halt;
        let folder = self.setting.dir.join(INDEX_FOLDER);
        let why = match start {
            Start::At(read) => match IndexWriter::open_unless(&folder, halt.question()) {
                Ok(Some(writer)) => return self.follow(writer, read, lengths),
                Ok(None) => return Ok(waiting(read, lengths)),
                Err(IndexError::Damaged { what, .. }) => IndexFault::Damaged(what),
                Err(other) => return Err(other.into()),
            },
            Start::Without(why) => why,
        };
        let dir = self.setting.dir.display();
        if self.has_archive == HasArchive::No {
            tracing::warn!("the search index is {why}: there is no archive to build it from");
            return Ok(self.without(why));
        }
        tracing::warn!(
            "the search index is {why}: it is built from the archive, as `crawl index {dir}` would do"
        );
        let Setting {
            dir,
            frontier,
            rules,
            ..
        } = &self.setting;
        let note = note(self.read);
        if !rebuild::build_behind(
            dir,
            &**frontier,
            rules,
            self.pages_committed,
            &note,
            &|| halt.is_due(),
        )? {
            return Ok(self.without(why));
        }
        follow_log(&**frontier, self.read.log)?;
        tracing::info!("the search index is built");
        match IndexWriter::open_unless(&folder, halt.question())? {
            Some(writer) => self.follow(writer, self.read, lengths),
            None => Ok(waiting(self.read, lengths)),
        }
    }

    fn follow(
        &self,
        writer: IndexWriter,
        read: Read,
        lengths: &Receiver<u64>,
    ) -> Result<Outcome, EngineError> {
        let (dir, halt) = (&self.setting.dir, self.setting.halt.clone());
        let mut follower = Follower::at(dir, writer, read, self.has_archive, halt)?;
        follower.follow(lengths)?;
        Ok(Outcome::Read(Box::new(follower)))
    }

    fn without(&self, why: IndexFault) -> Outcome {
        Outcome::Without(Indexed {
            fault: Some((why, self.has_archive)),
            ..Indexed::default()
        })
    }
}

/// The outcome where the run ended before the index was looked at: all that the run settled
/// waits in the log. Waits until the writer has ended.
fn waiting(read: Read, lengths: &Receiver<u64>) -> Outcome {
    let length = lengths.iter().last().unwrap_or(read.bytes);
    Outcome::Without(Indexed {
        waiting_bytes: length.saturating_sub(read.bytes),
        ..Indexed::default()
    })
}

/// Reads the log into the index.
pub(crate) struct Follower {
    dir: PathBuf,
    has_archive: HasArchive,
    lines: LineReader<BufReader<File>>,
    read: Read,
    /// As of the index's last commit, and when that was.
    kept: Read,
    kept_at: Instant,
    writer: IndexWriter,
    /// Pages that are not indexed, by the reason; the second as of the index's last commit.
    left_out: BTreeMap<String, u64>,
    kept_left_out: BTreeMap<String, u64>,
    /// The committed length of the log, as far as it was told.
    length: u64,
    halt: Halt,
}

impl Follower {
    /// Goes on in the log of the crawl in `dir` from where the index of the writer has `read` it.
    fn at(
        dir: &Path,
        writer: IndexWriter,
        read: Read,
        has_archive: HasArchive,
        halt: Halt,
    ) -> Result<Follower, EngineError> {
        let path = log_path(dir);
        let mut file = File::open(&path).map_err(EngineError::disk(&path))?;
        let moved = file.seek(SeekFrom::Start(read.bytes));
        moved.map_err(EngineError::disk(&path))?;
        Ok(Follower {
            dir: dir.to_path_buf(),
            has_archive,
            lines: LineReader::new(BufReader::new(file), MAX_ENTRY_BYTES),
            read,
            kept: read,
            kept_at: Instant::now(),
            writer,
            left_out: BTreeMap::new(),
            kept_left_out: BTreeMap::new(),
            length: read.bytes,
            halt,
        })
    }

    fn follow(&mut self, lengths: &Receiver<u64>) -> Result<(), EngineError> {
        loop {
            let wait = COMMIT_INTERVAL.saturating_sub(self.kept_at.elapsed());
            match lengths.recv_timeout(wait) {
                Ok(length) => {
                    self.length = lengths.try_iter().last().unwrap_or(length);
                    self.read_on()?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.kept_at.elapsed() >= COMMIT_INTERVAL {
                self.keep()?;
            }
        }
        self.keep()
    }

    /// Reads what is committed, and commits the index as often as it is due.
    fn read_on(&mut self) -> Result<(), EngineError> {
        let path = log_path(&self.dir);
        while self.read.bytes < self.length && !self.halt.is_due() {
            let at = self.read.bytes;
            let bad = |why: &dyn std::fmt::Display| {
                EngineError::Index(IndexError::Damaged {
                    dir: self.dir.join(INDEX_FOLDER),
                    what: format!("byte {at} of its log begins no entry: {why}"),
                })
            };
            let (entry, read) = match self.lines.next_line().map_err(EngineError::disk(&path))? {
                Some(BoundedLine::Whole(line)) => {
                    let entry: IndexEntry =
                        serde_json::from_slice(line).map_err(|why| bad(&why))?;
                    (entry, line.len())
                }
                Some(BoundedLine::TooLong { bytes }) => {
                    return Err(bad(&format_args!("a line of {bytes} bytes")));
                }
                Some(BoundedLine::Torn { .. }) | None => return Err(bad(&"the file ends")),
            };
            if let Some(why) = entry.left_out() {
                *self.left_out.entry(why.to_owned()).or_default() += 1;
            }
            self.writer.apply(&entry)?;
            self.read.bytes += read as u64;
            if self.kept_at.elapsed() >= COMMIT_INTERVAL {
                self.keep()?;
            }
        }
        Ok(())
    }

    fn keep(&mut self) -> Result<(), EngineError> {
        if self.read != self.kept {
            match self.writer.commit(&note(self.read))? {
                Commit::Done => {
                    self.kept = self.read;
                    self.kept_left_out.clone_from(&self.left_out);
                }
                // The next run reads it again; this one reads no more.
                Commit::Stopped => {
                    self.read = self.kept;
                    self.left_out.clone_from(&self.kept_left_out);
                    self.halt = Halt::when(|| true);
                }
            }
        }
        self.kept_at = Instant::now();
        Ok(())
    }

    /// Settles what only all pages together tell, begins the log anew, and ends; or leaves that
    /// and the rest to the next run, where the time for it is over.
    pub(crate) fn finish(
        mut self,
        frontier: &dyn Frontier,
        now: i64,
    ) -> Result<Indexed, EngineError> {
        if self.read.bytes < self.length {
            return Ok(self.leave());
        }
        let halt = self.halt.clone();
        let note = note(self.read);
        let is_stopped = || halt.is_due();
        let done = match self.writer.reconcile_unless(&note, now, &is_stopped) {
            Ok(Some(done)) => done,
            Ok(None) => return Ok(self.leave()),
            Err(IndexError::Damaged { what, .. }) => {
                return Ok(Indexed {
                    fault: Some((IndexFault::Damaged(what), self.has_archive)),
                    ..self.leave()
                });
            }
            Err(other) => return Err(other.into()),
        };
        if !halt.is_due() {
            self.writer.close()?;
        }
        begin_log(&self.dir, frontier, self.read.log + 1)?;
        Ok(Indexed {
            pages: Some(done.pages),
            duplicates: done.duplicates,
            left_out: self.left_out,
            ..Indexed::default()
        })
    }

    /// Ends, and leaves the rest to the next run.
    pub(crate) fn leave(self) -> Indexed {
        Indexed {
            left_out: self.left_out,
            waiting_bytes: self.length.saturating_sub(self.read.bytes),
            ..Indexed::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crawl_fetcher::Secrets;
    use crawl_frontier::MemoryFrontier;
    use crawl_index::{IndexedPage, SearchIndex};
    use crawl_policy::{ProductToken, Profile};

    use super::*;

    /// A thread's work on a log, until it was asked so often whether it is to stop.
    fn follow(dir: &Path, asks: usize) -> Indexed {
        let folder = dir.join(INDEX_FOLDER);
        let writer = IndexWriter::open(&folder).unwrap();
        let note = crawl_index::note_in(&folder).unwrap();
        let read = place(note.as_deref(), 1, u64::MAX).unwrap();
        let asked = AtomicUsize::new(0);
        let halt = Halt::when(move || asked.fetch_add(1, Ordering::Relaxed) >= asks);
        let mut follower = Follower::at(dir, writer, read, HasArchive::No, halt).unwrap();
        let (committed, lengths) = channel();
        committed
            .send(fs::metadata(log_path(dir)).unwrap().len())
            .unwrap();
        drop(committed);
        follower.follow(&lengths).unwrap();
        follower.leave()
    }

    #[test]
    fn what_there_is_no_time_for_waits_in_the_log() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        let line = |n: usize| {
            let page = IndexedPage {
                url: format!("http://a.example/{n}"),
                title: "Tea".to_owned(),
                ..IndexedPage::default()
            };
            serde_json::to_string(&IndexEntry::Put(Box::new(page))).unwrap() + "\n"
        };
        let lines: Vec<String> = (0..5).map(line).collect();
        fs::write(log_path(dir.path()), lines.concat()).unwrap();
        let pages = || {
            let index = SearchIndex::open(&dir.path().join(INDEX_FOLDER)).unwrap();
            index.stats().unwrap().pages
        };
        let left = follow(dir.path(), 2);
        assert_eq!(left.waiting_bytes, lines[2..].concat().len() as u64);
        assert_eq!((left.pages, pages()), (None, 2));
        // The next start goes on there.
        let left = follow(dir.path(), 100);
        assert_eq!((left.waiting_bytes, pages()), (0, 5));
    }

    #[test]
    fn ours_what_was_settled_waits_where_there_is_no_time_to_look_at_the_index() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = IndexWriter::open(&dir.path().join(INDEX_FOLDER)).unwrap();
        // There are files to look at.
        writer.put(&IndexedPage::default()).unwrap();
        writer.commit(&note_of(1)).unwrap();
        writer.close().unwrap();
        let read = |bytes| Read { log: 1, bytes };
        let opening = Opening {
            setting: Setting {
                dir: dir.path().to_owned(),
                frontier: Arc::new(MemoryFrontier::default()),
                rules: Reindex {
                    agent: ProductToken::new("t").unwrap(),
                    profile: Profile::default(),
                    secrets: Secrets::of(&[]),
                },
                halt: Halt::when(|| true),
            },
            read: read(700),
            pages_committed: None,
            has_archive: HasArchive::Yes,
        };
        let (committed, lengths) = channel();
        for length in [700, 900, 1200] {
            committed.send(length).unwrap();
        }
        drop(committed);
        let Outcome::Without(left) = opening.run(Start::At(read(500)), &lengths).unwrap() else {
            panic!("nothing was looked at")
        };
        assert_eq!((left.waiting_bytes, left.fault), (700, None));
    }

    #[test]
    fn ours_an_index_that_is_switched_on_late_or_taken_away_is_not_called_damaged() {
        let fault = |has_pages, frontier: &MemoryFrontier| {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["state", FOLDER] {
                fs::create_dir(dir.path().join(folder)).unwrap();
            }
            let indexing = Indexing::open(dir.path(), frontier, has_pages).unwrap();
            match indexing.start {
                Start::Without(fault) => Some(fault),
                Start::At(_) => None,
            }
        };
        let frontier = MemoryFrontier::default();
        assert_eq!(fault(true, &frontier), Some(IndexFault::NotBuilt));
        assert_eq!(fault(false, &frontier), None);
        // Its log was begun anew once, so it has read pages.
        follow_log(&frontier, 2).unwrap();
        assert_eq!(fault(true, &frontier), Some(IndexFault::NotBuilt));
    }
}
