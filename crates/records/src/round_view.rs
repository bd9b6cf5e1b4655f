//! The rows that hold once a round is over: of each URL its last visit, and the links of that.

use std::path::Path;

use crawl_archive::rows::{ExcludedRow, LinkRow, PageRow};

use crate::broken::key;
use crate::error::RecordsError;
use crate::hosts::LastLines;
use crate::rows::{RowsOf, excluded, pages};

/// The rounds whose rows are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    /// Of each URL the last visit.
    #[default]
    Last,
    /// Of each URL the last visit up to this round, from 1.
    UpTo(u32),
    /// Every visit.
    All,
}

/// Tells which rows of a crawl hold. Pages of a crawl with several rounds take 40 bytes each.
#[derive(Debug)]
pub struct RoundView {
    most: u32,
    /// None where each URL has one visit, or all of them are wanted.
    several: Option<SeveralRounds>,
}

#[derive(Debug)]
struct SeveralRounds {
    pages: LastLines,
    excluded: LastLines,
    /// In the order of their keys.
    urls: Vec<VisitedUrl>,
}

#[derive(Clone, Copy, Debug)]
struct VisitedUrl {
    key: u64,
    /// The round of its last visit.
    visited: u32,
    /// The round of the visit whose links hold.
    read: u32,
}

impl RoundView {
    /// Reads `pages.jsonl` and `excluded.jsonl` of the crawl in `dir`, where it has several rounds.
    ///
    /// # Errors
    /// Errors of the file system. Lines that are no rows are skipped.
    pub fn read(dir: &Path, rounds: Rounds) -> Result<RoundView, RecordsError> {
        let most = match rounds {
            Rounds::UpTo(most) => most,
            Rounds::Last | Rounds::All => u32::MAX,
        };
        let has_several = rounds != Rounds::All && has_several_rounds(dir)?;
        let several = has_several.then(|| SeveralRounds::read(dir, most));
        let several = several.transpose()?;
        Ok(RoundView { most, several })
    }

    /// Returns whether a row of `pages.jsonl` in this line holds.
    #[must_use]
    pub fn holds_page(&self, line: u64, row: &PageRow) -> bool {
        let several = self.several.as_ref();
        row.round <= self.most && several.is_none_or(|it| it.pages.holds(line))
    }

    /// Returns whether a row of `links.jsonl` holds: it is of the visit that read its page last. One
    /// of an older version, which names no round, always does.
    #[must_use]
    pub fn holds_link(&self, row: &LinkRow) -> bool {
        let Some(round) = row.round else { return true };
        let read = self.several.as_ref().and_then(|it| it.url(&row.from));
        round <= self.most && read.is_none_or(|url| url.read == round)
    }

    /// Returns whether a row of `excluded.jsonl` in this line holds: the URL was not visited in a later
    /// round.
    #[must_use]
    pub fn holds_excluded(&self, line: u64, row: &ExcludedRow) -> bool {
        let Some(round) = row.round else { return true };
        let is_last = self.several.as_ref().is_none_or(|it| {
            let later = it.url(&row.url).is_some_and(|url| url.visited > round);
            it.excluded.holds(line) && !later
        });
        round <= self.most && is_last
    }
}

impl SeveralRounds {
    fn read(dir: &Path, most: u32) -> Result<SeveralRounds, RecordsError> {
        let (mut lines, mut visits) = (Vec::new(), Vec::new());
        each(pages(dir)?, |line, row: PageRow| {
            if row.round <= most {
                let key = key(&row.url);
                lines.push((key, line));
                let reads = row.change.is_some() && !row.repeats_body();
                visits.push((key, row.round, reads));
            }
        })?;
        let pages = LastLines::of(lines);
        let mut lines = Vec::new();
        each(excluded(dir)?, |line, row: ExcludedRow| {
            if row.round.is_none_or(|round| round <= most) {
                lines.push((key(&row.url), line));
            }
        })?;
        visits.sort_unstable();
        let mut urls: Vec<VisitedUrl> = Vec::new();
        for (key, round, reads) in visits {
            match urls.last_mut().filter(|last| last.key == key) {
                Some(last) => {
                    last.visited = round;
                    last.read = if reads { round } else { last.read };
                }
                None => urls.push(VisitedUrl {
                    key,
                    visited: round,
                    read: round,
                }),
            }
        }
        urls.shrink_to_fit();
        Ok(SeveralRounds {
            pages,
            excluded: LastLines::of(lines),
            urls,
        })
    }

    fn url(&self, url: &str) -> Option<&VisitedUrl> {
        let key = key(url);
        let place = self.urls.binary_search_by_key(&key, |url| url.key).ok()?;
        self.urls.get(place)
    }
}

fn has_several_rounds(dir: &Path) -> Result<bool, RecordsError> {
    let mut rows = pages(dir)?;
    while let Some(row) = rows.next_sound() {
        if row?.round > 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn each<T: serde::de::DeserializeOwned>(
    mut rows: RowsOf<T>,
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

    use super::{RoundView, Rounds};
    use crate::rows::{excluded, links, pages};

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

    fn held(dir: &Path, rounds: Rounds) -> [Vec<String>; 3] {
        let view = RoundView::read(dir, rounds).unwrap();
        let mut held = [Vec::new(), Vec::new(), Vec::new()];
        let mut rows = pages(dir).unwrap();
        while let Some(row) = rows.next_sound() {
            let row = row.unwrap();
            if view.holds_page(rows.line(), &row) {
                held[0].push(format!("{} {}", row.url, row.round));
            }
        }
        let rows = links(dir).unwrap().map(Result::unwrap);
        let rows = rows.filter(|row| view.holds_link(row));
        held[1].extend(rows.map(|row| format!("{}>{}", row.from, row.to)));
        let mut rows = excluded(dir).unwrap();
        while let Some(row) = rows.next_sound() {
            let row = row.unwrap();
            if view.holds_excluded(rows.line(), &row) {
                held[2].push(format!("{} {}", row.url, row.round.unwrap_or(0)));
            }
        }
        held
    }

    #[test]
    fn of_each_url_the_last_visit_holds_with_the_links_that_it_had_then() {
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
        let last = held(dir.path(), Rounds::Last);
        assert_eq!(
            last[0],
            of(&["changes 2", "stays 2", "goes 2", "fails 2", "was-out 2"])
        );
        assert_eq!(last[1], of(&["stays>a", "fails>a", "old>a", "changes>b"]));
        assert_eq!(last[2], of(&["is-out 2"]));
        let first = held(dir.path(), Rounds::UpTo(1));
        assert_eq!(first[0], of(&["changes 1", "stays 1", "goes 1", "fails 1"]));
        let links = ["changes>a", "stays>a", "goes>a", "fails>a", "old>a"];
        assert_eq!(first[1], of(&links));
        assert_eq!(first[2], of(&["was-out 1", "is-out 1"]));
        let all = held(dir.path(), Rounds::All).map(|rows| rows.len());
        assert_eq!(all, [9, 6, 3]);
    }
}
