//! Finds rows of different workers about the same URL: two rows of `pages.jsonl` in the same round,
//! which are an error, or rows of `excluded.jsonl` that another worker's row makes redundant.
//!
//! A URL may be excluded twice if its host was handed over from one worker to another. At the end
//! of its run, the first worker excluded the host's URLs that it had set aside (see `PUT_ASIDE`).
//! The second worker then excluded the same URLs again, or fetched them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use crawl_archive::rows::PageRow;
use crawl_archive::{LineSorter, ReadError, RowReader};

use crate::error::{GatherError, TwiceSettledUrl};
use crate::worker_directory::WorkerDirectory;

/// Maximum size of the lines that are sorted in memory at a time, in bytes.
const MAX_SORTED_BYTES: usize = 32 * 1024 * 1024;
/// Maximum number of URLs to list in a [`GatherError::SettledTwice`].
const MAX_NAMED: usize = 20;
/// Reasons of `excluded.jsonl` rows that every run writes again when it ends, because the excluded
/// URL may still become fetchable, e.g. by another path.
const PUT_ASIDE: [&str; 8] = [
    "action",
    "budget",
    "depth",
    "duplicate",
    "nofollow",
    "redirects",
    "sample",
    "trap",
];
/// The letter that marks the line of a page in the sorted file. [`EXCLUDED`] sorts after it, so the
/// pages of a URL come first.
const PAGE: &str = "a";
/// The letter that marks the line of an exclusion in the sorted file.
const EXCLUDED: &str = "b";

/// Reads which rows of `excluded.jsonl` to omit because another worker's row covers the same URL.
/// Each row is given as the number of its worker and its line, in ascending order.
pub(crate) struct DuplicateRowPositionReader {
    lines: BufReader<File>,
    next: Option<(usize, u64)>,
}

impl DuplicateRowPositionReader {
    fn open(path: &Path) -> io::Result<DuplicateRowPositionReader> {
        let mut rows = DuplicateRowPositionReader {
            lines: BufReader::new(File::open(path)?),
            next: None,
        };
        fs::remove_file(path)?;
        rows.step()?;
        Ok(rows)
    }

    fn step(&mut self) -> io::Result<()> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        let mut numbers = line.split_ascii_whitespace();
        let mut number = || numbers.next()?.parse::<u64>().ok();
        self.next = match (number(), number()) {
            (Some(worker), Some(line)) => {
                Some((usize::try_from(worker).unwrap_or(usize::MAX), line))
            }
            _ => None,
        };
        Ok(())
    }

    /// Returns whether to omit a row of `excluded.jsonl`. Call this for the rows in ascending
    /// order.
    pub(crate) fn holds(&mut self, worker: usize, line: u64) -> io::Result<bool> {
        let is_listed = self.next == Some((worker, line));
        if is_listed {
            self.step()?;
        }
        Ok(is_listed)
    }
}

/// A parsed line of the sorted file.
struct SortedLine {
    is_page: bool,
    /// The round, if the line is a page; the reason, if it is an exclusion.
    detail: String,
    worker: usize,
    line: u64,
}

impl SortedLine {
    fn read(line: &str) -> Option<(&str, SortedLine)> {
        let mut parts = line.trim_end_matches('\n').split('\t');
        let url = parts.next()?;
        let is_page = parts.next()? == PAGE;
        let detail = parts.next()?.to_owned();
        let worker = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        let entry = SortedLine {
            is_page,
            detail,
            worker,
            line,
        };
        Some((url, entry))
    }

    fn is_put_aside(&self) -> bool {
        !self.is_page && PUT_ASIDE.contains(&self.detail.as_str())
    }
}

/// Sorts the pages and exclusions of all workers by URL, using files in `scratch`. Returns the
/// exclusions to omit because another worker's row covers the same URL.
///
/// # Errors
/// [`GatherError::SettledTwice`] if two rows of `pages.jsonl` are about the same URL and round, or
/// an I/O error.
pub(crate) fn find_duplicates(
    workers: &[WorkerDirectory],
    scratch: &Path,
) -> Result<DuplicateRowPositionReader, GatherError> {
    let sorted = sort_rows(workers, scratch)?;
    let failed = |error| GatherError::io(scratch)(error);
    let mut lines = BufReader::new(File::open(&sorted).map_err(failed)?);
    fs::remove_file(&sorted).map_err(failed)?;
    let mut duplicates = LineSorter::new(scratch, "duplicates.tmp", MAX_SORTED_BYTES);
    let mut twice = RepeatedUrls::default();
    let mut group: Vec<SortedLine> = Vec::new();
    let mut current_url = String::new();
    let mut line = String::new();
    loop {
        line.clear();
        let read = lines.read_line(&mut line).map_err(failed)?;
        let entry = SortedLine::read(&line);
        let is_same = entry.as_ref().is_some_and(|(url, _)| *url == current_url);
        if !is_same {
            twice.note(&current_url, &group, workers);
            for (worker, line) in duplicates_in(&group) {
                let line = format!("{worker:010} {line:020}\n");
                duplicates.push(line.as_bytes()).map_err(failed)?;
            }
            group.clear();
        }
        if let Some((url, entry)) = entry {
            if !is_same {
                url.clone_into(&mut current_url);
            }
            group.push(entry);
        }
        if read == 0 {
            break;
        }
    }
    twice.refuse()?;
    let duplicates = duplicates.finish().map_err(failed)?;
    DuplicateRowPositionReader::open(&duplicates).map_err(failed)
}

/// Returns the exclusions to omit, given all rows about one URL.
fn duplicates_in(group: &[SortedLine]) -> impl Iterator<Item = (usize, u64)> {
    group.iter().enumerate().filter_map(|(at, entry)| {
        let rows_of_others = || group.iter().filter(|other| other.worker != entry.worker);
        let is_settled =
            entry.is_put_aside() && rows_of_others().any(|other| !other.is_put_aside());
        // If several workers wrote the same exclusion, keep only the first one.
        let is_again = !entry.is_page
            && group[..at].iter().any(|other| {
                !other.is_page && other.worker != entry.worker && other.detail == entry.detail
            });
        (is_settled || is_again).then_some((entry.worker, entry.line))
    })
}

fn sort_rows(workers: &[WorkerDirectory], scratch: &Path) -> Result<PathBuf, GatherError> {
    let failed = |error| GatherError::io(scratch)(error);
    let mut sort = LineSorter::new(scratch, "urls.tmp", MAX_SORTED_BYTES);
    let mut push = |url: &str, kind: &str, detail: &str, worker: usize, line: u64| {
        // Tabs and newlines separate the fields and lines of the sorted file. A URL never contains
        // them, but a malformed row might.
        let url = url.replace(['\t', '\n'], " ");
        let detail = detail.replace(['\t', '\n'], " ");
        let text = format!("{url}\t{kind}\t{detail}\t{worker:010}\t{line:020}\n");
        sort.push(text.as_bytes()).map_err(failed)
    };
    for (number, worker) in workers.iter().enumerate() {
        let mut pages = RowReader::<PageRow>::open_if_any(&worker.dir.join("pages.jsonl"))?;
        while let Some(row) = pages.next() {
            if let Some(row) = sound(row)? {
                let round = format!("{:010}", row.round);
                push(&row.url, PAGE, &round, number, pages.line())?;
            }
        }
        let mut excluded = worker.excluded()?;
        while let Some(row) = excluded.next() {
            if let Some(row) = sound(row)? {
                push(&row.url, EXCLUDED, &row.reason, number, excluded.line())?;
            }
        }
    }
    sort.finish().map_err(failed)
}

/// Returns the row, or `None` if the line is not a valid row. Passes on any other error.
pub(crate) fn sound<T>(row: Result<T, ReadError>) -> Result<Option<T>, GatherError> {
    match row {
        Err(ReadError::Row { .. }) => Ok(None),
        row => Ok(Some(row?)),
    }
}

/// Collects URLs with several rows of `pages.jsonl` in one round.
#[derive(Default)]
struct RepeatedUrls {
    count: u64,
    first: Vec<TwiceSettledUrl>,
}

impl RepeatedUrls {
    fn note(&mut self, url: &str, group: &[SortedLine], workers: &[WorkerDirectory]) {
        let pages: Vec<&SortedLine> = group.iter().filter(|entry| entry.is_page).collect();
        let rounds: BTreeSet<&str> = pages.iter().map(|page| page.detail.as_str()).collect();
        if rounds.len() == pages.len() {
            return;
        }
        let place = |entry: &SortedLine| {
            let name = workers.get(entry.worker).map_or("", WorkerDirectory::name);
            (name.to_owned(), entry.line)
        };
        for pair in pages.windows(2) {
            if let [one, other] = pair
                && one.detail == other.detail
            {
                self.count += 1;
                if self.first.len() < MAX_NAMED {
                    self.first.push(TwiceSettledUrl {
                        url: url.to_owned(),
                        round: one.detail.parse().unwrap_or_default(),
                        one: place(one),
                        other: place(other),
                    });
                }
            }
        }
    }

    fn refuse(self) -> Result<(), GatherError> {
        match self.count {
            0 => Ok(()),
            count => Err(GatherError::SettledTwice {
                count,
                first: self.first,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SortedLine, duplicates_in};

    fn check(rows: &[(&str, usize)], left_out: &[usize]) {
        let group: Vec<SortedLine> = rows
            .iter()
            .zip(1..)
            .map(|((detail, worker), line)| SortedLine {
                is_page: *detail == "page",
                detail: (*detail).to_owned(),
                worker: *worker,
                line,
            })
            .collect();
        let duplicates: Vec<usize> = duplicates_in(&group)
            .map(|(_, line)| line as usize - 1)
            .collect();
        assert_eq!(duplicates, left_out, "{rows:?}");
    }

    #[test]
    fn the_current_worker_of_a_host_lists_its_set_aside_urls() {
        check(&[("page", 0), ("depth", 1)], &[1]);
        check(&[("depth", 0), ("depth", 1)], &[1]);
        check(&[("depth", 0), ("robots", 1)], &[0]);
        check(&[("depth", 0), ("trap", 1)], &[]);
        // A page fetched in one round may be disallowed by robots.txt in a later round.
        check(&[("page", 0), ("robots", 1)], &[]);
        check(&[("robots", 0), ("robots", 1)], &[1]);
        // Repeated rows of a single worker are kept.
        check(&[("page", 0), ("depth", 0)], &[]);
        check(&[("robots", 0), ("robots", 0)], &[]);
    }
}
