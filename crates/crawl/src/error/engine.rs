//! Engine errors as user-facing messages with hints.

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

use crawl_archive::ArchiveError;
use crawl_engine::EngineError;
use crawl_frontier::FrontierError;
use crawl_frontier::shared::SharedError;
#[cfg(feature = "search")]
use crawl_index::IndexError;

#[cfg(feature = "shared-frontier")]
use super::shared::of_shared;
use super::{CommandError, INTERRUPTED};

/// Converts an engine error that ended the crawl in `output`.
pub(crate) fn of_engine(error: &EngineError, output: &Path) -> CommandError {
    let message = with_causes(error);
    match error {
        EngineError::OutputForeign { .. } => CommandError::usage(message)
            .hint("give --output a directory that is new, empty, or an earlier crawl's"),
        EngineError::BesideCrawl { found, .. } => CommandError::usage(message)
            .hint(format!("move `{found}` to another folder")),
        EngineError::Archive(ArchiveError::Unsafe { .. }) => CommandError::usage(message).hint(
            "a crawl writes to regular files of its own alone: put such a file there (`cp -RL DIR NEW` makes them of what is there)",
        ),
        #[cfg(feature = "shared-frontier")]
        EngineError::Shared(why) => match why.downcast_ref() {
            Some(why) => of_shared(why),
            None => CommandError::disk(message),
        },
        EngineError::State(FrontierError::Shared(SharedError::LeaseLost { worker, why })) => CommandError::disk(
            format!("the hosts of worker `{worker}` are no longer its own: {why}"),
        )
        .hint("the same command goes on; what it had in flight is fetched again, by whoever has it now"),
        EngineError::State(FrontierError::Shared(_)) => CommandError::disk(message)
            .hint("once the engine answers again the same command goes on"),
        EngineError::OwnFrontier { .. } => CommandError::usage(message)
            .hint("give --output another directory, or leave --frontier out"),
        EngineError::OtherWorker { crawl, worker, .. } => CommandError::usage(message).hint(format!(
            "give --output a directory of this worker's own, or go on with --crawl {crawl} --worker {worker}"
        )),
        EngineError::WorkerElsewhere { .. } => CommandError::usage(message)
            .hint("give --output that directory, or another --worker name; `crawl frontier reopen` where it is lost"),
        EngineError::HalfImported { .. } => CommandError::usage(message)
            .hint("give `crawl frontier import` once more, as before: it goes on"),
        EngineError::NotImportable { .. } => CommandError::usage(message)
            .hint("`crawl` goes on with it in its directory as before"),
        EngineError::NotItsWorker { .. } => CommandError::usage(message)
            .hint("name the directories of this crawl's workers alone; `crawl frontier status` lists them"),
        EngineError::WorkerMissing { worker, .. } => CommandError::usage(message).hint(format!(
            "name it too; where it is lost, `crawl frontier reopen {worker}` has its pages fetched again"
        )),
        EngineError::RecordsDiffer { .. } => CommandError::usage(message)
            .hint("name the directory in which this worker ran last, and no copy of it from before"),
        EngineError::ExportDiffers { .. } => CommandError::disk(message)
            .hint("nothing was moved: workers go on with the crawl as before; please report this"),
        EngineError::SharedState { .. } => CommandError::usage(message)
            .hint("give --frontier as before to crawl on; what asks the frontier itself is not possible there yet"),
        EngineError::OutputInUse { .. } => CommandError::usage(message)
            .hint("wait until the other process has ended, or give another --output"),
        EngineError::SampleDrawn => CommandError::usage(message).hint(
            "leave the flags of [sample] as they were, or give --output a new directory for another sample",
        ),
        EngineError::StoppedEarly => CommandError {
            code: INTERRUPTED,
            ..CommandError::usage(message).hint("the same command goes on")
        },
        EngineError::UnfinishedForget { dir } => CommandError::usage(message)
            .hint(format!("`crawl forget {} --finish` finishes it", dir.display())),
        EngineError::ForeignForget { dir, .. } => CommandError::usage(message).hint(format!(
            "if you trust this directory, `crawl forget {} --finish` finishes what was interrupted",
            dir.display()
        )),
        EngineError::NothingToDo { .. } => {
            CommandError::usage(message).hint("start a crawl with `crawl URL`")
        }
        EngineError::IsGathered { .. } => CommandError::usage(message).hint(
            "do it in the directory of each worker (its workers.jsonl names them), then `crawl gather` them anew",
        ),
        EngineError::IsReplay { .. } => CommandError::usage(message)
            .hint("`crawl report` reads it; give another --output to crawl"),
        EngineError::ReplayOutput { .. } => {
            CommandError::usage(message).hint("give --output a directory that is new or empty")
        }
        EngineError::NothingToReplay { .. } => CommandError::usage(message)
            .hint("give the directory of a crawl that ran with --warc on"),
        EngineError::NoArchive { .. } => CommandError::usage(message).hint(
            "the crawl was begun with --warc off: start anew with another --output and --index on",
        ),
        #[cfg(feature = "search")]
        EngineError::Index(IndexError::InUse { .. }) => CommandError::usage(message)
            .hint("wait until the other process has ended"),
        #[cfg(feature = "search")]
        EngineError::Index(
            IndexError::OtherFormat { .. } | IndexError::Damaged { .. },
        ) => CommandError::disk(message).hint(format!(
            "`crawl index {}` builds it anew from the archive; then the same command goes on",
            output.display()
        )),
        error if is_denied(error) => CommandError::disk(message)
            .hint("this user may not write there: give --output a directory that it may write to"),
        error if is_full(error) => CommandError::disk(message)
            .hint("free some space on the disk; the same command goes on from there"),
        EngineError::StateMissing { .. }
        | EngineError::Round { .. }
        | EngineError::Open { .. }
        | EngineError::Archive(ArchiveError::Short { .. } | ArchiveError::ForeignMark { .. }) => {
            CommandError::disk(message).hint(format!(
                "what was fetched stays readable in {}; start anew with another --output, or put back what is missing",
                output.display()
            ))
        }
        EngineError::Refused(why) => CommandError::usage(message).hint(why.hint()),
        EngineError::Pattern(_) => {
            CommandError::usage(message).hint("the syntax is that of https://docs.rs/regex")
        }
        EngineError::SeedArea(_) => CommandError::usage(message)
            .hint("say the same of both, or give one a smaller `scope`"),
        EngineError::Fetcher(_) => CommandError::usage(message)
            .hint("`crawl config --effective` with the same flags prints what is in force"),
        _ => CommandError::disk(message).hint(format!(
            "what was fetched stays readable in {}; once the disk is well the same command goes on",
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
                Some(EngineError::Archive(ArchiveError::Full { .. }))
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
