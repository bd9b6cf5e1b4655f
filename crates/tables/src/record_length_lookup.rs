//! Finds the lengths of records in the archive, which the rows of `pages.jsonl` don't contain.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use crawl_archive::rows::WarcRecordLocation;
use crawl_archive::{CaptureLine, CaptureLogReader};

/// Maximum captures to read ahead for the length of a page's record: captures of robots.txt are
/// between those of pages.
/// Beyond the limit: `warc_record_length` is null.
const MAX_AHEAD: usize = 65_536;
/// After this many consecutive pages without a record in the capture log, the log is no longer
/// read, because it probably belongs to another crawl.
const MAX_MISSES: usize = 100;

/// Reads the lengths of archived records from the capture log, in parallel with `pages.jsonl`. This
/// works because both files are written in the same order.
pub(crate) struct RecordLengthLookup {
    log: Option<CaptureLogReader>,
    ahead: VecDeque<CaptureLine>,
    misses: usize,
}

impl RecordLengthLookup {
    /// Opens the capture log of the crawl in `dir`. Without a log, no lengths are found.
    pub(crate) fn open(dir: &Path) -> io::Result<RecordLengthLookup> {
        Ok(RecordLengthLookup {
            log: CaptureLogReader::open(dir)?,
            ahead: VecDeque::new(),
            misses: 0,
        })
    }

    /// Returns the length in bytes of the record at `place`. Must be called in the order of
    /// `pages.jsonl`. `None` if the log doesn't contain the record, or contains it in another
    /// order.
    pub(crate) fn of(&mut self, place: &WarcRecordLocation) -> io::Result<Option<u64>> {
        let is_wanted =
            |capture: &CaptureLine| capture.offset == place.offset && *capture.file == *place.file;
        let mut position = self.ahead.iter().position(is_wanted);
        while position.is_none()
            && self.ahead.len() < MAX_AHEAD
            && let Some(capture) = self.next_capture()?
        {
            position = is_wanted(&capture).then_some(self.ahead.len());
            self.ahead.push_back(capture);
        }
        let Some(position) = position else {
            self.misses += 1;
            if self.misses >= MAX_MISSES {
                self.log = None;
                self.ahead.clear();
            }
            return Ok(None);
        };
        self.misses = 0;
        Ok(self
            .ahead
            .drain(..=position)
            .next_back()
            .map(|capture| capture.length))
    }

    fn next_capture(&mut self) -> io::Result<Option<CaptureLine>> {
        let Some(log) = &mut self.log else {
            return Ok(None);
        };
        let next = log.next_capture()?;
        if next.is_none() {
            self.log = None;
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crawl_archive::rows::WarcRecordLocation;

    use super::RecordLengthLookup;

    /// Checks that a log with records at the offsets `log` yields the `expected` lengths for
    /// records requested at the offsets `requested`.
    fn check(log: &[u64], requested: &[u64], expected: &[Option<u64>]) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("archive")).unwrap();
        let line = |offset: &u64| {
            let length = offset + 1;
            format!(
                "org,e)/ 20261120235959 {{\"url\": \"http://e.org/\", \"length\": \"{length}\", \
                 \"offset\": \"{offset}\", \"filename\": \"a.warc.gz\"}}\n"
            )
        };
        let log: String = log.iter().map(line).collect();
        let log = log.replace("\"offset\": \"0\"", "no JSON");
        fs::write(dir.path().join("archive/captures.cdxj"), log).unwrap();
        let mut lengths = RecordLengthLookup::open(dir.path()).unwrap();
        let lengths_found: Vec<_> = requested
            .iter()
            .map(|&offset| {
                let file = "a.warc.gz".to_owned();
                lengths.of(&WarcRecordLocation { file, offset }).unwrap()
            })
            .collect();
        assert_eq!(lengths_found, expected);
    }

    #[test]
    fn captures_between_pages_and_bad_lines_are_passed_over() {
        check(&[1, 2, 0, 3, 4], &[2, 4], &[Some(3), Some(5)]);
    }

    #[test]
    fn a_page_missing_from_the_log_does_not_affect_others() {
        check(&[1, 2, 3], &[9, 2, 8, 3], &[None, Some(3), None, Some(4)]);
        check(&[], &[1], &[None]);
    }

    #[test]
    fn a_log_of_another_crawl_is_given_up() {
        let requested: Vec<u64> = (1000..1100).chain([1]).collect();
        check(&[1, 2, 3], &requested, &[None; 101]);
    }
}
