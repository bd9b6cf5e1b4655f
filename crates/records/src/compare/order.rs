//! The order of a crawl's requests, as one number for each host.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crawl_archive::rows::RequestRow;

use super::OrderDifferences;

/// The order of requests, over all and by host: hashes, which grow with each request.
#[derive(Default)]
pub(super) struct Orders {
    all: DefaultHasher,
    hosts: BTreeMap<String, DefaultHasher>,
}

impl Orders {
    /// Takes the next request.
    pub(super) fn add(&mut self, row: &RequestRow) {
        let asked = (&row.purpose, &row.url, row.answer());
        asked.hash(&mut self.all);
        asked.hash(self.hosts.entry(row.host.clone()).or_default());
    }

    pub(super) fn compare(&self, other: &Orders) -> OrderDifferences {
        let is_same = |(host, order): &(&String, &DefaultHasher)| {
            let other = other.hosts.get(*host);
            other.is_some_and(|other| other.finish() == order.finish())
        };
        let hosts_same = self.hosts.iter().filter(is_same).count();
        let others = other.hosts.keys();
        let of_other_alone = others.filter(|host| !self.hosts.contains_key(*host));
        let hosts_other = self.hosts.len() - hosts_same + of_other_alone.count();
        OrderDifferences {
            is_same: self.all.finish() == other.all.finish(),
            hosts_same: hosts_same as u64,
            hosts_other: hosts_other as u64,
        }
    }
}
