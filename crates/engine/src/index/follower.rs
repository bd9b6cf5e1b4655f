//! The search index of a crawl, behind the settling: it follows a log, and loses nothing.
//!
//! The index's entry of a URL is a line of `state/indexing.jsonl`, written in the same
//! group as the page's row and committed by the same transaction. A thread reads the log up to
//! what is committed, and each commit of the index holds how far it came. So the index knows no
//! page that the crawl does not, and after any death it goes on where it was; a slow index slows
//! nothing down, and a log that the index has read to its end is begun anew.
//!
//! While readers are with pages for much of the time, the index waits. What it
//! has not read when the run ends is put into it once, as the last pass over all pages would have
//! it, and not twice.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crawl_archive::{FOLDER, RowFile};
use crawl_frontier::Frontier;
use crawl_index::{Commit, IndexError, IndexWriter};

use crate::config::Config;
use crate::error::EngineError;
use crate::index::log::{
    LogReader, Read, RestOfLog, begin_log, begin_log_unfollowed, count_left_out, follow_log,
    log_path, mend_swap, note, note_of, place,
};
use crate::index::log_number::{forget, number};
use crate::index::rebuild::{self, Reindex};
use crate::index::redirects::redirects_of;
use crate::index::{INDEX_FOLDER, LOG};
use crate::summary::{HasArchive, IndexFault, Indexed};

/// Pages become visible to a search after so long, while a crawl runs.
const COMMIT_INTERVAL: Duration = Duration::from_secs(2);
/// So much of the log at most waits for readers to be idle. Bytes.
const MAX_WAITING_BYTES: u64 = 512 << 20;
/// From so much on, the rest of a log is taken by all processors. Bytes.
const MANY_BYTES: u64 = 8 << 20;

/// Asks whether the crawl is as fast as the processors are.
pub(crate) type IsBusy = Arc<dyn Fn() -> bool + Send + Sync>;

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
    leaves_rest: Arc<AtomicBool>,
}

/// The result of the thread.
pub(crate) enum Outcome {
    /// It read the log to its end, or as far as there was time.
    Read(Box<Follower>),
    /// There is no index that it could read it into.
    Without(Indexed),
}

impl Outcome {
    /// Finishes the index if the run is whole. Otherwise leaves the rest of the log to the next run.
    /// `now` is in seconds since 1970 UTC.
    pub(crate) fn end(
        self,
        is_whole: bool,
        frontier: &dyn Frontier,
        now: i64,
    ) -> Result<Indexed, EngineError> {
        match self {
            Outcome::Read(index) if is_whole => index.finish(frontier, now),
            Outcome::Read(index) => Ok(index.leave()),
            Outcome::Without(indexed) => Ok(indexed),
        }
    }
}

/// The thread's settings.
struct Setting {
    dir: PathBuf,
    frontier: Arc<dyn Frontier>,
    rules: Reindex,
    halt: Halt,
    is_busy: IsBusy,
}

impl Indexer {
    /// Starts to follow: first the index is looked at, and built anew where it is damaged or not
    /// there. The log stays with the writer.
    pub(crate) fn start(
        config: &Config,
        frontier: Arc<dyn Frontier>,
        indexing: Indexing,
        (halt, is_busy): (Halt, IsBusy),
        mut failed: impl FnMut(EngineError) + Send + 'static,
    ) -> Result<(Indexer, RowFile), EngineError> {
        let setting = Setting {
            dir: config.output.clone(),
            frontier,
            rules: Reindex::of(config),
            halt,
            is_busy,
        };
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
        let leaves_rest = Arc::new(AtomicBool::new(false));
        let opening = Opening {
            setting,
            read,
            pages_committed,
            has_archive,
            leaves_rest: Arc::clone(&leaves_rest),
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
        let indexer = Indexer {
            thread,
            committed,
            leaves_rest,
        };
        Ok((indexer, log))
    }

    /// A sender of the log's committed length.
    pub(crate) fn lengths(&self) -> Sender<u64> {
        self.committed.clone()
    }

    /// Waits until the index has read the log to its end, once all senders are gone; or until it
    /// knows its end, where the run is whole and [`Follower::finish`] takes the rest.
    pub(crate) fn join(self, is_whole: bool) -> Result<Outcome, EngineError> {
        self.leaves_rest.store(is_whole, Ordering::Release);
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
    leaves_rest: Arc<AtomicBool>,
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
        let is_busy = Arc::clone(&self.setting.is_busy);
        let mut follower = Follower::at(dir, writer, read, self.has_archive, (halt, is_busy))?;
        follower.follow(lengths, &self.leaves_rest)?;
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
    log: LogReader,
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
    is_busy: IsBusy,
}

impl Follower {
    /// Goes on in the log of the crawl in `dir` from where the index of the writer has `read` it.
    fn at(
        dir: &Path,
        writer: IndexWriter,
        read: Read,
        has_archive: HasArchive,
        (halt, is_busy): (Halt, IsBusy),
    ) -> Result<Follower, EngineError> {
        Ok(Follower {
            dir: dir.to_path_buf(),
            has_archive,
            log: LogReader::open(dir, read.bytes)?,
            read,
            kept: read,
            kept_at: Instant::now(),
            writer,
            left_out: BTreeMap::new(),
            kept_left_out: BTreeMap::new(),
            length: read.bytes,
            halt,
            is_busy,
        })
    }

    fn follow(
        &mut self,
        lengths: &Receiver<u64>,
        leaves_rest: &AtomicBool,
    ) -> Result<(), EngineError> {
        loop {
            let wait = COMMIT_INTERVAL.saturating_sub(self.kept_at.elapsed());
            match lengths.recv_timeout(wait) {
                Ok(length) => self.length = lengths.try_iter().last().unwrap_or(length),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.read_on(Follower::waits)?;
            if self.kept_at.elapsed() >= COMMIT_INTERVAL {
                self.keep()?;
            }
        }
        if !leaves_rest.load(Ordering::Acquire) {
            self.read_on(|_| false)?;
        }
        self.keep()
    }

    /// Returns whether the crawl needs the processors more.
    fn waits(&self) -> bool {
        self.length - self.read.bytes < MAX_WAITING_BYTES && (self.is_busy)()
    }

    /// Reads what is committed until it `waits`, and commits the index as often as it is due.
    fn read_on(&mut self, waits: impl Fn(&Follower) -> bool) -> Result<(), EngineError> {
        while self.read.bytes < self.length && !self.halt.is_due() && !waits(self) {
            let entry = self.log.next_entry()?;
            count_left_out(&mut self.left_out, &entry);
            self.writer.apply(&entry)?;
            self.read.bytes = self.log.at();
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

    /// Takes the rest of the log, settles what only all pages together tell, begins the log anew,
    /// and ends; or leaves that to the next run, where the time for it is over.
    pub(crate) fn finish(
        mut self,
        frontier: &dyn Frontier,
        now: i64,
    ) -> Result<Indexed, EngineError> {
        let halt = self.halt.clone();
        let is_stopped = || halt.is_due();
        if is_stopped() {
            return Ok(self.leave());
        }
        let rest = RestOfLog {
            dir: self.dir.clone(),
            from: self.read.bytes,
            end: self.length,
            left_out: RefCell::default(),
        };
        if rest.end - rest.from >= MANY_BYTES {
            match self.writer.with_all_processors(&note(self.read))? {
                Some(writer) => self.writer = writer,
                None => return Ok(left(self.left_out, rest.end - rest.from)),
            }
        }
        let whole = Read {
            bytes: self.length,
            ..self.read
        };
        let dir = self.dir.clone();
        // What the run committed is all there, and nothing else is written any more.
        let redirects = |urls: &BTreeSet<String>| redirects_of(&dir, None, urls);
        let done = self
            .writer
            .reconcile_with(&rest, &redirects, &note(whole), now, &is_stopped);
        let done = match done {
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
        for (why, count) in rest.left_out.take() {
            *self.left_out.entry(why).or_default() += count;
        }
        // Pages that stay in the index after all are not left out of it.
        for (why, stay) in done.kept_anew {
            if let Some(count) = self.left_out.get_mut(&why) {
                *count = count.saturating_sub(stay);
            }
        }
        self.left_out.retain(|_, count| *count > 0);
        if done.gave_way > 0 {
            self.left_out.insert("canonical".to_owned(), done.gave_way);
        }
        Ok(Indexed {
            pages: Some(done.pages),
            duplicates: done.duplicates,
            kept: done.kept,
            canonical_elsewhere: done.canonical_elsewhere,
            left_out: self.left_out,
            ..Indexed::default()
        })
    }

    /// Ends, and leaves the rest to the next run.
    fn leave(self) -> Indexed {
        let waiting = self.length.saturating_sub(self.read.bytes);
        left(self.left_out, waiting)
    }
}

/// The outcome where a part of the log waits for the next run.
fn left(left_out: BTreeMap<String, u64>, waiting_bytes: u64) -> Indexed {
    Indexed {
        left_out,
        waiting_bytes,
        ..Indexed::default()
    }
}

#[cfg(test)]
mod tests;
