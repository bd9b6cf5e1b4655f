//! A cache of the states of recently seen URLs. Most links of a page lead to URLs that were seen
//! recently.

use crawl_frontier::Fingerprint;
use crawl_frontier::parts::CurrentState;
use foldhash::{HashMap, HashMapExt};

/// The committed states of recently seen URLs, in bounded memory.
///
/// For URLs of this worker's buckets, the states are never stale, because only the owner of a
/// bucket changes them. For other URLs, the cache has the states that result from the links that
/// this worker has sent.
pub(crate) struct RecentUrls {
    newer: HashMap<Fingerprint, CurrentState>,
    /// The older half, which is dropped as a whole once `newer` is full.
    older: HashMap<Fingerprint, CurrentState>,
    /// Maximum number of entries in each of the two maps.
    limit: usize,
}

impl RecentUrls {
    pub(crate) fn new(limit: usize) -> RecentUrls {
        RecentUrls {
            newer: HashMap::new(),
            older: HashMap::new(),
            limit: (limit / 2).max(1),
        }
    }

    /// Forgets all URLs.
    pub(crate) fn clear(&mut self) {
        self.newer.clear();
        self.older.clear();
    }

    pub(crate) fn get(&mut self, key: Fingerprint) -> Option<CurrentState> {
        if let Some(state) = self.newer.get(&key) {
            return Some(*state);
        }
        let state = self.older.remove(&key)?;
        self.put(key, state);
        Some(state)
    }

    pub(crate) fn put(&mut self, key: Fingerprint, state: CurrentState) {
        if self.newer.len() >= self.limit && !self.newer.contains_key(&key) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.older.remove(&key);
        self.newer.insert(key, state);
    }
}

#[cfg(test)]
mod tests {
    use crawl_frontier::FingerprintKey;
    use crawl_frontier::conformance::helpers::url;

    use super::*;

    #[test]
    fn recent_urls_are_held_and_older_ones_are_not() {
        let key = |n: usize| FingerprintKey::new([7; 16]).fingerprint(&url(&format!("/{n}")));
        let mut recent = RecentUrls::new(8);
        for n in 0..100 {
            recent.put(key(n), CurrentState::Settled);
            assert!(matches!(recent.get(key(0)), Some(CurrentState::Settled)));
            assert!(recent.newer.len() + recent.older.len() <= 8);
        }
        assert!(recent.get(key(99)).is_some() && recent.get(key(50)).is_none());
    }
}
