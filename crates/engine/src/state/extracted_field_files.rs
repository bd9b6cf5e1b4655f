//! The files of extracted fields, and the replacement of all rows by new ones.
//!
//! ```text
//! DIR/extracts.jsonl        the rows; their length is in the state
//! DIR/extracts.jsonl.part   new rows that are not complete
//! DIR/extracts.jsonl.new    complete new rows, until they replace the old ones
//! DIR/extract-rules.json    the rules of the last run, or of the last `crawl extract`
//! ```
//!
//! A replacement has these steps:
//!
//! 1. Write the new rows, rules and `crawl.toml` under temporary names.
//! 2. Rename the complete rows to `extracts.jsonl.new`.
//! 3. Rename `crawl.toml.new` to `crawl.toml`.
//! 4. Rename the rules, commit the length of the rows, and rename the rows to `extracts.jsonl`.
//!
//! After a crash, the next start removes the new rows if both `extracts.jsonl.new` and
//! `crawl.toml.new` exist. If only `extracts.jsonl.new` exists, the next start repeats step 4. So
//! the rules in `crawl.toml`, which a start reads before it opens the state, are always those of
//! the rows.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use crawl_fields::CompiledRules;
use crawl_frontier::Frontier;

use super::crawl_toml::{CRAWL_TOML, NEW_CRAWL_TOML};
use super::durable_files::{put_in_place, replace, write_temporary};
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

/// Writes the rules to a file. Programs that read the rows need this file for the types and the
/// order of the fields.
pub(crate) fn write_rules(dir: &Path, rules: &CompiledRules) -> Result<(), EngineError> {
    let path = dir.join(EXTRACT_RULES);
    replace(&path, &dir.join(NEW_EXTRACT_RULES), &rules_text(rules))
        .map_err(EngineError::disk(&path))
}

fn rules_text(rules: &CompiledRules) -> Vec<u8> {
    serde_json::to_vec_pretty(rules.configs()).unwrap_or_default()
}

/// Replaces the rows by those in `extracts.jsonl.part`, and the rules by the ones that extracted
/// them. `config_text` is the new text of `crawl.toml`; `None` leaves the file unchanged.
/// `frontier` has the committed lengths of files; `None` if the crawl has no state.
pub(crate) fn replace_rows(
    dir: &Path,
    rules: &CompiledRules,
    config_text: Option<&str>,
    frontier: Option<&dyn Frontier>,
) -> Result<(), EngineError> {
    prepare_replacement(dir, rules, config_text)?;
    if config_text.is_some() {
        put_config_in_place(dir)?;
    }
    put_rows_in_place(dir, frontier)
}

/// Writes everything that the replacement needs. After a crash at this point, the next start
/// removes the new rows if there is a new `crawl.toml`, and finishes the replacement otherwise.
fn prepare_replacement(
    dir: &Path,
    rules: &CompiledRules,
    config_text: Option<&str>,
) -> Result<(), EngineError> {
    let new_rules = dir.join(NEW_EXTRACT_RULES);
    write_temporary(&new_rules, &rules_text(rules)).map_err(EngineError::disk(&new_rules))?;
    let new_config = dir.join(NEW_CRAWL_TOML);
    match config_text {
        Some(text) => write_temporary(&new_config, text.as_bytes()),
        // A crash may have left the file behind.
        None => remove_if_any(&new_config),
    }
    .map_err(EngineError::disk(&new_config))?;
    let new = dir.join(NEW_EXTRACTS);
    put_in_place(&dir.join(EXTRACTS_IN_PROGRESS), &new).map_err(EngineError::disk(&new))
}

fn put_config_in_place(dir: &Path) -> Result<(), EngineError> {
    let path = dir.join(CRAWL_TOML);
    put_in_place(&dir.join(NEW_CRAWL_TOML), &path).map_err(EngineError::disk(&path))
}

/// Renames the new rules and rows, and commits the length of the rows. Can be repeated after a
/// crash.
fn put_rows_in_place(dir: &Path, frontier: Option<&dyn Frontier>) -> Result<(), EngineError> {
    let (new_rules, rules) = (dir.join(NEW_EXTRACT_RULES), dir.join(EXTRACT_RULES));
    if new_rules.exists() {
        put_in_place(&new_rules, &rules).map_err(EngineError::disk(&rules))?;
    }
    let (new, path) = (dir.join(NEW_EXTRACTS), dir.join(EXTRACTS));
    if let Some(frontier) = frontier {
        let length = new.metadata().map_err(EngineError::disk(&new))?.len();
        let mut transaction = frontier.begin()?;
        transaction.mark(EXTRACTS, length);
        transaction.commit()?;
    }
    put_in_place(&new, &path).map_err(EngineError::disk(&path))
}

/// Finishes a replacement of the rows that a crash interrupted, or removes its new rows.
pub(crate) fn finish_replacement(dir: &Path, frontier: &dyn Frontier) -> Result<(), EngineError> {
    let new = dir.join(NEW_EXTRACTS);
    match new.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(found) if found.is_file() && !dir.join(NEW_CRAWL_TOML).exists() => {
            put_rows_in_place(dir, Some(frontier))
        }
        _ => fs::remove_file(&new).map_err(EngineError::disk(&new)),
    }
}

fn remove_if_any(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crawl_fields::CompiledRules;
    use crawl_frontier::Frontier as _;

    use super::{
        EXTRACT_RULES, EXTRACTS, EXTRACTS_IN_PROGRESS, NEW_EXTRACTS, prepare_replacement,
        put_config_in_place, put_rows_in_place,
    };
    use crate::state::crawl_directory::{begin_at_rest, open_at_rest};
    use crate::state::crawl_toml::CRAWL_TOML;

    /// Runs the first `steps` steps of a replacement with this new `crawl.toml`, and crashes.
    /// Returns the rows, the rules and `crawl.toml` after the next start.
    fn after_crash(steps: usize, config: Option<&str>) -> [String; 3] {
        let folder = tempfile::tempdir().unwrap();
        let dir: &Path = folder.path();
        let frontier = begin_at_rest(dir).unwrap();
        let mut transaction = frontier.begin().unwrap();
        transaction.mark(EXTRACTS, 3);
        transaction.commit().unwrap();
        for name in [EXTRACTS, EXTRACT_RULES, CRAWL_TOML] {
            fs::write(dir.join(name), "old").unwrap();
        }
        fs::write(dir.join(EXTRACTS_IN_PROGRESS), "newer").unwrap();
        let rules = CompiledRules::default();
        let all: [&dyn Fn(); 3] = [
            &|| prepare_replacement(dir, &rules, config).unwrap(),
            &|| {
                if config.is_some() {
                    put_config_in_place(dir).unwrap();
                }
            },
            &|| put_rows_in_place(dir, Some(&frontier)).unwrap(),
        ];
        all[..steps].iter().for_each(|step| step());
        drop(frontier);
        let marks = open_at_rest(dir).unwrap().marks().unwrap();
        let rows = fs::read_to_string(dir.join(EXTRACTS)).unwrap();
        assert_eq!(marks[EXTRACTS], rows.len() as u64, "{steps} steps");
        assert!(!dir.join(NEW_EXTRACTS).exists(), "{steps} steps");
        [EXTRACTS, EXTRACT_RULES, CRAWL_TOML]
            .map(|name| fs::read_to_string(dir.join(name)).unwrap())
    }

    #[test]
    fn after_a_crash_rows_rules_and_settings_are_all_old_or_all_new() {
        for steps in [0, 1] {
            assert_eq!(after_crash(steps, Some("new")), ["old"; 3], "{steps} steps");
        }
        for steps in [2, 3] {
            let files = after_crash(steps, Some("new"));
            assert_eq!(files, ["newer", "[]", "new"], "{steps} steps");
        }
        assert_eq!(after_crash(0, None), ["old"; 3]);
        for steps in [1, 2, 3] {
            let files = after_crash(steps, None);
            assert_eq!(files, ["newer", "[]", "old"], "{steps} steps");
        }
    }
}
