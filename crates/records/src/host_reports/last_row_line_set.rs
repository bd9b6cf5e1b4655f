//! Finds the last row of each URL, which determines coverage in a crawl with several rounds.

use std::path::Path;

use crawl_archive::rows::PageRow;

use super::HostReportCollector;
use crate::broken_links::key;
use crate::error::RecordsError;
use crate::host_coverage::HostOutcomeCounts;
use crate::row_file_reader::pages;

impl HostReportCollector {
    /// Recounts pages, failures, bytes and coverage from the last row of each URL, and calls `each`
    /// with every such row. Does nothing and returns `false` if the crawl has one round, because
    /// each URL then has only one row. Reads the rows of the crawl in `dir` twice more. The first
    /// pass takes 16 bytes of memory per row.
    ///
    /// # Errors
    /// File system errors. Malformed lines are skipped.
    pub fn take_last_rows(
        &mut self,
        dir: &Path,
        mut each: impl FnMut(PageRow),
    ) -> Result<bool, RecordsError> {
        if self.rounds <= 1 {
            return Ok(false);
        }
        for host in self.hosts.values_mut() {
            host.outcomes = HostOutcomeCounts {
                is_asked: host.outcomes.is_asked,
                ..HostOutcomeCounts::default()
            };
            let report = &mut host.report;
            (report.pages, report.failed, report.bytes) = (0, 0, 0);
        }
        let last = LastRowLineSet::read(dir, self.page_rows)?;
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            if last.holds(rows.line()) {
                self.count_page(&row);
                each(row);
            }
        }
        Ok(true)
    }
}

/// A set of line numbers: the lines of a row file that contain the last row of their URL. Takes one
/// bit per line.
#[derive(Debug)]
pub(crate) struct LastRowLineSet(Vec<u64>);

impl LastRowLineSet {
    fn read(dir: &Path, rows: usize) -> Result<LastRowLineSet, RecordsError> {
        let mut lines = Vec::with_capacity(rows);
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next_sound() {
            lines.push((key(&row?.url), rows.line()));
        }
        Ok(LastRowLineSet::of(lines))
    }

    /// Builds the set from pairs of URL key and line.
    pub(crate) fn of(mut lines: Vec<(u64, u64)>) -> LastRowLineSet {
        let words = lines.iter().map(|(_, line)| *line).max().unwrap_or(0) / 64 + 1;
        lines.sort_unstable();
        let mut bits = vec![0; usize::try_from(words).unwrap_or(usize::MAX)];
        for (at, (url, line)) in lines.iter().enumerate() {
            if lines.get(at + 1).is_none_or(|(next, _)| next != url) {
                let (word, bit) = place(*line);
                bits[word] |= bit;
            }
        }
        LastRowLineSet(bits)
    }

    /// Returns whether the line, counted from 1, contains the last row of its URL.
    #[must_use]
    pub(crate) fn holds(&self, line: u64) -> bool {
        let (word, bit) = place(line);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

fn place(line: u64) -> (usize, u64) {
    let word = usize::try_from(line / 64).unwrap_or(usize::MAX);
    (word, 1 << (line % 64))
}
