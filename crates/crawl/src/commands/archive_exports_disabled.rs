//! Replaces `crawl export` to WACZ files and mirrors in a build without the feature `exports`.

use crate::cli::args::ExportArgs;
use crate::error::{CommandError, left_out};

/// Returns an error, because this build has no exports to WACZ files and mirrors.
pub(super) fn export(_args: &ExportArgs) -> Result<u8, CommandError> {
    Err(left_out("this format of crawl export", "exports"))
}
