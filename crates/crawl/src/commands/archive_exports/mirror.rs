//! `crawl export --to mirror`: writes a crawl's pages as files that a browser opens without a
//! server.

use crawl_archive::AtomicFileError;
use crawl_mirror::{MirrorError, MirrorReport, mirror};
use crawl_records::{counted, size};

use crate::cli::args::ExportArgs;
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, unwritable};
use crate::terminal::note;

/// Writes the mirror, and prints what is missing from it.
pub(crate) fn export(args: &ExportArgs) -> Result<u8, CommandError> {
    let report = mirror(&args.dir, &args.out).map_err(|error| of_mirror(error, args))?;
    let written = format!(
        "{} written: {}, {}, {}",
        args.out.display(),
        counted(report.pages, "page", "pages"),
        counted(report.resources, "other file", "other files"),
        size(report.bytes)
    );
    note(&match &report.start {
        Some(start) => format!("{written}; open {}", args.out.join(start).display()),
        None => written,
    });
    for omission in omissions(&report) {
        note(&omission);
    }
    Ok(FINISHED)
}

/// Returns a message for each reason why pages are missing from the mirror, and one about
/// incomplete files.
fn omissions(report: &MirrorReport) -> Vec<String> {
    let left_out = [
        (
            report.withheld,
            "the site forbids copies (noarchive, Content-Usage and the like)",
        ),
        (
            report.unwanted,
            "the crawl didn't keep the body (--content-type, --min-size, --max-size, --language)",
        ),
        (
            report.secret,
            "the body contains a secret of the configuration",
        ),
        (report.without_body, "the archive has no body"),
        (
            report.unreadable,
            "the body can't be decoded, or the archive is damaged (`crawl verify` finds the place)",
        ),
    ];
    let mut messages: Vec<String> = left_out
        .into_iter()
        .filter(|(pages, _)| *pages > 0)
        .map(|(pages, why)| format!("{} left out: {why}", counted(pages, "page", "pages")))
        .collect();
    if report.truncated > 0 {
        messages.push(format!(
            "{} incomplete: the server didn't finish the body, or the body exceeded a limit",
            counted(report.truncated, "file", "files")
        ));
    }
    messages
}

fn of_mirror(error: MirrorError, args: &ExportArgs) -> CommandError {
    let message = error.to_string();
    match error {
        MirrorError::Records(error) => of_records(error),
        MirrorError::Folder(AtomicFileError::Occupied { .. }) => {
            CommandError::usage(message).hint("choose a new folder, an empty one, or an earlier mirror")
        }
        MirrorError::Folder(AtomicFileError::Write { source, .. })
        | MirrorError::Write { source, .. } => unwritable(&args.out, &source),
        MirrorError::NoFiles { .. } => CommandError::usage(message).hint(
            "only crawls with an archive (`--warc on`) and at least one fetched page can be exported",
        ),
        _ => CommandError::disk(message),
    }
}
