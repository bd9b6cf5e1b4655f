//! The budgets of pages that a crawl gives its hosts.

use std::collections::BTreeMap;

use crawl_weburl::{HostKey, HostPatternMap};

/// Maximum pages of hosts and of groups of hosts.
#[derive(Clone, Debug, Default)]
pub struct PageBudgets {
    /// Maximum pages of each host. `None` is unlimited.
    pub per_host: Option<u64>,
    /// Maximum pages of single hosts, in place of `per_host`. If the value is `None`, `per_host`
    /// applies.
    pub per_site: HostPatternMap<Option<u64>>,
    /// Groups of hosts with a shared budget. Each host's own budget applies too.
    pub groups: HostPatternMap<GroupPageBudget>,
}

/// Maximum pages that the hosts of a group share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPageBudget {
    /// The unique name of the group.
    pub name: String,
    /// Maximum pages. `None` is unlimited.
    pub max_pages: Option<u64>,
}

impl PageBudgets {
    /// Returns the number of pages to fetch from each host, in order, given the host's key and its
    /// number of known pages. A crawl fetches from all hosts of a group at the same time, so each
    /// host gets an equal share of the group's budget, or all its pages if they are fewer.
    pub(super) fn pages<'a>(&self, hosts: impl Iterator<Item = (&'a str, u64)>) -> Vec<u64> {
        let mut pages = Vec::new();
        let mut by_group: BTreeMap<&str, (u64, Vec<usize>)> = BTreeMap::new();
        for (place, (host, known)) in hosts.enumerate() {
            let host = HostKey::parse(host).ok();
            let own = host.as_ref().and_then(|host| self.per_site.find(host));
            let budget = own.and_then(|(_, budget)| *budget).or(self.per_host);
            pages.push(known.min(budget.unwrap_or(u64::MAX)));
            let group = host.as_ref().and_then(|host| self.groups.find(host));
            if let Some((_, GroupPageBudget { name, max_pages })) = group
                && let Some(budget) = *max_pages
            {
                let (_, places) = by_group.entry(name).or_insert((budget, Vec::new()));
                places.push(place);
            }
        }
        for (mut budget, mut places) in by_group.into_values() {
            // Begin with the hosts that have the fewest pages. A host that doesn't use its whole
            // share leaves the rest to the hosts after it.
            places.sort_by_key(|place| pages[*place]);
            for (place, sharing) in places.iter().zip((1..=places.len() as u64).rev()) {
                pages[*place] = pages[*place].min(budget / sharing);
                budget -= pages[*place];
            }
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::HostPatternMap;

    use super::{GroupPageBudget, PageBudgets};

    #[test]
    fn a_host_has_its_own_budget_and_a_share_of_its_groups_budget() {
        let mut per_site = HostPatternMap::default();
        per_site.insert("a.example", Some(40)).unwrap();
        per_site.insert("plain.a.example", None).unwrap();
        let mut groups = HostPatternMap::default();
        for host in ["c.example", "d.example", "e.example"] {
            let group = GroupPageBudget {
                name: "g".to_owned(),
                max_pages: Some(20),
            };
            groups.insert(host, group).unwrap();
        }
        let budgets = PageBudgets {
            per_host: Some(10),
            per_site,
            groups,
        };
        for (host, known, expected) in [
            ("a.example", 60, 40),
            ("www.a.example", 30, 30),
            ("plain.a.example", 30, 10),
            ("b.example", 60, 10),
            ("c.example", 60, 10),
        ] {
            let pages = budgets.pages([(host, known)].into_iter());
            assert_eq!(pages, [expected], "{host}");
        }
        let hosts = ["c.example", "b.example", "d.example", "e.example"];
        let pages = |known: [u64; 4]| budgets.pages(hosts.into_iter().zip(known));
        assert_eq!(pages([60, 60, 3, 60]), [8, 10, 3, 9]);
        assert_eq!(pages([60, 60, 60, 60]), [6, 10, 7, 7]);
        assert_eq!(pages([1, 1, 1, 1]), [1, 1, 1, 1]);
    }
}
