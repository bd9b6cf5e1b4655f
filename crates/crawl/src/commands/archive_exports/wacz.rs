//! `crawl export --to wacz`: writes a crawl's archive as one file.

use std::{fs, io};

use crawl_archive::Timestamp;
use crawl_archive::{AtomicFileError, AtomicFolder};
use crawl_records::{counted, size};
use crawl_wacz::{WaczError, WaczOptions, WrittenWacz, package};

use crate::cli::args::{ExportArgs, RoundChoice};
use crate::clock;
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::terminal::note;

/// Writes the WACZ file next to its destination, and moves it there when complete.
pub(crate) fn export(args: &ExportArgs) -> Result<u8, CommandError> {
    let out = &args.out;
    if out.extension().is_none_or(|ending| ending != "wacz") {
        let named = format!("`{}` isn't the name of a WACZ file", out.display());
        return Err(
            CommandError::usage(named).hint("use a name that ends in .wacz, which players require")
        );
    }
    // An earlier export is not replaced, since it may be the only copy of cited data.
    if out.symlink_metadata().is_ok() {
        return Err(
            CommandError::usage(format!("{} already exists", out.display()))
                .hint("choose a file that doesn't exist yet"),
        );
    }
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    if parent.is_some_and(|parent| !parent.exists()) {
        return Err(unwritable(out, &io::ErrorKind::NotFound.into()));
    }
    // Create a temporary folder for sorting and for the unfinished WACZ file. It is removed when
    // this function returns.
    let scratch = AtomicFolder::create(out, |_| false).map_err(|error| of_scratch(&error, args))?;
    let options = WaczOptions {
        round: match args.round {
            Some(RoundChoice::One(round)) => Some(round),
            Some(RoundChoice::All) | None => None,
        },
        earlier: args.earlier.clone(),
        created: now(),
        software: concat!("crawl/", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let packaged = package(&args.dir, scratch.beside(), &options);
    let packaged = packaged.map_err(|error| of_wacz(error, args))?;
    fs::rename(&packaged.file, out).map_err(|error| unwritable(out, &error))?;
    report(&packaged, args);
    Ok(FINISHED)
}

fn now() -> Timestamp {
    let micros = clock::now().as_microsecond();
    Timestamp::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn report(packaged: &WrittenWacz, args: &ExportArgs) {
    note(&format!(
        "{} written: {}, {}, {}, {}",
        args.out.display(),
        counted(packaged.pages, "page", "pages"),
        counted(packaged.captures, "capture", "captures"),
        counted(packaged.warc_files, "WARC file", "WARC files"),
        size(packaged.bytes)
    ));
    for damage in &packaged.damages {
        note(&format!("left out: {damage}"));
    }
    if packaged.without_container > 0 {
        let revisits = counted(packaged.without_container, "revisit", "revisits");
        note(&format!(
            "{revisits} of payloads from earlier rounds can't replay from this file alone\nhint: \
             add --earlier with the WACZ file of each earlier round, or export the whole crawl"
        ));
    }
}

fn of_scratch(error: &AtomicFileError, args: &ExportArgs) -> CommandError {
    match error {
        AtomicFileError::Write { source, .. } => unwritable(&args.out, source),
        error => CommandError::disk(error.to_string()),
    }
}

fn of_wacz(error: WaczError, args: &ExportArgs) -> CommandError {
    let message = error.to_string();
    match error {
        WaczError::Records(error) => of_records(error),
        WaczError::Write { source, .. } => unwritable(&args.out, &source),
        WaczError::NoCaptures { .. } => CommandError::usage(message).hint(
            "only crawls with an archive (`--warc on`) and at least one fetched page can be \
                   exported",
        ),
        WaczError::NoRound { .. } | WaczError::EmptyRound(_) => {
            CommandError::usage(message).hint("remove --round to export the whole crawl")
        }
        WaczError::NotEarlier { .. } => CommandError::usage(message)
            .hint("give a file written by `crawl export --to wacz --round N` for an earlier round"),
        _ => CommandError::disk(message),
    }
}
