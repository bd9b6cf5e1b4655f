//! The URLs that the last round of a crawl found new, changed and gone.

use std::fmt::{self, Display};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::RecordsError;
use crate::number_format::grouped;
use crate::recognize_directory::holds_any;
use crate::row_file_reader::{pages, round_of_last_run};

/// Pages that were new, changed or gone in the last round of a crawl.
///
/// Field names are stable; later versions of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundChanges {
    /// Version of this format: 1.
    pub format: u32,
    /// The last round of the crawl, starting at 1.
    pub round: u32,
    /// New pages, in the order of their visits.
    pub new: Vec<String>,
    /// Pages that changed since their last visit.
    pub changed: Vec<String>,
    /// Pages that no longer exist.
    pub gone: Vec<String>,
    /// Number of unchanged pages.
    pub same: u64,
}

/// Lists the pages that were new, changed or gone in the last round of the crawl in `dir`. The lists
/// are empty if that round visited no page. Memory is proportional to the number of listed pages.
///
/// # Errors
/// [`RecordsError::NoCrawl`] if `dir` has no crawl; [`RecordsError::Row`] for a complete line
/// that isn't a row; file system errors.
pub fn changes(dir: &Path) -> Result<RoundChanges, RecordsError> {
    holds_any(dir, &["pages.jsonl"])?;
    let mut changes = RoundChanges::default();
    for row in pages(dir)? {
        let row = row?;
        if row.round > changes.round {
            changes = RoundChanges {
                round: row.round,
                ..RoundChanges::default()
            };
        }
        if row.round < changes.round {
            continue;
        }
        match row.change.as_deref() {
            Some("new") => changes.new.push(row.url),
            Some("changed") => changes.changed.push(row.url),
            Some("gone") => changes.gone.push(row.url),
            Some("same") => changes.same += 1,
            _ => {}
        }
    }
    let last = round_of_last_run(dir)?.unwrap_or(1).max(1);
    if last > changes.round {
        changes = RoundChanges {
            round: last,
            ..RoundChanges::default()
        };
    }
    changes.format = 1;
    Ok(changes)
}

/// Formats the changes as text.
impl Display for RoundChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |urls: &Vec<String>| grouped(urls.len() as u64);
        writeln!(
            f,
            "round {}: {} new, {} changed, {} same, {} gone",
            self.round,
            count(&self.new),
            count(&self.changed),
            grouped(self.same),
            count(&self.gone)
        )?;
        let kinds = [
            ("new", &self.new),
            ("changed", &self.changed),
            ("gone", &self.gone),
        ];
        for (kind, urls) in kinds {
            for url in urls {
                writeln!(f, "{kind:<8} {url}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
