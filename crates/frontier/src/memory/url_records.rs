//! The records of a frontier in memory. Forks of the frontier share the records that have not
//! changed.

use std::sync::Arc;

use crawl_weburl::CanonicalUrl;
use foldhash::HashMap;

use crate::url_record::{UrlRecord, UrlRecordState};

/// The record of each known URL.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryUrlRecords {
    /// The records as of the last fork.
    base: Arc<SortedRecords>,
    /// Records changed since the last fork.
    changed: HashMap<CanonicalUrl, UrlRecord>,
}

/// Records sorted by sequence number, with the index of each URL's record.
#[derive(Clone, Debug, Default)]
struct SortedRecords {
    records: Vec<(CanonicalUrl, UrlRecord)>,
    places: HashMap<CanonicalUrl, usize>,
}

impl MemoryUrlRecords {
    pub(super) fn get(&self, url: &CanonicalUrl) -> Option<&UrlRecord> {
        let base_record = || self.base.get(url);
        self.changed.get(url).or_else(base_record)
    }

    /// Sets the record of a URL, and returns the previous one.
    pub(super) fn insert(&mut self, url: CanonicalUrl, record: UrlRecord) -> Option<UrlRecord> {
        let base_record = match self.changed.contains_key(&url) {
            true => None,
            false => self.base.get(&url).cloned(),
        };
        self.changed.insert(url, record).or(base_record)
    }

    /// Moves all changed records into `base`, so that clones share them.
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

    /// Returns all URLs, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&CanonicalUrl, &UrlRecord)> {
        let base_records = self.base.records.iter().map(|(url, record)| (url, record));
        let base_records = base_records.filter(|(url, _)| !self.changed.contains_key(*url));
        base_records.chain(&self.changed)
    }

    /// Returns the deferred URLs in the order of their admission, so that simulations are
    /// reproducible.
    pub(super) fn deferred(&self) -> Vec<(&CanonicalUrl, &UrlRecord)> {
        let mut deferred: Vec<_> = self
            .all()
            .filter(|(_, record)| matches!(record.state, UrlRecordState::Deferred(_)))
            .collect();
        // The stable sort is fast here, because most records are already in order.
        deferred.sort_by_key(|(_, record)| record.place.seq);
        deferred
    }
}

impl SortedRecords {
    fn get(&self, url: &CanonicalUrl) -> Option<&UrlRecord> {
        let place = self.places.get(url)?;
        self.records.get(*place).map(|(_, record)| record)
    }
}
