//! Writes the files of a report.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use crawl_archive::{DIGESTS, FOLDER, FilesToRehash, write_archive_digests, write_digests};

use crate::error::RecordsError;
use crate::plot_data::figures;
use crate::report::{CrawlReport, report_with_gaps};
use crate::report_page::{SiteFixSection, page_of};
use crate::row_file_reader::waiting;
use crate::site_faults::{FaultKind, faults};
use crate::site_report::{MAX_CLICKS, site};

/// Maximum visits in a crawl whose archive is read for `report.html`.
/// Beyond the limit: only broken pages.
const MAX_READ_PAGES: u64 = 2_000;

/// Sums up the records of a crawl, and renders them as a self-contained HTML page with plots. All
/// text from servers is escaped.
///
/// # Errors
/// The errors of [`report()`](crate::report()).
pub fn report_page(dir: &Path) -> Result<(CrawlReport, String), RecordsError> {
    let (report, gaps) = report_with_gaps(dir)?;
    let figures = figures(dir, &report)?;
    let to_fix = to_fix(dir, &report)?;
    let page = page_of(&report, &gaps, &figures, to_fix.as_ref());
    Ok((report, page))
}

/// Renders what the owner of the site should fix. Returns `None` if the crawl has no archive or too
/// many pages, or if a row is malformed. The report lists malformed rows as flaws.
fn to_fix(dir: &Path, report: &CrawlReport) -> Result<Option<SiteFixSection>, RecordsError> {
    if report.pages.visits() > MAX_READ_PAGES || !dir.join(FOLDER).is_dir() {
        return Ok(None);
    }
    let checked = site(dir, MAX_CLICKS)
        .and_then(|site| Ok((site, faults(dir, &FaultKind::ALL)?)))
        .map(|(site, faults)| SiteFixSection {
            checks: site.to_fix(&faults),
            html_pages: site.pages,
        });
    match checked {
        Ok(to_fix) => Ok(Some(to_fix)),
        Err(RecordsError::Row { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Reads the pages of a crawl, and renders a self-contained HTML page that shows the owner of the
/// site what to fix. A page is deep if it is more than `max_clicks` clicks away from a seed.
///
/// # Errors
/// The errors of [`site()`](crate::site()).
pub fn site_page(dir: &Path, max_clicks: u32) -> Result<String, RecordsError> {
    let report = site(dir, max_clicks)?;
    Ok(report.html(&faults(dir, &FaultKind::ALL)?))
}

/// Sums up the records of a crawl and writes the result to `dir`: as `report.json`, as the page
/// `report.html`, and as `hosts.jsonl` with one line per host that has a coverage verdict.
///
/// # Errors
/// The errors of [`report()`](crate::report()), and failures to write a file. If a file can't be
/// written, its previous version stays unchanged.
pub fn write_report(dir: &Path) -> Result<CrawlReport, RecordsError> {
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

/// Lists the digests of a crawl's files in `digests.jsonl`, if its last run has ended. Must be
/// called after all other files are written. Unchanged files are not read again
/// ([`write_digests`]).
///
/// # Errors
/// File system errors.
pub fn list_digests(dir: &Path, changed: FilesToRehash<'_>) -> Result<(), RecordsError> {
    match is_ended(dir)? {
        true => write_digests(dir, changed).map_err(RecordsError::io(&dir.join(DIGESTS))),
        false => Ok(()),
    }
}

/// Writes the report of a crawl ([`write_report`]) and lists the digests of all files
/// ([`list_digests`]). To save time, the WARC files are read on another thread while the report is
/// computed.
///
/// # Errors
/// The errors of [`write_report`] and [`list_digests`].
pub fn write_report_and_digests(dir: &Path) -> Result<CrawlReport, RecordsError> {
    if !is_ended(dir)? {
        return write_report(dir);
    }
    let failed = |error| RecordsError::io(&dir.join(DIGESTS))(error);
    let report = thread::scope(|scope| {
        let archive = scope.spawn(|| write_archive_digests(dir).map_err(failed));
        let report = write_report(dir);
        match archive.join() {
            Ok(listed) => listed.and(report),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    write_digests(dir, FilesToRehash::All).map_err(failed)?;
    Ok(report)
}

/// Returns whether the last run of a crawl has ended.
///
/// # Errors
/// File system errors.
pub fn is_ended(dir: &Path) -> Result<bool, RecordsError> {
    let mut rows = waiting(dir)?;
    Ok(rows.any(|row| row.is_ok_and(|row| row.origin.is_none())))
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), RecordsError> {
    let mut temporary = path.to_owned().into_os_string();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let written = crawl_archive::replace_file(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(RecordsError::io(&temporary))?;
    fs::rename(&temporary, path).map_err(RecordsError::io(path))
}
