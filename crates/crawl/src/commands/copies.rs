//! `crawl export` to copies of the archive: one WACZ file, or a local mirror.

mod mirror;
mod wacz;

use crate::cli::args::{ExportArgs, ExportFormat};
use crate::error::CommandError;

/// Writes the copy.
pub(super) fn export(args: &ExportArgs) -> Result<u8, CommandError> {
    match args.to {
        ExportFormat::Mirror => mirror::export(args),
        _ => wacz::export(args),
    }
}
