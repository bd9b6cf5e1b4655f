//! Combines the directories of several workers of one crawl into one directory.
//!
//! Each worker of a crawl with a shared frontier has its own rows, archive and settings.
//! [`gather()`] combines them into one directory that any program for crawl directories can read.
//! Rows are merged as streams, and WARC files are hard-linked or copied. The archive's index, the
//! report and the digests are computed from the combined files. The workers' directories are locked
//! while they are combined, and are not changed.
//!
//! A directory that is gathered only for reading contains `workers.jsonl` and no frontier, so a
//! crawl can't resume there. A directory for resuming the crawl ([`GatherPurpose::GoingOn`]) has no
//! `workers.jsonl`; the crawl's frontier is added to it later.
//!
//! ```no_run
//! use std::path::{Path, PathBuf};
//!
//! let workers = [PathBuf::from("w1"), PathBuf::from("w2")];
//! let made = Path::new("both.new");
//! std::fs::create_dir(made)?;
//! let gathered = crawl_gather::gather(&workers, made, &crawl_gather::GatherPurpose::Reading)?;
//! println!("{} pages", gathered.workers.iter().map(|worker| worker.pages).sum::<u64>());
//! std::fs::rename(made, "both")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod duplicate_rows;
mod error;
mod merge_archives;
mod merge_config;
mod merge_rows;
mod merge_waiting_jsonl;
mod worker_directory;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crawl_archive::rows::GatheredWorkerRow;
use crawl_archive::{replace_file, start_digests};
use crawl_records::write_report_and_digests;
use serde::Serialize;

pub use error::{GatherError, TwiceSettledUrl};

/// The result of gathering a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GatherResult {
    /// A row for each worker, in the order of the given directories. With
    /// [`GatherPurpose::Reading`], `workers.jsonl` contains the same rows.
    pub workers: Vec<GatheredWorkerRow>,
}

/// The intended use of the gathered directory.
#[derive(Clone, Debug)]
pub enum GatherPurpose<'a> {
    /// Reading the records.
    Reading,
    /// Resuming the crawl, with the frontier that the workers shared. The directory gets the
    /// settings and logs of a crawl with a single process. Of each worker's `excluded.jsonl`, only
    /// the committed rows are copied. The rows after them were added when the worker's run ended,
    /// and the resumed crawl will add them again.
    GoingOn {
        /// The number of committed bytes of each worker's `excluded.jsonl`, by the worker's name.
        excluded: &'a BTreeMap<String, u64>,
    },
}

/// The folder for the program's own state. Other users have no access to it.
const STATE: &str = "state";
const STATE_MODE: u32 = 0o700;

/// Gathers the directories of the workers of one crawl into the folder `to`, which must exist and
/// be empty. On success, the content of `to` is synced to disk. After an error, the content of `to`
/// is useless.
///
/// Memory: one row per worker, 32 MiB of lines while sorting, and the memory of
/// [`write_report_and_digests`], which depends on the number of hosts. Larger data is sorted in
/// files in `to`.
///
/// # Errors
/// [`GatherError`] in these cases:
///
/// - A directory contains no crawl, or one that is running or was killed.
/// - The directories belong to different crawls.
/// - Several rows of `pages.jsonl` are about the same URL and round.
/// - A file can't be read or written.
pub fn gather(
    dirs: &[PathBuf],
    to: &Path,
    purpose: &GatherPurpose<'_>,
) -> Result<GatherResult, GatherError> {
    let mut workers = worker_directory::open_all(dirs)?;
    let goes_on = match purpose {
        GatherPurpose::Reading => false,
        GatherPurpose::GoingOn { excluded } => {
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
            merge_config::check_alike(first, other)?;
        }
    }
    let mut duplicates = duplicate_rows::find_duplicates(&workers, to)?;
    write_synced(
        &to.join("crawl.toml"),
        &merge_config::gathered_config(&workers, goes_on),
    )?;
    let (places, digests) = merge_archives::gather_archives(&mut workers, to)?;
    merge_rows::pages(&mut workers, &places, to)?;
    merge_rows::requests(&mut workers, to)?;
    merge_rows::excluded(&mut workers, &mut duplicates, to)?;
    merge_rows::links(&mut workers, to)?;
    merge_rows::extracts(&mut workers, to)?;
    merge_rows::operators_rows(&mut workers, goes_on, to)?;
    merge_waiting_jsonl::write_waiting(&workers, to)?;
    if !goes_on {
        merge_rows::list_workers(&workers, to)?;
    }
    start_digests(to, digests).map_err(GatherError::io(to))?;
    write_report_and_digests(to)?;
    let synced = File::open(to).and_then(|folder| folder.sync_all());
    synced.map_err(GatherError::io(to))?;
    Ok(GatherResult {
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
