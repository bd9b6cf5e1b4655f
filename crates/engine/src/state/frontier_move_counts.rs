//! Counts the URLs, hosts and other state that move when a crawl changes frontiers.

use crawl_frontier::parts::{CommittedUrlCounts, CrawlTransferItem};
use crawl_frontier::{FjallFrontier, Frontier as _};

/// The numbers of records that moved when a crawl changed frontiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedRecordCounts {
    /// The number of URLs in each state.
    pub states: CommittedUrlCounts,
    /// The number of hosts with stored state.
    pub hosts: u64,
    /// The number of robots.txt copies.
    pub robots: u64,
    /// The number of stored visits.
    pub visits: u64,
}

impl MovedRecordCounts {
    /// Adds a stored record to the counts.
    pub(super) fn count(&mut self, part: &CrawlTransferItem) {
        match part {
            CrawlTransferItem::Host { .. } => self.hosts += 1,
            CrawlTransferItem::Robots { .. } => self.robots += 1,
            CrawlTransferItem::Visit(_) => self.visits += 1,
            CrawlTransferItem::Url { .. } | CrawlTransferItem::Meta { .. } => {}
        }
    }
}

/// Returns the number of URLs in each state. Leased URLs are counted as pending.
pub(super) fn states(frontier: &FjallFrontier) -> CommittedUrlCounts {
    let counts = frontier.counts();
    CommittedUrlCounts {
        pending: counts.pending + counts.leased,
        deferred: counts.deferred,
        fetched: counts.fetched,
        failed: counts.failed,
        excluded: counts.excluded,
    }
}
