//! Caches the crawl's report, and rebuilds it when the records have changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use crawl_records::{CrawlReport, RecordsError, report};
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

use super::error_response::ErrorResponse;

/// Minimum time for which a report is cached, even if the records change in that time.
const MIN_REPORT_AGE: Duration = Duration::from_secs(2);
/// A report is cached for at least this multiple of its build time, so that building reports uses
/// at most a tenth of one processor.
const BUILD_TIME_MULTIPLE: u32 = 10;

/// The crawl's latest report, which all clients share.
#[derive(Debug)]
pub(crate) struct ReportCache {
    dir: PathBuf,
    /// Held while a report is built, so that only one is built at a time.
    made: Arc<Mutex<Option<CachedReport>>>,
}

#[derive(Debug)]
struct CachedReport {
    report: Arc<CrawlReport>,
    at: Instant,
    took: Duration,
    of: [FileVersion; 6],
}

impl ReportCache {
    pub(crate) fn new(dir: PathBuf) -> ReportCache {
        ReportCache {
            dir,
            made: Arc::default(),
        }
    }

    /// Returns the report. It may lag the records by [`MIN_REPORT_AGE`], or by [`BUILD_TIME_MULTIPLE`] times its
    /// build time if that is longer.
    pub(crate) async fn get(&self) -> Result<Arc<CrawlReport>, ErrorResponse> {
        let mut held = Arc::clone(&self.made).lock_owned().await;
        let of = versions(&self.dir);
        if let Some(made) = held.as_ref()
            && (made.of == of
                || made.at.elapsed() < MIN_REPORT_AGE.max(made.took * BUILD_TIME_MULTIPLE))
        {
            return Ok(Arc::clone(&made.report));
        }
        let dir = self.dir.clone();
        // Build the report in a separate task. If this client disconnects, the task still completes
        // the report for later clients.
        let made = tokio::spawn(async move {
            let began = Instant::now();
            let report = spawn_blocking(move || report(&dir)).await;
            let report = report.map_err(|why| broke_off(&why))?;
            let report = Arc::new(report.map_err(|why| problem(&why))?);
            *held = Some(CachedReport {
                report: Arc::clone(&report),
                at: Instant::now(),
                took: began.elapsed(),
                of,
            });
            Ok(report)
        });
        made.await.unwrap_or_else(|why| Err(broke_off(&why)))
    }
}

/// The inode and length of a file. A change of the content changes at least one of the two: row
/// files grow, and `crawl.toml` is replaced by a new file.
type FileVersion = (u64, u64);

/// Returns the versions of the files that a report is built from.
fn versions(dir: &Path) -> [FileVersion; 6] {
    let files = [
        "crawl.toml",
        "pages.jsonl",
        "requests.jsonl",
        "excluded.jsonl",
        "waiting.jsonl",
        "walk.jsonl",
    ];
    files.map(|name| fs::metadata(dir.join(name)).map_or((0, 0), |file| (file.ino(), file.len())))
}

fn broke_off(why: &JoinError) -> ErrorResponse {
    tracing::error!(%why, "a report broke off");
    ErrorResponse::internal("the report failed")
}

fn problem(why: &RecordsError) -> ErrorResponse {
    if let RecordsError::NoCrawl { .. } = why {
        return ErrorResponse::new(
            StatusCode::NOT_FOUND,
            "there is only an index here, no crawl",
        )
        .hint("the search page is `/`");
    }
    tracing::error!(%why, "the records can't be read");
    ErrorResponse::internal("can't read the records of the crawl")
        .hint("the server's log has the reason")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::versions;

    #[test]
    fn a_report_is_rebuilt_after_new_settings_or_rows() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("crawl.toml", "a = 1\n");
        write("pages.jsonl", "{}\n");
        let first = versions(dir.path());
        assert_eq!(versions(dir.path()), first);
        // The new file has the same length as before, and replaces the old one atomically.
        write("crawl.toml.new", "a = 2\n");
        fs::rename(
            dir.path().join("crawl.toml.new"),
            dir.path().join("crawl.toml"),
        )
        .unwrap();
        let second = versions(dir.path());
        assert_ne!(second, first);
        write("pages.jsonl", "{}\n{}\n");
        assert_ne!(versions(dir.path()), second);
    }
}
