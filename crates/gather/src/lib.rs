//! The directories of several workers of one crawl, read as one.
//!
//! Each worker of a crawl with a shared frontier has rows, an archive and settings of its own.
//! [`gather()`] makes of them one directory, which every reader of records takes: rows are merged
//! as streams, WARC files get a second name, and what is derived (the index of the archive, the
//! report, the digests) is derived anew from all of it. The directories stay as they are, and
//! nothing runs in them meanwhile. A directory that was gathered to be read has no frontier: no crawl
//! goes on there. It is known by its `workers.jsonl`. One that is to have the frontier of the crawl
//! has no such file ([`Purpose::GoingOn`]).
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
use crawl_archive::{ChangedFiles, create_anew, start_digests};
use crawl_records::{list_digests, write_report};
use serde::Serialize;

pub use error::{GatherError, SettledTwice};

/// A directory that was gathered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gathered {
    /// The rows of its `workers.jsonl`, in the order in which the directories were given.
    pub workers: Vec<WorkerRow>,
}

/// The use that a directory is gathered for.
#[derive(Clone, Debug)]
pub enum Purpose<'a> {
    /// Its records are read.
    Reading,
    /// A crawl is to go on there, with the frontier that the workers shared: it gets the settings
    /// and the logs that a crawl without other workers has. Of what a worker excluded the rows are
    /// taken that are committed; it listed those behind them as it ended, and a crawl lists such
    /// URLs anew.
    GoingOn {
        /// The bytes of each worker's `excluded.jsonl` that are committed, by its name.
        excluded: &'a BTreeMap<String, u64>,
    },
}

/// The folder in which the program keeps what it alone reads. Nobody else may look into it.
const STATE: &str = "state";
const STATE_MODE: u32 = 0o700;

/// Gathers the directories of the workers of one crawl in the folder `to`, which is there and
/// empty, and on the disk when this returns. Where it fails, what `to` holds is of no use.
///
/// Memory: a row of each worker, 32 MiB of lines that are sorted, and what
/// [`write_report`] takes, by the number of hosts. What is sorted waits in files in `to`.
///
/// # Errors
/// [`GatherError`]: a directory that holds no crawl, or in which one runs or was killed;
/// directories of two crawls; a URL that was settled twice; errors of the file system.
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
    let mut told = settled::told_by_others(&workers, to)?;
    write_synced(
        &to.join("crawl.toml"),
        &config::gathered_config(&workers, goes_on),
    )?;
    let (places, digests) = archive::gather_archives(&mut workers, to)?;
    rows::pages(&mut workers, &places, to)?;
    let last = rows::requests(&mut workers, to)?;
    rows::excluded(&mut workers, &mut told, to)?;
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
        let mut file = create_anew(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(GatherError::io(path))
}
