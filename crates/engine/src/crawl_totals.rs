//! Totals over the runs of a crawl, and how the pages of a round differ from their last visits.

use crawl_archive::rows::CommitCountsBeforeRequest;
use serde::{Deserialize, Serialize};

/// Totals over all runs of a crawl. Stored in the frontier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CrawlTotals {
    /// Rows of `pages.jsonl`.
    pub pages: u64,
    /// The rows among `pages` that are sitemaps.
    #[serde(default)]
    pub sitemaps: u64,
    /// The rows for which [`PageRow::is_failed`](crawl_archive::rows::PageRow::is_failed) is true.
    pub failed: u64,
    /// The rows among `failed` that are sitemaps.
    #[serde(default)]
    pub failed_sitemaps: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Seeds that answered with a page, possibly after a redirect. In a crawl with a sample, also
    /// counts the pages of the sample.
    pub seeds_fetched: u64,
    /// Messages that the writer has committed, except states of hosts.
    #[serde(default)]
    pub messages: u64,
    /// How the pages of this round changed since their last visits.
    #[serde(default)]
    pub changes: PageChangeCounts,
}

impl CrawlTotals {
    /// Returns these totals minus earlier ones. `changes` are not subtracted, because they count
    /// one round only.
    pub(crate) fn since(&self, before: &CrawlTotals) -> CrawlTotals {
        CrawlTotals {
            pages: self.pages.saturating_sub(before.pages),
            sitemaps: self.sitemaps.saturating_sub(before.sitemaps),
            failed: self.failed.saturating_sub(before.failed),
            failed_sitemaps: self.failed_sitemaps.saturating_sub(before.failed_sitemaps),
            bytes: self.bytes.saturating_sub(before.bytes),
            seeds_fetched: self.seeds_fetched.saturating_sub(before.seeds_fetched),
            messages: self.messages.saturating_sub(before.messages),
            changes: self.changes,
        }
    }

    /// Adds the totals of two workers.
    pub(crate) fn plus(self, other: CrawlTotals) -> CrawlTotals {
        CrawlTotals {
            pages: self.pages + other.pages,
            sitemaps: self.sitemaps + other.sitemaps,
            failed: self.failed + other.failed,
            failed_sitemaps: self.failed_sitemaps + other.failed_sitemaps,
            bytes: self.bytes + other.bytes,
            seeds_fetched: self.seeds_fetched + other.seeds_fetched,
            messages: self.messages + other.messages,
            changes: self.changes.plus(other.changes),
        }
    }

    /// Returns the totals at the beginning of the next round, without changes.
    pub(crate) fn without_changes(self) -> CrawlTotals {
        CrawlTotals {
            changes: PageChangeCounts::default(),
            ..self
        }
    }
}

impl CrawlTotals {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).unwrap_or_default()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<CrawlTotals> {
        serde_json::from_slice(bytes).ok()
    }
}

/// A point in the sequence of commits: the number of pages and of other messages committed so far.
/// Each lease carries its commit point, encoded as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitPoint {
    /// Rows of `pages.jsonl`.
    pub(crate) pages: u64,
    /// Messages committed in this run, except pages and states of hosts.
    pub(crate) others: u64,
}

/// The number of low bits for `others`. The higher bits are for `pages`.
const OTHERS_BITS: u32 = 28;

impl CommitPoint {
    /// Returns the current commit point. `start` are the totals at the beginning of this run.
    pub(crate) fn since(start: &CrawlTotals, now: &CrawlTotals) -> CommitPoint {
        let CrawlTotals {
            pages, messages, ..
        } = now.since(start);
        CommitPoint {
            pages: now.pages,
            others: messages.saturating_sub(pages),
        }
    }

    /// Returns the number of messages committed in all runs up to this point. `start` are the
    /// totals at the beginning of this run.
    pub(crate) fn messages(self, start: &CrawlTotals) -> u64 {
        start.messages + self.pages.saturating_sub(start.pages) + self.others
    }

    pub(crate) fn of(number: u64) -> CommitPoint {
        CommitPoint {
            pages: number >> OTHERS_BITS,
            others: number & ((1 << OTHERS_BITS) - 1),
        }
    }

    /// Returns both counts encoded as one number. `others` saturates at 268 million.
    pub(crate) fn number(self) -> u64 {
        let max = (1 << OTHERS_BITS) - 1;
        (self.pages << OTHERS_BITS) | self.others.min(max)
    }

    pub(crate) fn row(self) -> CommitCountsBeforeRequest {
        CommitCountsBeforeRequest {
            pages: self.pages,
            others: self.others,
        }
    }
}

/// How the pages of a round changed since their last visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageChangeCounts {
    /// Pages that did not exist at the last visit.
    pub new: u64,
    /// Pages that changed.
    pub changed: u64,
    /// Pages that did not change.
    pub same: u64,
    /// Pages that no longer exist.
    pub gone: u64,
    /// Pages without a response, or with a status of 400 and above.
    #[serde(default)]
    pub broken: u64,
}

impl PageChangeCounts {
    fn plus(self, other: PageChangeCounts) -> PageChangeCounts {
        PageChangeCounts {
            new: self.new + other.new,
            changed: self.changed + other.changed,
            same: self.same + other.same,
            gone: self.gone + other.gone,
            broken: self.broken + other.broken,
        }
    }

    pub(crate) fn add(&mut self, change: PageChange) {
        let count = match change {
            PageChange::New => &mut self.new,
            PageChange::Changed => &mut self.changed,
            PageChange::Same => &mut self.same,
            PageChange::Gone => &mut self.gone,
        };
        *count += 1;
    }
}

/// How a page changed since its last visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageChange {
    /// The page did not exist before.
    New,
    /// The page differs from the last visit's.
    Changed,
    /// The page is unchanged, either by its digest or because the server answered 304.
    Same,
    /// There was a page, and now the server answers 404 or 410.
    Gone,
}

impl PageChange {
    pub(crate) fn name(self) -> &'static str {
        match self {
            PageChange::New => "new",
            PageChange::Changed => "changed",
            PageChange::Same => "same",
            PageChange::Gone => "gone",
        }
    }
}
