//! The folder `state` of a worker whose frontier others share: whose it is.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crawl_frontier::shared::WorkerFrontier;
use serde::{Deserialize, Serialize};

use super::files::replace;
use crate::config::{ImportTarget, SharedCrawl};
use crate::error::EngineError;

/// Whose directory it is.
const WORKER: &str = "worker.json";
const WORKER_BESIDE: &str = "worker.json.new";
/// The store of a frontier of its own, which a directory has that was not imported.
pub(super) const STORE: &str = "store";
/// It is locked for as long as the worker lives.
const LOCK: &str = "worker.lock";

/// The worker whose directory it is.
#[derive(Debug, Deserialize, Serialize)]
struct WorkerFile {
    crawl: String,
    worker: String,
    /// The id of its last life.
    life: String,
}

/// Opens the frontier that the worker of this directory shares, and locks the directory as long as
/// the file lives.
pub(super) fn open(
    shared: &SharedCrawl,
    dir: &Path,
    state: &Path,
) -> Result<(Arc<dyn WorkerFrontier>, File), EngineError> {
    let lock = lock(dir, state)?;
    let known = read(state)?;
    if known.is_none() && holds_more(state)? {
        return Err(EngineError::OwnFrontier {
            dir: dir.to_owned(),
        });
    }
    if let Some(known) = &known
        && (known.crawl != shared.crawl || known.worker != shared.worker)
    {
        return Err(EngineError::OtherWorker {
            dir: dir.to_owned(),
            crawl: known.crawl.clone(),
            worker: known.worker.clone(),
        });
    }
    if known.is_some() && state.join(STORE).exists() {
        return Err(EngineError::HalfImported {
            dir: dir.to_owned(),
        });
    }
    let is_new = known.is_none();
    let last_life = known.map(|known| known.life);
    let frontier = (shared.frontier)(last_life).map_err(EngineError::Shared)?;
    if is_new && !frontier.marks()?.is_empty() {
        frontier.give_up()?;
        return Err(EngineError::WorkerElsewhere {
            dir: dir.to_owned(),
            crawl: shared.crawl.clone(),
            worker: shared.worker.clone(),
        });
    }
    // The rows that an end listed are cut off by this start.
    frontier.note_listed(&BTreeSet::new())?;
    let file = WorkerFile {
        crawl: shared.crawl.clone(),
        worker: shared.worker.clone(),
        life: frontier.life().to_owned(),
    };
    write(state, &file)?;
    Ok((frontier, lock))
}

/// Refuses the directory of a worker whose frontier others share: what is asked of it needs a
/// frontier of its own.
pub(super) fn refuse_shared(dir: &Path, state: &Path) -> Result<(), EngineError> {
    match read(state)? {
        None => Ok(()),
        Some(WorkerFile { crawl, worker, .. }) => Err(EngineError::SharedState {
            dir: dir.to_owned(),
            crawl,
            worker,
        }),
    }
}

/// The life that ends with an import of this directory that was cut short; none where there was no
/// import.
pub(super) fn begun_import(
    dir: &Path,
    state: &Path,
    target: &ImportTarget<'_>,
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

/// Makes the directory that of the worker that its crawl is imported as. Gives the id of the life
/// that ends with the import.
pub(super) fn begin_import(state: &Path, target: &ImportTarget<'_>) -> Result<String, EngineError> {
    let file = WorkerFile {
        crawl: target.crawl.clone(),
        worker: target.worker.clone(),
        life: target.frontier.new_life(&target.worker),
    };
    write(state, &file)?;
    Ok(file.life)
}

/// Makes the directory that of a crawl with a frontier of its own again.
pub(super) fn end_import(state: &Path) -> Result<(), EngineError> {
    let path = state.join(WORKER);
    fs::remove_file(&path).map_err(EngineError::disk(&path))
}

fn write(state: &Path, file: &WorkerFile) -> Result<(), EngineError> {
    let path = state.join(WORKER);
    let bytes = serde_json::to_vec(file).unwrap_or_default();
    replace(&path, &state.join(WORKER_BESIDE), &bytes).map_err(EngineError::disk(&path))
}

fn lock(dir: &Path, state: &Path) -> Result<File, EngineError> {
    let path = state.join(LOCK);
    let failed = |error| EngineError::disk(&path)(error);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(EngineError::OutputInUse {
            dir: dir.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn read(state: &Path) -> Result<Option<WorkerFile>, EngineError> {
    let path = state.join(WORKER);
    let failed = |error| EngineError::disk(&path)(error);
    match fs::read(&path) {
        Ok(bytes) => {
            let file = serde_json::from_slice(&bytes);
            file.map(Some).map_err(|error| failed(error.into()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Returns whether the state holds more than a start leaves that was cut off.
fn holds_more(state: &Path) -> Result<bool, EngineError> {
    for entry in fs::read_dir(state).map_err(EngineError::disk(state))? {
        let name = entry.map_err(EngineError::disk(state))?.file_name();
        if name != LOCK && name != WORKER_BESIDE {
            return Ok(true);
        }
    }
    Ok(false)
}
