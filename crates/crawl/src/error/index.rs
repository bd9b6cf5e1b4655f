//! Search index errors as user-facing messages with hints.

use std::io;
use std::path::Path;

use crawl_index::IndexError;

use super::CommandError;

/// Converts an error from opening or searching the index of the crawl in `dir`.
pub(crate) fn of_index(error: &IndexError, dir: &Path) -> CommandError {
    let dir = dir.display();
    match error {
        IndexError::Query(_) => {
            CommandError::usage(error.to_string()).hint("ask for a few words of what is looked for")
        }
        IndexError::Missing { .. } => {
            CommandError::usage(format!("the crawl in `{dir}` has no search index")).hint(format!(
                "`crawl index {dir}` builds one; `--index on` has a crawl build it as it goes"
            ))
        }
        IndexError::OtherFormat { .. } | IndexError::Damaged { .. } => {
            CommandError::disk(error.to_string()).hint(format!(
                "`crawl index {dir}` builds it anew from the archive"
            ))
        }
        IndexError::Disk { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            CommandError::disk(error.to_string()).hint(format!(
                "who crawls may let you read it: `chmod -R a+rX {dir}/index`"
            ))
        }
        _ => CommandError::disk(error.to_string()),
    }
}
