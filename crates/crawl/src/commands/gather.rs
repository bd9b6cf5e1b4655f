//! `crawl gather`: merges the directories of several workers.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;

use crawl_archive::ReadError;
use crawl_archive::{AtomicFileError, AtomicFolder, end_of_links};
use crawl_gather::{GatherError, GatherPurpose, GatherResult};
use crawl_records::{counted, size};

use crate::cli::gather::GatherArgs;
use crate::error::records::of_records;
use crate::error::{CHECK_FAILED, CommandError, FINISHED, quoted, unwritable};
use crate::terminal::{note, print_json};

/// Maximum length of a file name in bytes.
const MAX_NAME: usize = 255;

/// Runs `crawl gather`. The directory is built next to its destination and moved there when
/// complete.
pub(crate) fn run(args: &GatherArgs) -> Result<u8, CommandError> {
    // An earlier result is not replaced: if the workers' directories are gone, it is the only copy.
    let folder = AtomicFolder::create(&args.output, |_| false);
    let folder = folder.map_err(|error| of_folder(&error, &args.output))?;
    let gathered = crawl_gather::gather(&args.dirs, folder.beside(), &GatherPurpose::Reading);
    let gathered = gathered.map_err(|error| of_gather(error, &args.output))?;
    put_in_place(folder, &args.output)?;
    match args.json {
        true => print_json(&gathered),
        false => {
            note(&summary(&gathered, args));
            Ok(FINISHED)
        }
    }
}

/// Moves a directory to its destination, and returns once the move is durable.
pub(super) fn put_in_place(folder: AtomicFolder, output: &Path) -> Result<(), CommandError> {
    let finished = folder.finish();
    finished.map_err(|error| of_folder(&error, output))?;
    let sync = || match std::path::absolute(end_of_links(output))?.parent() {
        Some(above) => File::open(above)?.sync_all(),
        None => Ok(()),
    };
    sync().map_err(|why| unwritable(output, &why))
}

/// Sets `dir` to one directory that has the whole crawl.
///
/// If `dirs` has a single directory, uses it unchanged and returns `None`. Otherwise, gathers the
/// workers' directories into a temporary directory, which is removed when the returned folder is
/// dropped.
pub(crate) fn as_one(
    dirs: &[PathBuf],
    dir: &mut PathBuf,
) -> Result<Option<AtomicFolder>, CommandError> {
    let [first, _, ..] = dirs else {
        *dir = dirs.first().cloned().unwrap_or_default();
        return Ok(None);
    };
    // Create the temporary folder next to the first worker's directory. Both are then most likely
    // on the same file system, where WARC files can be hard-linked rather than copied.
    let place = first.with_file_name(format!("gathered-{}", process::id()));
    let folder = AtomicFolder::create(&place, |_| false);
    let folder = folder.map_err(|error| of_folder(&error, &place))?;
    // Name the folder after the workers' directories, because exported tables and archives are
    // named after this folder.
    *dir = folder.beside().join(name_of_all(dirs));
    fs::create_dir(&*dir).map_err(|why| unwritable(dir, &why))?;
    let gathered = crawl_gather::gather(dirs, dir, &GatherPurpose::Reading);
    gathered.map_err(|error| of_gather(error, dir))?;
    Ok(Some(folder))
}

/// Joins the names of directories with `+`.
fn name_of_all(dirs: &[PathBuf]) -> OsString {
    let names = dirs.iter().filter_map(|dir| dir.file_name());
    let all = names.collect::<Vec<_>>().join(OsStr::new("+"));
    match all.is_empty() || all.len() > MAX_NAME {
        true => OsString::from("several"),
        false => all,
    }
}

fn summary(gathered: &GatherResult, args: &GatherArgs) -> String {
    let workers = &gathered.workers;
    let sum = |of: fn(&crawl_archive::rows::GatheredWorkerRow) -> u64| {
        workers.iter().map(of).sum::<u64>()
    };
    let mut message = format!(
        "{} written: {}, {}, {}, {} in {}",
        args.output.display(),
        counted(workers.len() as u64, "worker", "workers"),
        counted(sum(|worker| worker.pages), "page", "pages"),
        counted(sum(|worker| worker.requests), "request", "requests"),
        size(sum(|worker| worker.warc_bytes)),
        counted(sum(|worker| worker.warc_files), "WARC file", "WARC files"),
    );
    let unreadable = sum(|worker| worker.unreadable);
    if unreadable > 0 {
        message.push_str(&format!(
            "; {} left out",
            counted(unreadable, "unreadable line", "unreadable lines")
        ));
    }
    message
}

pub(super) fn of_folder(error: &AtomicFileError, output: &Path) -> CommandError {
    match error {
        AtomicFileError::Occupied { .. } => CommandError::usage(error.to_string())
            .hint("give --output a directory that does not exist yet, or an empty one"),
        AtomicFileError::Write { source, .. } => unwritable(output, source),
        _ => CommandError::disk(error.to_string()),
    }
}

pub(super) fn of_gather(error: GatherError, output: &Path) -> CommandError {
    let message = error.to_string();
    match error {
        GatherError::Records(error) => of_records(error),
        GatherError::Running { .. } => CommandError::usage(message)
            .hint("stop it with Ctrl-C, which saves everything in flight, then gather again"),
        GatherError::NotEnded { dir } => CommandError::usage(message).hint(format!(
            "start it again with `crawl --output {}` and stop it with Ctrl-C, which removes \
             uncommitted data",
            quoted(&dir)
        )),
        GatherError::HalfForgotten { dir } => CommandError::usage(message).hint(format!(
            "any command on it finishes that, such as `crawl explain {} URL`",
            quoted(&dir)
        )),
        GatherError::Replay { .. } => {
            CommandError::usage(message).hint("give the directories of crawls, not of replays")
        }
        GatherError::Sampled { .. } => CommandError::usage(message)
            .hint("report on each directory separately: their probabilities can't be combined"),
        GatherError::SameDirectory { .. } => {
            CommandError::usage(message).hint("give each directory only once")
        }
        GatherError::OtherCrawl { .. } => CommandError::usage(message).hint(
            "give the directories of one crawl; `crawl report --compare A B` compares two crawls",
        ),
        GatherError::SettledTwice { .. } => CommandError {
            code: CHECK_FAILED,
            ..CommandError::usage(message)
        }
        .hint(
            "remove copies of directories from the list, and restart a worker whose directory was \
             restored from a backup",
        ),
        GatherError::Read(ReadError::Row { .. }) => CommandError::disk(message),
        GatherError::Io { source, path } if path.starts_with(output) => unwritable(&path, &source),
        _ => CommandError::disk(message),
    }
}
