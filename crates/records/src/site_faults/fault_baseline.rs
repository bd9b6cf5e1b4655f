//! A baseline: a file with known faults, as JSON lines that this program has written.

use std::collections::HashSet;
use std::path::Path;

use serde::Deserialize;

use super::{FaultKind, PageFault};
use crate::error::RecordsError;

/// Maximum bytes of a baseline file. A fault takes about 200 bytes.
const MAX_BASELINE_BYTES: u64 = 256 << 20;

/// The faults that a baseline file lists.
#[derive(Debug, Default)]
pub struct FaultBaseline {
    keys: HashSet<FaultIdentity>,
}

/// The identity of a fault: its page, kind and target. Faults with the same identity are the same,
/// even if their texts or descriptions differ.
#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
struct FaultIdentity {
    page: Option<String>,
    to: String,
    kind: FaultKind,
}

impl FaultBaseline {
    /// Reads a file with one fault per line, as written by `--format jsonl`. Skips empty lines.
    ///
    /// # Errors
    /// [`RecordsError::Baseline`] for a line that isn't a fault; file system errors.
    pub fn read(path: &Path) -> Result<FaultBaseline, RecordsError> {
        let text = crawl_archive::read_text(path, MAX_BASELINE_BYTES);
        let text = text.map_err(RecordsError::io(path))?;
        let mut keys = HashSet::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let key = serde_json::from_str(line).map_err(|why| RecordsError::Baseline {
                path: path.to_owned(),
                line: at as u64 + 1,
                why,
            })?;
            keys.insert(key);
        }
        Ok(FaultBaseline { keys })
    }

    /// Returns the number of listed faults of the given kinds.
    #[must_use]
    pub fn count(&self, kinds: &[FaultKind]) -> u64 {
        let keys = self.keys.iter();
        keys.filter(|key| kinds.contains(&key.kind)).count() as u64
    }

    /// Returns whether the baseline lists a fault.
    #[must_use]
    pub fn holds(&self, fault: &PageFault) -> bool {
        self.keys.contains(&FaultIdentity {
            page: fault.page.clone(),
            to: fault.to.clone(),
            kind: fault.kind,
        })
    }
}
