//! The `state` folder in the crawl directory of a worker on a shared frontier.
//!
//! `worker.json` names the crawl and the worker that own the directory, `worker.lock` is locked
//! while the worker runs, and `parking.json` lists the hosts to park or unpark at its next start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crawl_frontier::FileLock;
use crawl_frontier::worker_frontier::WorkerFrontier;
use crawl_weburl::HostKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::durable_files::replace;
use crate::config::{SharedCrawlMembership, SharedFrontierImportTarget};
use crate::control::{CommandRefusal, MAX_PARKED};
use crate::error::EngineError;

/// The file that names the owner of the directory.
const WORKER: &str = "worker.json";
const WORKER_BESIDE: &str = "worker.json.new";
/// The store of a crawl's own frontier. Exists in every crawl directory except those of workers on
/// a shared frontier.
pub(super) const STORE: &str = "store";
/// The hosts that an operator parked or unparked while the worker was not running.
const PARKING: &str = "parking.json";
const PARKING_BESIDE: &str = "parking.json.new";
/// A file that is locked while the worker runs.
const LOCK: &str = "worker.lock";

/// The content of `worker.json`: the worker that owns the directory.
#[derive(Debug, Deserialize, Serialize)]
struct DirectoryOwner {
    crawl: String,
    worker: String,
    /// A unique name of the last process that ran as this worker. Unlike a process id, it is never
    /// reused.
    life: String,
}

/// Opens the shared frontier as the worker that owns this directory. Locks the directory until
/// the returned lock is dropped.
pub(super) fn open(
    shared: &SharedCrawlMembership,
    dir: &Path,
    state: &Path,
) -> Result<(Arc<dyn WorkerFrontier>, FileLock), EngineError> {
    let lock = lock(dir, state)?;
    let owner = read(state)?;
    if owner.is_none() && holds_more(state)? {
        return Err(EngineError::OwnFrontier {
            dir: dir.to_owned(),
        });
    }
    if let Some(owner) = &owner
        && (owner.crawl != shared.crawl || owner.worker != shared.worker)
    {
        return Err(EngineError::OtherWorker {
            dir: dir.to_owned(),
            crawl: owner.crawl.clone(),
            worker: owner.worker.clone(),
        });
    }
    if owner.is_some() && state.join(STORE).exists() {
        return Err(EngineError::HalfImported {
            dir: dir.to_owned(),
        });
    }
    let is_new = owner.is_none();
    let last_life = owner.map(|owner| owner.life);
    let frontier = (shared.frontier)(last_life).map_err(EngineError::Shared)?;
    if is_new && !frontier.marks()?.is_empty() {
        frontier.give_up()?;
        return Err(EngineError::WorkerElsewhere {
            dir: dir.to_owned(),
            crawl: shared.crawl.clone(),
            worker: shared.worker.clone(),
        });
    }
    // This start cuts off the deferred URLs that the last run appended to `excluded.jsonl` at its
    // end, so no URL is listed now.
    frontier.note_listed(&BTreeSet::new())?;
    let file = DirectoryOwner {
        crawl: shared.crawl.clone(),
        worker: shared.worker.clone(),
        life: frontier.life().to_owned(),
    };
    write(state, &file)?;
    Ok((frontier, lock))
}

/// Refuses the directory of a worker on a shared frontier, because it lacks the crawl's own
/// frontier.
pub(super) fn refuse_shared(dir: &Path, state: &Path) -> Result<(), EngineError> {
    match read(state)? {
        None => Ok(()),
        Some(DirectoryOwner { crawl, worker, .. }) => Err(EngineError::SharedState {
            dir: dir.to_owned(),
            crawl,
            worker,
        }),
    }
}

/// Returns the worker's process id (see [`DirectoryOwner::life`]) under which an interrupted import
/// of this directory ran. `None` if no import began.
pub(super) fn begun_import(
    dir: &Path,
    state: &Path,
    target: &SharedFrontierImportTarget<'_>,
) -> Result<Option<String>, EngineError> {
    let Some(known) = read(state)? else {
        return Ok(None);
    };
    if !state.join(STORE).exists() {
        return Err(EngineError::SharedState {
            dir: dir.to_owned(),
            crawl: known.crawl,
            worker: known.worker,
        });
    }
    match known.crawl == target.crawl && known.worker == target.worker {
        true => Ok(Some(known.life)),
        false => Err(EngineError::OtherWorker {
            dir: dir.to_owned(),
            crawl: known.crawl,
            worker: known.worker,
        }),
    }
}

/// Assigns the directory to the worker that continues the crawl. Returns a new process id of the
/// worker (see [`DirectoryOwner::life`]), which only the import uses.
pub(super) fn begin_import(
    state: &Path,
    target: &SharedFrontierImportTarget<'_>,
) -> Result<String, EngineError> {
    let file = DirectoryOwner {
        crawl: target.crawl.clone(),
        worker: target.worker.clone(),
        life: target.frontier.new_life(&target.worker),
    };
    write(state, &file)?;
    Ok(file.life)
}

/// Undoes [`begin_import`]: deletes the worker file, so that the directory has its own frontier
/// again.
pub(super) fn end_import(state: &Path) -> Result<(), EngineError> {
    let path = state.join(WORKER);
    fs::remove_file(&path).map_err(EngineError::disk(&path))
}

/// Records that a host is to be parked or unparked at the worker's next start.
pub(super) fn record_parking(
    dir: &Path,
    state: &Path,
    host: &HostKey,
    parks: bool,
) -> Result<(), EngineError> {
    let _lock = lock(dir, state)?;
    let mut recorded = recorded_parking(state)?;
    recorded.insert(host.to_string(), parks);
    if recorded.len() > MAX_PARKED {
        return Err(CommandRefusal::TooManyParked(MAX_PARKED).into());
    }
    let path = state.join(PARKING);
    let bytes = serde_json::to_vec(&recorded).unwrap_or_default();
    replace(&path, &state.join(PARKING_BESIDE), &bytes).map_err(EngineError::disk(&path))
}

/// Returns the hosts that are to be parked (true) or unparked (false) at the worker's next start.
pub(super) fn recorded_parking(state: &Path) -> Result<BTreeMap<String, bool>, EngineError> {
    Ok(read_json(&state.join(PARKING))?.unwrap_or_default())
}

/// Deletes what [`recorded_parking`] returned.
pub(super) fn remove_recorded_parking(state: &Path) -> Result<(), EngineError> {
    let path = state.join(PARKING);
    let removed = fs::remove_file(&path).and_then(|()| File::open(state)?.sync_all());
    removed.map_err(EngineError::disk(&path))
}

fn write(state: &Path, file: &DirectoryOwner) -> Result<(), EngineError> {
    let path = state.join(WORKER);
    let bytes = serde_json::to_vec(file).unwrap_or_default();
    replace(&path, &state.join(WORKER_BESIDE), &bytes).map_err(EngineError::disk(&path))
}

fn lock(dir: &Path, state: &Path) -> Result<FileLock, EngineError> {
    let path = state.join(LOCK);
    let failed = |error| EngineError::disk(&path)(error);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let lock = file.and_then(FileLock::try_acquire).map_err(failed)?;
    lock.ok_or_else(|| EngineError::OutputInUse {
        dir: dir.to_owned(),
    })
}

fn read(state: &Path) -> Result<Option<DirectoryOwner>, EngineError> {
    read_json(&state.join(WORKER))
}

/// Reads a JSON file. Returns `None` if there is no such file.
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, EngineError> {
    let failed = |error| EngineError::disk(path)(error);
    match fs::read(path) {
        Ok(bytes) => {
            let file = serde_json::from_slice(&bytes);
            file.map(Some).map_err(|error| failed(error.into()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Returns whether the state contains more than an interrupted first start may leave behind.
fn holds_more(state: &Path) -> Result<bool, EngineError> {
    for entry in fs::read_dir(state).map_err(EngineError::disk(state))? {
        let name = entry.map_err(EngineError::disk(state))?.file_name();
        if name != LOCK && name != WORKER_BESIDE {
            return Ok(true);
        }
    }
    Ok(false)
}
