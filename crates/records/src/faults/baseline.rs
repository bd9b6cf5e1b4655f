//! Faults that are known: a file of JSON lines, as the program writes them.

use std::collections::HashSet;
use std::path::Path;

use serde::Deserialize;

use super::{Fault, FaultKind};
use crate::error::RecordsError;

/// Bytes of a baseline that are read: some 200 for each fault.
const MAX_BASELINE_BYTES: u64 = 256 << 20;

/// The faults that a file lists.
#[derive(Debug, Default)]
pub struct Baseline {
    known: HashSet<Key>,
}

/// The parts by which two faults are the same: page, kind and where the link leads. Its text and
/// the words of the cause may be others.
#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
struct Key {
    page: Option<String>,
    to: String,
    kind: FaultKind,
}

impl Baseline {
    /// Reads a file with a fault in each line: of `--format jsonl`. Empty lines are passed over.
    ///
    /// # Errors
    /// [`RecordsError::Row`] for a line that is no fault; errors of the file system.
    pub fn read(path: &Path) -> Result<Baseline, RecordsError> {
        let text = crawl_archive::read_text(path, MAX_BASELINE_BYTES);
        let text = text.map_err(RecordsError::io(path))?;
        let mut known = HashSet::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let key = serde_json::from_str(line).map_err(|why| RecordsError::Baseline {
                path: path.to_owned(),
                line: at as u64 + 1,
                why,
            })?;
            known.insert(key);
        }
        Ok(Baseline { known })
    }

    /// The number of faults that it lists.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.known.len() as u64
    }

    /// Returns whether it lists none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns whether it lists a fault.
    #[must_use]
    pub fn holds(&self, fault: &Fault) -> bool {
        self.known.contains(&Key {
            page: fault.page.clone(),
            to: fault.to.clone(),
            kind: fault.kind,
        })
    }
}
