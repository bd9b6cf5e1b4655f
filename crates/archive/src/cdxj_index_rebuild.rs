//! Rewrites the sorted index from the capture log.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use crate::appender::sync_folder;
use crate::archive_layout::{CAPTURES, FOLDER, INDEX};
use crate::bounded_read::{BoundedLineResult, LineReader, MAX_LINE_BYTES};
use crate::error::ArchiveWriteError;
use crate::line_sorter::LineSorter;
use crate::regular_file::open_regular;

/// Maximum bytes of lines to sort in memory at a time. Their offsets take about half as much memory
/// again.
const MAX_RUN_BYTES: usize = 32 * 1024 * 1024;
/// The prefix of the names of temporary files.
pub(crate) const TEMPORARY: &str = "index.cdxj.tmp";

/// Rewrites the sorted index `archive/index.cdxj` of the crawl in `dir` from the first
/// `captures_bytes` bytes of the capture log, and returns the number of lines. Lines are sorted
/// bytewise, in bounded memory. Lines longer than [`MAX_LINE_BYTES`] are invalid and dropped. The
/// old index stays until the new one is complete and synced.
///
/// # Errors
/// [`ArchiveWriteError::Full`] and other I/O errors.
pub fn write_index(dir: &Path, captures_bytes: u64) -> Result<u64, ArchiveWriteError> {
    sort(&dir.join(FOLDER), captures_bytes, MAX_RUN_BYTES)
}

/// Removes temporary files of the index that a crash left behind.
pub(crate) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn sort(folder: &Path, bytes: u64, run_bytes: usize) -> Result<u64, ArchiveWriteError> {
    let index = folder.join(INDEX);
    let failed = |error| ArchiveWriteError::io("write", &index, error);
    remove_temporary(folder).map_err(failed)?;
    let log = folder.join(CAPTURES);
    let log = open_regular(&log).map_err(|error| ArchiveWriteError::io("open", &log, error))?;
    let mut lines = LineReader::new(BufReader::new(log.take(bytes)), MAX_LINE_BYTES);
    let mut sorted = LineSorter::new(folder, TEMPORARY, run_bytes);
    let whole = || -> io::Result<u64> {
        let mut count = 0;
        while let Some(line) = lines.next_line()? {
            if let BoundedLineResult::Whole(line) = line {
                sorted.push(line)?;
                count += 1;
            }
        }
        let last = sorted.finish()?;
        File::open(&last)?.sync_data()?;
        fs::rename(&last, &index)?;
        Ok(count)
    };
    let count = whole().map_err(|error| {
        let _ = remove_temporary(folder);
        failed(error)
    })?;
    sync_folder(folder)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::sort;
    use crate::archive_layout::{CAPTURES, INDEX};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_index_is_the_sorted_log(
            lines in prop::collection::vec("[a-c]{0,3} [0-9]{1,4}", 0..300),
            run_bytes in 1usize..2000,
            torn in "[a-z]{0,5}",
        ) {
            let dir = tempfile::tempdir().unwrap();
            let log: String = lines.iter().map(|line| format!("{line}}}\n")).collect();
            fs::write(dir.path().join(CAPTURES), format!("{log}{torn}")).unwrap();
            let count = sort(dir.path(), log.len() as u64, run_bytes).unwrap();
            prop_assert_eq!(count, lines.len() as u64);
            let mut expected: Vec<String> = lines.iter().map(|line| format!("{line}}}\n")).collect();
            expected.sort();
            let index = fs::read_to_string(dir.path().join(INDEX)).unwrap();
            prop_assert_eq!(index, expected.concat());
            prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        }
    }
}
