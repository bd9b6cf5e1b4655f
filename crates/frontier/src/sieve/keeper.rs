//! Keeping the sieve: one thread writes full tables as runs, another merges runs.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::{self, JoinHandle};
use std::{io, ops::Range};

use foldhash::HashMapExt;

use super::disk::Disk;
use super::merge::{Merge, ripe};
use super::record::Record;
use super::run::{Run, RunEntry, RunError};
use super::writer::RunWriter;
use super::{Frozen, Ledger, Roll, Table, View, read, run_path};
use crate::error::FrontierError;

/// How many tables' worth of records gather before a transaction has to wait for the
/// one that is being written.
const GATHER_MOST: usize = 2;
/// Records that are merged between two looks whether to stop.
const STRIDE: usize = 1 << 14;

pub(super) struct Keeper {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    ledger: Arc<dyn Ledger>,
    gather: usize,
    /// The list as the ledger has it. Taken before `view`: who changes the runs holds it.
    roll: Mutex<Roll>,
    view: RwLock<View>,
    /// Never held while another lock is taken or the disk is written.
    duty: Mutex<Duty>,
    /// Some of `duty` changed.
    changed: Condvar,
}

#[derive(Default)]
struct Duty {
    /// A table waits to be written.
    frozen: Option<Arc<Frozen>>,
    /// Runs came since the merging thread last looked.
    grown: bool,
    stop: bool,
    failed: Option<Failure>,
}

/// What ended a thread.
struct Failure {
    /// Until the first transaction was told.
    why: Option<FrontierError>,
    said: String,
}

impl Keeper {
    pub(super) fn new(
        dir: PathBuf,
        disk: Arc<dyn Disk>,
        ledger: Arc<dyn Ledger>,
        gather: usize,
        roll: Roll,
        view: View,
    ) -> Keeper {
        Keeper {
            dir,
            disk,
            ledger,
            gather,
            roll: Mutex::new(roll),
            view: RwLock::new(view),
            duty: Mutex::new(Duty {
                grown: true,
                ..Duty::default()
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn start(keeper: &Arc<Keeper>) -> io::Result<Vec<JoinHandle<()>>> {
        let start = |name: &str, work: fn(&Keeper) -> Result<(), FrontierError>| {
            let keeper = Arc::clone(keeper);
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(move || keeper.end(|| work(&keeper)))
        };
        let writing = start("sieve-write", Keeper::write_tables)?;
        match start("sieve-merge", Keeper::merge_runs) {
            Ok(merging) => Ok(vec![writing, merging]),
            Err(why) => {
                keeper.stop();
                Err(why)
            }
        }
    }

    pub(super) fn stop(&self) {
        self.duty().stop = true;
        self.changed.notify_all();
    }

    pub(super) fn view(&self) -> RwLockReadGuard<'_, View> {
        read(&self.view)
    }

    pub(super) fn make_room(&self) -> Result<(), FrontierError> {
        let full = self.view().fresh.len() >= GATHER_MOST * self.gather;
        let mut duty = self.duty();
        while full && duty.frozen.is_some() && duty.failed.is_none() {
            duty = self.wait(duty);
        }
        match &mut duty.failed {
            None => Ok(()),
            Some(Failure { why, said }) => Err(why.take().unwrap_or_else(|| self.failure(said))),
        }
    }

    fn failure(&self, said: &str) -> FrontierError {
        self.ledger.run_failed(RunError::Io {
            path: self.dir.clone(),
            source: io::Error::other(said),
        })
    }

    pub(super) fn commit<E>(
        &self,
        commit: u64,
        records: &[Record],
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        write()?;
        view.fresh
            .extend(records.iter().map(|record| (record.key, record.word)));
        if view.fresh.len() < self.gather || view.frozen.is_some() {
            return Ok(());
        }
        let table = mem::replace(&mut view.fresh, Table::with_capacity(self.gather));
        let frozen = Arc::new(Frozen { table, commit });
        view.frozen = Some(Arc::clone(&frozen));
        drop(view);
        self.duty().frozen = Some(frozen);
        self.changed.notify_all();
        Ok(())
    }

    fn duty(&self) -> MutexGuard<'_, Duty> {
        self.duty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'d>(&self, duty: MutexGuard<'d, Duty>) -> MutexGuard<'d, Duty> {
        self.changed
            .wait(duty)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a thread's work. An end that is a failure, or a panic, is told to the next
    /// transaction, which would wait for the thread otherwise.
    fn end(&self, work: impl FnOnce() -> Result<(), FrontierError>) {
        let ended = catch_unwind(AssertUnwindSafe(work));
        let ended = ended.unwrap_or_else(|_| Err(self.failure("a thread panicked")));
        if let Err(why) = ended {
            tracing::error!(error = %why, "the sieve can't be written");
            let said = why.to_string();
            let mut duty = self.duty();
            duty.stop = true;
            duty.failed.get_or_insert(Failure {
                why: Some(why),
                said,
            });
            drop(duty);
            self.changed.notify_all();
        }
    }

    fn write_tables(&self) -> Result<(), FrontierError> {
        loop {
            let mut duty = self.duty();
            while duty.frozen.is_none() && !duty.stop {
                duty = self.wait(duty);
            }
            if duty.stop {
                return Ok(());
            }
            let Some(frozen) = duty.frozen.clone() else {
                continue;
            };
            drop(duty);
            self.write_table(&frozen)?;
            let mut duty = self.duty();
            // The next one may wait already.
            duty.frozen.take_if(|now| Arc::ptr_eq(now, &frozen));
            duty.grown = true;
            drop(duty);
            self.changed.notify_all();
        }
    }

    fn write_table(&self, frozen: &Frozen) -> Result<(), FrontierError> {
        let id = self.take_id();
        let mut records: Vec<Record> = Vec::with_capacity(frozen.table.len());
        records.extend(
            frozen
                .table
                .iter()
                .map(|(&key, &word)| Record { key, word }),
        );
        records.sort_unstable_by_key(|record| record.key);
        let most = records.len() as u64;
        let written = self.write_run(id, most, |writer| {
            records
                .iter()
                .try_for_each(|record| writer.push(*record))
                .map(|()| true)
        });
        let Some(run) = written? else {
            return Ok(());
        };
        let mut roll = self.roll();
        let mut new = roll.clone();
        new.commit = frozen.commit;
        new.runs.insert(0, run.entry);
        self.ledger.keep(&new)?;
        let forgotten = roll.commit + 1..=frozen.commit;
        *roll = new;
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.runs.insert(0, run);
        view.frozen = None;
        drop((view, roll));
        self.ledger.forget(forgotten)
    }

    fn merge_runs(&self) -> Result<(), FrontierError> {
        loop {
            let mut duty = self.duty();
            while !duty.grown && !duty.stop {
                duty = self.wait(duty);
            }
            if duty.stop {
                return Ok(());
            }
            duty.grown = false;
            drop(duty);
            while let Some(runs) = self.ripe() {
                if !self.merge(&runs)? {
                    return Ok(());
                }
            }
        }
    }

    fn ripe(&self) -> Option<Vec<Arc<Run>>> {
        let view = self.view();
        let sizes: Vec<u64> = view.runs.iter().map(|run| run.entry.records).collect();
        ripe(&sizes, self.gather as u64).map(|group| view.runs[group].to_vec())
    }

    /// Says whether it came to an end; not so where it was told to stop.
    fn merge(&self, runs: &[Arc<Run>]) -> Result<bool, FrontierError> {
        let most = runs.iter().map(|run| run.entry.records).sum();
        let mut merge = Merge::new(runs).map_err(|why| self.ledger.run_failed(why))?;
        let merged = self.write_run(self.take_id(), most, |writer| {
            loop {
                for _ in 0..STRIDE {
                    match merge.next()? {
                        Some(record) => writer.push(record)?,
                        None => return Ok(true),
                    }
                }
                if self.duty().stop {
                    return Ok(false);
                }
            }
        });
        let Some(merged) = merged? else {
            return Ok(false);
        };
        let mut roll = self.roll();
        let mut new = roll.clone();
        let Some(place) = place_of(&new.runs, runs) else {
            return Ok(true);
        };
        new.runs.splice(place.clone(), [merged.entry]);
        self.ledger.keep(&new)?;
        *roll = new;
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.runs.splice(place, [merged]);
        drop((view, roll));
        for run in runs {
            // One that can't be removed is removed by the next opening.
            let _ = self.disk.remove(run.path());
        }
        Ok(true)
    }

    /// Writes a run and opens it; none where `fill` says that it is not to be.
    fn write_run(
        &self,
        id: u64,
        most: u64,
        fill: impl FnOnce(&mut RunWriter<'_>) -> Result<bool, RunError>,
    ) -> Result<Option<Arc<Run>>, FrontierError> {
        let path = run_path(&self.dir, id);
        let write = || {
            let mut writer = RunWriter::create(&*self.disk, &path, id, most)?;
            match fill(&mut writer)? {
                true => Run::open(&path, writer.finish()?).map(Some),
                false => Ok(None),
            }
        };
        match write() {
            Ok(Some(run)) => Ok(Some(Arc::new(run))),
            ended => {
                let _ = self.disk.remove(&path);
                ended
                    .map(|_| None)
                    .map_err(|why| self.ledger.run_failed(why))
            }
        }
    }

    fn roll(&self) -> MutexGuard<'_, Roll> {
        self.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_id(&self) -> u64 {
        let mut roll = self.roll();
        roll.next_run += 1;
        roll.next_run
    }
}

/// Where in the list the merged runs stand, as newer ones may have come before them.
fn place_of(list: &[RunEntry], runs: &[Arc<Run>]) -> Option<Range<usize>> {
    let first = runs.first()?.entry;
    let at = list.iter().position(|entry| *entry == first)?;
    Some(at..at + runs.len())
}
