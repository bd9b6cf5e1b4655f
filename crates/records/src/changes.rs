//! Pages that the last round of a crawl found new, changed and gone, URL by URL.

use std::fmt::{self, Display};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::directory::holds_any;
use crate::error::RecordsError;
use crate::numbers::grouped;
use crate::rows::pages;

/// The pages of a round that are not as they were.
///
/// Field names stay; a later version of the program may add fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundChanges {
    /// The layout of this object: 1.
    pub format: u32,
    /// The last round of the crawl, from 1.
    pub round: u32,
    /// Pages where there were none before, in the order of their visits.
    pub new: Vec<String>,
    /// Pages that are others than at their last visit.
    pub changed: Vec<String>,
    /// Pages that are no more.
    pub gone: Vec<String>,
    /// The number of pages that are as they were.
    pub same: u64,
}

/// Lists what the last round of the crawl in `dir` found new, changed and gone. Memory: those URLs.
///
/// # Errors
/// [`RecordsError::NoCrawl`] where `dir` holds no crawl; [`RecordsError::Row`] for a whole line
/// that is no row; errors of the file system.
pub fn changes(dir: &Path) -> Result<RoundChanges, RecordsError> {
    holds_any(dir, &["pages.jsonl"])?;
    let mut found = RoundChanges::default();
    for row in pages(dir)? {
        let row = row?;
        if row.round > found.round {
            found = RoundChanges {
                format: 1,
                round: row.round,
                ..RoundChanges::default()
            };
        }
        if row.round < found.round {
            continue;
        }
        match row.change.as_deref() {
            Some("new") => found.new.push(row.url),
            Some("changed") => found.changed.push(row.url),
            Some("gone") => found.gone.push(row.url),
            Some("same") => found.same += 1,
            _ => {}
        }
    }
    (found.format, found.round) = (1, found.round.max(1));
    Ok(found)
}

/// Lines for a person.
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
