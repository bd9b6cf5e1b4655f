//! Keeps the rows of URLs that a finished round excluded but that may still be fetched.
//!
//! ```text
//! excluded.jsonl           committed rows, then uncommitted rows of deferred and pending URLs
//! state/excluded.jsonl     uncommitted rows of the last finished run, while a run is in progress
//! ```
//!
//! Every start cuts off the uncommitted rows, because they may be obsolete when its run ends. The
//! run then lists the URLs that are still not fetched. If the start begins a new round, the rows of
//! the last round are final, so they are committed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek as _, SeekFrom};
use std::path::Path;

use crawl_archive::rows::ExcludedRow;
use crawl_archive::{ReadError, RowFileWriter, RowReader, open_regular, replace_file};

use crate::error::EngineError;

/// The row file of URLs that are not fetched.
pub(crate) const EXCLUDED: &str = "excluded.jsonl";
/// The file with the uncommitted rows of the last finished run.
pub(crate) const LAST_RUN_ROWS: &str = "state/excluded.jsonl";
/// The temporary name of [`LAST_RUN_ROWS`] while the file is written.
pub(crate) const LAST_RUN_ROWS_NEW: &str = "state/excluded.jsonl.new";

/// Copies the uncommitted rows of `excluded.jsonl` before they are cut off. If the last run was
/// killed, keeps the rows of the run before it instead.
pub(crate) fn set_aside(dir: &Path, committed: u64) -> Result<(), EngineError> {
    let path = dir.join(LAST_RUN_ROWS);
    let copy = || -> io::Result<()> {
        // Remove the incomplete copy of a start that was killed.
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

/// Appends the copied rows to `excluded.jsonl`, and returns its new length, to be committed.
/// Unreadable rows are skipped.
pub(crate) fn append(dir: &Path, file: &mut RowFileWriter) -> Result<u64, EngineError> {
    for row in RowReader::<ExcludedRow>::open_if_any(&dir.join(LAST_RUN_ROWS))? {
        match row {
            Ok(row) => drop(file.append(&row)?),
            Err(ReadError::Row { .. }) => {}
            Err(why) => return Err(why.into()),
        }
    }
    file.sync()?;
    Ok(file.len())
}

/// Removes the copied rows, once `excluded.jsonl` lists the URLs again. Syncs the removal: if a
/// power cut brought the copy back after the round is over, the next round would commit the copied
/// rows instead of the new ones.
pub(crate) fn remove(dir: &Path) -> Result<(), EngineError> {
    let path = dir.join(LAST_RUN_ROWS);
    let remove = || -> io::Result<()> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        remove_file(&path)?;
        File::open(dir.join("state"))?.sync_all()
    };
    remove().map_err(EngineError::disk(&path))
}

/// Removes a file, if it is there.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_archive::RowFileWriter;

    use super::{EXCLUDED, ExcludedRow, append, remove, set_aside};

    fn row(url: &str, round: &str) -> String {
        format!(
            "{{\"url\":\"{url}\",\"reason\":\"depth\",\"rule\":null,\"line\":null,\
             \"found_on\":null,\"round\":{round},\"at\":\"2026-11-20T23:59:59.123Z\"}}\n"
        )
    }

    #[test]
    fn the_rows_of_the_last_finished_run_outlive_a_killed_run() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::create_dir(dir.join("state")).unwrap();
        set_aside(dir, 0).unwrap();
        let committed = row("http://a.example/committed", "1");
        let tail = [
            row("http://a.example/1", "1"),
            row("http://a.example/old", "null"),
        ];
        let tail = tail.concat();
        fs::write(dir.join(EXCLUDED), format!("{committed}{tail}")).unwrap();
        let mark = committed.len() as u64;
        set_aside(dir, mark).unwrap();
        // The next run is killed while it lists the URLs again.
        let rows = format!("{committed}{}{{\"url", row("http://a.example/1", "3"));
        fs::write(dir.join(EXCLUDED), rows).unwrap();
        set_aside(dir, mark).unwrap();
        let append = || {
            let mut file = RowFileWriter::open(&dir.join(EXCLUDED), Some(mark)).unwrap();
            append(dir, &mut file).unwrap()
        };
        // A start that is killed before it committed the rows appends them again.
        for _ in 0..2 {
            let length = append();
            let rows = fs::read_to_string(dir.join(EXCLUDED)).unwrap();
            assert_eq!(length, rows.len() as u64);
            let rows = rows.lines().map(|row| {
                let row: ExcludedRow = serde_json::from_str(row).unwrap();
                (row.url.rsplit('/').next().unwrap().to_owned(), row.round)
            });
            let expected = [("committed", Some(1)), ("1", Some(1)), ("old", None)];
            let expected = expected.map(|(name, round)| (name.to_owned(), round));
            assert_eq!(rows.collect::<Vec<_>>(), expected);
        }
        remove(dir).unwrap();
        assert_eq!(append(), mark);
    }
}
