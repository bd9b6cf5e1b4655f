//! Finds the captures that revisits refer to, in the archive of the same crawl.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crawl_archive::{
    CAPTURES, CaptureLine, FOLDER, INDEX, Timestamp, WarcRecord, archive_file, open_regular,
    read_record, surt, write_index,
};
use crawl_weburl::canonicalize;

use crate::error::WaczError;

/// Finds original captures by binary search in an index that is sorted on the first look-up. The
/// index in the crawl's directory is not used, because it is outdated if a run was killed.
pub(crate) struct OriginalCaptureFinder<'a> {
    dir: &'a Path,
    /// The folder for the sorted index. It is created on the first look-up.
    scratch: PathBuf,
    index: Option<SortedIndex>,
}

impl<'a> OriginalCaptureFinder<'a> {
    pub(crate) fn new(dir: &'a Path, scratch: &Path) -> OriginalCaptureFinder<'a> {
        OriginalCaptureFinder {
            dir,
            scratch: scratch.join("originals"),
            index: None,
        }
    }

    /// Returns the response record that a revisit refers to, or `None` if the archive doesn't
    /// contain it.
    pub(crate) fn of(&mut self, revisit: &WarcRecord) -> Result<Option<WarcRecord>, WaczError> {
        let Some((url, date)) = referred_to(revisit) else {
            return Ok(None);
        };
        let Ok(canonical) = canonicalize(None, url) else {
            return Ok(None);
        };
        let key = format!("{} {} ", surt(&canonical), date.fourteen_digits());
        let index = match &mut self.index {
            Some(index) => index,
            None => self.index.insert(SortedIndex::of(self.dir, &self.scratch)?),
        };
        let failed = WaczError::read(&self.scratch);
        for capture in index.with_key(key.as_bytes()).map_err(failed)? {
            let path = archive_file(self.dir, &capture.file)?;
            // The key has the time only to the second, so several captures may match. Skip damaged
            // captures.
            let record = read_record(&path, capture.offset).ok();
            let is_original = |record: &WarcRecord| {
                record.kind() == "response"
                    && record.url() == Some(url)
                    && record.date() == Some(date)
            };
            if let Some(record) = record.filter(is_original) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

/// Returns the URL and date of the capture that a revisit refers to.
pub(crate) fn referred_to(revisit: &WarcRecord) -> Option<(&str, Timestamp)> {
    let url = revisit.field("WARC-Refers-To-Target-URI")?;
    let date = revisit.field("WARC-Refers-To-Date")?;
    Some((url, Timestamp::parse(date)?))
}

/// A sorted index that is kept on disk, because it may not fit in memory.
struct SortedIndex {
    file: BufReader<File>,
    bytes: u64,
}

impl SortedIndex {
    fn of(dir: &Path, scratch: &Path) -> Result<SortedIndex, WaczError> {
        let folder = scratch.join(FOLDER);
        let log = folder.join(CAPTURES);
        let failed = WaczError::write(&log);
        fs::create_dir_all(&folder).map_err(&failed)?;
        let bytes = fs::copy(dir.join(FOLDER).join(CAPTURES), &log).map_err(failed)?;
        write_index(scratch, bytes)?;
        let index = folder.join(INDEX);
        SortedIndex::open(&index).map_err(WaczError::read(&index))
    }

    fn open(path: &Path) -> io::Result<SortedIndex> {
        let file = open_regular(path)?;
        let bytes = file.metadata()?.len();
        Ok(SortedIndex {
            // The buffer is small, because each step of a binary search reads only one line.
            file: BufReader::with_capacity(1024, file),
            bytes,
        })
    }

    /// Returns the captures whose lines start with `key`.
    fn with_key(&mut self, key: &[u8]) -> io::Result<Vec<CaptureLine>> {
        let (mut low, mut high) = (0, self.bytes);
        // Binary search. Invariant: lines that start before `low` sort before `key`; lines that
        // start at or after `high` don't.
        while low < high {
            let middle = low + (high - low) / 2;
            let (begin, line) = self.line_from(middle, low)?;
            if line.is_empty() || begin >= high || line.as_slice() >= key {
                high = middle;
            } else {
                low = begin + line.len() as u64;
            }
        }
        let mut captures = Vec::new();
        self.file.seek(SeekFrom::Start(low))?;
        let mut line = Vec::new();
        while self.file.read_until(b'\n', &mut line)? > 0 && line.starts_with(key) {
            captures.extend(CaptureLine::parse(&line));
            line.clear();
        }
        Ok(captures)
    }

    /// Returns the first line that starts at or after `place`, and its offset. `least` must be the
    /// offset at which a line starts, and at most `place`.
    fn line_from(&mut self, place: u64, least: u64) -> io::Result<(u64, Vec<u8>)> {
        let mut begin = place;
        if place > least {
            // Read from the byte before `place`. If it is a line break, a line starts exactly at
            // `place`.
            self.file.seek(SeekFrom::Start(place - 1))?;
            begin = place - 1 + self.file.skip_until(b'\n')? as u64;
        } else {
            self.file.seek(SeekFrom::Start(place))?;
        }
        let mut line = Vec::new();
        self.file.read_until(b'\n', &mut line)?;
        Ok((begin, line))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::SortedIndex;

    #[test]
    fn each_key_is_found_in_an_index_of_any_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index.cdxj");
        let line = |number: usize, offset: usize| {
            let url = "x".repeat(number % 7 * 40);
            format!(
                "org,e)/{number:03} 20261120235959 {{\"url\": \"{url}\", \"length\": \"1\", \
                 \"offset\": \"{offset}\", \"filename\": \"a.warc.gz\"}}\n"
            )
        };
        for count in 0..40 {
            // Give every third key two lines.
            let numbers =
                (0..count).flat_map(|number| vec![number; 1 + usize::from(number % 3 == 0)]);
            let numbers: Vec<usize> = numbers.collect();
            let lines: String = numbers.iter().map(|&number| line(number, number)).collect();
            fs::write(&path, lines).unwrap();
            let mut index = SortedIndex::open(&path).unwrap();
            for number in 0..count + 2 {
                let key = format!("org,e)/{number:03} 20261120235959 ");
                let captures = index.with_key(key.as_bytes()).unwrap();
                let expected = numbers.iter().filter(|&&other| other == number).count();
                assert_eq!(captures.len(), expected, "{number} of {count}");
                assert!(
                    captures
                        .iter()
                        .all(|capture| capture.offset == number as u64)
                );
            }
        }
    }
}
