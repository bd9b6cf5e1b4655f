//! Limits the number of URLs that sitemaps may add.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crawl_weburl::HostKey;

/// The error of a sitemap with too many URLs. The dropped URLs are counted under the same name.
pub(crate) const SITEMAP_LIMIT: &str = "sitemap_limit";

/// Counts the URLs that each host's sitemaps have added in this run. All reader threads share the
/// counts.
#[derive(Clone, Debug)]
pub(crate) struct SitemapBudgetTracker {
    max: Option<u64>,
    taken: Arc<Mutex<HashMap<HostKey, u64>>>,
}

impl SitemapBudgetTracker {
    /// Allows at most `max` URLs from the sitemaps of one host.
    pub(crate) fn new(max: Option<u64>) -> SitemapBudgetTracker {
        SitemapBudgetTracker {
            max,
            taken: Arc::default(),
        }
    }

    /// Takes up to `wanted` URLs from the budget of a host's sitemaps. Returns the number of URLs
    /// taken.
    pub(crate) fn take(&self, host: &HostKey, wanted: u64) -> u64 {
        let Some(max) = self.max else {
            return wanted;
        };
        // Ignore a panic of another thread, since it can't have left the counts inconsistent.
        let mut counts = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(host.clone()).or_default();
        let granted = wanted.min(max.saturating_sub(*count));
        *count += granted;
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_own_budget() {
        let budget = SitemapBudgetTracker::new(Some(5));
        let host = |name| HostKey::parse(name).unwrap();
        let clone = budget.clone();
        assert_eq!(budget.take(&host("a.example"), 3), 3);
        assert_eq!(clone.take(&host("a.example"), 3), 2);
        assert_eq!(budget.take(&host("a.example"), 1), 0);
        assert_eq!(budget.take(&host("b.example"), 9), 5);
        let unlimited = SitemapBudgetTracker::new(None);
        assert_eq!(unlimited.take(&host("a.example"), u64::MAX), u64::MAX);
    }
}
