//! Checks a crawl's directory.

use std::path::Path;

use crawl_archive::rows::{
    DelayRow, ExcludedRow, ExtractRow, GatheredWorkerRow, LinkRow, PageRow, PendingOriginRow,
    RandomWalkStep, RequestRow, TombstoneRow,
};
use crawl_archive::{
    ArchiveWriteError, FOLDER, FORGET_LIST, FORGET_LIST_BESIDE, FORGET_STAGING, MAX_CONFIG_BYTES,
    check_entries, read_text,
};
use crawl_records::{CrawlSettings, GATHERED_DELAYS, WORKERS};
use crawl_weburl::canonicalize;

use crate::archive_check::{check_lists, check_warc, warc_names};
use crate::cross_check::CrossCheck;
use crate::directory_digest_check::check_digests;
use crate::error::VerificationRunError;
use crate::report_check::check_report;
use crate::row_check::{SampleColumnCheck, check_rows, missing_column};
use crate::verification_result::VerificationResult;

/// Descriptions of the content that a directory records only once, so that changes to it can't be
/// detected.
const UNCHECKED: [&str; 5] = [
    "row columns that are recorded only once: titles, link texts, rules, usage statements ..",
    "most of crawl.toml, and all of report.html, state/ and index/",
    "the two bytes of a gzip header that describe the compressor, and unused bits at the end",
    "the header fields of uncompressed WARC records, and the window size of a zstd frame",
    "whether whole rows or records were removed together with everything that refers to them",
];

/// Checks everything that a crawl's directory records in two places: WARC records against their
/// digests and lengths, the capture lists, rows and records against each other, and the report
/// against the rows. Temporary files for sorting are unlinked files in the folder `scratch`. Memory
/// is bounded by the longest record and the number of hosts. Nothing is written to `dir`.
///
/// # Errors
/// [`VerificationRunError`] if something could not be checked. Defects are reported in the
/// [`VerificationResult`].
pub fn verify_directory(
    dir: &Path,
    scratch: &Path,
) -> Result<VerificationResult, VerificationRunError> {
    CrawlSettings::read(dir)?;
    let mut verification = VerificationResult {
        unchecked: UNCHECKED.to_vec(),
        ..VerificationResult::default()
    };
    let entries = check_entries(dir);
    let are_files = entries.is_ok();
    match entries {
        Err(ArchiveWriteError::Unsafe { path, what }) => {
            let name = path.strip_prefix(dir).unwrap_or(&path);
            verification.file(&name.to_string_lossy(), format!("it {what}"));
        }
        Err(error) => verification.file(".", error.to_string()),
        Ok(()) => {}
    }
    if is_half_erased(dir, &mut verification) {
        return Ok(verification);
    }
    let config = read_text(&dir.join("crawl.toml"), MAX_CONFIG_BYTES);
    match config.map(|text| text.parse::<toml::Table>()) {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => verification.file("crawl.toml", error.message().to_owned()),
        Err(error) => verification.file("crawl.toml", format!("can't be read: {error}")),
    }
    let mut cross = CrossCheck::new(dir, scratch);
    let results = &mut verification;
    let mut is_ended = check_digests(dir, results)?;
    if is_ended {
        // The digests cover every byte, so no part is unchecked.
        results.unchecked.clear();
    }
    check_rows(
        dir,
        "waiting.jsonl",
        true,
        results,
        |_, row: &PendingOriginRow, _| {
            is_ended |= row.origin.is_none();
            Ok(())
        },
    )?;
    results.is_ended = is_ended;
    if !is_ended {
        let note = "the last run has not ended, or was killed: uncommitted data is not a defect, \
                    and report.json is not checked against the rows";
        results.notes.push(note.to_owned());
    }
    check_all_rows(dir, is_ended, &mut cross, results)?;
    let names = warc_names(dir)?;
    if dir.join(FOLDER).is_dir() {
        check_lists(dir, is_ended, &mut cross, results)?;
    }
    for name in names
        .iter()
        .filter(|name| is_ended && !cross.is_named(name))
    {
        // Skip this check after `crawl forget`, which may have erased all records of a file, and
        // with them the lines and rows that name the file.
        if !dir.join("tombstones.jsonl").exists() {
            let message = "neither captures.cdxj nor pages.jsonl names a record of it";
            results.file(&format!("{FOLDER}/{name}"), message);
        }
    }
    for name in &names {
        let is_tail = !is_ended && names.last() == Some(name);
        check_warc(dir, name, is_tail, &mut cross, results)?;
    }
    cross
        .finish(is_ended, results)
        .map_err(VerificationRunError::Scratch)?;
    // The report can be computed again only if all entries are regular files or folders.
    if is_ended && are_files {
        check_report(dir, results)?;
    }
    Ok(verification)
}

/// Reports an interrupted `crawl forget`. Returns true if it has begun to replace files, which then
/// don't match each other.
fn is_half_erased(dir: &Path, verification: &mut VerificationResult) -> bool {
    let has = |name: &str| dir.join(name).symlink_metadata().is_ok();
    let finish = format!("`crawl forget {} --finish`", dir.display());
    if has(FORGET_LIST) {
        let message = format!("erasing pages was interrupted: {finish} finishes it");
        verification.file(FORGET_LIST, message);
        verification.unchecked = vec!["all other files, until the erasure is finished"];
        return true;
    }
    if has(FORGET_STAGING) || has(FORGET_LIST_BESIDE) {
        verification.notes.push(format!(
            "erasing pages was interrupted before anything changed: {finish} removes what is left"
        ));
    }
    false
}

fn check_all_rows(
    dir: &Path,
    is_ended: bool,
    cross: &mut CrossCheck,
    verification: &mut VerificationResult,
) -> Result<(), VerificationRunError> {
    let is_archived = dir.join(FOLDER).is_dir();
    let mut samples = SampleColumnCheck::new(dir);
    check_rows(
        dir,
        "pages.jsonl",
        is_ended,
        verification,
        |line, row: &PageRow, verification| {
            if let Some(what) = missing_column(row, is_archived) {
                verification.line("pages.jsonl", line, what);
            }
            samples.row(line, row, verification);
            cross
                .page(line, row, verification)
                .map_err(VerificationRunError::Scratch)
        },
    )?;
    check_rows(
        dir,
        "requests.jsonl",
        is_ended,
        verification,
        |line, row: &RequestRow, verification| {
            let host = canonicalize(None, &row.url).map(|url| url.host_key().to_string());
            if !host.is_ok_and(|host| host == row.host) {
                verification.line(
                    "requests.jsonl",
                    line,
                    "column `host` is not the host key of its URL",
                );
            }
            cross
                .request(line, row)
                .map_err(VerificationRunError::Scratch)
        },
    )?;
    let mut source = String::new();
    check_rows(
        dir,
        "links.jsonl",
        is_ended,
        verification,
        |line, row: &LinkRow, _| {
            if row.from == source {
                return Ok(());
            }
            source.clone_from(&row.from);
            cross
                .source("links.jsonl", line, &row.from)
                .map_err(VerificationRunError::Scratch)
        },
    )?;
    check_rows(
        dir,
        "extracts.jsonl",
        is_ended,
        verification,
        |line, row: &ExtractRow, _| {
            cross
                .source("extracts.jsonl", line, &row.url)
                .map_err(VerificationRunError::Scratch)
        },
    )?;
    check_rows(
        dir,
        "walk.jsonl",
        is_ended,
        verification,
        |line, row: &RandomWalkStep, _| match (&*row.how, &row.from) {
            ("link" | "redirect", Some(from)) => cross
                .source("walk.jsonl", line, from)
                .map_err(VerificationRunError::Scratch),
            _ => Ok(()),
        },
    )?;
    check_rows(
        dir,
        "excluded.jsonl",
        is_ended,
        verification,
        |_, _: &ExcludedRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        "tombstones.jsonl",
        is_ended,
        verification,
        |_, _: &TombstoneRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        "state/delays.jsonl",
        is_ended,
        verification,
        |_, _: &DelayRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        GATHERED_DELAYS,
        is_ended,
        verification,
        |_, _: &DelayRow, _| Ok(()),
    )?;
    check_rows(
        dir,
        WORKERS,
        is_ended,
        verification,
        |_, _: &GatheredWorkerRow, _| Ok(()),
    )
}
