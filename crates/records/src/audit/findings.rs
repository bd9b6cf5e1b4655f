//! The findings of an audit in progress.

use std::collections::BTreeMap;

use super::{Breach, CitedRow, SETTLING_MS};

/// Maximum number of breaches listed individually.
const MAX_LISTED: usize = 20;
/// Maximum number of places with lost rows that `crawl audit` tells apart.
/// Beyond the limit: counted as one.
const MAX_LOST: usize = 10_000;

/// The row file of a line number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Requests,
    Pages,
    Excluded,
}

impl Source {
    pub(super) fn name(self) -> &'static str {
        match self {
            Source::Requests => "requests.jsonl",
            Source::Pages => "pages.jsonl",
            Source::Excluded => "excluded.jsonl",
        }
    }
}

/// The result of one check.
#[derive(Debug)]
pub(super) enum CheckResult {
    Kept,
    /// A rule may be broken. The text says what information is missing to decide.
    Undecided(&'static str),
    /// This rule is broken. The text describes the breach.
    Broke(&'static str, String),
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) checked: BTreeMap<String, u64>,
    pub(super) undecided: BTreeMap<String, u64>,
    pub(super) by_rule: BTreeMap<String, u64>,
    pub(super) breaches: Vec<Breach>,
    /// Places where `requests.jsonl` lacks rows, in line order.
    lost: Vec<Lost>,
}

/// A place where rows are missing: malformed lines, or the end of the file if later rows are
/// missing. One of the missing rows may have been a robots.txt response.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// The last malformed line at this place.
    line: u64,
    /// When the request in the previous row ended. The lost requests ended no earlier.
    after: u64,
}

pub(super) const ROW_LOST: &str = "what a lost row of requests.jsonl may bear out";

impl Findings {
    /// Records that `line` is malformed. `after` is when the request in the previous row ended.
    pub(super) fn lose(&mut self, line: u64, after: u64) {
        // If the clock was set back, lower the times of earlier places, so that `lost` stays in the
        // order of times.
        for lost in self
            .lost
            .iter_mut()
            .rev()
            .take_while(|lost| lost.after > after)
        {
            lost.after = after;
        }
        let count = self.lost.len();
        match self.lost.last_mut() {
            // Merging two lost places is safe: it can only leave more checks undecided.
            Some(last) if last.after == after || count == MAX_LOST => last.line = line,
            _ => self.lost.push(Lost { line, after }),
        }
    }

    /// Returns whether a robots.txt response may be lost that the crawl knew at `moment`. Counts
    /// only lines after line `behind`, or all lines if `behind` is `None`.
    pub(super) fn lacks_answer(&self, behind: Option<u64>, moment: u64) -> bool {
        let first = self.lost.partition_point(|lost| Some(lost.line) <= behind);
        let first = self.lost.get(first);
        first.is_some_and(|lost| lost.after <= moment.saturating_add(SETTLING_MS))
    }

    /// Makes a check undecided if a response may be lost that is later than the one at line
    /// `behind`.
    pub(super) fn unless_lost(
        &self,
        judged: CheckResult,
        behind: Option<u64>,
        moment: u64,
    ) -> CheckResult {
        match judged {
            CheckResult::Broke(..) if self.lacks_answer(behind, moment) => {
                CheckResult::Undecided(ROW_LOST)
            }
            judged => judged,
        }
    }

    /// Counts a check that could be decided.
    pub(super) fn checked(&mut self, kind: &str) {
        count(&mut self.checked, kind);
    }

    /// Counts a check that could not be decided. The text says what information is missing.
    pub(super) fn undecided(&mut self, why: &str) {
        count(&mut self.undecided, why);
    }

    /// Counts the result of a check of this kind.
    pub(super) fn settle(
        &mut self,
        kind: &str,
        host: &str,
        judged: CheckResult,
        rows: &[(Source, u64)],
    ) {
        match judged {
            CheckResult::Kept => self.checked(kind),
            CheckResult::Undecided(why) => self.undecided(why),
            CheckResult::Broke(rule, words) => {
                self.checked(kind);
                self.breach(rule, host, words, None, rows);
            }
        }
    }

    pub(super) fn breach(
        &mut self,
        rule: &str,
        host: &str,
        what: String,
        asked_and_kept: Option<(u64, u64)>,
        rows: &[(Source, u64)],
    ) {
        count(&mut self.by_rule, rule);
        if self.breaches.len() < MAX_LISTED {
            let mut rows = rows.to_vec();
            // The row may be cited twice: the response that demands a delay may also be the
            // previous request.
            rows.dedup();
            self.breaches.push(Breach {
                rule: rule.to_owned(),
                host: host.to_owned(),
                what,
                asked_ms: asked_and_kept.map(|(asked, _)| asked),
                kept_ms: asked_and_kept.map(|(_, kept)| kept),
                rows: rows.iter().map(|row| CitedRow::of(*row)).collect(),
            });
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, kind: &str) {
    match counts.get_mut(kind) {
        Some(count) => *count += 1,
        None => {
            counts.insert(kind.to_owned(), 1);
        }
    }
}
