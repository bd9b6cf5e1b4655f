//! Keeps a crawl's search index up to date from a log, without delaying commits.
//!
//! The index entry of a URL is a line of `state/indexing.jsonl`. The same transaction commits this
//! line and the page's row. A thread reads the log up to its committed length, and each commit of
//! the index records how far the thread has read. So the index never contains a page that the crawl
//! lacks, and after a crash the thread continues at the recorded position. A slow index does not
//! slow the crawl down. A log that was read to the end is replaced by a new one.
//!
//! While readers are busy much of the time, the thread waits. The entries that are left at the end
//! of the run are indexed only once: in their final form, by the pass over all pages that completes
//! the index.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crawl_archive::{FOLDER, RowFileWriter};
use crawl_frontier::Frontier;
use crawl_index::{CommitOutcome, IndexError, IndexWriter};

use crate::config::Config;
use crate::error::EngineError;
use crate::index::followed_indexing_log::{forget, number};
use crate::index::indexing_log::{
    IndexingLogPosition, IndexingLogReader, IndexingLogTail, begin_log, begin_log_unfollowed,
    count_left_out, follow_log, log_path, mend_swap, note, note_of, place,
};
use crate::index::rebuild::{self, IndexRebuildSettings};
use crate::index::redirect_and_interstitial_answers::answers_of;
use crate::index::{INDEX_FOLDER, LOG};
use crate::summary::{ArchivePresence, IndexRebuildReason, IndexSummary};

/// The interval at which new pages become searchable during a crawl.
const COMMIT_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum bytes of `state/indexing.jsonl` that wait while readers are busy.
/// Beyond the limit: indexed during the crawl.
const MAX_WAITING_BYTES: u64 = 512 << 20;
/// If at least this many bytes of `state/indexing.jsonl` are unread at the end of a run, they are
/// indexed on all processors.
const MANY_BYTES: u64 = 8 << 20;

/// A function that returns whether the crawl keeps the processors busy.
pub(crate) type ProcessorsBusyCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// Decides when indexing must stop early. Indexing stops between two pages, never within one.
#[derive(Clone)]
pub(crate) struct IndexingStopCondition(Arc<dyn Fn() -> bool + Send + Sync>);

impl IndexingStopCondition {
    /// Stops indexing once `is_due` returns true.
    pub(crate) fn when(is_due: impl Fn() -> bool + Send + Sync + 'static) -> IndexingStopCondition {
        IndexingStopCondition(Arc::new(is_due))
    }

    fn is_due(&self) -> bool {
        (self.0)()
    }

    fn predicate(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        Arc::clone(&self.0)
    }
}

/// The indexing log and the index that follows it, at the beginning of a run.
pub(crate) struct IndexingStartState {
    pub(crate) log: RowFileWriter,
    start: IndexAtRunStart,
    /// The committed length of the indexing log, as a read position.
    read: IndexingLogPosition,
    pages_committed: Option<u64>,
    has_archive: ArchivePresence,
}

/// The state of the index when the run begins.
enum IndexAtRunStart {
    /// An index has read the indexing log up to this position. The files of the index are not
    /// checked yet.
    At(IndexingLogPosition),
    /// No usable index contains the pages settled so far. Contains the reason.
    Without(IndexRebuildReason),
}

impl IndexingStartState {
    /// Opens the indexing log of a crawl, and determines how far the index has read it.
    pub(crate) fn open(
        dir: &Path,
        frontier: &dyn Frontier,
        has_pages: bool,
    ) -> Result<IndexingStartState, EngineError> {
        mend_swap(dir)?;
        let folder = dir.join(INDEX_FOLDER);
        let marks = frontier.marks()?;
        let committed = marks.get(LOG).copied().unwrap_or(0);
        let number = number(frontier)?;
        let note = match crawl_index::note_in(&folder) {
            Err(IndexError::Damaged { what, .. }) => Err(what),
            other => Ok(other?),
        };
        let position = match (&note, number) {
            _ if number.is_none() && has_pages => Err(IndexRebuildReason::NotBuilt),
            (Err(damage), _) => Err(IndexRebuildReason::Damaged(damage.clone())),
            (Ok(None), Some(number)) if number > 1 => Err(IndexRebuildReason::NotBuilt),
            (Ok(note), _) => {
                let read = place(note.as_deref(), number.unwrap_or(1), committed);
                read.map_err(IndexRebuildReason::Damaged)
            }
        };
        let has_archive = match dir.join(FOLDER).is_dir() {
            true => ArchivePresence::Yes,
            false => ArchivePresence::No,
        };
        let is_lost = position.is_err() && note.is_ok();
        if is_lost && has_archive == ArchivePresence::No {
            return Err(EngineError::NoArchive {
                dir: dir.to_path_buf(),
            });
        }
        let (number, committed) = match number {
            Some(number) if !is_lost => (number, committed),
            // The index is unusable, so no index follows the log until the index is rebuilt.
            _ if position.is_err() => {
                forget(frontier)?;
                (
                    begin_log_unfollowed(dir, frontier, number.unwrap_or(1) + 1)?,
                    0,
                )
            }
            _ => (begin_log(dir, frontier, 1)?, 0),
        };
        let log = RowFileWriter::open(&log_path(dir), Some(committed))?;
        if position.is_ok() && matches!(note, Ok(None)) {
            // Commit an empty index, so that searches find an index from the start.
            let mut writer = IndexWriter::open(&folder)?;
            writer.commit(&note_of(number))?;
            writer.close()?;
        }
        let bytes = committed;
        Ok(IndexingStartState {
            log,
            start: position.map_or_else(IndexAtRunStart::Without, IndexAtRunStart::At),
            read: IndexingLogPosition { log: number, bytes },
            pages_committed: marks.get("pages.jsonl").copied(),
            has_archive,
        })
    }
}

/// Opens the indexing log (`state/indexing.jsonl`). If the crawl builds no index, returns `None`,
/// and records in the frontier that no index follows the crawl any longer.
pub(crate) fn open_log(
    config: &Config,
    frontier: &dyn Frontier,
    has_pages: bool,
) -> Result<Option<IndexingStartState>, EngineError> {
    if !config.index {
        forget(frontier)?;
        return Ok(None);
    }
    IndexingStartState::open(&config.output, frontier, has_pages).map(Some)
}

/// The thread that reads the indexing log into the index.
pub(crate) struct Indexer {
    thread: JoinHandle<Result<IndexerOutcome, EngineError>>,
    committed: Sender<u64>,
    leaves_rest: Arc<AtomicBool>,
}

/// The state of the index when its thread ended.
pub(crate) enum IndexerOutcome {
    /// The thread has an index. It read the indexing log to its end, or left the rest to
    /// [`IndexingLogFollower::finish`], or stopped because the run's time was over.
    Read(Box<IndexingLogFollower>),
    /// Nothing of the indexing log was read, because the index is unusable, or because the run
    /// ended before the index was checked.
    Without(IndexSummary),
}

impl IndexerOutcome {
    /// Finishes the index if the run is complete. Otherwise leaves the rest of the indexing log to
    /// the next run. `now` is in seconds since 1970 UTC.
    pub(crate) fn end(
        self,
        is_whole: bool,
        frontier: &dyn Frontier,
        now: i64,
    ) -> Result<IndexSummary, EngineError> {
        match self {
            IndexerOutcome::Read(index) if is_whole => index.finish(frontier, now),
            IndexerOutcome::Read(index) => Ok(index.stop_here()),
            IndexerOutcome::Without(indexed) => Ok(indexed),
        }
    }
}

/// The settings of the thread that reads the indexing log.
struct IndexerSettings {
    dir: PathBuf,
    frontier: Arc<dyn Frontier>,
    rules: IndexRebuildSettings,
    halt: IndexingStopCondition,
    is_busy: ProcessorsBusyCheck,
}

impl Indexer {
    /// Starts the thread, which first checks the index, and rebuilds it if it is damaged or
    /// missing. In the meantime the writer appends to the log.
    pub(crate) fn start(
        config: &Config,
        frontier: Arc<dyn Frontier>,
        indexing: IndexingStartState,
        (halt, is_busy): (IndexingStopCondition, ProcessorsBusyCheck),
        mut failed: impl FnMut(EngineError) + Send + 'static,
    ) -> Result<(Indexer, RowFileWriter), EngineError> {
        let setting = IndexerSettings {
            dir: config.output.clone(),
            frontier,
            rules: IndexRebuildSettings::of(config),
            halt,
            is_busy,
        };
        let IndexingStartState {
            log,
            start,
            read,
            pages_committed,
            has_archive,
        } = indexing;
        let dir = setting.dir.clone();
        let (committed, lengths) = channel();
        // Announce the log's length at once, because an earlier run may have left a part of the
        // log unread.
        let _ = committed.send(log.len());
        let leaves_rest = Arc::new(AtomicBool::new(false));
        let opening = IndexerStartup {
            setting,
            read,
            pages_committed,
            has_archive,
            leaves_rest: Arc::clone(&leaves_rest),
        };
        // Catch index errors here, because an index error must not end the crawl.
        let work = move || {
            let caught = catch_unwind(AssertUnwindSafe(|| opening.run(start, &lengths)));
            match caught {
                Ok(Err(EngineError::Index(IndexError::Damaged { what, .. }))) => {
                    Ok(opening.without(IndexRebuildReason::Damaged(what)))
                }
                Ok(Err(error)) => {
                    failed(error);
                    Err(EngineError::Thread {
                        what: "the index failed before".to_owned(),
                    })
                }
                Ok(ended) => ended,
                Err(_) => {
                    let reason = "its thread panicked".to_owned();
                    Ok(opening.without(IndexRebuildReason::Damaged(reason)))
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

    /// Returns the channel for announcing the committed length of the indexing log.
    pub(crate) fn lengths(&self) -> Sender<u64> {
        self.committed.clone()
    }

    /// Waits for the thread to end. If `leaves_rest` is true, the thread leaves the rest of the
    /// indexing log to [`IndexingLogFollower::finish`], which reads it at the end of a complete
    /// run. If not, the thread first reads the log to its end.
    pub(crate) fn join(self, leaves_rest: bool) -> Result<IndexerOutcome, EngineError> {
        self.leaves_rest.store(leaves_rest, Ordering::Release);
        drop(self.committed);
        let thread = self.thread.join();
        thread.map_err(|_| EngineError::Thread {
            what: "the index".to_owned(),
        })?
    }
}

/// The state of the thread before it has an index.
struct IndexerStartup {
    setting: IndexerSettings,
    /// The committed length of the indexing log. A rebuilt index reads on from there.
    read: IndexingLogPosition,
    pages_committed: Option<u64>,
    has_archive: ArchivePresence,
    leaves_rest: Arc<AtomicBool>,
}

impl IndexerStartup {
    fn run(
        &self,
        start: IndexAtRunStart,
        lengths: &Receiver<u64>,
    ) -> Result<IndexerOutcome, EngineError> {
        let halt = &self.setting.halt;
        let folder = self.setting.dir.join(INDEX_FOLDER);
        let fault = match start {
            IndexAtRunStart::At(read) => {
                match IndexWriter::open_unless(&folder, halt.predicate()) {
                    Ok(Some(writer)) => return self.follow(writer, read, lengths),
                    Ok(None) => return Ok(waiting(read, lengths)),
                    Err(IndexError::Damaged { what, .. }) => IndexRebuildReason::Damaged(what),
                    Err(other) => return Err(other.into()),
                }
            }
            IndexAtRunStart::Without(fault) => fault,
        };
        let dir = self.setting.dir.display();
        if self.has_archive == ArchivePresence::No {
            tracing::warn!("the search index is {fault}: there is no archive to build it from");
            return Ok(self.without(fault));
        }
        tracing::warn!(
            "the search index is {fault}: building it from the archive, as `crawl index {dir}` would do"
        );
        let IndexerSettings {
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
            return Ok(self.without(fault));
        }
        follow_log(&**frontier, self.read.log)?;
        tracing::info!("the search index is built");
        match IndexWriter::open_unless(&folder, halt.predicate())? {
            Some(writer) => self.follow(writer, self.read, lengths),
            None => Ok(waiting(self.read, lengths)),
        }
    }

    fn follow(
        &self,
        writer: IndexWriter,
        read: IndexingLogPosition,
        lengths: &Receiver<u64>,
    ) -> Result<IndexerOutcome, EngineError> {
        let (dir, halt) = (&self.setting.dir, self.setting.halt.clone());
        let is_busy = Arc::clone(&self.setting.is_busy);
        let mut follower =
            IndexingLogFollower::at(dir, writer, read, self.has_archive, (halt, is_busy))?;
        follower.follow(lengths, &self.leaves_rest)?;
        Ok(IndexerOutcome::Read(Box::new(follower)))
    }

    fn without(&self, why: IndexRebuildReason) -> IndexerOutcome {
        IndexerOutcome::Without(IndexSummary {
            fault: Some((why, self.has_archive)),
            ..IndexSummary::default()
        })
    }
}

/// Returns the outcome of a run that ended before the index was checked. All entries of the run
/// remain in the log. Waits until the writer has ended.
fn waiting(read: IndexingLogPosition, lengths: &Receiver<u64>) -> IndexerOutcome {
    let length = lengths.iter().last().unwrap_or(read.bytes);
    IndexerOutcome::Without(IndexSummary {
        waiting_bytes: length.saturating_sub(read.bytes),
        ..IndexSummary::default()
    })
}

/// The reader of the indexing log, which puts new pages into the index.
pub(crate) struct IndexingLogFollower {
    dir: PathBuf,
    has_archive: ArchivePresence,
    log: IndexingLogReader,
    read: IndexingLogPosition,
    /// How far the index had read the indexing log at the last commit of the index.
    kept: IndexingLogPosition,
    /// The time of the last commit of the index, or of the last time that there was nothing to
    /// commit.
    kept_at: Instant,
    writer: IndexWriter,
    /// The number of pages that are not indexed, by reason, in the part of the indexing log that
    /// was read.
    left_out: BTreeMap<String, u64>,
    /// The value of `left_out` at the last commit of the index.
    kept_left_out: BTreeMap<String, u64>,
    /// The last committed length of the indexing log that the writer announced.
    length: u64,
    halt: IndexingStopCondition,
    is_busy: ProcessorsBusyCheck,
}

impl IndexingLogFollower {
    /// Continues to read the log of the crawl in `dir` at `read`, the position that the writer's
    /// index has recorded.
    fn at(
        dir: &Path,
        writer: IndexWriter,
        read: IndexingLogPosition,
        has_archive: ArchivePresence,
        (halt, is_busy): (IndexingStopCondition, ProcessorsBusyCheck),
    ) -> Result<IndexingLogFollower, EngineError> {
        Ok(IndexingLogFollower {
            dir: dir.to_path_buf(),
            has_archive,
            log: IndexingLogReader::open(dir, read.bytes)?,
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
            self.read_on(IndexingLogFollower::waits)?;
            if self.kept_at.elapsed() >= COMMIT_INTERVAL {
                self.keep()?;
            }
        }
        if !leaves_rest.load(Ordering::Acquire) {
            self.read_on(|_| false)?;
        }
        self.keep()
    }

    /// Returns whether indexing must wait, because the crawl needs the processors.
    fn waits(&self) -> bool {
        self.length - self.read.bytes < MAX_WAITING_BYTES && (self.is_busy)()
    }

    /// Reads committed entries until `waits` returns true. Commits the index when a commit is due.
    fn read_on(&mut self, waits: impl Fn(&IndexingLogFollower) -> bool) -> Result<(), EngineError> {
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
                CommitOutcome::Done => {
                    self.kept = self.read;
                    self.kept_left_out.clone_from(&self.left_out);
                }
                // Stop reading. The uncommitted part stays in the log for the next run.
                CommitOutcome::Stopped => {
                    self.read = self.kept;
                    self.left_out.clone_from(&self.kept_left_out);
                    self.halt = IndexingStopCondition::when(|| true);
                }
            }
        }
        self.kept_at = Instant::now();
        Ok(())
    }

    /// Finishes the index: indexes the rest of the log, makes the decisions that need all pages
    /// (such as which pages are duplicates), and starts a new log. If there is no time, leaves all
    /// this to the next run.
    pub(crate) fn finish(
        mut self,
        frontier: &dyn Frontier,
        now: i64,
    ) -> Result<IndexSummary, EngineError> {
        let halt = self.halt.clone();
        let is_stopped = || halt.is_due();
        if is_stopped() {
            return Ok(self.stop_here());
        }
        let rest = IndexingLogTail {
            dir: self.dir.clone(),
            from: self.read.bytes,
            end: self.length,
            left_out: RefCell::default(),
        };
        if rest.end - rest.from >= MANY_BYTES {
            match self.writer.with_all_processors(&note(self.read))? {
                Some(writer) => self.writer = writer,
                None => return Ok(unfinished(self.left_out, rest.end - rest.from)),
            }
        }
        let whole = IndexingLogPosition {
            bytes: self.length,
            ..self.read
        };
        let dir = self.dir.clone();
        // `None` means to read all rows, because nothing is being written any more.
        let answers = |urls: &BTreeSet<String>| answers_of(&dir, None, urls);
        let done = self
            .writer
            .reconcile_with(&rest, &answers, &note(whole), now, &is_stopped);
        let done = match done {
            Ok(Some(done)) => done,
            Ok(None) => return Ok(self.stop_here()),
            Err(IndexError::Damaged { what, .. }) => {
                return Ok(IndexSummary {
                    fault: Some((IndexRebuildReason::Damaged(what), self.has_archive)),
                    ..self.stop_here()
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
        // Some pages that were counted as left out stay in the index after all, so subtract them.
        for (why, stay) in done.kept_anew {
            if let Some(count) = self.left_out.get_mut(&why) {
                *count = count.saturating_sub(stay);
            }
        }
        self.left_out.retain(|_, count| *count > 0);
        if done.gave_way > 0 {
            self.left_out.insert("canonical".to_owned(), done.gave_way);
        }
        Ok(IndexSummary {
            pages: Some(done.pages),
            duplicates: done.duplicates,
            kept: done.kept,
            canonical_elsewhere: done.canonical_elsewhere,
            left_out: self.left_out,
            ..IndexSummary::default()
        })
    }

    /// Ends the indexing of this run. The next run reads the rest of the log.
    fn stop_here(self) -> IndexSummary {
        let waiting = self.length.saturating_sub(self.read.bytes);
        unfinished(self.left_out, waiting)
    }
}

/// Returns the result of a run that leaves part of the indexing log to the next run.
fn unfinished(left_out: BTreeMap<String, u64>, waiting_bytes: u64) -> IndexSummary {
    IndexSummary {
        left_out,
        waiting_bytes,
        ..IndexSummary::default()
    }
}

#[cfg(test)]
mod tests;
