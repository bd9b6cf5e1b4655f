//! Totals over the runs of a crawl, and how the pages of a round differ from their last visits.

use crawl_archive::rows::AfterCommits;
use serde::{Deserialize, Serialize};

/// Totals over all runs of a crawl. Durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Rows of `pages.jsonl`.
    pub pages: u64,
    /// The rows without an answer or with a status of 400 and above.
    pub failed: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Seeds, or the targets of their redirects, that answered with a page.
    pub seeds_fetched: u64,
    /// Settled writer messages, except states of hosts.
    #[serde(default)]
    pub messages: u64,
    /// The pages of this round, compared with their last visits.
    #[serde(default)]
    pub changes: Changes,
}

impl Totals {
    /// Returns the difference to earlier totals. `changes` always counts one round.
    pub(crate) fn since(&self, before: &Totals) -> Totals {
        Totals {
            pages: self.pages.saturating_sub(before.pages),
            failed: self.failed.saturating_sub(before.failed),
            bytes: self.bytes.saturating_sub(before.bytes),
            seeds_fetched: self.seeds_fetched.saturating_sub(before.seeds_fetched),
            messages: self.messages.saturating_sub(before.messages),
            changes: self.changes,
        }
    }

    /// Adds the totals of two workers.
    pub(crate) fn plus(self, other: Totals) -> Totals {
        Totals {
            pages: self.pages + other.pages,
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            seeds_fetched: self.seeds_fetched + other.seeds_fetched,
            messages: self.messages + other.messages,
            changes: self.changes.plus(other.changes),
        }
    }

    /// Returns the totals with which the next round begins.
    pub(crate) fn without_changes(self) -> Totals {
        Totals {
            changes: Changes::default(),
            ..self
        }
    }
}

impl Totals {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).unwrap_or_default()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Totals> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The commits so far that change queues. Encoded as a number that leases carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitPoint {
    /// Rows of `pages.jsonl`.
    pub(crate) pages: u64,
    /// Other messages of this run, except states of hosts.
    pub(crate) others: u64,
}

/// The bits of the number that count others. The higher bits count rows.
const OTHERS_BITS: u32 = 28;

impl CommitPoint {
    /// Returns the current point of a run that began with `start`.
    pub(crate) fn since(start: &Totals, now: &Totals) -> CommitPoint {
        let Totals {
            pages, messages, ..
        } = now.since(start);
        CommitPoint {
            pages: now.pages,
            others: messages.saturating_sub(pages),
        }
    }

    /// Returns the number of messages committed in all runs up to this point, for a run that began
    /// with `start`.
    pub(crate) fn messages(self, start: &Totals) -> u64 {
        start.messages + self.pages.saturating_sub(start.pages) + self.others
    }

    pub(crate) fn of(number: u64) -> CommitPoint {
        CommitPoint {
            pages: number >> OTHERS_BITS,
            others: number & ((1 << OTHERS_BITS) - 1),
        }
    }

    /// Returns the number. The count of others saturates at 268 million.
    pub(crate) fn number(self) -> u64 {
        let max = (1 << OTHERS_BITS) - 1;
        (self.pages << OTHERS_BITS) | self.others.min(max)
    }

    pub(crate) fn row(self) -> AfterCommits {
        AfterCommits {
            pages: self.pages,
            others: self.others,
        }
    }
}

/// The pages of a round, compared with their last visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Pages that did not exist before.
    pub new: u64,
    /// Pages that changed.
    pub changed: u64,
    /// Pages that did not change.
    pub same: u64,
    /// Pages that no longer exist.
    pub gone: u64,
    /// Pages without an answer, or with a status of 400 and above.
    #[serde(default)]
    pub broken: u64,
}

impl Changes {
    fn plus(self, other: Changes) -> Changes {
        Changes {
            new: self.new + other.new,
            changed: self.changed + other.changed,
            same: self.same + other.same,
            gone: self.gone + other.gone,
            broken: self.broken + other.broken,
        }
    }

    pub(crate) fn add(&mut self, change: Change) {
        let count = match change {
            Change::New => &mut self.new,
            Change::Changed => &mut self.changed,
            Change::Same => &mut self.same,
            Change::Gone => &mut self.gone,
        };
        *count += 1;
    }
}

/// The difference between a page and its last visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There was no page before.
    New,
    /// The page differs.
    Changed,
    /// The page is unchanged, by its digest or according to the server.
    Same,
    /// There was a page, and the server reports that it is gone.
    Gone,
}

impl Change {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Changed => "changed",
            Change::Same => "same",
            Change::Gone => "gone",
        }
    }
}
