//! Budgets of groups of hosts, and how much of each is spent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crawl_weburl::{HostKey, HostPatternMap, Origin};

use crate::config::HostGroupBudget;

/// The budgets of all host groups, and how much of each is spent. A host is in at most one group.
#[derive(Debug, Default)]
pub(super) struct GroupBudgetTracker {
    groups: HostPatternMap<Arc<HostGroupBudget>>,
    /// Spending of each group, by group name.
    spent: BTreeMap<String, GroupSpending>,
}

/// Spending of all hosts of a group, over all runs of this round.
#[derive(Debug, Default)]
struct GroupSpending {
    pages: u64,
    bytes: u64,
    served: Duration,
    /// Number of leased URLs that may count as pages.
    leases: u64,
    /// Origins that got no permit because leased URLs of the group could use up its budget.
    turned_away: BTreeSet<Origin>,
}

/// Whether a group has budget left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupBudgetAvailability {
    HasRoom,
    /// Leased URLs use up the remaining budget. There is room again if one of these URLs doesn't
    /// count as a page.
    Leased,
    /// The budget with this name is spent.
    Spent(&'static str),
}

impl GroupBudgetTracker {
    pub(super) fn new(groups: &HostPatternMap<Arc<HostGroupBudget>>) -> GroupBudgetTracker {
        GroupBudgetTracker {
            groups: groups.clone(),
            spent: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn add(&mut self, host: &HostKey, pages: u64, bytes: u64, served: Duration) {
        if let Some(spent) = self.spending(host) {
            spent.pages += pages;
            spent.bytes += bytes;
            spent.served += served;
        }
    }

    /// Stops counting a page, because its URL is pending again.
    pub(super) fn unsettled(&mut self, host: &HostKey, bytes: u64) {
        if let Some(spent) = self.spending(host) {
            spent.pages = spent.pages.saturating_sub(1);
            spent.bytes = spent.bytes.saturating_sub(bytes);
        }
    }

    pub(super) fn leased(&mut self, host: &HostKey) {
        if let Some(spent) = self.spending(host) {
            spent.leases += 1;
        }
    }

    pub(super) fn lease_ended(&mut self, host: &HostKey) {
        if let Some(spent) = self.spending(host) {
            spent.leases = spent.leases.saturating_sub(1);
        }
    }

    /// Notes an origin that gets no permit because its group's budget is full.
    pub(super) fn turn_away(&mut self, origin: &Origin) {
        let host = origin.host_key();
        if self.state(&host) == GroupBudgetAvailability::Leased
            && let Some(spent) = self.spending(&host)
        {
            spent.turned_away.insert(origin.clone());
        }
    }

    /// Returns the origins of a host's group that got no permit before, if the group has room for
    /// another page now.
    pub(super) fn with_room_again(&mut self, host: &HostKey) -> BTreeSet<Origin> {
        match self.state(host) {
            GroupBudgetAvailability::HasRoom => {
                self.spending(host).map(|spent| &mut spent.turned_away)
            }
            GroupBudgetAvailability::Leased | GroupBudgetAvailability::Spent(_) => None,
        }
        .map(std::mem::take)
        .unwrap_or_default()
    }

    /// Returns whether a host's group has room for another page. Requests in flight don't count
    /// towards budgets of bytes and time, so spending may exceed these budgets.
    pub(super) fn state(&self, host: &HostKey) -> GroupBudgetAvailability {
        match self.group(host) {
            Some(group) => self.state_of(group),
            None => GroupBudgetAvailability::HasRoom,
        }
    }

    fn state_of(&self, group: &HostGroupBudget) -> GroupBudgetAvailability {
        let Some(spent) = self.spent.get(&group.name) else {
            return GroupBudgetAvailability::HasRoom;
        };
        let reached = |spent: u64, max: Option<u64>| max.is_some_and(|max| spent >= max);
        if reached(spent.pages, group.max_pages) {
            GroupBudgetAvailability::Spent("max-pages")
        } else if reached(spent.bytes, group.max_bytes) {
            GroupBudgetAvailability::Spent("max-bytes")
        } else if group.max_server_time.is_some_and(|max| spent.served >= max) {
            GroupBudgetAvailability::Spent("max-server-time")
        } else if reached(spent.pages + spent.leases, group.max_pages) {
            GroupBudgetAvailability::Leased
        } else {
            GroupBudgetAvailability::HasRoom
        }
    }

    /// Returns the name of the budget that a host's group has spent; `None` if it has spent none.
    pub(super) fn spent_by(&self, host: &HostKey) -> Option<String> {
        let group = self.group(host)?;
        match self.state_of(group) {
            GroupBudgetAvailability::Spent(budget) => Some(in_words(budget, &group.name)),
            GroupBudgetAvailability::HasRoom | GroupBudgetAvailability::Leased => None,
        }
    }

    /// Returns the name of a spent budget of any group; `None` if no group has spent one.
    pub(super) fn spent(&self) -> Option<String> {
        let spent = self.groups.iter().filter_map(|(_, group)| {
            let state = self.state_of(group);
            match state {
                GroupBudgetAvailability::Spent(budget) => Some(in_words(budget, &group.name)),
                GroupBudgetAvailability::HasRoom | GroupBudgetAvailability::Leased => None,
            }
        });
        spent.min()
    }

    /// Returns the name of a host's group, and how many pages the group may still fetch. `None` if
    /// the group's pages are not limited.
    pub(super) fn room(&self, host: &HostKey) -> Option<(&str, u64)> {
        let group = self.group(host)?;
        let (pages, leases) = self
            .spent
            .get(&group.name)
            .map_or((0, 0), |spent| (spent.pages, spent.leases));
        let room = match (self.state_of(group), group.max_pages) {
            (GroupBudgetAvailability::Spent(_), _) => 0,
            (_, Some(most)) => most.saturating_sub(pages + leases),
            (_, None) => return None,
        };
        Some((&group.name, room))
    }

    fn group(&self, host: &HostKey) -> Option<&Arc<HostGroupBudget>> {
        self.groups.find(host).map(|(_, group)| group)
    }

    fn spending(&mut self, host: &HostKey) -> Option<&mut GroupSpending> {
        let (_, group) = self.groups.find(host)?;
        if !self.spent.contains_key(&group.name) {
            self.spent
                .insert(group.name.clone(), GroupSpending::default());
        }
        self.spent.get_mut(&group.name)
    }
}

/// Names a group's budget in rows and messages, for example `max-pages of group news`.
fn in_words(budget: &str, group: &str) -> String {
    format!("{budget} of group {group}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_weburl::{HostKey, HostPatternMap, Origin, canonicalize};

    use super::{GroupBudgetAvailability, GroupBudgetTracker};
    use crate::config::HostGroupBudget;

    const SECOND: Duration = Duration::from_secs(1);

    fn origin(host: &str) -> Origin {
        let url = canonicalize(None, &format!("http://{host}/")).unwrap();
        url.origin()
    }

    fn host(name: &str) -> HostKey {
        HostKey::parse(name).unwrap()
    }

    /// Creates the budgets of group `g` with two domains, and of group `other` with one.
    fn budgets(change: fn(&mut HostGroupBudget)) -> GroupBudgetTracker {
        let mut group = HostGroupBudget {
            name: "g".to_owned(),
            ..HostGroupBudget::default()
        };
        change(&mut group);
        let group = Arc::new(group);
        let other = Arc::new(HostGroupBudget {
            name: "other".to_owned(),
            max_pages: Some(9),
            ..HostGroupBudget::default()
        });
        let mut table = HostPatternMap::default();
        table.insert("a.example", Arc::clone(&group)).unwrap();
        table.insert("b.example", group).unwrap();
        table.insert("c.example", other).unwrap();
        GroupBudgetTracker::new(&table)
    }

    #[test]
    fn hosts_of_a_group_share_each_of_its_budgets() {
        type Change = fn(&mut HostGroupBudget);
        let changes: [(&str, Change); 3] = [
            ("max-pages", |group| group.max_pages = Some(3)),
            ("max-bytes", |group| group.max_bytes = Some(300)),
            ("max-server-time", |group| {
                group.max_server_time = Some(3 * SECOND);
            }),
        ];
        for (name, change) in changes {
            let mut budgets = budgets(change);
            for page in ["a.example", "www.b.example", "a.example"] {
                assert_eq!(
                    budgets.state(&host(page)),
                    GroupBudgetAvailability::HasRoom,
                    "{name}"
                );
                assert_eq!(budgets.spent(), None);
                budgets.add(&host(page), 1, 100, SECOND);
                // `c.example` is not in group `g`.
                budgets.add(&host("c.example"), 1, 100, SECOND);
                budgets.add(&host("d.example"), 1, 100, SECOND);
            }
            let expected = Some(format!("{name} of group g"));
            for page in ["b.example", "x.a.example"] {
                assert_eq!(
                    budgets.state(&host(page)),
                    GroupBudgetAvailability::Spent(name)
                );
                assert_eq!(budgets.spent_by(&host(page)), expected);
            }
            assert_eq!(budgets.spent(), expected);
            for page in ["c.example", "d.example"] {
                assert_eq!(budgets.state(&host(page)), GroupBudgetAvailability::HasRoom);
                assert_eq!(budgets.spent_by(&host(page)), None);
            }
        }
    }

    #[test]
    fn leases_of_any_of_its_hosts_fill_a_group_until_they_end() {
        let mut budgets = budgets(|group| group.max_pages = Some(2));
        let (a, b) = (host("a.example"), host("b.example"));
        budgets.leased(&a);
        assert_eq!(budgets.room(&b), Some(("g", 1)));
        budgets.turn_away(&origin("b.example"));
        assert!(budgets.with_room_again(&b).is_empty(), "there was room");
        budgets.leased(&b);
        assert_eq!(budgets.state(&a), GroupBudgetAvailability::Leased);
        budgets.turn_away(&origin("b.example"));
        budgets.turn_away(&origin("x.a.example"));
        assert!(budgets.with_room_again(&a).is_empty());
        // The URL counts as a page. The page uses up what its lease had reserved, so the group
        // still has no room.
        budgets.lease_ended(&a);
        budgets.add(&a, 1, 0, SECOND);
        assert_eq!(budgets.state(&b), GroupBudgetAvailability::Leased);
        assert!(budgets.with_room_again(&a).is_empty());
        budgets.lease_ended(&b);
        let again: Vec<Origin> = budgets.with_room_again(&b).into_iter().collect();
        assert_eq!(again, [origin("b.example"), origin("x.a.example")]);
        assert!(budgets.with_room_again(&b).is_empty());
        budgets.add(&b, 1, 0, SECOND);
        assert_eq!(budgets.room(&a), Some(("g", 0)));
        budgets.turn_away(&origin("b.example"));
        budgets.unsettled(&b, 0);
        assert!(budgets.with_room_again(&b).is_empty(), "it was spent");
        assert_eq!(budgets.state(&a), GroupBudgetAvailability::HasRoom);
        assert_eq!(budgets.room(&host("d.example")), None);
    }
}
