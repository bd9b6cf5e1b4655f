//! The records of a frontier in memory, which forks share.

use std::sync::Arc;

use crawl_weburl::CanonicalUrl;
use foldhash::HashMap;

use crate::record::{RecordState, UrlRecord};

/// The record of each URL that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    /// As they were when the frontier was forked last.
    base: Arc<Base>,
    /// Those that have changed since.
    changed: HashMap<CanonicalUrl, UrlRecord>,
}

/// Records in the order of their sequence numbers, and the place of each among them.
#[derive(Clone, Debug, Default)]
struct Base {
    records: Vec<(CanonicalUrl, UrlRecord)>,
    places: HashMap<CanonicalUrl, usize>,
}

impl Records {
    pub(super) fn get(&self, url: &CanonicalUrl) -> Option<&UrlRecord> {
        let of_base = || self.base.get(url);
        self.changed.get(url).or_else(of_base)
    }

    /// Sets the record of a URL; the one before.
    pub(super) fn insert(&mut self, url: CanonicalUrl, record: UrlRecord) -> Option<UrlRecord> {
        let of_base = match self.changed.contains_key(&url) {
            true => None,
            false => self.base.get(&url).cloned(),
        };
        self.changed.insert(url, record).or(of_base)
    }

    /// Gathers all records where clones share them.
    pub(super) fn share(&mut self) {
        if self.changed.is_empty() {
            return;
        }
        let base = Arc::make_mut(&mut self.base);
        let changed = std::mem::take(&mut self.changed);
        base.records.retain(|(url, _)| !changed.contains_key(url));
        base.records.extend(changed);
        base.records
            .sort_unstable_by_key(|(_, record)| record.place.seq);
        let places = base.records.iter().enumerate();
        base.places = places.map(|(at, (url, _))| (url.clone(), at)).collect();
    }

    /// The URLs that are put aside, in the order of their admission, so that a simulation is the
    /// same each time.
    pub(super) fn deferred(&self) -> Vec<(&CanonicalUrl, &UrlRecord)> {
        let of_base = self.base.records.iter().map(|(url, record)| (url, record));
        let of_base = of_base.filter(|(url, _)| !self.changed.contains_key(*url));
        let all = of_base.chain(&self.changed);
        let mut found: Vec<_> = all
            .filter(|(_, record)| matches!(record.state, RecordState::Deferred(_)))
            .collect();
        // Stable: most are in their order.
        found.sort_by_key(|(_, record)| record.place.seq);
        found
    }
}

impl Base {
    fn get(&self, url: &CanonicalUrl) -> Option<&UrlRecord> {
        let place = self.places.get(url)?;
        self.records.get(*place).map(|(_, record)| record)
    }
}
