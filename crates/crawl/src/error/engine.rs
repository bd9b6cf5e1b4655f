//! Engine errors as user-facing messages with hints.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use crawl_archive::ArchiveWriteError;
use crawl_engine::EngineError;
use crawl_frontier::FrontierError;
use crawl_frontier::worker_frontier::SharedFrontierError;
#[cfg(feature = "search")]
use crawl_index::IndexError;

#[cfg(feature = "shared-frontier")]
use super::shared_frontier::of_shared;
use super::{CommandError, INTERRUPTED, quoted};

/// Converts an engine error of a command without `--output`, which works on the existing crawl in
/// the directory `dir`.
pub(crate) fn of_engine(error: &EngineError, dir: &Path) -> CommandError {
    let hints = OutputErrorHints {
        in_use: "wait until the other process ends",
        denied: format!(
            "let this user write to {}, or run the command as its owner",
            dir.display()
        ),
        full: "free some disk space, then run the same command again".to_owned(),
    };
    converted(error, dir, hints)
}

/// Converts an engine error of a crawl with `--output`.
pub(crate) fn of_crawl(error: &EngineError, output: &Path) -> CommandError {
    let hints = OutputErrorHints {
        in_use: WAIT_OR_OTHER_OUTPUT,
        denied: OTHER_OUTPUT.to_owned(),
        full: "free some disk space; then the same command continues".to_owned(),
    };
    converted(error, output, hints)
}

/// Converts an engine error of a replay with `--output`, which can't be resumed.
pub(crate) fn of_replay(error: &EngineError, output: &Path) -> CommandError {
    let hints = OutputErrorHints {
        in_use: WAIT_OR_OTHER_OUTPUT,
        denied: OTHER_OUTPUT.to_owned(),
        full: format!(
            "free some disk space, delete {}, and run the same command again: a replay can't be \
             resumed",
            output.display()
        ),
    };
    converted(error, output, hints)
}

const WAIT_OR_OTHER_OUTPUT: &str = "wait until the other process ends, or choose another --output";
const OTHER_OUTPUT: &str = "set --output to a directory that you may write to";

/// Hints that depend on the command.
struct OutputErrorHints {
    /// Another process uses the directory.
    in_use: &'static str,
    /// The user has no permission to write to the directory.
    denied: String,
    /// The disk is full.
    full: String,
}

fn converted(error: &EngineError, output: &Path, hints: OutputErrorHints) -> CommandError {
    let message = with_causes(error);
    match error {
        EngineError::OutputForeign { .. } | EngineError::NotADirectory { .. } => CommandError::usage(message)
            .hint("set --output to a new or empty directory, or to that of an earlier crawl"),
        EngineError::BesideCrawl { found, .. } => CommandError::usage(message)
            .hint(format!("move `{found}` to another folder")),
        EngineError::Archive(ArchiveWriteError::Unsafe { .. }) => CommandError::usage(message).hint(
            "crawls write only to regular files: replace it by one (`cp -RL DIR NEW` does so in a \
             copy of the directory)",
        ),
        #[cfg(feature = "shared-frontier")]
        EngineError::Shared(why) => match why.downcast_ref() {
            Some(why) => of_shared(why),
            None => CommandError::disk(message),
        },
        EngineError::State(FrontierError::Shared(SharedFrontierError::LeaseLost { worker, why })) => CommandError::disk(
            format!("worker `{worker}` lost its hosts: {why}"),
        )
        .hint("the same command continues; requests that were in flight are repeated by their new \
               owners"),
        EngineError::State(FrontierError::Shared(_)) => CommandError::disk(message)
            .hint("the same command continues once the database server is back"),
        EngineError::OwnFrontier { .. } => CommandError::usage(message)
            .hint("choose another --output, or remove --frontier"),
        EngineError::OtherWorker { crawl, worker, .. } => CommandError::usage(message).hint(format!(
            "choose another --output for this worker, or continue with --crawl {crawl} --worker \
             {worker}"
        )),
        EngineError::WorkerElsewhere { .. } => CommandError::usage(message)
            .hint("set --output to that directory, or choose another --worker name; if the \
                   directory is lost, run `crawl frontier reopen`"),
        EngineError::HalfImported { .. } => CommandError::usage(message)
            .hint("run the same `crawl frontier import` again to continue it"),
        EngineError::NotImportable { .. } => CommandError::usage(message)
            .hint("`crawl` continues it in its directory as before"),
        EngineError::NotItsWorker { .. } => CommandError::usage(message)
            .hint("give only the directories of this crawl's workers; `crawl frontier status` lists \
                   the workers"),
        EngineError::WorkerMissing { worker, .. } => CommandError::usage(message).hint(format!(
            "add its directory; if it is lost, run `crawl frontier reopen {worker}` to fetch its \
             pages again"
        )),
        EngineError::RecordsDiffer { .. } => CommandError::usage(message)
            .hint("give the directory that this worker last used, not an earlier copy"),
        EngineError::ExportDiffers { .. } => CommandError::disk(message)
            .hint("nothing was moved, and workers can continue the crawl; please report this bug"),
        EngineError::SharedState { .. } => CommandError::usage(message)
            .hint("to continue the crawl, add --frontier as before; other commands can't read a \
                   shared frontier yet"),
        EngineError::OutputInUse { .. } => CommandError::usage(message).hint(hints.in_use),
        EngineError::FetchedWithoutSample => {
            CommandError::usage(message).hint("draw the sample into a new --output")
        }
        EngineError::SampleDrawn => CommandError::usage(message).hint(
            "keep the flags of [sample] unchanged, or draw another sample into a new --output",
        ),
        EngineError::StoppedEarly => CommandError {
            code: INTERRUPTED,
            ..CommandError::usage(message).hint("the same command continues")
        },
        EngineError::UnfinishedForget { dir } => CommandError::usage(message)
            .hint(format!("`crawl forget {} --finish` finishes it", quoted(dir))),
        EngineError::ForeignForget { dir, .. } => CommandError::usage(message).hint(format!(
            "if you trust this directory, `crawl forget {} --finish` finishes what was interrupted",
            quoted(dir)
        )),
        EngineError::NothingToDo { .. } => {
            CommandError::usage(message).hint("start a crawl with `crawl URL`")
        }
        EngineError::IsGathered { .. } => CommandError::usage(message).hint(
            "run it in the directory of each worker (listed in workers.jsonl), then `crawl gather` \
             again",
        ),
        EngineError::IsReplay { .. } => CommandError::usage(message)
            .hint("`crawl report` shows it; choose another --output to crawl"),
        EngineError::ReplayOutput { .. } => {
            CommandError::usage(message).hint("set --output to a new or empty directory")
        }
        EngineError::NothingToReplay { .. } => CommandError::usage(message)
            .hint("give the directory of a crawl that ran with --warc on"),
        EngineError::NoArchive { .. } => CommandError::usage(message).hint(
            "the crawl was started with --warc off: start over with another --output and --index on",
        ),
        #[cfg(feature = "search")]
        EngineError::Index(IndexError::InUse { .. }) => CommandError::usage(message)
            .hint("wait until the other process ends"),
        #[cfg(feature = "search")]
        EngineError::Index(
            IndexError::OtherFormat { .. } | IndexError::Damaged { .. },
        ) => CommandError::disk(message).hint(format!(
            "rebuild it from the archive with `crawl index {}`; then the same command continues",
            quoted(output)
        )),
        error if is_denied(error) => CommandError::disk(message).hint(hints.denied),
        error if is_full(error) => CommandError::disk(message).hint(hints.full),
        EngineError::StateMissing { .. }
        | EngineError::Round { .. }
        | EngineError::Open { .. }
        | EngineError::Archive(ArchiveWriteError::Short { .. } | ArchiveWriteError::ForeignMark { .. }) => {
            CommandError::disk(message).hint(format!(
                "fetched pages remain readable in {}; start over with another --output, or restore \
                 what is missing",
                output.display()
            ))
        }
        EngineError::Refused(why) => CommandError::usage(message).hint(why.hint()),
        EngineError::Pattern(_) => {
            CommandError::usage(message).hint("for the syntax, see https://docs.rs/regex")
        }
        EngineError::SeedArea(_) => CommandError::usage(message)
            .hint("set the same values for both, or give one a smaller `scope`"),
        EngineError::Fetcher(_) => CommandError::usage(message)
            .hint("`crawl config --effective` with the same flags prints the settings in use"),
        _ => CommandError::disk(message).hint(format!(
            "fetched pages remain readable in {}; the same command continues once the disk works \
             again",
            output.display()
        )),
    }
}

/// Formats an error with its causes, leaving out repeated text.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text_of_cause = error.to_string();
        if !text.contains(&text_of_cause) {
            text = format!("{text}: {text_of_cause}");
        }
        cause = error.source();
    }
    text
}

fn is_full(error: &(dyn Error + 'static)) -> bool {
    has_cause(error, |error| {
        match error.downcast_ref::<std::io::Error>() {
            Some(error) => matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
            ),
            None => matches!(
                error.downcast_ref::<EngineError>(),
                Some(EngineError::Archive(ArchiveWriteError::Full { .. }))
            ),
        }
    })
}

fn is_denied(error: &(dyn Error + 'static)) -> bool {
    has_cause(error, |error| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| {
            let denied = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
            denied.contains(&error.kind())
        })
    })
}

fn has_cause(
    error: &(dyn Error + 'static),
    is_wanted: impl Fn(&(dyn Error + 'static)) -> bool,
) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if is_wanted(error) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::path::Path;

    use crawl_engine::EngineError;

    use super::{of_crawl, of_engine, of_replay};

    #[test]
    fn hints_about_the_disk_can_be_followed_by_the_command() {
        let hints = |kind: ErrorKind| {
            let error = EngineError::Disk {
                path: "dir/pages.jsonl".into(),
                source: Error::from(kind),
            };
            [of_engine, of_crawl, of_replay].map(|convert| {
                let hint = convert(&error, Path::new("dir")).hint;
                hint.unwrap_or_default()
            })
        };
        assert_eq!(
            hints(ErrorKind::StorageFull),
            [
                "free some disk space, then run the same command again",
                "free some disk space; then the same command continues",
                "free some disk space, delete dir, and run the same command again: a replay can't \
                 be resumed",
            ]
        );
        let other_output = "set --output to a directory that you may write to";
        assert_eq!(
            hints(ErrorKind::PermissionDenied),
            [
                "let this user write to dir, or run the command as its owner",
                other_output,
                other_output,
            ]
        );
    }
}
