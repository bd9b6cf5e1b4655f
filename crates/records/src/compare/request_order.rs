//! The order of a crawl's requests, reduced to one hash per host.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crawl_archive::rows::RequestRow;

use super::RequestOrderComparison;

/// The order of all requests, and of the requests to each host. Each order is a hash that is
/// updated with each request.
#[derive(Default)]
pub(super) struct RequestOrderHashes {
    all: DefaultHasher,
    hosts: BTreeMap<String, DefaultHasher>,
}

impl RequestOrderHashes {
    /// Adds the next request.
    pub(super) fn add(&mut self, row: &RequestRow) {
        let request = (&row.purpose, &row.url, row.answer());
        request.hash(&mut self.all);
        request.hash(self.hosts.entry(row.host.clone()).or_default());
    }

    pub(super) fn compare(&self, other: &RequestOrderHashes) -> RequestOrderComparison {
        let is_same = |(host, order): &(&String, &DefaultHasher)| {
            let other_order = other.hosts.get(*host);
            other_order.is_some_and(|other_order| other_order.finish() == order.finish())
        };
        let hosts_same = self.hosts.iter().filter(is_same).count();
        let other_hosts = other.hosts.keys();
        let of_other_alone = other_hosts.filter(|host| !self.hosts.contains_key(*host));
        let hosts_other = self.hosts.len() - hosts_same + of_other_alone.count();
        RequestOrderComparison {
            is_same: self.all.finish() == other.all.finish(),
            hosts_same: hosts_same as u64,
            hosts_other: hosts_other as u64,
        }
    }
}
