//! `crawl export --to wacz` and `--to mirror`: copies a crawl's archive into one WACZ file or into
//! a local mirror.

mod mirror;
mod wacz;

use crate::cli::args::{ExportArgs, ExportFormat};
use crate::error::CommandError;

/// Writes the WACZ file or the mirror.
pub(super) fn export(args: &ExportArgs) -> Result<u8, CommandError> {
    match args.to {
        ExportFormat::Mirror => mirror::export(args),
        _ => wacz::export(args),
    }
}
