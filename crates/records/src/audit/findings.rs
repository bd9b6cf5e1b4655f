//! What an audit found, while it is under way.

use std::collections::BTreeMap;

use super::{Breach, Cited};

/// Breaches that are told one by one.
const MAX_TOLD: usize = 20;

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

/// What something came to by the rules.
#[derive(Debug)]
pub(super) enum Judged {
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
    /// `requests.jsonl` lacks rows, as far as it was read: an answer for a robots.txt may be among
    /// them.
    pub(super) lacks_rows: bool,
}

pub(super) const ROW_LOST: &str = "what a lost row of requests.jsonl may bear out";

impl Findings {
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
        judged: Judged,
        rows: &[(Source, u64)],
    ) {
        match judged {
            Judged::Kept => self.checked(what),
            Judged::Broke(..) if self.lacks_rows => self.undecided(ROW_LOST),
            Judged::Undecided(why) => self.undecided(why),
            Judged::Broke(rule, words) => {
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
                rows: rows.iter().map(|row| Cited::of(*row)).collect(),
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
