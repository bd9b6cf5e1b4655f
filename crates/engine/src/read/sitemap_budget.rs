//! The number of URLs that sitemaps may bring.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crawl_weburl::HostKey;

/// The error of a sitemap whose URLs were not all taken in, and the name that those left out
/// are counted under.
pub(crate) const SITEMAP_LIMIT: &str = "sitemap_limit";

/// The number of URLs that the sitemaps of each host brought in this run, for all reader threads.
#[derive(Clone, Debug)]
pub(crate) struct SitemapBudget {
    max: Option<u64>,
    taken: Arc<Mutex<HashMap<HostKey, u64>>>,
}

impl SitemapBudget {
    /// At most `max` URLs from the sitemaps of one host.
    pub(crate) fn new(max: Option<u64>) -> SitemapBudget {
        SitemapBudget {
            max,
            taken: Arc::default(),
        }
    }

    /// Takes as many of `wanted` as are left to the host of a sitemap, and says how many.
    pub(crate) fn take(&self, host: &HostKey, wanted: u64) -> u64 {
        let Some(max) = self.max else {
            return wanted;
        };
        // Counts are whole after any panic.
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.entry(host.clone()).or_default();
        let granted = wanted.min(max.saturating_sub(*taken));
        *taken += granted;
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_each_host_has_a_budget_of_its_own() {
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
