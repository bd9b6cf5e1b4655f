//! The findings of an audit in progress.

use std::collections::BTreeMap;

use super::{CitedRow, RuleBreach, SETTLING_MS};

/// Maximum number of breaches listed individually.
const MAX_LISTED: usize = 20;
/// Maximum number of places with lost rows that `crawl audit` tells apart.
/// Beyond the limit: counted as one.
const MAX_LOST: usize = 10_000;

/// The row file that a line number refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CitedRowFile {
    Requests,
    Pages,
    Excluded,
}

impl CitedRowFile {
    pub(super) fn name(self) -> &'static str {
        match self {
            CitedRowFile::Requests => "requests.jsonl",
            CitedRowFile::Pages => "pages.jsonl",
            CitedRowFile::Excluded => "excluded.jsonl",
        }
    }
}

/// The result of one check.
#[derive(Debug)]
pub(super) enum AuditCheckResult {
    Kept,
    /// The rule may be broken. The text names the information that is missing to decide.
    Undecided(&'static str),
    /// A rule is broken. The first text is the name of the rule, and the second describes the
    /// breach.
    Broke(&'static str, String),
}

/// The findings of an audit in progress: counts of checks by rule, breaches, and missing rows.
#[derive(Debug, Default)]
pub(super) struct AuditFindings {
    pub(super) checked: BTreeMap<String, u64>,
    pub(super) undecided: BTreeMap<String, u64>,
    pub(super) by_rule: BTreeMap<String, u64>,
    pub(super) breaches: Vec<RuleBreach>,
    /// The gaps in `requests.jsonl` where rows are missing, in line order.
    gaps: Vec<MissingRows>,
}

/// A place in `requests.jsonl` where rows are missing: a group of malformed lines, or the end of a
/// file that was cut short. Any missing row may have been a robots.txt response.
#[derive(Clone, Copy, Debug)]
struct MissingRows {
    /// The number of the last malformed line of the gap.
    line: u64,
    /// When the request in the row before the gap ended, in milliseconds since 1970. The lost
    /// requests ended at that time or later.
    after: u64,
}

pub(super) const ROW_LOST: &str = "needs a lost row of requests.jsonl";

impl AuditFindings {
    /// Records that `line` is malformed. `after` is when the request in the row before it ended.
    pub(super) fn lose(&mut self, line: u64, after: u64) {
        // If the clock was set back, lower the times of earlier gaps so that `gaps` stays sorted by
        // time.
        for gap in self
            .gaps
            .iter_mut()
            .rev()
            .take_while(|gap| gap.after > after)
        {
            gap.after = after;
        }
        let count = self.gaps.len();
        match self.gaps.last_mut() {
            // Merge the new gap with the last one. This is safe, because it can only leave more
            // checks undecided.
            Some(last) if last.after == after || count == MAX_LOST => last.line = line,
            _ => self.gaps.push(MissingRows { line, after }),
        }
    }

    /// Returns whether a robots.txt response that the crawl knew at `moment` may be lost. Considers
    /// only lines after line `behind`, or all lines if `behind` is `None`.
    pub(super) fn lacks_answer(&self, behind: Option<u64>, moment: u64) -> bool {
        let first = self.gaps.partition_point(|gap| Some(gap.line) <= behind);
        let first = self.gaps.get(first);
        first.is_some_and(|gap| gap.after <= moment.saturating_add(SETTLING_MS))
    }

    /// Turns a breach into an undecided check if a lost row may contain the robots.txt response
    /// that allows the request. Considers only rows after line `behind` (all rows if `behind` is
    /// `None`), and only responses that the crawl knew at `moment`.
    pub(super) fn unless_lost(
        &self,
        judged: AuditCheckResult,
        behind: Option<u64>,
        moment: u64,
    ) -> AuditCheckResult {
        match judged {
            AuditCheckResult::Broke(..) if self.lacks_answer(behind, moment) => {
                AuditCheckResult::Undecided(ROW_LOST)
            }
            judged => judged,
        }
    }

    /// Counts a check that could be decided.
    pub(super) fn checked(&mut self, kind: &str) {
        count(&mut self.checked, kind);
    }

    /// Counts a check that could not be decided. `why` names the information that is missing.
    pub(super) fn undecided(&mut self, why: &str) {
        count(&mut self.undecided, why);
    }

    /// Counts the result of a check of the kind `kind`. Records a breach if the rule was broken.
    pub(super) fn settle(
        &mut self,
        kind: &str,
        host: &str,
        judged: AuditCheckResult,
        rows: &[(CitedRowFile, u64)],
    ) {
        match judged {
            AuditCheckResult::Kept => self.checked(kind),
            AuditCheckResult::Undecided(why) => self.undecided(why),
            AuditCheckResult::Broke(rule, words) => {
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
        rows: &[(CitedRowFile, u64)],
    ) {
        count(&mut self.by_rule, rule);
        if self.breaches.len() < MAX_LISTED {
            let mut rows = rows.to_vec();
            // A row may be cited twice: as the previous request, and as the response that demands
            // the delay.
            rows.dedup();
            self.breaches.push(RuleBreach {
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
