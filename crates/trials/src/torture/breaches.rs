//! What a check found: how much it checked, and what is wrong.

use anyhow::{Result, ensure};

/// The amount that was checked.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) pages: u64,
    pub(super) requests: u64,
    /// Requests for a URL that was asked for before.
    pub(super) repeated: u64,
    /// Answers among them that a kill took away: they would have settled their URL.
    pub(super) lost: u64,
    pub(super) gaps: u64,
    /// Gaps among them with a kill in between.
    pub(super) across: u64,
    pub(super) waits: u64,
    /// Requests that a worker sent as it went on after it was frozen, though others had its hosts.
    pub(super) late: u64,
    pub(super) records: u64,
    /// Pages that were being read at kill after kill, so that they were taken for what killed.
    pub(super) given_up: u64,
    /// Pages of later rounds.
    pub(super) visited_again: u64,
    /// Pages of first rounds that their search index holds, those with the same text among them.
    pub(super) indexed: u64,
}

impl Tally {
    pub(super) fn add(&mut self, more: &Tally) {
        self.pages += more.pages;
        self.requests += more.requests;
        self.repeated += more.repeated;
        self.lost += more.lost;
        self.gaps += more.gaps;
        self.across += more.across;
        self.waits += more.waits;
        self.late += more.late;
        self.records += more.records;
        self.given_up += more.given_up;
        self.visited_again += more.visited_again;
        self.indexed += more.indexed;
    }
}

/// The defects, each in a line.
#[derive(Default)]
pub(super) struct Breaches(Vec<String>);

/// Lines of what is wrong that are shown.
const SHOWN: usize = 20;

impl Breaches {
    pub(super) fn add(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    pub(super) fn end(self) -> Result<()> {
        let count = self.0.len();
        let shown = self.0.iter().take(SHOWN).map(String::as_str);
        let shown: Vec<_> = shown.collect();
        ensure!(count == 0, "{count} breaches:\n{}", shown.join("\n"));
        Ok(())
    }
}
