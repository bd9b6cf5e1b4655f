//! The counts of a crawl that is moved from one frontier to another.

use crawl_frontier::parts::{StoredPart, Totals};
use crawl_frontier::{FjallFrontier, Frontier as _};

/// Counts of a crawl that was moved from one frontier to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedCrawl {
    /// URLs in each state.
    pub states: Totals,
    /// Hosts of which something is kept.
    pub hosts: u64,
    /// Copies of robots.txt.
    pub robots: u64,
    /// Visits that are kept.
    pub visits: u64,
}

impl MovedCrawl {
    /// Counts a part.
    pub(super) fn count(&mut self, part: &StoredPart) {
        match part {
            StoredPart::Host { .. } => self.hosts += 1,
            StoredPart::Robots { .. } => self.robots += 1,
            StoredPart::Visit(_) => self.visits += 1,
            StoredPart::Url { .. } | StoredPart::Meta { .. } => {}
        }
    }
}

/// The number of URLs in each state. What is leased is pending.
pub(super) fn states(frontier: &FjallFrontier) -> Totals {
    let counts = frontier.counts();
    Totals {
        pending: counts.pending + counts.leased,
        deferred: counts.deferred,
        fetched: counts.fetched,
        failed: counts.failed,
        excluded: counts.excluded,
    }
}
