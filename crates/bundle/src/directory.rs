//! The check of a crawl's directory.

use std::path::Path;

use crawl_archive::rows::{
    DelayRow, ExcludedRow, LinkRow, PageRow, RequestRow, TombstoneRow, WaitingRow, WalkRow,
    WorkerRow,
};
use crawl_archive::{ArchiveError, FOLDER, MAX_CONFIG_BYTES, check_entries, read_text};
use crawl_records::{CrawlSettings, GATHERED_DELAYS, WORKERS};
use crawl_weburl::canonicalize;

use crate::archive_check::{check_lists, check_warc, warc_names};
use crate::cross_check::CrossCheck;
use crate::digest_check::check_digests;
use crate::error::VerifyError;
use crate::report_check::check_report;
use crate::row_check::{SampleCheck, check_rows, what_lacks};
use crate::verification::Verification;

/// The parts of a directory that nothing repeats, so that no check can notice a change.
const UNCHECKED: [&str; 4] = [
    "columns of rows that nothing repeats: titles, the words of links, rules, statements on use ..",
    "most of crawl.toml, all of report.html, of state/ and of index/",
    "the two bytes of a gzip member's head that tell of the compressor, and unused bits at its end",
    "whether whole rows or records were taken away together with all that speaks of them",
];

/// Checks all that the directory of a crawl says twice: each WARC record against its digests and
/// lengths, the lists of the archive, rows and records against each other, and the report against
/// the rows. What has to be sorted for it waits in files without a name in the folder `scratch`.
/// Memory is bounded by the longest record and the number of hosts. Nothing is written in `dir`.
///
/// # Errors
/// [`VerifyError`] where something could not be looked at; a defect is none.
pub fn verify_directory(dir: &Path, scratch: &Path) -> Result<Verification, VerifyError> {
    CrawlSettings::read(dir)?;
    let mut verification = Verification {
        unchecked: UNCHECKED.to_vec(),
        ..Verification::default()
    };
    let entries = check_entries(dir);
    let are_files = entries.is_ok();
    match entries {
        Err(ArchiveError::Unsafe { path, what }) => {
            let name = path.strip_prefix(dir).unwrap_or(&path);
            verification.file(&name.to_string_lossy(), format!("it {what}"));
        }
        Err(why) => verification.file(".", why.to_string()),
        Ok(()) => {}
    }
    let config = read_text(&dir.join("crawl.toml"), MAX_CONFIG_BYTES);
    match config.map(|text| text.parse::<toml::Table>()) {
        Ok(Ok(_)) => {}
        Ok(Err(why)) => verification.file("crawl.toml", why.message().to_owned()),
        Err(why) => verification.file("crawl.toml", format!("it can't be read: {why}")),
    }
    let mut cross = CrossCheck::new(dir, scratch);
    let found = &mut verification;
    let mut is_ended = check_digests(dir, found)?;
    if is_ended {
        // The digests hold each byte.
        found.unchecked.clear();
    }
    check_rows(
        dir,
        "waiting.jsonl",
        true,
        found,
        |_, row: &WaitingRow, _| {
            is_ended |= row.origin.is_none();
            Ok(())
        },
    )?;
    found.is_ended = is_ended;
    if !is_ended {
        let note = "the last run has not ended, or was killed: what is not committed yet is no \
                    defect, and report.json is not held against the rows";
        found.notes.push(note.to_owned());
    }
    check_all_rows(dir, is_ended, &mut cross, found)?;
    let names = warc_names(dir)?;
    if dir.join(FOLDER).is_dir() {
        check_lists(dir, is_ended, &mut cross, found)?;
    }
    for name in names
        .iter()
        .filter(|name| is_ended && !cross.is_named(name))
    {
        // Of a file from which all was taken out nothing is left to name.
        if !dir.join("tombstones.jsonl").exists() {
            let what = "neither captures.cdxj nor pages.jsonl names a record of it";
            found.file(&format!("{FOLDER}/{name}"), what);
        }
    }
    for name in &names {
        let is_tail = !is_ended && names.last() == Some(name);
        check_warc(dir, name, is_tail, &mut cross, found)?;
    }
    cross
        .finish(is_ended, found)
        .map_err(VerifyError::Scratch)?;
    // The rows are summed up where all of them can be read.
    if is_ended && are_files {
        check_report(dir, found)?;
    }
    Ok(verification)
}

fn check_all_rows(
    dir: &Path,
    is_ended: bool,
    cross: &mut CrossCheck,
    found: &mut Verification,
) -> Result<(), VerifyError> {
    let is_archived = dir.join(FOLDER).is_dir();
    let mut samples = SampleCheck::new(dir);
    check_rows(
        dir,
        "pages.jsonl",
        is_ended,
        found,
        |line, row: &PageRow, found| {
            if let Some(what) = what_lacks(row, is_archived) {
                found.line("pages.jsonl", line, what);
            }
            samples.row(line, row, found);
            cross.page(line, row, found).map_err(VerifyError::Scratch)
        },
    )?;
    check_rows(
        dir,
        "requests.jsonl",
        is_ended,
        found,
        |line, row: &RequestRow, found| {
            let host = canonicalize(None, &row.url).map(|url| url.host_key().to_string());
            if !host.is_ok_and(|host| host == row.host) {
                found.line(
                    "requests.jsonl",
                    line,
                    "column `host` is not the host key of its URL",
                );
            }
            cross.request(line, row).map_err(VerifyError::Scratch)
        },
    )?;
    let mut source = String::new();
    check_rows(
        dir,
        "links.jsonl",
        is_ended,
        found,
        |line, row: &LinkRow, _| {
            if row.from == source {
                return Ok(());
            }
            source.clone_from(&row.from);
            cross
                .source("links.jsonl", line, &row.from)
                .map_err(VerifyError::Scratch)
        },
    )?;
    check_rows(
        dir,
        "walk.jsonl",
        is_ended,
        found,
        |line, row: &WalkRow, _| match (&*row.how, &row.from) {
            ("link" | "redirect", Some(from)) => cross
                .source("walk.jsonl", line, from)
                .map_err(VerifyError::Scratch),
            _ => Ok(()),
        },
    )?;
    check_rows(
        dir,
        "excluded.jsonl",
        is_ended,
        found,
        |_, _: &ExcludedRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        "tombstones.jsonl",
        is_ended,
        found,
        |_, _: &TombstoneRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        "state/delays.jsonl",
        is_ended,
        found,
        |_, _: &DelayRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        GATHERED_DELAYS,
        is_ended,
        found,
        |_, _: &DelayRow, _| Ok(()),
    )?;
    check_rows(dir, WORKERS, is_ended, found, |_, _: &WorkerRow, _| Ok(()))
}
