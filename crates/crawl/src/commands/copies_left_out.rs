//! Replaces `crawl export` to WACZ files and mirrors in a build without the feature `exports`.

use crate::cli::args::ExportArgs;
use crate::error::{CommandError, left_out};

/// Refuses to export.
pub(super) fn export(_args: &ExportArgs) -> Result<u8, CommandError> {
    Err(left_out("this format of crawl export", "exports"))
}
