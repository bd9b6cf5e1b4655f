//! The files of extracted fields, and the replacement of all rows by new ones.
//!
//! ```text
//! DIR/extracts.jsonl        the rows; their length is in the state
//! DIR/extracts.jsonl.part   new rows that are not complete
//! DIR/extracts.jsonl.new    complete new rows, until they replace the old ones
//! DIR/extract-rules.json    the rules of the last run, or of the last `crawl extract`
//! ```
//!
//! A replacement writes the new rows, commits their length, and renames the file. If a crash
//! happens before the commit, the next start removes the new rows. If a crash happens after the
//! commit, the next start renames the file.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crawl_fields::CompiledRules;

use super::durable_files::replace;
use crate::error::EngineError;

/// The file with the rows.
pub(crate) const EXTRACTS: &str = "extracts.jsonl";
/// The file with the new rows, once they are complete.
pub(crate) const NEW_EXTRACTS: &str = "extracts.jsonl.new";
/// The file that new rows are written to until they are complete.
pub(crate) const EXTRACTS_IN_PROGRESS: &str = "extracts.jsonl.part";
/// The file with the rules that extracted the rows.
pub(crate) const EXTRACT_RULES: &str = "extract-rules.json";
/// The temporary name of the rules file while it is written.
pub(crate) const NEW_EXTRACT_RULES: &str = "extract-rules.json.new";

/// Writes the rules to a file for programs that read the rows, which need the types and the order
/// of fields.
pub(crate) fn write_rules(dir: &Path, rules: &CompiledRules) -> Result<(), EngineError> {
    let path = dir.join(EXTRACT_RULES);
    let text = serde_json::to_vec_pretty(rules.configs()).unwrap_or_default();
    replace(&path, &dir.join(NEW_EXTRACT_RULES), &text).map_err(EngineError::disk(&path))
}

/// Finishes a replacement of the rows that a crash interrupted, or removes its new rows. `marks`
/// has the committed lengths of files.
pub(crate) fn finish_replacement(
    dir: &Path,
    marks: &BTreeMap<String, u64>,
) -> Result<(), EngineError> {
    let new = dir.join(NEW_EXTRACTS);
    match new.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(found) if found.is_file() && marks.get(EXTRACTS) == Some(&found.len()) => {
            take_place(dir)
        }
        _ => fs::remove_file(&new).map_err(EngineError::disk(&new)),
    }
}

/// Renames `extracts.jsonl.new` to `extracts.jsonl`.
pub(crate) fn take_place(dir: &Path) -> Result<(), EngineError> {
    let path = dir.join(EXTRACTS);
    let rename = || {
        fs::rename(dir.join(NEW_EXTRACTS), &path)?;
        fs::File::open(dir)?.sync_all()
    };
    rename().map_err(EngineError::disk(&path))
}
