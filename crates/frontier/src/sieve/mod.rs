//! The sieve: the set of known URLs, with twelve bytes of state for each URL.
//!
//! The changes of commits collect in a table in memory. One thread writes full tables as sorted
//! runs (see [`sorted_run`]), and another merges runs into larger ones. So all writes are
//! sequential. A look-up checks a few filters in memory, and reads one block if the URL is known.
//! Records that are only in memory are still durable, because the caller stores them in its commits
//! as well. The caller's [`RunListStore`] keeps the list of runs, with the number of the last
//! commit that runs cover. On opening, the caller passes back the records of commits that no run
//! contains.

mod block_cache;
mod bloom_filter;
mod compactor;
mod run_block;
mod run_disk;
mod run_merge;
mod sieve_record;
mod sorted_run;
mod sorted_run_writer;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;

use foldhash::{HashMap, HashMapExt};

pub(crate) use self::block_cache::BlockCache;
use self::compactor::SharedSieveState;
pub(crate) use self::run_block::SortedRunError;
pub(crate) use self::sieve_record::{PackedState, STATE_BYTES, SieveRecord};
pub(crate) use self::sorted_run::RunManifestEntry;
use self::sorted_run::SortedRun;
use crate::error::FrontierError;
use crate::fingerprint::Fingerprint;
pub use run_disk::{DiskFile, RunDisk, SystemDisk};

/// The durable storage of the list of sorted runs.
pub(crate) trait RunListStore: Send + Sync {
    /// Replaces the stored list.
    fn keep(&self, manifest: &RunManifest) -> Result<(), FrontierError>;
    /// Deletes the stored records of these commits, because sorted runs contain them now.
    fn forget(&self, commits: RangeInclusive<u64>) -> Result<(), FrontierError>;
    /// Wraps the error of a sorted run that can't be written or read.
    fn run_failed(&self, why: SortedRunError) -> FrontierError;
}

/// The list of sorted runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunManifest {
    /// The last commit whose records are in sorted runs.
    pub(crate) commit: u64,
    /// The last number that was assigned to a sorted run.
    pub(crate) last_run: u64,
    /// The sorted runs, newest first.
    pub(crate) runs: Vec<RunManifestEntry>,
}

/// The arguments of [`Sieve::open`].
pub(crate) struct SieveSettings {
    pub(crate) dir: PathBuf,
    pub(crate) disk: Arc<dyn RunDisk>,
    pub(crate) run_list: Arc<dyn RunListStore>,
    /// Maximum number of new records in memory. Beyond the limit, they are written as a sorted run.
    pub(crate) gather: usize,
}

/// Records in memory, by key.
type Table = HashMap<Fingerprint, PackedState>;

/// The set of all known URLs, with their states: recent ones in memory, the others in sorted runs
/// on disk.
pub(crate) struct Sieve {
    compactor: Arc<SharedSieveState>,
    threads: Vec<JoinHandle<()>>,
}

/// The tables and sorted runs that a look-up searches: first `fresh`, then `full`, then `runs`.
pub(crate) struct SieveSnapshot {
    fresh: Table,
    full: Option<Arc<FullTable>>,
    /// The sorted runs, newest first.
    runs: Vec<Arc<SortedRun>>,
}

/// A full table that is being written to disk and no longer changes.
struct FullTable {
    table: Table,
    /// The last commit that changed the table.
    commit: u64,
}

impl SieveSnapshot {
    /// Returns whether there are sorted runs. If not, no look-up reads the disk.
    pub(crate) fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Returns the state of a key if it is in memory. `None` does not mean that the key is unknown.
    pub(crate) fn held(&self, key: Fingerprint) -> Option<PackedState> {
        let full = || self.full.as_ref().and_then(|full| full.table.get(&key));
        self.fresh.get(&key).or_else(full).copied()
    }

    /// Returns the state of a key, or `None` if the key is unknown. May read the disk.
    pub(crate) fn get(
        &self,
        key: Fingerprint,
        cache: &mut BlockCache,
    ) -> Result<Option<PackedState>, SortedRunError> {
        if let Some(state) = self.held(key) {
            return Ok(Some(state));
        }
        for run in &self.runs {
            if let Some(state) = run.get(key, cache)? {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }
}

impl Sieve {
    /// Opens the sieve: removes files of sorted runs that are not in `manifest`, opens the others,
    /// adds the records of later commits (`fresh`), and starts the background threads.
    pub(crate) fn open(
        settings: SieveSettings,
        manifest: RunManifest,
        fresh: impl Iterator<Item = SieveRecord>,
    ) -> Result<Sieve, SortedRunError> {
        let SieveSettings {
            dir,
            disk,
            run_list,
            gather,
        } = settings;
        remove_unlisted_runs(&dir, &*disk, &manifest).map_err(|source| SortedRunError::Io {
            path: dir.clone(),
            source,
        })?;
        let runs = manifest.runs.iter();
        let runs =
            runs.map(|entry| SortedRun::open(&run_path(&dir, entry.id), *entry).map(Arc::new));
        // Let the table grow on demand. Reserving memory for `gather` records would use 9 MB even
        // in a small crawl.
        let mut table = Table::new();
        table.extend(fresh.map(|record| (record.key, record.state)));
        let view = SieveSnapshot {
            fresh: table,
            full: None,
            runs: runs.collect::<Result<_, _>>()?,
        };
        let compactor = Arc::new(SharedSieveState::new(
            dir.clone(),
            disk,
            run_list,
            gather,
            manifest,
            view,
        ));
        let threads = SharedSieveState::start(&compactor)
            .map_err(|source| SortedRunError::Io { path: dir, source })?;
        Ok(Sieve { compactor, threads })
    }

    /// Returns the current tables and sorted runs. Commits wait while the returned guard is held.
    pub(crate) fn view(&self) -> RwLockReadGuard<'_, SieveSnapshot> {
        self.compactor.view()
    }

    /// Like [`Sieve::view`], but does not wait: returns `None` if a commit or a change of the
    /// sorted runs is in progress.
    pub(crate) fn view_at_once(&self) -> Option<RwLockReadGuard<'_, SieveSnapshot>> {
        self.compactor.view_at_once()
    }

    /// Waits until the records of another transaction fit into memory.
    ///
    /// # Errors
    /// The error of a failed write or merge of a sorted run. The error is permanent: nothing is
    /// lost, but no more records can be added.
    pub(crate) fn make_room(&self) -> Result<(), FrontierError> {
        self.compactor.make_room()
    }

    /// Calls `write`, which makes a commit durable, and then adds the commit's records. Adds
    /// nothing if `write` fails. Readers see the written data and the records at the same moment.
    pub(crate) fn commit<E>(
        &self,
        commit: u64,
        records: &[SieveRecord],
        write: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.compactor.commit(commit, records, write)
    }
}

impl Drop for Sieve {
    fn drop(&mut self) {
        self.compactor.stop();
        for thread in self.threads.drain(..) {
            // The result of `join` can be ignored. A panic of the thread was already reported, and
            // its unfinished sorted run is not in the list.
            let _ = thread.join();
        }
    }
}

fn run_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:08}.run"))
}

/// Removes the files of sorted runs that are not in the manifest. A crash may leave such files.
fn remove_unlisted_runs(dir: &Path, disk: &dyn RunDisk, manifest: &RunManifest) -> io::Result<()> {
    if !dir.try_exists()? {
        fs::create_dir_all(dir)?;
        disk.sync_dir(dir.parent().unwrap_or(dir))?;
    }
    let listed: BTreeSet<PathBuf> = manifest
        .runs
        .iter()
        .map(|run| run_path(dir, run.id))
        .collect();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "run") && !listed.contains(&path) {
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// Locks the view for reading. A panic in another thread can't leave the view inconsistent, because
/// the view changes in one step.
fn read(view: &RwLock<SieveSnapshot>) -> RwLockReadGuard<'_, SieveSnapshot> {
    view.read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
