//! The directories of several workers of one crawl, read as one.
//!
//! Each worker of a crawl with a shared frontier has its own rows, archive and settings.
//! [`gather()`] combines them into one directory that every reader of records accepts. It merges
//! rows as streams, hard-links or copies WARC files, and derives the archive's index, the report
//! and the digests again from all of it. The source directories are not changed, and are locked
//! while they are gathered.
//!
//! A directory gathered for reading contains `workers.jsonl` and no frontier, so a crawl can't
//! resume there. A directory that will receive the frontier of the crawl ([`Purpose::GoingOn`]) has
//! no `workers.jsonl`.
//!
//! ```no_run
//! use std::path::{Path, PathBuf};
//!
//! let workers = [PathBuf::from("w1"), PathBuf::from("w2")];
//! let made = Path::new("both.new");
//! std::fs::create_dir(made)?;
//! let gathered = crawl_gather::gather(&workers, made, &crawl_gather::Purpose::Reading)?;
//! println!("{} pages", gathered.workers.iter().map(|worker| worker.pages).sum::<u64>());
//! std::fs::rename(made, "both")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod config;
mod error;
mod rows;
mod settled;
mod waiting;
mod worker;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crawl_archive::rows::WorkerRow;
use crawl_archive::{ChangedFiles, replace_file, start_digests};
use crawl_records::{list_digests, write_report};
use serde::Serialize;

pub use error::{GatherError, SettledTwice};

/// The result of gathering a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gathered {
    /// A row for each worker, ordered like the given directories. [`Purpose::Reading`] also writes
    /// the rows to `workers.jsonl`.
    pub workers: Vec<WorkerRow>,
}

/// The use of the gathered directory.
#[derive(Clone, Debug)]
pub enum Purpose<'a> {
    /// Reading its records.
    Reading,
    /// Resuming the crawl, with the frontier that the workers shared. The directory gets the
    /// settings and logs of a crawl without other workers. Only committed rows of each worker's
    /// `excluded.jsonl` are taken: the later rows were written as a run ended, and the resumed
    /// crawl lists such URLs again.
    GoingOn {
        /// The committed length of each worker's `excluded.jsonl` in bytes, by the worker's name.
        excluded: &'a BTreeMap<String, u64>,
    },
}

/// The folder of the program's own state, which is closed to other users.
const STATE: &str = "state";
const STATE_MODE: u32 = 0o700;

/// Gathers the directories of the workers of one crawl into the folder `to`, which must exist and
/// be empty. Its content is synced to disk when this returns. After an error, discard `to`.
///
/// Memory: one row for each worker, 32 MiB of lines being sorted, and what [`write_report`] needs,
/// which depends on the number of hosts. Sorted data waits in files in `to`.
///
/// # Errors
/// [`GatherError`]: a directory without a crawl, or whose crawl is running or was killed; directories of different crawls; a URL that was settled twice; I/O errors.
pub fn gather(dirs: &[PathBuf], to: &Path, purpose: &Purpose<'_>) -> Result<Gathered, GatherError> {
    let mut workers = worker::open_all(dirs)?;
    let goes_on = match purpose {
        Purpose::Reading => false,
        Purpose::GoingOn { excluded } => {
            for worker in &mut workers {
                let committed = excluded.get(worker.name()).copied();
                worker.excluded_bytes = Some(committed.unwrap_or(0));
            }
            let state = to.join(STATE);
            let made = DirBuilder::new().mode(STATE_MODE).create(&state);
            made.map_err(GatherError::io(&state))?;
            true
        }
    };
    if let [first, others @ ..] = workers.as_slice() {
        for other in others {
            config::check_alike(first, other)?;
        }
    }
    let mut duplicates = settled::find_duplicates(&workers, to)?;
    write_synced(
        &to.join("crawl.toml"),
        &config::gathered_config(&workers, goes_on),
    )?;
    let (places, digests) = archive::gather_archives(&mut workers, to)?;
    rows::pages(&mut workers, &places, to)?;
    let last = rows::requests(&mut workers, to)?;
    rows::excluded(&mut workers, &mut duplicates, to)?;
    rows::links(&mut workers, to)?;
    rows::operators_rows(&mut workers, goes_on, to)?;
    waiting::write_waiting(&workers, &last, to)?;
    if !goes_on {
        rows::list_workers(&workers, to)?;
    }
    write_report(to)?;
    start_digests(to, digests).map_err(GatherError::io(to))?;
    list_digests(to, ChangedFiles::All)?;
    let synced = File::open(to).and_then(|folder| folder.sync_all());
    synced.map_err(GatherError::io(to))?;
    Ok(Gathered {
        workers: workers.into_iter().map(|worker| worker.row).collect(),
    })
}

fn write_synced(path: &Path, text: &str) -> Result<(), GatherError> {
    let write = || -> io::Result<()> {
        let mut file = replace_file(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(GatherError::io(path))
}
