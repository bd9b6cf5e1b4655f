//! Selects the rows of a round: the last visit to each URL up to that round, and the links found in
//! each of these visits.

use std::path::Path;

use crawl_archive::rows::{ExcludedRow, ExtractRow, LinkRow, PageRow};

use crate::broken_links::key;
use crate::error::RecordsError;
use crate::host_reports::LastRowLineSet;
use crate::row_file_reader::{RowFileReader, excluded, pages, round_of_last_run};

/// Selects rounds of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundSelection {
    /// The last visit to each URL.
    #[default]
    Last,
    /// The last visit to each URL up to this round, starting at 1.
    UpTo(u32),
    /// Every visit.
    All,
}

/// Iterates over the rows of `excluded.jsonl` that are still in force. A row is in force if no
/// later round visited or excluded its URL. A URL that becomes pending again has no
/// row, so it counts as excluded until it is visited. Takes as much memory as [`RoundRowFilter`].
#[derive(Debug)]
pub struct ExclusionsInForce {
    rows: RowFileReader<ExcludedRow>,
    /// `None` if the crawl has one round.
    view: Option<RoundRowFilter>,
}

impl ExclusionsInForce {
    /// Opens `excluded.jsonl` in `dir`. If the crawl may have several rounds, first reads
    /// `pages.jsonl` and `excluded.jsonl`.
    ///
    /// # Errors
    /// File system errors. Malformed lines are skipped.
    pub fn open(dir: &Path) -> Result<ExclusionsInForce, RecordsError> {
        let view = match round_of_last_run(dir)? {
            Some(1) => None,
            _ => Some(RoundRowFilter::read(dir, RoundSelection::Last)?),
        };
        Ok(ExclusionsInForce {
            rows: excluded(dir)?,
            view,
        })
    }

    /// Returns whether the file ends within a row.
    pub(crate) fn is_torn(&self) -> bool {
        self.rows.is_torn()
    }
}

impl Iterator for ExclusionsInForce {
    type Item = Result<ExcludedRow, RecordsError>;

    fn next(&mut self) -> Option<Result<ExcludedRow, RecordsError>> {
        loop {
            let row = self.rows.next()?;
            let line = self.rows.line();
            match (&row, &self.view) {
                (Ok(row), Some(view)) if !view.holds_excluded(line, row) => {}
                _ => return Some(row),
            }
        }
    }
}

/// Filters the rows of a crawl by round. Takes 32 bytes of memory per row of `pages.jsonl` if the
/// crawl has several rounds.
#[derive(Debug)]
pub struct RoundRowFilter {
    last_round: u32,
    /// The data that selects rows if the crawl has several rounds. `None` if all rows up to
    /// `last_round` are kept, because each URL has one visit or all visits are wanted.
    several: Option<SelectedRoundRows>,
}

#[derive(Debug)]
struct SelectedRoundRows {
    pages: LastRowLineSet,
    excluded: LastRowLineSet,
    /// The visited URLs, sorted by key.
    urls: Vec<UrlVisitRounds>,
}

#[derive(Clone, Copy, Debug)]
struct UrlVisitRounds {
    key: u64,
    /// The round of the URL's last visit.
    visited: u32,
    /// The round of the last visit that read the page's body.
    read: u32,
}

impl RoundRowFilter {
    /// Reads `pages.jsonl` and `excluded.jsonl` of the crawl in `dir`, unless all rounds are
    /// selected.
    ///
    /// # Errors
    /// [`RecordsError::NoRound`] if no row is from the selected round or a later one; file system
    /// errors. Malformed lines are skipped.
    pub fn read(dir: &Path, rounds: RoundSelection) -> Result<RoundRowFilter, RecordsError> {
        let newest = match rounds {
            RoundSelection::All => 1,
            RoundSelection::Last | RoundSelection::UpTo(_) => newest_round(dir)?,
        };
        let last_round = match rounds {
            RoundSelection::UpTo(round) if !(1..=newest).contains(&round) => {
                return Err(RecordsError::NoRound {
                    dir: dir.to_owned(),
                    round,
                    rounds: newest,
                });
            }
            RoundSelection::UpTo(round) => round,
            RoundSelection::Last | RoundSelection::All => u32::MAX,
        };
        let has_several = newest > 1;
        let several = has_several.then(|| SelectedRoundRows::read(dir, last_round));
        let several = several.transpose()?;
        Ok(RoundRowFilter {
            last_round,
            several,
        })
    }

    /// Returns whether to keep `row`, which is on this line of `pages.jsonl`.
    #[must_use]
    pub fn holds_page(&self, line: u64, row: &PageRow) -> bool {
        let several = self.several.as_ref();
        row.round <= self.last_round && several.is_none_or(|several| several.pages.holds(line))
    }

    /// Returns whether to keep a row of `links.jsonl`. A row is kept if it comes from the last
    /// visit that read its page. Rows written by older versions of the program have no round and
    /// are always kept.
    #[must_use]
    pub fn holds_link(&self, row: &LinkRow) -> bool {
        let Some(round) = row.round else { return true };
        let read = self
            .several
            .as_ref()
            .and_then(|several| several.url(&row.from));
        round <= self.last_round && read.is_none_or(|url| url.read == round)
    }

    /// Returns whether to keep a row of `extracts.jsonl`. A row is kept if it comes from the last
    /// visit that read its page.
    #[must_use]
    pub fn holds_extract(&self, row: &ExtractRow) -> bool {
        let read = self
            .several
            .as_ref()
            .and_then(|several| several.url(&row.url));
        row.round <= self.last_round && read.is_none_or(|url| url.read == row.round)
    }

    /// Returns whether to keep `row`, which is on this line of `excluded.jsonl`. A row is kept if
    /// no later round visited or excluded its URL.
    #[must_use]
    pub fn holds_excluded(&self, line: u64, row: &ExcludedRow) -> bool {
        let Some(round) = row.round else { return true };
        let is_last = self.several.as_ref().is_none_or(|several| {
            let later = several.url(&row.url).is_some_and(|url| url.visited > round);
            several.excluded.holds(line) && !later
        });
        round <= self.last_round && is_last
    }
}

impl SelectedRoundRows {
    fn read(dir: &Path, last_round: u32) -> Result<SelectedRoundRows, RecordsError> {
        let (mut lines, mut visits) = (Vec::new(), Vec::new());
        each(pages(dir)?, |line, row: PageRow| {
            if row.round <= last_round {
                let key = key(&row.url);
                lines.push((key, line));
                let reads = row.change.is_some() && !row.repeats_body();
                visits.push((key, row.round, reads));
            }
        })?;
        let pages = LastRowLineSet::of(lines);
        let mut lines = Vec::new();
        each(excluded(dir)?, |line, row: ExcludedRow| {
            if row.round.is_none_or(|round| round <= last_round) {
                lines.push((key(&row.url), line));
            }
        })?;
        visits.sort_unstable();
        let mut urls: Vec<UrlVisitRounds> = Vec::new();
        for (key, round, reads) in visits {
            match urls.last_mut().filter(|last| last.key == key) {
                Some(last) => {
                    last.visited = round;
                    last.read = if reads { round } else { last.read };
                }
                None => urls.push(UrlVisitRounds {
                    key,
                    visited: round,
                    read: round,
                }),
            }
        }
        urls.shrink_to_fit();
        Ok(SelectedRoundRows {
            pages,
            excluded: LastRowLineSet::of(lines),
            urls,
        })
    }

    fn url(&self, url: &str) -> Option<&UrlVisitRounds> {
        let key = key(url);
        let place = self.urls.binary_search_by_key(&key, |url| url.key).ok()?;
        self.urls.get(place)
    }
}

/// Returns the number of the newest round with rows, or 1 if there are no rows.
fn newest_round(dir: &Path) -> Result<u32, RecordsError> {
    let mut newest = 1;
    each(pages(dir)?, |_, row: PageRow| {
        newest = newest.max(row.round);
    })?;
    each(excluded(dir)?, |_, row: ExcludedRow| {
        newest = newest.max(row.round.unwrap_or(1));
    })?;
    Ok(newest)
}

fn each<T: serde::de::DeserializeOwned>(
    mut rows: RowFileReader<T>,
    mut each: impl FnMut(u64, T),
) -> Result<(), RecordsError> {
    while let Some(row) = rows.next_sound() {
        let row = row?;
        each(rows.line(), row);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{RoundRowFilter, RoundSelection};
    use crate::error::RecordsError;
    use crate::row_file_reader::{excluded, links, pages};

    fn page(url: &str, round: u32, change: Option<&str>) -> String {
        let change = change.map_or("null".to_owned(), |change| format!("\"{change}\""));
        format!(
            r#"{{"url":"{url}","status":200,"fetched_at":"2026-11-20T23:59:59.123Z","ms":1,"bytes":3,"content_type":null,"digest":null,"depth":0,"via":null,"title":null,"robots":null,"warc":null,"error":null,"round":{round},"change":{change}}}"#
        )
    }

    fn link(from: &str, to: &str, round: &str) -> String {
        format!(r#"{{"from":"{from}","to":"{to}","rel":null,"text":null{round}}}"#)
    }

    fn out(url: &str, round: u32) -> String {
        format!(
            r#"{{"url":"{url}","reason":"robots","rule":null,"line":null,"found_on":null,"round":{round}}}"#
        )
    }

    fn kept_rows(dir: &Path, rounds: RoundSelection) -> [Vec<String>; 3] {
        let view = RoundRowFilter::read(dir, rounds).unwrap();
        let mut kept_rows = [Vec::new(), Vec::new(), Vec::new()];
        let mut rows = pages(dir).unwrap();
        while let Some(row) = rows.next_sound() {
            let row = row.unwrap();
            if view.holds_page(rows.line(), &row) {
                kept_rows[0].push(format!("{} {}", row.url, row.round));
            }
        }
        let rows = links(dir).unwrap().map(Result::unwrap);
        let rows = rows.filter(|row| view.holds_link(row));
        kept_rows[1].extend(rows.map(|row| format!("{}>{}", row.from, row.to)));
        let mut rows = excluded(dir).unwrap();
        while let Some(row) = rows.next_sound() {
            let row = row.unwrap();
            if view.holds_excluded(rows.line(), &row) {
                kept_rows[2].push(format!("{} {}", row.url, row.round.unwrap_or(0)));
            }
        }
        kept_rows
    }

    #[test]
    fn the_last_visit_to_each_url_is_kept_with_its_links() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, lines: &[String]| {
            fs::write(dir.path().join(name), lines.join("\n") + "\n").unwrap();
        };
        write(
            "pages.jsonl",
            &[
                page("changes", 1, Some("new")),
                page("stays", 1, Some("new")),
                page("goes", 1, Some("new")),
                page("fails", 1, Some("new")),
                page("changes", 2, Some("changed")),
                page("stays", 2, Some("same")),
                page("goes", 2, Some("gone")),
                page("fails", 2, None),
                page("was-out", 2, Some("new")),
            ],
        );
        write(
            "links.jsonl",
            &[
                link("changes", "a", r#","round":1"#),
                link("stays", "a", r#","round":1"#),
                link("goes", "a", r#","round":1"#),
                link("fails", "a", r#","round":1"#),
                link("old", "a", ""),
                link("changes", "b", r#","round":2"#),
            ],
        );
        write(
            "excluded.jsonl",
            &[out("was-out", 1), out("is-out", 1), out("is-out", 2)],
        );
        let of = |texts: &[&str]| {
            texts
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>()
        };
        let last = kept_rows(dir.path(), RoundSelection::Last);
        assert_eq!(
            last[0],
            of(&["changes 2", "stays 2", "goes 2", "fails 2", "was-out 2"])
        );
        assert_eq!(last[1], of(&["stays>a", "fails>a", "old>a", "changes>b"]));
        assert_eq!(last[2], of(&["is-out 2"]));
        let first = kept_rows(dir.path(), RoundSelection::UpTo(1));
        assert_eq!(first[0], of(&["changes 1", "stays 1", "goes 1", "fails 1"]));
        let links = ["changes>a", "stays>a", "goes>a", "fails>a", "old>a"];
        assert_eq!(first[1], of(&links));
        assert_eq!(first[2], of(&["was-out 1", "is-out 1"]));
        let all = kept_rows(dir.path(), RoundSelection::All).map(|rows| rows.len());
        assert_eq!(all, [9, 6, 3]);
        for round in [0, 3] {
            let refused = RoundRowFilter::read(dir.path(), RoundSelection::UpTo(round));
            assert!(matches!(
                refused,
                Err(RecordsError::NoRound { rounds: 2, .. })
            ));
        }
    }
}
