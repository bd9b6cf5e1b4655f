//! The number of URLs that sitemaps may add.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crawl_weburl::HostKey;

/// The error of a sitemap with dropped URLs, and the name under which these URLs are counted.
pub(crate) const SITEMAP_LIMIT: &str = "sitemap_limit";

/// How many URLs the sitemaps of each host have added in this run. Shared by all reader threads.
#[derive(Clone, Debug)]
pub(crate) struct SitemapBudget {
    max: Option<u64>,
    taken: Arc<Mutex<HashMap<HostKey, u64>>>,
}

impl SitemapBudget {
    /// Allows at most `max` URLs from the sitemaps of one host.
    pub(crate) fn new(max: Option<u64>) -> SitemapBudget {
        SitemapBudget {
            max,
            taken: Arc::default(),
        }
    }

    /// Takes up to `wanted` URLs from the budget of a sitemap's host, and returns how many.
    pub(crate) fn take(&self, host: &HostKey, wanted: u64) -> u64 {
        let Some(max) = self.max else {
            return wanted;
        };
        // A panic can't leave the counts inconsistent.
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
        let budget = SitemapBudget::new(Some(5));
        let host = |name| HostKey::parse(name).unwrap();
        let clone = budget.clone();
        assert_eq!(budget.take(&host("a.example"), 3), 3);
        assert_eq!(clone.take(&host("a.example"), 3), 2);
        assert_eq!(budget.take(&host("a.example"), 1), 0);
        assert_eq!(budget.take(&host("b.example"), 9), 5);
        let unlimited = SitemapBudget::new(None);
        assert_eq!(unlimited.take(&host("a.example"), u64::MAX), u64::MAX);
    }
}
