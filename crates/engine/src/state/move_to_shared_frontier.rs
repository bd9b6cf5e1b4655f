//! Moves the crawl of a directory into a shared frontier. The directory then belongs to one of the
//! workers. The row files and the archive stay in place.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crawl_archive::{DIGESTS, DigestRefreshAfterOpen, FilesToRehash, RowReader, write_digests};
use crawl_frontier::parts::{CrawlTransferItem, UrlRecord};
use crawl_frontier::worker_frontier::{CrawlMoveError, IncomingCrawl, WorkerOfImportedCrawl};
use crawl_frontier::{FjallFrontier, FjallFrontierOptions, Frontier, FrontierError, is_write_once};
use crawl_weburl::canonicalize;
use serde::Deserialize;

use super::crawl_directory::{self, STATE};
use super::file_swap;
use super::frontier_move_counts::{MovedRecordCounts, states};
use super::worker_state_folder::{self, STORE};
use crate::config::SharedFrontierImportTarget;
use crate::crawl_totals::CrawlTotals;
use crate::error::EngineError;
use crate::frontier_meta_keys::{
    META_REPLAY, META_SAMPLE, META_TOMBSTONE_KEY, META_TOTALS, META_WALK,
};
use crate::revisit::round_of_run;
use crate::scope_seeds::targets_to_share;

/// The folders of the state that contain the crawl's own frontier.
const OWN_FOLDERS: [&str; 2] = [STORE, "known"];
/// The folder that the crawl's own frontier is moved to.
const IMPORTED: &str = "imported";
/// The files whose rows together name every settled URL. The frontier records the committed lengths
/// of the first two.
const ROW_FILES: [&str; 3] = ["pages.jsonl", "excluded.jsonl", "requests.jsonl"];

/// A crawl that was imported into a shared frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlImportResult {
    /// The numbers of moved records.
    pub moved: MovedRecordCounts,
    /// The folder where the crawl's own frontier is now.
    pub own_frontier: PathBuf,
}

/// A row of any file, reduced to its URL.
#[derive(Deserialize)]
struct RowUrl {
    #[serde(default)]
    url: Option<String>,
}

/// Moves the crawl in `dir` into a shared frontier. The crawl must not be running. The directory
/// then belongs to a worker.
///
/// # Errors
/// [`EngineError`]. If the crawl was already in the shared frontier when the error occurred,
/// another call finishes the import. Otherwise nothing was imported.
pub fn import(
    dir: &Path,
    target: &SharedFrontierImportTarget<'_>,
) -> Result<CrawlImportResult, EngineError> {
    if !crawl_directory::examine(dir)? {
        return Err(EngineError::NothingToDo {
            dir: dir.to_owned(),
        });
    }
    let state = dir.join(STATE);
    let begun = worker_state_folder::begun_import(dir, &state, target)?;
    file_swap::recover(dir)?;
    // Declare this guard before the frontier, so that it is dropped after the frontier if the
    // import is refused.
    let _digests = DigestRefreshAfterOpen::before_opening(dir, STATE, is_write_once);
    let opened = FjallFrontier::open(&state, &FjallFrontierOptions::default());
    let frontier = opened.map_err(|error| crawl_directory::unopened(dir, &state, error))?;
    refuse_unmovable(dir, &frontier)?;
    // An earlier, interrupted import may already have moved everything.
    let is_there = |life: &String| target.frontier.is_moved(life);
    let is_there = begun.as_ref().map(is_there).transpose();
    let life = match (begun, is_there.map_err(EngineError::Shared)?) {
        (Some(life), Some(true)) => life,
        _ => move_all(dir, &state, &frontier, target)?,
    };
    tracing::debug!(life, "the crawl is in the shared frontier");
    let moved = count(&frontier)?;
    drop(frontier);
    move_aside(&state)?;
    let listed = write_digests(dir, FilesToRehash::Named(&[STATE]));
    listed.map_err(EngineError::disk(&dir.join(DIGESTS)))?;
    let own_frontier = state.join(IMPORTED);
    Ok(CrawlImportResult {
        moved,
        own_frontier,
    })
}

/// Refuses a crawl with data that an import does not move, because workers could not continue it.
fn refuse_unmovable(dir: &Path, frontier: &FjallFrontier) -> Result<(), EngineError> {
    for (key, what) in [
        (META_REPLAY, "it is the replay of another crawl"),
        (META_SAMPLE, "a sample was drawn from it"),
        (META_WALK, "it is a random walk"),
        (
            META_TOMBSTONE_KEY,
            "some of its pages were forgotten, so no row has their URLs",
        ),
    ] {
        if frontier.meta(key)?.is_some() {
            return Err(EngineError::NotImportable {
                dir: dir.to_owned(),
                what,
            });
        }
    }
    if let Some(round) = round_of_run::stored(frontier)?
        && round.number > 1
        && !round.is_over
    {
        // Refuse a later round, because workers that join the crawl begin with the first round.
        return Err(EngineError::NotImportable {
            dir: dir.to_owned(),
            what: "a later round of it is not finished",
        });
    }
    Ok(())
}

/// Moves everything into the shared frontier, as if a new process of the worker had written it and
/// then ended. Returns the id of that process.
fn move_all(
    dir: &Path,
    state: &Path,
    frontier: &FjallFrontier,
    target: &SharedFrontierImportTarget<'_>,
) -> Result<String, EngineError> {
    let mut import = target.frontier.begin().map_err(EngineError::Shared)?;
    let put = put_all(dir, frontier, &mut *import);
    if let Err(why) = put {
        // Ignore errors: remains of the import have no effect, and the next import removes them.
        let _ = import.give_up();
        return Err(why);
    }
    let totals = frontier.meta(META_TOTALS)?;
    let totals = totals.and_then(|bytes| CrawlTotals::from_bytes(&bytes));
    let totals = totals.unwrap_or_default();
    let life = worker_state_folder::begin_import(state, target)?;
    let worker = WorkerOfImportedCrawl {
        name: target.worker.clone(),
        life: life.clone(),
        pages: totals.pages,
        bytes: totals.bytes,
        marks: frontier.marks()?,
    };
    match import.finish(worker, states(frontier)) {
        Ok(()) => Ok(life),
        Err(CrawlMoveError::Incomplete(why)) => {
            worker_state_folder::end_import(state)?;
            Err(EngineError::Shared(why))
        }
        Err(CrawlMoveError::Failed(why)) => Err(EngineError::Shared(why)),
    }
}

fn put_all(
    dir: &Path,
    frontier: &FjallFrontier,
    import: &mut dyn IncomingCrawl,
) -> Result<(), EngineError> {
    frontier.each_part::<FrontierError>(&mut |part| import.put(part))?;
    let totals = frontier.meta(META_TOTALS)?;
    let totals = totals.and_then(|bytes| CrawlTotals::from_bytes(&bytes));
    let has_seed = totals.is_some_and(|totals| totals.seeds_fetched > 0);
    for (name, bytes) in targets_to_share(frontier, has_seed)? {
        import.put(CrawlTransferItem::Meta { name, bytes })?;
    }
    let marks = frontier.marks()?;
    for name in ROW_FILES {
        let path = dir.join(name);
        if !path.exists() {
            continue;
        }
        let rows = RowReader::<RowUrl>::open(&path, marks.get(name).copied())?;
        for row in rows {
            let url = row?.url;
            let Some(url) = url.and_then(|url| canonicalize(None, &url).ok()) else {
                continue;
            };
            let record = frontier.known(&url)?;
            if let Some(record) = record.and_then(UrlRecord::settled) {
                import.put(CrawlTransferItem::Url { url, record })?;
            }
        }
    }
    Ok(())
}

fn count(frontier: &FjallFrontier) -> Result<MovedRecordCounts, FrontierError> {
    let mut moved = MovedRecordCounts {
        states: states(frontier),
        ..MovedRecordCounts::default()
    };
    frontier.each_part::<FrontierError>(&mut |part| {
        moved.count(&part);
        Ok(())
    })?;
    Ok(moved)
}

/// Moves the crawl's own frontier to [`IMPORTED`]. Moves the store first: until the store is
/// moved, the import counts as unfinished, and an unfinished import needs both folders.
fn move_aside(state: &Path) -> Result<(), EngineError> {
    let aside = state.join(IMPORTED);
    match fs::create_dir(&aside) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            return Err(EngineError::disk(&aside)(why));
        }
        _ => {}
    }
    for folder in OWN_FOLDERS {
        let from = state.join(folder);
        if from.exists() {
            fs::rename(&from, aside.join(folder)).map_err(EngineError::disk(&from))?;
        }
    }
    let synced = fs::File::open(state).and_then(|folder| folder.sync_all());
    synced.map_err(EngineError::disk(state))
}
