//! The sieve: which URLs are known, and twelve bytes on each.
//!
//! What a commit changed gathers in a table in memory. A full table is written as a
//! sorted [`run`], and runs are merged into larger ones, both by threads of the sieve's
//! own; so writing is sequential, and a look-up asks a few filters in memory and reads
//! one block where the URL is known. What stands in memory only is durable by the
//! caller's commit, whose number tells which records a run made needless: the caller's
//! [`Ledger`] holds the list of runs, and on opening gives back the records of commits
//! that no run holds.

mod cache;
mod disk;
mod filter;
mod keeper;
mod merge;
mod record;
mod run;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;

use foldhash::{HashMap, HashMapExt};

pub(crate) use self::cache::BlockCache;
use self::keeper::Keeper;
pub(crate) use self::record::{Record, WORD_BYTES, Word};
use self::run::Run;
pub(crate) use self::run::{RunEntry, RunError};
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
pub use disk::{Disk, DiskFile, SystemDisk};

/// Where the list of runs is kept, durably.
pub(crate) trait Ledger: Send + Sync {
    /// Replaces the list.
    fn keep(&self, roll: &Roll) -> Result<(), FrontierError>;
    /// The records of these commits stand in runs.
    fn forget(&self, commits: RangeInclusive<u64>) -> Result<(), FrontierError>;
    /// What to say where a run can't be written or read.
    fn run_failed(&self, why: RunError) -> FrontierError;
}

/// The list of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roll {
    /// The last commit whose records stand in runs.
    pub(crate) commit: u64,
    /// No run has had this number yet.
    pub(crate) next_run: u64,
    /// The newest first.
    pub(crate) runs: Vec<RunEntry>,
}

/// What [`Sieve::open`] needs to know.
pub(crate) struct Setting {
    pub(crate) dir: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) ledger: Arc<dyn Ledger>,
    /// How many records gather in memory before they are written as a run.
    pub(crate) gather: usize,
}

/// Records in memory, by key.
type Table = HashMap<Fingerprint, Word>;

pub(crate) struct Sieve {
    keeper: Arc<Keeper>,
    threads: Vec<JoinHandle<()>>,
}

/// What a look-up goes through, in this order.
pub(crate) struct View {
    fresh: Table,
    frozen: Option<Arc<Frozen>>,
    /// The newest first.
    runs: Vec<Arc<Run>>,
}

/// A full table on its way to disk.
struct Frozen {
    table: Table,
    /// The last commit that changed it.
    commit: u64,
}

impl View {
    /// What is known of a key.
    pub(crate) fn get(
        &self,
        key: Fingerprint,
        cache: &mut BlockCache,
    ) -> Result<Option<Word>, RunError> {
        if let Some(word) = self.fresh.get(&key) {
            return Ok(Some(*word));
        }
        if let Some(word) = self
            .frozen
            .as_ref()
            .and_then(|frozen| frozen.table.get(&key))
        {
            return Ok(Some(*word));
        }
        for run in &self.runs {
            if let Some(word) = run.get(key, cache)? {
                return Ok(Some(word));
            }
        }
        Ok(None)
    }
}

impl Sieve {
    /// Opens the runs of a list, removes files that it does not name, takes up the
    /// records of later commits, and starts the threads.
    pub(crate) fn open(
        setting: Setting,
        roll: Roll,
        fresh: impl Iterator<Item = Record>,
    ) -> Result<Sieve, RunError> {
        let Setting {
            dir,
            disk,
            ledger,
            gather,
        } = setting;
        remove_strangers(&dir, &*disk, &roll).map_err(|source| RunError::Io {
            path: dir.clone(),
            source,
        })?;
        let runs = roll.runs.iter();
        let runs = runs.map(|entry| Run::open(&run_path(&dir, entry.id), *entry).map(Arc::new));
        let mut table = Table::with_capacity(gather);
        table.extend(fresh.map(|record| (record.key, record.word)));
        let view = View {
            fresh: table,
            frozen: None,
            runs: runs.collect::<Result<_, _>>()?,
        };
        let keeper = Arc::new(Keeper::new(dir.clone(), disk, ledger, gather, roll, view));
        let threads =
            Keeper::start(&keeper).map_err(|source| RunError::Io { path: dir, source })?;
        Ok(Sieve { keeper, threads })
    }

    /// What is known now. Commits wait while this is held.
    pub(crate) fn view(&self) -> RwLockReadGuard<'_, View> {
        self.keeper.view()
    }

    /// Waits until there is memory for another transaction.
    ///
    /// # Errors
    /// What went wrong when a run was written or merged, for good: nothing is lost, but
    /// nothing more can be taken in either.
    pub(crate) fn make_room(&self) -> Result<(), FrontierError> {
        self.keeper.make_room()
    }

    /// Takes in the records of a commit if `write` makes them durable. Nobody sees the
    /// one without the other.
    pub(crate) fn commit<E>(
        &self,
        commit: u64,
        records: &[Record],
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.keeper.commit(commit, records, write)
    }
}

impl Drop for Sieve {
    fn drop(&mut self) {
        self.keeper.stop();
        for thread in self.threads.drain(..) {
            // A panic was caught, and its run is not in the list.
            let _ = thread.join();
        }
    }
}

fn run_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.run"))
}

/// Removes what a death left of a run that is not, or no longer, in the list.
fn remove_strangers(dir: &Path, disk: &dyn Disk, roll: &Roll) -> io::Result<()> {
    if !dir.try_exists()? {
        fs::create_dir_all(dir)?;
        disk.sync_dir(dir.parent().unwrap_or(dir))?;
    }
    let listed: BTreeSet<PathBuf> = roll.runs.iter().map(|run| run_path(dir, run.id)).collect();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "run") && !listed.contains(&path) {
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// The lock of a view; a panic elsewhere leaves it whole, as it changes in one step.
fn read(view: &RwLock<View>) -> RwLockReadGuard<'_, View> {
    view.read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
