//! Remembers the round in which each URL was excluded. The rows of URLs that may still be fetched
//! are written to `excluded.jsonl` again at the end of every run, and must keep their rounds.
//!
//! ```text
//! excluded.jsonl           committed rows, then uncommitted rows of deferred and pending URLs
//! state/excluded.jsonl     uncommitted rows of the last finished run, while a run is in progress
//! ```
//!
//! The next start cuts off the uncommitted rows. When its run ends, it lists the URLs that are
//! still not fetched. If a URL was listed before for the same reason, its new row has the old
//! round.

use std::fs::{self, File};
use std::hash::BuildHasher as _;
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom};
use std::path::Path;

use crawl_archive::rows::ExcludedRow;
use crawl_archive::{ReadError, RowReader, Timestamp, open_regular, replace_file};
use foldhash::fast::FixedState;

use crate::error::EngineError;

/// The row file of URLs that are not fetched.
pub(crate) const EXCLUDED: &str = "excluded.jsonl";
/// The file with the uncommitted rows of the last finished run.
pub(crate) const LAST_RUN_ROWS: &str = "state/excluded.jsonl";
/// The temporary name of [`LAST_RUN_ROWS`] while the file is written.
pub(crate) const LAST_RUN_ROWS_NEW: &str = "state/excluded.jsonl.new";

/// Copies the rows of `excluded.jsonl` after the committed length, before they are cut off. If the
/// last run was killed, the rows of the run before it are kept instead.
pub(crate) fn set_aside(dir: &Path, committed: u64) -> Result<(), EngineError> {
    let path = dir.join(LAST_RUN_ROWS);
    let copy = || -> io::Result<()> {
        // A copy that a killed start left behind.
        let beside = dir.join(LAST_RUN_ROWS_NEW);
        remove_file(&beside)?;
        let mut rows = match open_regular(&dir.join(EXCLUDED)) {
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
            rows => rows?,
        };
        if path.symlink_metadata().is_ok() || rows.metadata()?.len() <= committed {
            return Ok(());
        }
        rows.seek(SeekFrom::Start(committed))?;
        let mut file = replace_file(&beside)?;
        // Hide from `io::copy` that this is a file. Otherwise it may call `copy_file_range`, which
        // simulated power cuts don't support.
        let rows: &mut dyn Read = &mut rows;
        io::copy(rows, &mut file)?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        // The rows must be in the copy before they are cut off.
        File::open(dir.join("state"))?.sync_all()
    };
    copy().map_err(EngineError::disk(&path))
}

/// The rounds in which URLs were excluded, from the rows that [`set_aside`] copied.
#[derive(Debug, Default)]
pub(crate) struct ExcludedRowsOfLastRun {
    /// For each row, the hash of its URL and reason, its round, and its time. Sorted.
    rows: Vec<(u64, u32, Timestamp)>,
}

impl ExcludedRowsOfLastRun {
    /// Reads the copied rows. Unreadable rows are skipped.
    pub(crate) fn read(dir: &Path) -> Result<ExcludedRowsOfLastRun, EngineError> {
        let mut rows = Vec::new();
        for row in RowReader::<ExcludedRow>::open_if_any(&dir.join(LAST_RUN_ROWS))? {
            match row {
                Ok(row) => {
                    let when = row.round.zip(row.at);
                    rows.extend(when.map(|(round, at)| (hash(&row.url, &row.reason), round, at)));
                }
                Err(ReadError::Row { .. }) => {}
                Err(why) => return Err(why.into()),
            }
        }
        rows.sort_unstable();
        Ok(ExcludedRowsOfLastRun { rows })
    }

    /// Returns the round in which a URL was excluded for this reason, and the time in its row.
    /// `None` if the last finished run did not list it.
    pub(crate) fn when(&self, url: &str, reason: &str) -> Option<(u32, Timestamp)> {
        let hash = hash(url, reason);
        let place = self.rows.partition_point(|row| row.0 < hash);
        let (found, round, at) = *self.rows.get(place)?;
        (found == hash).then_some((round, at))
    }
}

/// Removes the copied rows, once `excluded.jsonl` lists the URLs again.
pub(crate) fn remove(dir: &Path) -> Result<(), EngineError> {
    let path = dir.join(LAST_RUN_ROWS);
    remove_file(&path).map_err(EngineError::disk(&path))
}

/// Removes a file, if it is there.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}

fn hash(url: &str, reason: &str) -> u64 {
    FixedState::default().hash_one((url, reason))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{EXCLUDED, ExcludedRowsOfLastRun, remove, set_aside};

    fn row(url: &str, round: &str) -> String {
        format!(
            "{{\"url\":\"{url}\",\"reason\":\"depth\",\"rule\":null,\"line\":null,\
             \"found_on\":null,\"round\":{round},\"at\":\"2026-11-20T23:59:59.123Z\"}}\n"
        )
    }

    #[test]
    fn a_url_keeps_its_round_even_if_a_run_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::create_dir(dir.join("state")).unwrap();
        set_aside(dir, 0).unwrap();
        let committed = row("http://a.example/committed", "1");
        let tail = [
            row("http://a.example/1", "1"),
            row("http://a.example/old", "null"),
        ];
        let rows = format!("{committed}{}", tail.concat());
        fs::write(dir.join(EXCLUDED), rows).unwrap();
        let mark = committed.len() as u64;
        set_aside(dir, mark).unwrap();
        // The next run is killed while it lists the URLs again.
        let rows = format!("{committed}{}{{\"url", row("http://a.example/1", "3"));
        fs::write(dir.join(EXCLUDED), rows).unwrap();
        set_aside(dir, mark).unwrap();
        let rounds = || {
            let last_run = ExcludedRowsOfLastRun::read(dir).unwrap();
            ["committed", "1", "old"].map(|page| {
                let when = last_run.when(&format!("http://a.example/{page}"), "depth");
                when.map(|(round, _)| round)
            })
        };
        assert_eq!(rounds(), [None, Some(1), None]);
        let last_run = ExcludedRowsOfLastRun::read(dir).unwrap();
        assert_eq!(last_run.when("http://a.example/1", "budget"), None);
        remove(dir).unwrap();
        assert_eq!(rounds(), [None; 3]);
    }
}
