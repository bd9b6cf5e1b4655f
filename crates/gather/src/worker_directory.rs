//! Opens the directory of a worker, and checks that it can be gathered.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crawl_archive::rows::{ExcludedRow, GatheredWorkerRow, PendingOriginRow};
use crawl_archive::{
    FORGET_LIST, MAX_CONFIG_BYTES, ReadError, RowReader, check_entries, read_text,
};
use crawl_frontier::FileLock;
use crawl_records::{CrawlSettings, RecordsError, waiting};
use serde::Deserialize;
use toml::Table;

use crate::error::GatherError;

/// The table in `crawl.toml` that contains the program's own notes.
pub(crate) const NOTES: &str = "crawl";
/// The table and the key in `crawl.toml` that contain the worker's name.
pub(crate) const WORKER: (&str, &str) = ("frontier", "worker");
/// The files that a process locks while it uses a directory: the first if the directory contains
/// the frontier, the second if several workers share a frontier.
const LOCKS: [&str; 2] = ["state/lock", "state/worker.lock"];
/// The file in the directory of a worker with a shared frontier that names the worker and the
/// crawl. Needed because `crawl.toml` doesn't contain the names between the import of a crawl into
/// a shared frontier and its next run.
const WORKER_FILE: &str = "state/worker.json";
const MAX_WORKER_BYTES: u64 = 64 * 1024;

/// The directory of a worker. The directory is locked until this value is dropped.
pub(crate) struct WorkerDirectory {
    pub(crate) dir: PathBuf,
    /// The content of the worker's `crawl.toml`.
    pub(crate) config: Table,
    /// The name of the crawl that the worker shared with other workers; `None` if the frontier was
    /// not shared.
    pub(crate) crawl: Option<String>,
    /// The row of `waiting.jsonl` that describes how the worker's last run ended.
    pub(crate) ended: PendingOriginRow,
    pub(crate) waiting: Vec<PendingOriginRow>,
    /// The worker's row in `workers.jsonl`, with the counts so far.
    pub(crate) row: GatheredWorkerRow,
    /// The number of bytes to read from the worker's `excluded.jsonl`; `None` to read the whole
    /// file.
    pub(crate) excluded_bytes: Option<u64>,
    _locks: Vec<FileLock>,
}

impl WorkerDirectory {
    /// Locks the directory of a worker and checks it.
    fn open(dir: &Path) -> Result<WorkerDirectory, GatherError> {
        let settings = CrawlSettings::read(dir)?;
        let locks = hold(dir)?;
        check_entries(dir)?;
        let dir = dir.to_owned();
        if dir.join(FORGET_LIST).exists() {
            return Err(GatherError::HalfForgotten { dir });
        }
        if settings.replay_of.is_some() {
            return Err(GatherError::Replay { dir });
        }
        let config = config(&dir)?;
        let is_set = |key: &str| {
            let value = config.get("sample").and_then(|table| table.get(key));
            value.is_some_and(|value| value.as_str() != Some("unlimited"))
        };
        if is_set("sample") || is_set("walk") {
            return Err(GatherError::Sampled { dir });
        }
        let mut rows = waiting(&dir)?.collect::<Result<Vec<_>, _>>()?;
        let Some(at) = rows.iter().position(|row| row.origin.is_none()) else {
            return Err(GatherError::NotEnded { dir });
        };
        let ended = rows.remove(at);
        let worker_file = worker_file(&dir)?;
        let crawl = match &worker_file {
            Some(file) => Some(file.crawl.clone()),
            None => text_of(&config, "frontier", "crawl").map(str::to_owned),
        };
        let crawl = crawl.filter(|name| !name.is_empty());
        let note = |key| text_of(&config, NOTES, key).map(str::to_owned);
        let row = GatheredWorkerRow {
            worker: worker_file.map_or_else(|| name(&dir, &config), |file| file.worker),
            started: note("started"),
            last_started: note("last-started"),
            ended: match &ended.detail {
                Some(detail) => format!("{} {detail}", ended.reason),
                None => ended.reason.clone(),
            },
            ..GatheredWorkerRow::default()
        };
        Ok(WorkerDirectory {
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

    /// Opens the worker's `excluded.jsonl`.
    pub(crate) fn excluded(&self) -> Result<RowReader<ExcludedRow>, ReadError> {
        let path = self.dir.join("excluded.jsonl");
        match self.excluded_bytes {
            Some(bytes) if path.exists() => RowReader::open(&path, Some(bytes)),
            _ => RowReader::open_if_any(&path),
        }
    }

    /// Returns the worker's name, which is unique among the gathered workers.
    pub(crate) fn name(&self) -> &str {
        &self.row.worker
    }
}

/// Locks the directories of all workers and gives each worker a unique name.
pub(crate) fn open_all(dirs: &[PathBuf]) -> Result<Vec<WorkerDirectory>, GatherError> {
    let mut places = Vec::new();
    for dir in dirs {
        let Ok(metadata) = dir.metadata() else {
            let dir = dir.clone();
            return Err(RecordsError::NoCrawl { dir }.into());
        };
        let place = (metadata.dev(), metadata.ino());
        if let Some(at) = places.iter().position(|other_place| *other_place == place) {
            return Err(GatherError::SameDirectory {
                one: dirs[at].clone(),
                other: dir.clone(),
            });
        }
        places.push(place);
    }
    let workers: Result<Vec<WorkerDirectory>, _> =
        dirs.iter().map(|dir| WorkerDirectory::open(dir)).collect();
    let mut workers = workers?;
    let mut names = BTreeSet::new();
    for worker in &mut workers {
        let plain = worker.row.worker.clone();
        let numbered = (2_u32..).map(|number| format!("{plain}-{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        if let Some(free) = candidates.find(|name| !names.contains(name)) {
            names.insert(free.clone());
            worker.row.worker = free;
        }
    }
    Ok(workers)
}

/// Locks a directory like a run of the crawler. A directory without the folder `state`, such as a
/// copy of the records, needs no lock.
fn hold(dir: &Path) -> Result<Vec<FileLock>, GatherError> {
    let mut held = Vec::new();
    for lock in LOCKS {
        let path = dir.join(lock);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            file => file.map_err(GatherError::io(&path))?,
        };
        let lock = FileLock::try_acquire(file).map_err(GatherError::io(&path))?;
        held.push(lock.ok_or_else(|| GatherError::Running {
            dir: dir.to_owned(),
        })?);
    }
    Ok(held)
}

fn config(dir: &Path) -> Result<Table, GatherError> {
    let path = dir.join("crawl.toml");
    let text = read_text(&path, MAX_CONFIG_BYTES).map_err(GatherError::io(&path))?;
    text.parse().map_err(|error: toml::de::Error| {
        let message = error.message().to_owned();
        RecordsError::Config {
            path,
            what: message,
        }
        .into()
    })
}

/// The names of the crawl and the worker that a directory belongs to.
#[derive(Deserialize)]
struct WorkerFile {
    crawl: String,
    worker: String,
}

/// Reads the names of the crawl and the worker from a directory's state. Returns `None` if the
/// state doesn't contain them.
fn worker_file(dir: &Path) -> Result<Option<WorkerFile>, GatherError> {
    let path = dir.join(WORKER_FILE);
    if !path.exists() {
        return Ok(None);
    }
    let text = read_text(&path, MAX_WORKER_BYTES).map_err(GatherError::io(&path))?;
    let file = serde_json::from_str(&text);
    file.map(Some)
        .map_err(|error| GatherError::io(&path)(error.into()))
}

/// Returns the name given to the worker, or else the name of its folder.
fn name(dir: &Path, config: &Table) -> String {
    let given_name = text_of(config, WORKER.0, WORKER.1).filter(|name| !name.is_empty());
    let folder = || {
        let whole = dir.canonicalize().ok()?;
        Some(whole.file_name()?.to_string_lossy().into_owned())
    };
    let name = given_name.map(str::to_owned).or_else(folder);
    name.unwrap_or_else(|| "worker".to_owned())
}

pub(crate) fn text_of<'t>(config: &'t Table, table: &str, key: &str) -> Option<&'t str> {
    config.get(table)?.get(key)?.as_str()
}
