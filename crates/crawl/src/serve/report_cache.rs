//! The crawl's report, made anew where the records have grown.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use crawl_records::{RecordsError, Report, report};
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

use super::problem::Problem;

/// A report serves for this long in any case.
const MIN_REPORT_AGE: Duration = Duration::from_secs(2);
/// And for so many times as long as it took to make, so that making reports takes a tenth of
/// one processor at most.
const TIMES: u32 = 10;

/// One report, shared by all who ask.
#[derive(Debug)]
pub(crate) struct Reports {
    dir: PathBuf,
    /// Held while a report is made: there is one at a time.
    made: Arc<Mutex<Option<Made>>>,
}

#[derive(Debug)]
struct Made {
    report: Arc<Report>,
    at: Instant,
    took: Duration,
    of: [FileVersion; 6],
}

impl Reports {
    pub(crate) fn new(dir: PathBuf) -> Reports {
        Reports {
            dir,
            made: Arc::default(),
        }
    }

    /// The report, as of the last few seconds or more where it takes long.
    pub(crate) async fn get(&self) -> Result<Arc<Report>, Problem> {
        let mut held = Arc::clone(&self.made).lock_owned().await;
        let of = versions(&self.dir);
        if let Some(made) = held.as_ref()
            && (made.of == of || made.at.elapsed() < MIN_REPORT_AGE.max(made.took * TIMES))
        {
            return Ok(Arc::clone(&made.report));
        }
        let dir = self.dir.clone();
        // On its own: it goes on, and serves the next, where this client has gone.
        let made = tokio::spawn(async move {
            let began = Instant::now();
            let report = spawn_blocking(move || report(&dir)).await;
            let report = report.map_err(|why| broke_off(&why))?;
            let report = Arc::new(report.map_err(|why| problem(&why))?);
            *held = Some(Made {
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

/// The inode and the length of a file: rows are appended, and `crawl.toml` is replaced.
type FileVersion = (u64, u64);

/// Versions of the files that a report is made of.
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

fn broke_off(why: &JoinError) -> Problem {
    tracing::error!(%why, "a report broke off");
    Problem::internal("the report broke off")
}

fn problem(why: &RecordsError) -> Problem {
    if let RecordsError::NoCrawl { .. } = why {
        return Problem::new(StatusCode::NOT_FOUND, "there is an index here and no crawl")
            .hint("the search page is at `/`");
    }
    tracing::error!(%why, "the records can't be read");
    Problem::internal("the records of the crawl can't be read")
        .hint("the server's owner finds the reason in its log")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::versions;

    #[test]
    fn a_report_is_made_anew_where_settings_were_read_again_or_rows_came() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("crawl.toml", "a = 1\n");
        write("pages.jsonl", "{}\n");
        let first = versions(dir.path());
        assert_eq!(versions(dir.path()), first);
        // As long as before, and in its place in one step.
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
