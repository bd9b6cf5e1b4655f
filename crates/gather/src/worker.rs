//! The directory of one worker: what it must be before it is gathered.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crawl_archive::rows::{ExcludedRow, WaitingRow, WorkerRow};
use crawl_archive::{MAX_CONFIG_BYTES, ReadError, RowReader, check_entries, read_text};
use crawl_records::{CrawlSettings, RecordsError, waiting};
use serde::Deserialize;
use toml::Table;

use crate::error::GatherError;

/// The table in which the program notes what it did.
pub(crate) const NOTES: &str = "crawl";
/// The key of a worker's name, in its table.
pub(crate) const WORKER: (&str, &str) = ("frontier", "worker");
/// The files by which a process holds a directory: one with a frontier of its own, or a worker's.
const LOCKS: [&str; 2] = ["state/lock", "state/worker.lock"];
/// Whose directory it is, where the frontier was shared: a crawl that was imported has no such
/// settings before it goes on.
const WORKER_FILE: &str = "state/worker.json";
const MAX_WORKER_BYTES: u64 = 64 * 1024;
/// The list that `crawl forget` leaves where it is killed.
const HALF_FORGOTTEN: &str = "forget.json";

/// A worker's directory, in which nothing runs as long as this value lives.
pub(crate) struct Worker {
    pub(crate) dir: PathBuf,
    /// Its `crawl.toml`.
    pub(crate) config: Table,
    /// The name of the crawl that it shared with others, where it has one.
    pub(crate) crawl: Option<String>,
    /// How its last run ended, and what waits of each origin.
    pub(crate) ended: WaitingRow,
    pub(crate) waiting: Vec<WaitingRow>,
    /// Its counts so far.
    pub(crate) row: WorkerRow,
    /// The bytes of its `excluded.jsonl` that are read, where not all are.
    pub(crate) excluded_bytes: Option<u64>,
    _locks: Vec<File>,
}

impl Worker {
    /// Holds the directory of a worker.
    fn open(dir: &Path) -> Result<Worker, GatherError> {
        let settings = CrawlSettings::read(dir)?;
        let locks = hold(dir)?;
        check_entries(dir)?;
        let dir = dir.to_owned();
        if dir.join(HALF_FORGOTTEN).exists() {
            return Err(GatherError::HalfForgotten { dir });
        }
        if settings.replay_of.is_some() {
            return Err(GatherError::Replay { dir });
        }
        let config = config(&dir)?;
        let is_asked = |key: &str| {
            let value = config.get("sample").and_then(|table| table.get(key));
            value.is_some_and(|value| value.as_str() != Some("unlimited"))
        };
        if is_asked("sample") || is_asked("walk") {
            return Err(GatherError::Sampled { dir });
        }
        let mut rows = waiting(&dir)?.collect::<Result<Vec<_>, _>>()?;
        let Some(at) = rows.iter().position(|row| row.origin.is_none()) else {
            return Err(GatherError::NotEnded { dir });
        };
        let ended = rows.remove(at);
        let shared = shared_as(&dir)?;
        let crawl = match &shared {
            Some(shared) => Some(shared.crawl.clone()),
            None => text_of(&config, "frontier", "crawl").map(str::to_owned),
        };
        let crawl = crawl.filter(|name| !name.is_empty());
        let note = |key| text_of(&config, NOTES, key).map(str::to_owned);
        let row = WorkerRow {
            worker: shared.map_or_else(|| name(&dir, &config), |shared| shared.worker),
            started: note("started"),
            last_started: note("last-started"),
            ended: match &ended.detail {
                Some(detail) => format!("{} {detail}", ended.reason),
                None => ended.reason.clone(),
            },
            ..WorkerRow::default()
        };
        Ok(Worker {
            dir,
            config,
            crawl,
            ended,
            waiting: rows,
            row,
            excluded_bytes: None,
            _locks: locks,
        })
    }

    /// Its rows of `excluded.jsonl`.
    pub(crate) fn excluded(&self) -> Result<RowReader<ExcludedRow>, ReadError> {
        let path = self.dir.join("excluded.jsonl");
        match self.excluded_bytes {
            Some(bytes) if path.exists() => RowReader::open(&path, Some(bytes)),
            _ => RowReader::open_if_any(&path),
        }
    }

    /// The name by which its rows are told from those of others.
    pub(crate) fn name(&self) -> &str {
        &self.row.worker
    }
}

/// Holds the directories of all workers, each under a name of its own.
pub(crate) fn open_all(dirs: &[PathBuf]) -> Result<Vec<Worker>, GatherError> {
    let mut places = Vec::new();
    for dir in dirs {
        let Ok(found) = dir.metadata() else {
            let dir = dir.clone();
            return Err(RecordsError::NoCrawl { dir }.into());
        };
        let place = (found.dev(), found.ino());
        if let Some(at) = places.iter().position(|known| *known == place) {
            return Err(GatherError::SameDirectory {
                one: dirs[at].clone(),
                other: dir.clone(),
            });
        }
        places.push(place);
    }
    let workers: Result<Vec<Worker>, _> = dirs.iter().map(|dir| Worker::open(dir)).collect();
    let mut workers = workers?;
    let mut names = BTreeSet::new();
    for worker in &mut workers {
        let plain = worker.row.worker.clone();
        let numbered = (2_u32..).map(|number| format!("{plain}-{number}"));
        let mut names_for_it = std::iter::once(plain.clone()).chain(numbered);
        if let Some(free) = names_for_it.find(|name| !names.contains(name)) {
            names.insert(free.clone());
            worker.row.worker = free;
        }
    }
    Ok(workers)
}

/// Takes the locks that a run takes; none where there is no state, as in a copy of the records.
fn hold(dir: &Path) -> Result<Vec<File>, GatherError> {
    let mut held = Vec::new();
    for lock in LOCKS {
        let path = dir.join(lock);
        let file = match File::open(&path) {
            Err(why) if why.kind() == ErrorKind::NotFound => continue,
            file => file.map_err(GatherError::io(&path))?,
        };
        match file.try_lock() {
            Ok(()) => held.push(file),
            Err(TryLockError::WouldBlock) => {
                return Err(GatherError::Running {
                    dir: dir.to_owned(),
                });
            }
            Err(TryLockError::Error(why)) => return Err(GatherError::io(&path)(why)),
        }
    }
    Ok(held)
}

fn config(dir: &Path) -> Result<Table, GatherError> {
    let path = dir.join("crawl.toml");
    let text = read_text(&path, MAX_CONFIG_BYTES).map_err(GatherError::io(&path))?;
    text.parse().map_err(|why: toml::de::Error| {
        let what = why.message().to_owned();
        RecordsError::Config { path, what }.into()
    })
}

/// The worker whose directory it is, and its crawl.
#[derive(Deserialize)]
struct SharedAs {
    crawl: String,
    worker: String,
}

/// The worker whose directory it is, as its state says; nothing where it says so nowhere.
fn shared_as(dir: &Path) -> Result<Option<SharedAs>, GatherError> {
    let path = dir.join(WORKER_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(&path, MAX_WORKER_BYTES).map_err(GatherError::io(&path))?;
    let shared = serde_json::from_str(&text);
    shared
        .map(Some)
        .map_err(|why| GatherError::io(&path)(why.into()))
}

/// The name that the worker was given, else that of its folder.
fn name(dir: &Path, config: &Table) -> String {
    let given = text_of(config, WORKER.0, WORKER.1).filter(|name| !name.is_empty());
    let folder = || {
        let whole = dir.canonicalize().ok()?;
        Some(whole.file_name()?.to_string_lossy().into_owned())
    };
    let name = given.map(str::to_owned).or_else(folder);
    name.unwrap_or_else(|| "worker".to_owned())
}

/// The text of a key in a table.
pub(crate) fn text_of<'t>(config: &'t Table, table: &str, key: &str) -> Option<&'t str> {
    config.get(table)?.get(key)?.as_str()
}
