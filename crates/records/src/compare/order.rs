//! The order of a crawl's requests, as one number for each host.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use super::OrderDifferences;
use crate::error::RecordsError;
use crate::rows::requests;

/// The order of requests, over all and by host: hashes, which grow with each request.
pub(super) struct Orders {
    all: DefaultHasher,
    hosts: BTreeMap<String, DefaultHasher>,
}

impl Orders {
    pub(super) fn read(dir: &Path) -> Result<Orders, RecordsError> {
        let mut orders = Orders {
            all: DefaultHasher::new(),
            hosts: BTreeMap::new(),
        };
        let mut rows = requests(dir)?;
        while let Some(row) = rows.next_sound() {
            let row = row?;
            let asked = (&row.purpose, &row.url, row.answer());
            asked.hash(&mut orders.all);
            asked.hash(orders.hosts.entry(row.host).or_default());
        }
        Ok(orders)
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
