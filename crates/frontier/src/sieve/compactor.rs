//! Background compaction of the sieve: one thread writes full tables to disk as sorted runs,
//! another merges the runs.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError,
};
use std::thread::{self, JoinHandle};
use std::{io, ops::Range};

use foldhash::HashMapExt;

use super::run_block::SortedRunError;
use super::run_disk::RunDisk;
use super::run_merge::{RunMergeIterator, runs_to_merge};
use super::sieve_record::SieveRecord;
use super::sorted_run::{RunManifestEntry, SortedRun};
use super::sorted_run_writer::SortedRunWriter;
use super::{FullTable, RunListStore, RunManifest, SieveSnapshot, Table, read, run_path};
use crate::error::FrontierError;

/// Maximum tables of new records in memory while one is being written.
/// Beyond the limit: the next transaction waits for the write.
const MAX_GATHERED_TABLES: usize = 2;
/// The number of records merged between two checks for a stop.
const RECORDS_BETWEEN_CHECKS: usize = 1 << 14;

/// The state of the sieve, shared by commits and the two background threads.
pub(super) struct SharedSieveState {
    dir: PathBuf,
    disk: Arc<dyn RunDisk>,
    run_list: Arc<dyn RunListStore>,
    gather: usize,
    /// The list of sorted runs, as stored. This lock is held while the list and `view` change, and
    /// is acquired before that of `view`.
    manifest: Mutex<RunManifest>,
    view: RwLock<SieveSnapshot>,
    /// The innermost lock: a thread that holds it acquires no other lock and does no disk I/O.
    jobs: Mutex<CompactorJobs>,
    /// Signals a change of `jobs`.
    changed: Condvar,
}

/// Work for the two background threads, and whether they have to stop.
#[derive(Default)]
struct CompactorJobs {
    /// A full table that waits to be written, or is being written.
    full: Option<Arc<FullTable>>,
    /// Whether sorted runs were added since the merging thread last checked.
    has_new_runs: bool,
    stop: bool,
    failed: Option<CompactorFailure>,
}

/// The error that ended a background thread.
struct CompactorFailure {
    /// The error itself; `None` once a transaction has returned it.
    why: Option<FrontierError>,
    message: String,
}

impl SharedSieveState {
    pub(super) fn new(
        dir: PathBuf,
        disk: Arc<dyn RunDisk>,
        run_list: Arc<dyn RunListStore>,
        gather: usize,
        manifest: RunManifest,
        view: SieveSnapshot,
    ) -> SharedSieveState {
        SharedSieveState {
            dir,
            disk,
            run_list,
            gather,
            manifest: Mutex::new(manifest),
            view: RwLock::new(view),
            jobs: Mutex::new(CompactorJobs {
                has_new_runs: true,
                ..CompactorJobs::default()
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn start(compactor: &Arc<SharedSieveState>) -> io::Result<Vec<JoinHandle<()>>> {
        let start = |name: &str, work: fn(&SharedSieveState) -> Result<(), FrontierError>| {
            let compactor = Arc::clone(compactor);
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(move || compactor.end(|| work(&compactor)))
        };
        let writing = start("sieve-write", SharedSieveState::write_tables)?;
        match start("sieve-merge", SharedSieveState::merge_runs) {
            Ok(merging) => Ok(vec![writing, merging]),
            Err(why) => {
                compactor.stop();
                Err(why)
            }
        }
    }

    pub(super) fn stop(&self) {
        self.jobs().stop = true;
        self.changed.notify_all();
    }

    pub(super) fn view(&self) -> RwLockReadGuard<'_, SieveSnapshot> {
        read(&self.view)
    }

    pub(super) fn view_at_once(&self) -> Option<RwLockReadGuard<'_, SieveSnapshot>> {
        match self.view.try_read() {
            Ok(view) => Some(view),
            Err(TryLockError::Poisoned(view)) => Some(view.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn make_room(&self) -> Result<(), FrontierError> {
        let full = self.view().fresh.len() >= MAX_GATHERED_TABLES * self.gather;
        let mut jobs = self.jobs();
        while full && jobs.full.is_some() && jobs.failed.is_none() {
            jobs = self.wait(jobs);
        }
        match &mut jobs.failed {
            None => Ok(()),
            Some(CompactorFailure { why, message }) => {
                Err(why.take().unwrap_or_else(|| self.failure(message)))
            }
        }
    }

    fn failure(&self, message: &str) -> FrontierError {
        self.run_list.run_failed(SortedRunError::Io {
            path: self.dir.clone(),
            source: io::Error::other(message),
        })
    }

    pub(super) fn commit<E>(
        &self,
        commit: u64,
        records: &[SieveRecord],
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        write()?;
        view.fresh
            .extend(records.iter().map(|record| (record.key, record.state)));
        if view.fresh.len() < self.gather || view.full.is_some() {
            return Ok(());
        }
        let table = mem::replace(&mut view.fresh, Table::with_capacity(self.gather));
        let full = Arc::new(FullTable { table, commit });
        view.full = Some(Arc::clone(&full));
        drop(view);
        self.jobs().full = Some(full);
        self.changed.notify_all();
        Ok(())
    }

    fn jobs(&self) -> MutexGuard<'_, CompactorJobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'d>(&self, jobs: MutexGuard<'d, CompactorJobs>) -> MutexGuard<'d, CompactorJobs> {
        self.changed
            .wait(jobs)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the work of a background thread. Stores an error or a panic for the next transaction to
    /// return. Otherwise transactions would wait forever for a thread that has ended.
    fn end(&self, work: impl FnOnce() -> Result<(), FrontierError>) {
        let ended = catch_unwind(AssertUnwindSafe(work));
        let ended = ended.unwrap_or_else(|_| Err(self.failure("a thread panicked")));
        if let Err(error) = ended {
            tracing::error!(error = %error, "the sieve can't be written");
            let message = error.to_string();
            let mut jobs = self.jobs();
            jobs.stop = true;
            jobs.failed.get_or_insert(CompactorFailure {
                why: Some(error),
                message,
            });
            drop(jobs);
            self.changed.notify_all();
        }
    }

    fn write_tables(&self) -> Result<(), FrontierError> {
        loop {
            let mut jobs = self.jobs();
            while jobs.full.is_none() && !jobs.stop {
                jobs = self.wait(jobs);
            }
            if jobs.stop {
                return Ok(());
            }
            let Some(full) = jobs.full.clone() else {
                continue;
            };
            drop(jobs);
            self.write_table(&full)?;
            let mut jobs = self.jobs();
            // Remove only the table that was written, because the next full table may already be
            // waiting.
            jobs.full.take_if(|now| Arc::ptr_eq(now, &full));
            jobs.has_new_runs = true;
            drop(jobs);
            self.changed.notify_all();
        }
    }

    fn write_table(&self, full: &FullTable) -> Result<(), FrontierError> {
        let id = self.take_id();
        let mut records: Vec<SieveRecord> = Vec::with_capacity(full.table.len());
        records.extend(
            full.table
                .iter()
                .map(|(&key, &state)| SieveRecord { key, state }),
        );
        records.sort_unstable_by_key(|record| record.key);
        let count = records.len() as u64;
        let written = self.write_run(id, count, |writer| {
            records
                .iter()
                .try_for_each(|record| writer.push(*record))
                .map(|()| true)
        });
        let Some(run) = written? else {
            return Ok(());
        };
        let mut manifest = self.manifest();
        let mut new = manifest.clone();
        new.commit = full.commit;
        new.runs.insert(0, run.entry);
        self.run_list.keep(&new)?;
        let forgotten = manifest.commit + 1..=full.commit;
        *manifest = new;
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.runs.insert(0, run);
        view.full = None;
        drop((view, manifest));
        self.run_list.forget(forgotten)
    }

    fn merge_runs(&self) -> Result<(), FrontierError> {
        loop {
            let mut jobs = self.jobs();
            while !jobs.has_new_runs && !jobs.stop {
                jobs = self.wait(jobs);
            }
            if jobs.stop {
                return Ok(());
            }
            jobs.has_new_runs = false;
            drop(jobs);
            while let Some(runs) = self.runs_to_merge() {
                if !self.merge(&runs)? {
                    return Ok(());
                }
            }
        }
    }

    fn runs_to_merge(&self) -> Option<Vec<Arc<SortedRun>>> {
        let view = self.view();
        let sizes: Vec<u64> = view.runs.iter().map(|run| run.entry.records).collect();
        runs_to_merge(&sizes, self.gather as u64).map(|group| view.runs[group].to_vec())
    }

    /// Merges sorted runs into one. Returns false if the compactor was stopped before the merge was
    /// complete.
    fn merge(&self, runs: &[Arc<SortedRun>]) -> Result<bool, FrontierError> {
        let max_records = runs.iter().map(|run| run.entry.records).sum();
        let mut merge = RunMergeIterator::new(runs).map_err(|why| self.run_list.run_failed(why))?;
        let merged = self.write_run(self.take_id(), max_records, |writer| {
            loop {
                for _ in 0..RECORDS_BETWEEN_CHECKS {
                    match merge.next()? {
                        Some(record) => writer.push(record)?,
                        None => return Ok(true),
                    }
                }
                if self.jobs().stop {
                    return Ok(false);
                }
            }
        });
        let Some(merged) = merged? else {
            return Ok(false);
        };
        let mut manifest = self.manifest();
        let mut new = manifest.clone();
        let Some(place) = place_of(&new.runs, runs) else {
            return Ok(true);
        };
        new.runs.splice(place.clone(), [merged.entry]);
        self.run_list.keep(&new)?;
        *manifest = new;
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.runs.splice(place, [merged]);
        drop((view, manifest));
        for run in runs {
            // If removing the file fails, the next opening removes it.
            let _ = self.disk.remove(run.path());
        }
        Ok(true)
    }

    /// Writes a sorted run with the records that `fill` pushes, and opens it. If `fill` returns
    /// false, removes the file and returns `None`.
    fn write_run(
        &self,
        id: u64,
        max_records: u64,
        fill: impl FnOnce(&mut SortedRunWriter<'_>) -> Result<bool, SortedRunError>,
    ) -> Result<Option<Arc<SortedRun>>, FrontierError> {
        let path = run_path(&self.dir, id);
        let write = || {
            let mut writer = SortedRunWriter::create(&*self.disk, &path, id, max_records)?;
            match fill(&mut writer)? {
                true => SortedRun::open(&path, writer.finish()?).map(Some),
                false => Ok(None),
            }
        };
        match write() {
            Ok(Some(run)) => Ok(Some(Arc::new(run))),
            ended => {
                let _ = self.disk.remove(&path);
                ended
                    .map(|_| None)
                    .map_err(|why| self.run_list.run_failed(why))
            }
        }
    }

    fn manifest(&self) -> MutexGuard<'_, RunManifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_id(&self) -> u64 {
        let mut manifest = self.manifest();
        manifest.last_run += 1;
        manifest.last_run
    }
}

/// Returns the range of `list` with the sorted runs `runs`. The range may have moved since their
/// merge began, because newer runs are added at the start of the list.
fn place_of(list: &[RunManifestEntry], runs: &[Arc<SortedRun>]) -> Option<Range<usize>> {
    let first = runs.first()?.entry;
    let at = list.iter().position(|entry| *entry == first)?;
    Some(at..at + runs.len())
}
