//! The findings of an audit that is under way.

use std::collections::BTreeMap;

use super::{Breach, CitedRow, SETTLING_MS};

/// Breaches that are told one by one.
const MAX_TOLD: usize = 20;
/// Places without rows that are told apart.
const MAX_LOST: usize = 10_000;

/// Which file a line is of.
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

/// The judgement of one check.
#[derive(Debug)]
pub(super) enum CheckResult {
    Kept,
    /// It may have broken a rule: what is missing to tell.
    Undecided(&'static str),
    /// It broke this rule, in words.
    Broke(&'static str, String),
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) checked: BTreeMap<String, u64>,
    pub(super) undecided: BTreeMap<String, u64>,
    pub(super) by_rule: BTreeMap<String, u64>,
    pub(super) breaches: Vec<Breach>,
    /// The places where `requests.jsonl` lacks rows, as far as it was read, in the order of the
    /// lines.
    lost: Vec<Lost>,
}

/// Lines that are no rows, or the place behind the last one where the end was cut off. An answer
/// for a robots.txt may have stood there.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// The last of the lines.
    line: u64,
    /// When the request of the row before them ended: theirs ended no sooner.
    after: u64,
}

pub(super) const ROW_LOST: &str = "what a lost row of requests.jsonl may bear out";

impl Findings {
    /// A line is no row, and the request of the row before it ended then.
    pub(super) fn lose(&mut self, line: u64, after: u64) {
        // After a clock was set back, what was lost later may have ended sooner.
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
            // Told together they explain more, and never less.
            Some(last) if last.after == after || count == MAX_LOST => last.line = line,
            _ => self.lost.push(Lost { line, after }),
        }
    }

    /// Returns whether an answer for a robots.txt may be lost that was known at a moment, and that
    /// came behind the line of another one; none: behind the first line.
    pub(super) fn lacks_answer(&self, behind: Option<u64>, moment: u64) -> bool {
        let first = self.lost.partition_point(|lost| Some(lost.line) <= behind);
        let first = self.lost.get(first);
        first.is_some_and(|lost| lost.after <= moment.saturating_add(SETTLING_MS))
    }

    /// Counts a check that was judged by the answer whose row is `behind`, unless a later one may
    /// be lost.
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

    /// Something was held against a rule, and whether it broke it could be told.
    pub(super) fn checked(&mut self, what: &str) {
        count(&mut self.checked, what);
    }

    /// Something broke a rule, or may have: what is missing to tell.
    pub(super) fn undecided(&mut self, why: &str) {
        count(&mut self.undecided, why);
    }

    /// Counts what was judged; `what` is the kind of check.
    pub(super) fn settle(
        &mut self,
        what: &str,
        host: &str,
        judged: CheckResult,
        rows: &[(Source, u64)],
    ) {
        match judged {
            CheckResult::Kept => self.checked(what),
            CheckResult::Undecided(why) => self.undecided(why),
            CheckResult::Broke(rule, words) => {
                self.checked(what);
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
        if self.breaches.len() < MAX_TOLD {
            let mut rows = rows.to_vec();
            // The answer that names a pace may itself be the request before.
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

fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    match counts.get_mut(what) {
        Some(count) => *count += 1,
        None => {
            counts.insert(what.to_owned(), 1);
        }
    }
}
