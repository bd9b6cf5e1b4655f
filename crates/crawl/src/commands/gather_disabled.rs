//! Replaces `crawl gather` in a build without the feature `shared-frontier`, which has no workers.

use std::path::PathBuf;

use crawl_archive::AtomicFolder;

use crate::cli::gather::GatherArgs;
use crate::error::{CommandError, left_out};

/// Returns an error, because this build has no shared crawls.
pub(crate) fn run(_args: &GatherArgs) -> Result<u8, CommandError> {
    Err(left_out("crawl gather", "shared-frontier"))
}

/// Sets `dir` to the only directory in `dirs`. Returns an error if there are several.
pub(crate) fn as_one(
    dirs: &[PathBuf],
    dir: &mut PathBuf,
) -> Result<Option<AtomicFolder>, CommandError> {
    match dirs {
        [_, _, ..] => Err(left_out("several directories", "shared-frontier")),
        dirs => {
            *dir = dirs.first().cloned().unwrap_or_default();
            Ok(None)
        }
    }
}
