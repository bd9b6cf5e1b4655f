//! Removes the directory of a run that got no answer from any server.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crawl_archive::RowReader;
use crawl_archive::rows::{PageRow, RequestRow};

use super::crawl_directory::{STATE, examine, open_resting};
use crate::error::EngineError;
use crate::summary::{EndReason, RunConnectivity, RunSummary};

/// Removes the crawl directory of an ended run, and the folders above it that the run created, if
/// the run sent requests and no server answered any. Returns whether the directory is gone.
///
/// The directory stays if any of these is true:
///
/// - It existed before the run.
/// - This worker handed its hosts over to other workers.
/// - Hosts are parked.
/// - A row in the directory has an answer.
/// - Another process uses the directory.
/// - The directory contains anything that the crawl didn't write.
#[must_use]
pub fn discard_unanswered(summary: &RunSummary) -> bool {
    let dir = &summary.output;
    let is_over = summary.ended != EndReason::HandedOver;
    let is_unanswered = summary.reach == RunConnectivity::Unanswered;
    let is_new = !summary.resumed && summary.created.last() == Some(dir);
    // The user chose the parked hosts, so keep the list for later runs.
    if !is_over || !is_unanswered || !is_new || !summary.parked.is_empty() {
        return false;
    }
    match remove(dir) {
        Ok(true) => {}
        Ok(false) => return false,
        Err(why) => {
            tracing::warn!(dir = %dir.display(), %why, "can't remove the directory of a crawl without answers");
            return false;
        }
    }
    for folder in summary.created.iter().rev().skip(1) {
        // Removing a folder fails if it contains anything else. The folder then stays.
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    true
}

/// Removes a directory that holds a crawl without answers. Returns false if it holds anything else.
fn remove(dir: &Path) -> Result<bool, EngineError> {
    if !examine(dir)? {
        return Ok(false);
    }
    // Lock the store until the directory is renamed. Otherwise another process could start a crawl
    // in the directory while its files are being removed.
    let store = open_resting(dir, &dir.join(STATE))?;
    if has_answer(dir)? {
        return Ok(false);
    }
    let mut name = OsString::from(".");
    name.push(dir.file_name().unwrap_or_default());
    name.push(format!(".discarded-{}", std::process::id()));
    let renamed = dir.with_file_name(name);
    fs::rename(dir, &renamed).map_err(EngineError::disk(dir))?;
    drop(store);
    // `remove_dir_all` follows no links.
    if let Err(why) = fs::remove_dir_all(&renamed) {
        tracing::warn!(dir = %renamed.display(), %why, "a discarded directory can't be removed");
    }
    Ok(true)
}

/// Returns whether any request or page in the records got an answer.
fn has_answer(dir: &Path) -> Result<bool, EngineError> {
    for row in RowReader::<RequestRow>::open_if_any(&dir.join("requests.jsonl"))? {
        if row?.status.is_some() {
            return Ok(true);
        }
    }
    for row in RowReader::<PageRow>::open_if_any(&dir.join("pages.jsonl"))? {
        if row?.status.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::remove;
    use crate::error::EngineError;
    use crate::state::crawl_directory::{STATE, begin_at_rest, open_resting};

    const UNANSWERED: &str = r#"{"url":"http://a.example/robots.txt","host":"a.example",
        "address":null,"purpose":"robots","start":1,"end":2,"status":null,
        "failure":"connect_refused","gap_asked":0,"why":"delay","wait_asked":null}"#;

    /// Creates a crawl in `dir` whose log of requests has this row.
    fn crawl(dir: &Path, row: &str) {
        drop(begin_at_rest(dir).unwrap());
        let row = row.replace('\n', "");
        fs::write(dir.join("requests.jsonl"), format!("{row}\n")).unwrap();
        fs::write(dir.join("crawl.toml"), "").unwrap();
        fs::write(dir.join("pages.jsonl"), "").unwrap();
    }

    #[test]
    fn a_crawl_without_answers_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("crawl");
        crawl(&dir, UNANSWERED);
        assert!(remove(&dir).unwrap());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_crawl_with_an_answer_stays() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("crawl");
        crawl(
            &dir,
            &UNANSWERED.replace(r#""status":null"#, r#""status":503"#),
        );
        assert!(!remove(&dir).unwrap());
        assert!(dir.join("requests.jsonl").is_file() && dir.join(STATE).is_dir());
    }

    #[test]
    fn foreign_files_and_links_keep_the_directory() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("crawl");
        crawl(&dir, UNANSWERED);
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        let error = remove(&dir).unwrap_err();
        assert!(matches!(error, EngineError::BesideCrawl { .. }), "{error}");
        fs::remove_file(dir.join("notes.txt")).unwrap();
        let elsewhere = parent.path().join("elsewhere.jsonl");
        fs::rename(dir.join("pages.jsonl"), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.join("pages.jsonl")).unwrap();
        assert!(remove(&dir).is_err());
        assert!(elsewhere.is_file() && dir.join("requests.jsonl").is_file());
    }

    #[test]
    fn a_crawl_that_another_process_uses_stays() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("crawl");
        crawl(&dir, UNANSWERED);
        let used = open_resting(&dir, &dir.join(STATE)).unwrap();
        let error = remove(&dir).unwrap_err();
        assert!(matches!(error, EngineError::OutputInUse { .. }), "{error}");
        drop(used);
        assert!(dir.join("requests.jsonl").is_file());
        assert!(remove(&dir).unwrap());
    }
}
