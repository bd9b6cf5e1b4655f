//! Results of checks: what was checked, and the rules that were broken (breaches).

use anyhow::{Result, ensure};

/// Counts of what was checked.
#[derive(Default)]
pub(super) struct CheckedCounts {
    pub(super) pages: u64,
    /// Pages that scripts build and that were rendered.
    pub(super) rendered: u64,
    pub(super) requests: u64,
    /// Requests for a URL that was requested before.
    pub(super) repeated: u64,
    /// Repeated requests that were needed only because the earlier answer, which would have settled
    /// the URL, was lost to a kill.
    pub(super) lost: u64,
    pub(super) gaps: u64,
    /// Gaps between two requests during which the crawler was killed.
    pub(super) across: u64,
    pub(super) waits: u64,
    /// Late requests by workers that resumed after a freeze. Other workers had taken their hosts
    /// during the freeze.
    pub(super) late: u64,
    pub(super) records: u64,
    /// Pages given up because they were being read at several kills in a row.
    pub(super) given_up: u64,
    /// Pages visited in later rounds.
    pub(super) visited_again: u64,
    /// Pages of the first rounds that are in the search index. Counts all pages, even if several
    /// have the same text.
    pub(super) indexed: u64,
}

impl CheckedCounts {
    pub(super) fn add(&mut self, more: &CheckedCounts) {
        self.pages += more.pages;
        self.rendered += more.rendered;
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

/// The breaches (broken rules), one per line.
#[derive(Default)]
pub(super) struct BrokenRules(Vec<String>);

/// Maximum number of breaches in an error message.
const SHOWN: usize = 20;

impl BrokenRules {
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
