//! The sorted index, written anew from the unsorted log of captures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::appender::sync_folder;
use crate::bounded_read::{BoundedLine, LineReader, MAX_LINE_BYTES};
use crate::error::ArchiveError;
use crate::names::{CAPTURES, FOLDER, INDEX};
use crate::regular_file::{create_anew, open_regular};

/// Lines that are sorted in memory at a time. Bytes; with the table of lines about
/// half as much again.
const MAX_RUN_BYTES: usize = 32 * 1024 * 1024;
/// Sorted runs that are merged at a time: far fewer than the files a process may open.
const FAN_IN: usize = 64;
/// The beginning of the names of temporary files.
pub(crate) const TEMPORARY: &str = "index.cdxj.tmp";

/// Writes `archive/index.cdxj` of the crawl in `dir` anew: the first `captures_bytes`
/// of the log of captures, sorted bytewise. Memory is bounded however long the log is; what is
/// longer than [`MAX_LINE_BYTES`] is no line of ours and is left out.
/// The old index stays until the new one is whole and on the disk. Says how many lines
/// it has.
///
/// # Errors
/// [`ArchiveError::Full`] and others of the file system.
pub fn write_index(dir: &Path, captures_bytes: u64) -> Result<u64, ArchiveError> {
    sort(&dir.join(FOLDER), captures_bytes, MAX_RUN_BYTES)
}

/// Removes what a death left of an unfinished index.
pub(crate) fn remove_temporary(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn sort(folder: &Path, bytes: u64, run_bytes: usize) -> Result<u64, ArchiveError> {
    let index = folder.join(INDEX);
    let failed = |error| ArchiveError::io("write", &index, error);
    remove_temporary(folder).map_err(failed)?;
    let log = folder.join(CAPTURES);
    let log = open_regular(&log).map_err(|error| ArchiveError::io("open", &log, error))?;
    let mut runs = Runs {
        folder,
        made: 0,
        paths: Vec::new(),
    };
    let lines = runs
        .fill(BufReader::new(log.take(bytes)), run_bytes)
        .and_then(|lines| runs.merge_all().map(|()| lines));
    let whole = lines.and_then(|lines| {
        let last = runs.paths.pop().ok_or(io::ErrorKind::NotFound)?;
        File::open(&last)?.sync_data()?;
        fs::rename(&last, &index)?;
        Ok(lines)
    });
    let lines = whole.map_err(|error| {
        let _ = remove_temporary(folder);
        failed(error)
    })?;
    sync_folder(folder)?;
    Ok(lines)
}

/// Sorted temporary files.
struct Runs<'a> {
    folder: &'a Path,
    made: usize,
    paths: Vec<PathBuf>,
}

impl Runs<'_> {
    /// Reads all lines into sorted runs, at least one. Says how many lines there are.
    fn fill(&mut self, log: impl BufRead, run_bytes: usize) -> io::Result<u64> {
        let mut lines = LineReader::new(log, MAX_LINE_BYTES);
        let mut count = 0;
        let mut more = true;
        while more {
            let mut run = Vec::new();
            let mut ends = Vec::new();
            while run.len() < run_bytes && more {
                match lines.next_line()? {
                    Some(BoundedLine::Whole(line)) => {
                        run.extend_from_slice(line);
                        ends.push(run.len());
                    }
                    Some(_) => {}
                    None => more = false,
                }
            }
            if !ends.is_empty() || self.paths.is_empty() {
                count += ends.len() as u64;
                self.write(sorted(&run, &ends))?;
            }
        }
        Ok(count)
    }

    fn write<'l>(&mut self, lines: impl IntoIterator<Item = &'l [u8]>) -> io::Result<()> {
        let mut out = self.begin()?;
        for line in lines {
            out.write_all(line)?;
        }
        out.flush()
    }

    /// Merges until one run is left.
    fn merge_all(&mut self) -> io::Result<()> {
        while self.paths.len() > 1 {
            let group: Vec<PathBuf> = self.paths.drain(..self.paths.len().min(FAN_IN)).collect();
            let mut out = self.begin()?;
            merge(&group, &mut out)?;
            out.flush()?;
            for path in group {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<BufWriter<File>> {
        let path = self.folder.join(format!("{TEMPORARY}{}", self.made));
        let file = create_anew(&path)?;
        self.made += 1;
        self.paths.push(path);
        Ok(BufWriter::new(file))
    }
}

/// The lines that end at `ends`, in order. A line sorts with its end; no line begins
/// another, since each is closed by a bracket.
fn sorted<'r>(run: &'r [u8], ends: &[usize]) -> Vec<&'r [u8]> {
    let mut begin = 0;
    let mut lines: Vec<&[u8]> = ends
        .iter()
        .map(|&end| {
            let line = &run[begin..end];
            begin = end;
            line
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn merge(runs: &[PathBuf], out: &mut impl Write) -> io::Result<()> {
    let mut readers = Vec::with_capacity(runs.len());
    for run in runs {
        readers.push(BufReader::new(File::open(run)?));
    }
    let mut heads = BinaryHeap::new();
    for (at, reader) in readers.iter_mut().enumerate() {
        heads.extend(next_line(reader, Vec::new())?.map(|line| Reverse((line, at))));
    }
    while let Some(Reverse((line, at))) = heads.pop() {
        out.write_all(&line)?;
        heads.extend(next_line(&mut readers[at], line)?.map(|line| Reverse((line, at))));
    }
    Ok(())
}

fn next_line(reader: &mut impl BufRead, mut line: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    line.clear();
    let read = reader.read_until(b'\n', &mut line)?;
    Ok((read > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::sort;
    use crate::names::{CAPTURES, INDEX};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn ours_the_index_is_the_log_sorted(
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
