//! Errors of crawl records as user-facing messages.

use std::path::Path;

use crawl_records::{RecordsError, why_without_archive};

use super::CommandError;

/// Converts an error from reading a crawl's records.
pub(crate) fn of_records(why: RecordsError) -> CommandError {
    match why {
        RecordsError::NoCrawl { .. } => CommandError::usage(why.to_string())
            .hint("give the directory of a crawl, with its pages.jsonl"),
        RecordsError::NoRound { rounds, .. } => {
            CommandError::usage(why.to_string()).hint(match rounds {
                1 => "only round 1 exists".to_owned(),
                rounds => format!("rounds 1 to {rounds} exist"),
            })
        }
        RecordsError::Baseline { .. } => CommandError::usage(why.to_string())
            .hint("write a baseline with `crawl report DIR --faults --format jsonl`"),
        why => CommandError::disk(why.to_string()),
    }
}

/// Returns the error for an action that needs the archive of a crawl without one.
pub(crate) fn no_archive(action: &str, dir: &Path) -> CommandError {
    let why = why_without_archive(dir).map(|why| format!(": {why}"));
    CommandError::usage(format!(
        "can't {action}: the crawl in `{}` has no archive{}",
        dir.display(),
        why.unwrap_or_default()
    ))
}
