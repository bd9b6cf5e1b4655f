//! The files that a report is written to.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crawl_archive::{ChangedFiles, DIGESTS, write_digests};

use crate::error::RecordsError;
use crate::figures::figures;
use crate::report::{Report, report_with_gaps};
use crate::report_page::page_of;
use crate::rows::waiting;

/// Sums a crawl's records up, and draws the sums as a self-contained HTML page with plots. Whatever
/// came from a server is escaped in it.
///
/// # Errors
/// Those of [`report()`](crate::report()).
pub fn report_page(dir: &Path) -> Result<(Report, String), RecordsError> {
    let (report, gaps) = report_with_gaps(dir)?;
    let figures = figures(dir, &report)?;
    let page = page_of(&report, &gaps, &figures);
    Ok((report, page))
}

/// Sums a crawl's records up and leaves the result in `dir`: as `report.json`, as a page,
/// `report.html`, and in `hosts.jsonl` a line for each host that has a coverage verdict.
///
/// # Errors
/// Those of [`report()`](crate::report()), and where a file can't be written. An older file stays as it was
/// then.
pub fn write_report(dir: &Path) -> Result<Report, RecordsError> {
    let (report, html) = report_page(dir)?;
    let mut json = serde_json::to_vec_pretty(&report).unwrap_or_default();
    json.push(b'\n');
    let mut hosts = Vec::new();
    for host in report.hosts.iter().filter(|host| host.coverage.is_some()) {
        hosts.extend(serde_json::to_vec(host).unwrap_or_default());
        hosts.push(b'\n');
    }
    replace(&dir.join("hosts.jsonl"), &hosts)?;
    replace(&dir.join("report.json"), &json)?;
    replace(&dir.join("report.html"), html.as_bytes())?;
    Ok(report)
}

/// Lists the digests of a crawl's files in `digests.jsonl`, where its last run has ended: the last
/// thing to do once everything else is written. Of files that did not change nothing is read
/// ([`write_digests`]).
///
/// # Errors
/// Those of the file system.
pub fn list_digests(dir: &Path, changed: ChangedFiles<'_>) -> Result<(), RecordsError> {
    let mut rows = waiting(dir)?;
    match rows.any(|row| row.is_ok_and(|row| row.origin.is_none())) {
        true => write_digests(dir, changed).map_err(RecordsError::io(&dir.join(DIGESTS))),
        false => Ok(()),
    }
}

/// Writes a file whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), RecordsError> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = crawl_archive::create_anew(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(RecordsError::io(&beside))?;
    fs::rename(&beside, path).map_err(RecordsError::io(path))
}
