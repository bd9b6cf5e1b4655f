//! Search index errors as user-facing messages with hints.

use std::io;
use std::path::Path;

use crawl_index::IndexError;

use super::{CommandError, quoted};

/// Converts an error from opening or searching the index of the crawl in the directory `path`.
pub(crate) fn of_index(error: &IndexError, path: &Path) -> CommandError {
    let (dir, quoted_dir) = (path.display(), quoted(path));
    match error {
        IndexError::Query(_) => {
            CommandError::usage(error.to_string()).hint("search for a few words")
        }
        IndexError::Missing { .. } => {
            CommandError::usage(format!("the crawl in `{dir}` has no search index")).hint(format!(
                "build one with `crawl index {quoted_dir}`, or crawl with `--index on`"
            ))
        }
        IndexError::OtherFormat { .. } | IndexError::Damaged { .. } => {
            CommandError::disk(error.to_string()).hint(format!(
                "rebuild it from the archive with `crawl index {quoted_dir}`"
            ))
        }
        IndexError::Disk { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            CommandError::disk(error.to_string()).hint(format!(
                "its owner can let you read it with `chmod -R a+rX {}`",
                quoted(&path.join("index"))
            ))
        }
        _ => CommandError::disk(error.to_string()),
    }
}
