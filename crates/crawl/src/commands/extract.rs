//! `crawl extract`: extracts fields from the archived pages of a crawl again.

use crawl_archive::FilesToRehash;
use crawl_engine::{EngineError, extract_again};
use crawl_records::{RoundSelection, counted, extraction, is_ended, list_digests, write_report};

use crate::cli::args::ExtractArgs;
use crate::error::engine::of_engine;
use crate::error::records::{no_archive, of_records};
use crate::error::{CommandError, FINISHED, INTERRUPTED, no_crawl};
use crate::run::while_reading;
use crate::settings::{UserFolders, rules_of_file, stored_with_rules};
use crate::terminal::{note, print, print_json};

/// The files and folders in a crawl's directory that `crawl extract` changes.
const CHANGED: [&str; 7] = [
    "crawl.toml",
    "extract-rules.json",
    "extracts.jsonl",
    "hosts.jsonl",
    "report.html",
    "report.json",
    "state",
];

pub(crate) fn run(args: &ExtractArgs) -> Result<u8, CommandError> {
    let dir = args.dir.as_path();
    let rules = rules_of_file(&args.config)?;
    if !dir.join("crawl.toml").is_file() {
        return Err(no_crawl(dir));
    }
    // Also store the rules in crawl.toml, so that later rounds extract the same fields. If
    // crawl.toml can't be read, no later round is possible, so ignore the error.
    let config = || {
        let config = stored_with_rules(dir, rules.configs(), &UserFolders::of_process());
        config.ok().flatten()
    };
    let done = while_reading(|is_stopped, report| {
        extract_again(dir, &rules, &config, is_stopped, report)
    })?;
    let done = done.map_err(|error| match error {
        EngineError::NoArchive { .. } => no_archive("extract", dir)
            .hint("crawl again into another --output, with the rules in its --config"),
        other => of_engine(&other, dir),
    })?;
    if done.is_stopped {
        note("interrupted; extracts.jsonl was not changed");
        return Ok(INTERRUPTED);
    }
    if is_ended(dir).map_err(of_records)? {
        write_report(dir).map_err(of_records)?;
    }
    list_digests(dir, FilesToRehash::Named(&CHANGED)).map_err(of_records)?;
    let fields = extraction(dir, RoundSelection::Last).map_err(of_records)?;
    if args.json {
        return print_json(&serde_json::json!({
            "pages": done.pages,
            "rows": done.rows,
            "unreadable": done.unreadable,
            "rules": fields.map(|fields| fields.rules).unwrap_or_default(),
        }));
    }
    note(&format!(
        "{} read, {} in {}",
        counted(done.pages, "page", "pages"),
        counted(done.rows, "row", "rows"),
        dir.join("extracts.jsonl").display()
    ));
    if done.unreadable > 0 {
        let records = counted(done.unreadable, "page has", "pages have");
        note(&format!("{records} no readable record in the archive"));
    }
    if let Some(fields) = fields {
        print(fields.to_string().as_bytes())?;
    }
    Ok(FINISHED)
}
