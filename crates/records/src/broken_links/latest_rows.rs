//! The last row of each URL.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use crawl_archive::rows::PageRow;

use crate::error::RecordsError;
use crate::row_file_reader::pages;

/// The last row of each URL in `pages.jsonl`, and the last row with the URL's body. Takes about 40
/// bytes per URL.
#[derive(Debug, Default)]
pub(crate) struct LatestRows {
    by_url: HashMap<u64, LatestRow>,
    round: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct LatestRow {
    /// The line of the URL's last row.
    line: u64,
    /// The line of the last row whose archive record contains the body; 0 if there is none.
    body: u64,
    outcome: LastOutcome,
    /// Whether the URL's last row allows commands to show or export its body.
    may_show_body: bool,
    /// Whether the URL is outside the scope, according to its last row.
    is_off_scope: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastOutcome {
    /// The row is broken ([`PageRow::is_broken`]), and its status is not 2xx.
    #[default]
    Broken,
    Redirect,
    Page,
}

impl LatestRows {
    /// Reads all rows of `pages.jsonl` in `dir` once.
    pub(crate) fn read(dir: &Path) -> Result<LatestRows, RecordsError> {
        let mut latest = LatestRows::default();
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next() {
            latest.add(&row?, rows.line());
        }
        Ok(latest)
    }

    /// Reads the rows of one round, or of all rounds. Skips malformed lines.
    pub(crate) fn of_round(dir: &Path, round: Option<u32>) -> Result<LatestRows, RecordsError> {
        let mut latest = LatestRows::default();
        let mut rows = pages(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            if round.is_none_or(|round| row.round == round) {
                latest.add(&row, rows.line());
            }
        }
        Ok(latest)
    }

    /// Adds the next row, which is on line `line` of `pages.jsonl`.
    pub(crate) fn add(&mut self, row: &PageRow, line: u64) {
        self.round = self.round.max(row.round);
        let last = self.by_url.entry(key(&row.url)).or_default();
        last.line = line;
        last.may_show_body = row.may_show_body();
        last.is_off_scope = row.hops_off_scope > 0;
        last.outcome = match row.status {
            // Even a broken body is a page: exports contain what was received.
            Some(200..=299) => LastOutcome::Page,
            _ if row.is_broken() => LastOutcome::Broken,
            Some(300..=303 | 305..=399) => LastOutcome::Redirect,
            _ => LastOutcome::Page,
        };
        let is_whole = row
            .status
            .is_some_and(|status| (200..300).contains(&status));
        if is_whole && !row.repeats_body() && !row.is_only_checked() {
            last.body = line;
        }
    }

    /// Returns the number of the last round. The first round is 1.
    pub(crate) fn round(&self) -> u32 {
        self.round.max(1)
    }

    /// Returns the number of URLs with a row.
    pub(crate) fn urls(&self) -> u64 {
        self.by_url.len() as u64
    }

    /// Returns whether a row is the last one of its URL.
    pub(crate) fn is_last(&self, row: &PageRow, line: u64) -> bool {
        self.get(&row.url).is_some_and(|last| last.line == line)
    }

    /// Returns whether the archive record of a row contains the page's current body.
    pub(crate) fn is_body(&self, row: &PageRow, line: u64) -> bool {
        let last = self.get(&row.url);
        last.is_some_and(|last| last.body == line && last.outcome == LastOutcome::Page)
    }

    /// Returns whether the last row of a URL allows commands to show or export its body
    /// ([`PageRow::may_show_body`]).
    pub(crate) fn may_show_body(&self, url: &str) -> bool {
        self.get(url).is_some_and(|last| last.may_show_body)
    }

    /// Returns whether a URL currently redirects.
    pub(crate) fn redirects(&self, url: &str) -> bool {
        let last = self.get(url);
        last.is_some_and(|last| last.outcome == LastOutcome::Redirect)
    }

    /// Returns whether the last row of a URL is a page.
    pub(crate) fn is_page(&self, url: &str) -> bool {
        let last = self.get(url);
        last.is_some_and(|last| last.outcome == LastOutcome::Page)
    }

    /// Returns whether a URL with a row is outside the scope.
    pub(crate) fn is_off_scope(&self, url: &str) -> bool {
        self.get(url).is_some_and(|last| last.is_off_scope)
    }

    /// Returns whether a URL has a row.
    pub(crate) fn knows(&self, url: &str) -> bool {
        self.get(url).is_some()
    }

    fn get(&self, url: &str) -> Option<&LatestRow> {
        self.by_url.get(&key(url))
    }
}

/// Hashes a URL. Collisions are rare: of three hundred thousand crawls with ten million URLs each,
/// about one has two URLs with the same hash.
pub(crate) fn key(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}
