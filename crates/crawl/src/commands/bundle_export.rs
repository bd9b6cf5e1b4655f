//! `crawl export --to bundle`: writes everything needed to cite and check a crawl.

use crawl_archive::AtomicFolder;
use crawl_bundle::{BundleError, VerificationRunError, write_bundle};
use crawl_records::{counted, size};
use crawl_weburl::safe_line;

use crate::cli::args::ExportArgs;
use crate::commands::table_exports::{of_folder, of_tables};
use crate::error::records::of_records;
use crate::error::{CHECK_FAILED, CommandError, FINISHED, unwritable};
use crate::settings::NAME_AND_VERSION;
use crate::terminal::note;

/// Writes the bundle next to its destination, and moves it there when complete.
pub(crate) fn export(args: &ExportArgs) -> Result<u8, CommandError> {
    // An earlier bundle is not replaced, since it may be the only copy of cited data.
    let folder = AtomicFolder::create(&args.out, |_| false);
    let folder = folder.map_err(|error| of_folder(error, args))?;
    let written = write_bundle(&args.dir, folder.beside(), NAME_AND_VERSION);
    let written = written.map_err(|error| of_bundle(error, args))?;
    folder.finish().map_err(|error| of_folder(error, args))?;
    note(&format!(
        "{} written: {}, {}\nSHA-256 of its tagmanifest-sha256.txt, which covers all files: {}",
        args.out.display(),
        counted(written.files, "file", "files"),
        size(written.bytes),
        written.sha256
    ));
    if !written.left_out.is_empty() {
        let names = written.left_out.join(", ");
        note(&format!(
            "left out, since bundles don't include such files: {}",
            safe_line(&names)
        ));
    }
    Ok(FINISHED)
}

fn of_bundle(error: BundleError, args: &ExportArgs) -> CommandError {
    let message = error.to_string();
    let dir = args.dir.display();
    match error {
        BundleError::Read(VerificationRunError::Records(error)) => of_records(error),
        BundleError::Tables(error) => of_tables(error, args),
        BundleError::NotEnded { .. } => CommandError::usage(message).hint(format!(
            "wait until it ends, or continue with `crawl --output {dir}` and stop it with Ctrl-C; \
             `--to wacz` exports what there is so far"
        )),
        BundleError::NoRequests { .. } => CommandError::usage(message)
            .hint("give the directory of a crawl that fetched something"),
        BundleError::Damaged { .. } => CommandError {
            code: CHECK_FAILED,
            ..CommandError::disk(message)
        }
        .hint(format!("`crawl verify {dir}` lists all defects")),
        BundleError::Write { source, .. } => unwritable(&args.out, &source),
        _ => CommandError::disk(message),
    }
}
