//! How long the archive's records are, which rows of pages do not say.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use crawl_archive::rows::WarcPlace;
use crawl_archive::{CaptureLine, CaptureLog};

/// Captures that are looked at ahead: those of robots.txt stand between pages.
const MAX_AHEAD: usize = 65_536;
/// Pages in a row that are not among the captures before they count as none of this crawl.
const MAX_MISSES: usize = 100;

/// The log of captures, read beside `pages.jsonl`: one writer appends to both, in one order.
pub(crate) struct RecordLengths {
    log: Option<CaptureLog>,
    ahead: VecDeque<CaptureLine>,
    misses: usize,
}

impl RecordLengths {
    /// Opens the log of the crawl in `dir`, if it has one.
    pub(crate) fn open(dir: &Path) -> io::Result<RecordLengths> {
        Ok(RecordLengths {
            log: CaptureLog::open(dir)?,
            ahead: VecDeque::new(),
            misses: 0,
        })
    }

    /// The length of a record in bytes, asked for in the order of `pages.jsonl`; none where the log
    /// does not have it in that order.
    pub(crate) fn of(&mut self, place: &WarcPlace) -> io::Result<Option<u64>> {
        let is_it =
            |capture: &CaptureLine| capture.offset == place.offset && *capture.file == *place.file;
        let mut found = self.ahead.iter().position(is_it);
        while found.is_none()
            && self.ahead.len() < MAX_AHEAD
            && let Some(capture) = self.next_capture()?
        {
            found = is_it(&capture).then_some(self.ahead.len());
            self.ahead.push_back(capture);
        }
        let Some(found) = found else {
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
            .drain(..=found)
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

    use crawl_archive::rows::WarcPlace;

    use super::RecordLengths;

    /// The lengths of the records at these offsets, where the log has records at those.
    fn check(log: &[u64], asked: &[u64], expected: &[Option<u64>]) {
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
        let mut lengths = RecordLengths::open(dir.path()).unwrap();
        let found: Vec<_> = asked
            .iter()
            .map(|&offset| {
                let file = "a.warc.gz".to_owned();
                lengths.of(&WarcPlace { file, offset }).unwrap()
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn captures_between_pages_and_bad_lines_are_passed_over() {
        check(&[1, 2, 0, 3, 4], &[2, 4], &[Some(3), Some(5)]);
    }

    #[test]
    fn a_page_that_the_log_does_not_have_costs_no_other_its_length() {
        check(&[1, 2, 3], &[9, 2, 8, 3], &[None, Some(3), None, Some(4)]);
        check(&[], &[1], &[None]);
    }

    #[test]
    fn a_log_of_another_crawl_is_given_up() {
        let asked: Vec<u64> = (1000..1100).chain([1]).collect();
        check(&[1, 2, 3], &asked, &[None; 101]);
    }
}
