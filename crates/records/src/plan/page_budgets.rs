//! Which budgets and samples limit the pages that a crawl fetches from its hosts.

use std::collections::BTreeMap;

use crawl_sample::{SampleDesign, StratumRule};
use crawl_weburl::{HostKey, HostPatternMap};

/// Maximum pages of hosts, of groups of hosts, and of the crawl.
#[derive(Clone, Debug, Default)]
pub struct PageBudgets {
    /// Maximum pages of each host. `None` is unlimited.
    pub per_host: Option<u64>,
    /// Maximum pages of single hosts, in place of `per_host`. If the value is `None`, `per_host`
    /// applies.
    pub per_site: HostPatternMap<Option<u64>>,
    /// Groups of hosts with a shared budget. Each host's own budget applies too.
    pub groups: HostPatternMap<GroupPageBudget>,
    /// Maximum pages of the whole crawl. `None` is unlimited.
    pub total: Option<u64>,
    /// The sample that the crawl draws. `None` if it fetches all pages. Only samples by host and by
    /// crawl limit the pages: the other strata are unknown before the crawl.
    pub sample: Option<SampleDesign>,
}

/// Maximum pages that the hosts of a group share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPageBudget {
    /// The unique name of the group.
    pub name: String,
    /// Maximum pages. `None` is unlimited.
    pub max_pages: Option<u64>,
}

/// A host as a planning run found it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownHost<'a> {
    /// The host key.
    pub(super) host: &'a str,
    /// Known pages that may be fetched, including seeds.
    pub(super) pages: u64,
    /// Seeds of the crawl.
    pub(super) seeds: u64,
    /// Sitemaps that were read. Each counts as a page against every budget.
    pub(super) sitemaps: u64,
}

impl PageBudgets {
    /// Returns the number of pages to fetch from each host, in order. A crawl fetches from all
    /// hosts at the same time, so each host gets an equal share of the budget of its group and of
    /// the crawl, or all its pages if they are fewer.
    pub(super) fn pages(&self, hosts: &[KnownHost<'_>]) -> Vec<u64> {
        let mut pages = self.drawn(hosts);
        let mut by_group: BTreeMap<&str, (u64, Vec<usize>)> = BTreeMap::new();
        for (place, known) in hosts.iter().enumerate() {
            let host = HostKey::parse(known.host).ok();
            let own = host.as_ref().and_then(|host| self.per_site.find(host));
            if let Some(budget) = own.and_then(|(_, budget)| *budget).or(self.per_host) {
                pages[place] = pages[place].min(budget.saturating_sub(known.sitemaps));
            }
            let group = host.as_ref().and_then(|host| self.groups.find(host));
            if let Some((_, GroupPageBudget { name, max_pages })) = group
                && let Some(budget) = *max_pages
            {
                let (_, places) = by_group.entry(name).or_insert((budget, Vec::new()));
                places.push(place);
            }
        }
        for (budget, places) in by_group.into_values() {
            share(budget, places, hosts, &mut pages);
        }
        if let Some(budget) = self.total {
            share(budget, (0..hosts.len()).collect(), hosts, &mut pages);
        }
        pages
    }

    /// Returns how many pages of each host the sample contains, in order, and adds the pages that
    /// the crawl reads to find the pages to draw from: seeds if the frame depth is 1, all known
    /// pages if it is higher, because sitemaps list pages of depth 1.
    fn drawn(&self, hosts: &[KnownHost<'_>]) -> Vec<u64> {
        let Some(sample) = &self.sample else {
            return hosts.iter().map(|host| host.pages).collect();
        };
        let known: u64 = hosts.iter().map(|host| host.pages).sum();
        let to_draw = sample.pages as u64;
        let mut known_before = 0;
        let pages = hosts.iter().map(|host| {
            let drawn = match sample.by {
                StratumRule::Host => to_draw,
                // Every page is equally likely to be drawn. Rounding the sum over the hosts so far
                // makes the shares add up to the sample.
                StratumRule::Crawl if to_draw < known => {
                    let share =
                        |pages: u64| (pages as f64 * to_draw as f64 / known as f64).round() as u64;
                    let before = share(known_before);
                    known_before += host.pages;
                    share(known_before) - before
                }
                StratumRule::Crawl | StratumRule::Depth | StratumRule::Path => host.pages,
            };
            let read = match sample.frame_depth {
                0 => 0,
                1 => host.seeds,
                _ => host.pages,
            };
            host.pages.min(drawn.saturating_add(read))
        });
        pages.collect()
    }
}

/// Reduces the pages of the hosts at these places to equal shares of a budget, which pays for their
/// sitemaps too.
fn share(budget: u64, mut places: Vec<usize>, hosts: &[KnownHost<'_>], pages: &mut [u64]) {
    let sitemaps: u64 = places.iter().map(|place| hosts[*place].sitemaps).sum();
    let mut budget = budget.saturating_sub(sitemaps);
    // Begin with the hosts that have the fewest pages. A host that doesn't use its whole share
    // leaves the rest to the hosts after it.
    places.sort_by_key(|place| pages[*place]);
    for (place, sharing) in places.iter().zip((1..=places.len() as u64).rev()) {
        pages[*place] = pages[*place].min(budget / sharing);
        budget -= pages[*place];
    }
}

#[cfg(test)]
mod tests {
    use crawl_sample::{SampleDesign, StratumRule};
    use crawl_weburl::HostPatternMap;

    use super::{GroupPageBudget, KnownHost, PageBudgets};

    /// Returns the hosts `a.example`, `b.example` .. with one seed and one sitemap each.
    fn with_sitemaps(pages: &[u64]) -> Vec<KnownHost<'static>> {
        let names = ["a.example", "b.example", "c.example"];
        let hosts = names.into_iter().zip(pages);
        hosts
            .map(|(host, pages)| KnownHost {
                host,
                pages: *pages,
                seeds: 1,
                sitemaps: 1,
            })
            .collect()
    }

    #[test]
    fn sitemaps_use_up_every_budget_of_pages() {
        let all = PageBudgets::default();
        assert_eq!(all.pages(&with_sitemaps(&[60, 3])), [60, 3]);
        let per_host = PageBudgets {
            per_host: Some(10),
            ..PageBudgets::default()
        };
        assert_eq!(per_host.pages(&with_sitemaps(&[60, 3])), [9, 3]);
        let total = PageBudgets {
            total: Some(10),
            ..PageBudgets::default()
        };
        assert_eq!(total.pages(&with_sitemaps(&[60, 3])), [5, 3]);
        assert_eq!(total.pages(&with_sitemaps(&[60, 3, 60])), [2, 2, 3]);
        let none = PageBudgets {
            total: Some(1),
            ..PageBudgets::default()
        };
        assert_eq!(none.pages(&with_sitemaps(&[60, 3])), [0, 0]);
    }

    #[test]
    fn a_sample_has_its_drawn_pages_and_the_seeds_that_are_read_first() {
        let pages = |by, frame_depth, known: &[u64]| {
            let sample = SampleDesign {
                pages: 20,
                by,
                frame_depth,
                ..SampleDesign::default()
            };
            let budgets = PageBudgets {
                sample: Some(sample),
                ..PageBudgets::default()
            };
            budgets.pages(&with_sitemaps(known))
        };
        assert_eq!(pages(StratumRule::Host, 1, &[60, 3]), [21, 3]);
        assert_eq!(pages(StratumRule::Host, 0, &[60, 3]), [20, 3]);
        assert_eq!(pages(StratumRule::Host, 2, &[60, 3]), [60, 3]);
        assert_eq!(pages(StratumRule::Crawl, 0, &[60, 20]), [15, 5]);
        assert_eq!(pages(StratumRule::Crawl, 0, &[6, 2]), [6, 2]);
        assert_eq!(pages(StratumRule::Crawl, 0, &[50, 50, 50]), [7, 6, 7]);
        assert_eq!(pages(StratumRule::Path, 0, &[60, 3]), [60, 3]);
    }

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
            ..PageBudgets::default()
        };
        let pages_of = |known: &[(&'static str, u64)]| {
            let hosts = known.iter().map(|&(host, pages)| KnownHost {
                host,
                pages,
                seeds: 0,
                sitemaps: 0,
            });
            budgets.pages(&hosts.collect::<Vec<_>>())
        };
        for (host, known, expected) in [
            ("a.example", 60, 40),
            ("www.a.example", 30, 30),
            ("plain.a.example", 30, 10),
            ("b.example", 60, 10),
            ("c.example", 60, 10),
        ] {
            assert_eq!(pages_of(&[(host, known)]), [expected], "{host}");
        }
        let hosts = ["c.example", "b.example", "d.example", "e.example"];
        let pages = |known: [u64; 4]| pages_of(&hosts.into_iter().zip(known).collect::<Vec<_>>());
        assert_eq!(pages([60, 60, 3, 60]), [8, 10, 3, 9]);
        assert_eq!(pages([60, 60, 60, 60]), [6, 10, 7, 7]);
        assert_eq!(pages([1, 1, 1, 1]), [1, 1, 1, 1]);
    }
}
