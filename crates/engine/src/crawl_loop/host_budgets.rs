//! The budget of each host, and the part of it that is spent.

use std::collections::BTreeSet;
use std::mem::size_of;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};
use foldhash::{HashMap, HashMapExt as _};

use super::group_budgets::{GroupBudgets, GroupState};
use crate::config::{Budgets, HostBudget};
use crate::messages::StoredBudget;
use crate::summary::Ended;

/// The budgets of all hosts that this crawl knows.
pub(crate) struct HostBudgets {
    budgets: Budgets,
    by_host: HashMap<HostKey, HostSpending>,
    groups: GroupBudgets,
    /// Hosts whose budget is spent, and the name of the budget.
    full: HashMap<HostKey, &'static str>,
    /// Origins that found their host full while leases were out.
    turned_away: HashMap<HostKey, Vec<Origin>>,
    /// Time that servers spent on our requests, over all hosts and the runs of this round.
    served: Duration,
    /// The part of it that was spent before this run.
    served_before: Duration,
    /// The round in which it was spent: in another one it counts no more.
    round: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct HostSpending {
    /// Settled, over the runs of this round.
    pages: u64,
    /// Bytes of bodies, over the runs of this round.
    bytes: u64,
    /// Sum of response times, over the runs of this round.
    served: Duration,
    /// Leases that may still become pages.
    leases: u64,
    /// The start of this run's first request.
    since: Option<Tick>,
}

impl HostSpending {
    /// The same with what was stored, where that is more: what is known may be newer.
    fn at_least(self, stored: HostSpending) -> HostSpending {
        HostSpending {
            pages: self.pages.max(stored.pages),
            bytes: self.bytes.max(stored.bytes),
            served: self.served.max(stored.served),
            ..self
        }
    }
}

impl HostBudgets {
    pub(crate) fn new(budgets: &Budgets) -> HostBudgets {
        HostBudgets {
            budgets: budgets.clone(),
            by_host: HashMap::new(),
            groups: GroupBudgets::new(&budgets.groups),
            full: HashMap::new(),
            turned_away: HashMap::new(),
            served: Duration::ZERO,
            served_before: Duration::ZERO,
            round: 1,
        }
    }

    pub(crate) fn enter_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Takes up what was spent before; gives back what follows in the host's bytes.
    pub(crate) fn restore<'a>(&mut self, host: &HostKey, stored: &'a [u8]) -> &'a [u8] {
        let Some((account, rest)) = self.read(stored) else {
            return &[];
        };
        let known = self.by_host.entry(host.clone()).or_default();
        *known = known.at_least(account);
        rest
    }

    /// The bytes behind the budget in a host's stored state, without taking anything up.
    pub(crate) fn politeness<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        self.read(stored).map_or(&[], |(_, rest)| rest)
    }

    /// Other budgets hold from now on: what was spent counts against them. Those that several hosts
    /// share know it after [`HostBudgets::share`].
    pub(crate) fn set_budgets(&mut self, budgets: &Budgets) {
        self.budgets = budgets.clone();
        self.groups = GroupBudgets::new(&budgets.groups);
        self.full.clear();
        self.turned_away.clear();
    }

    /// Counts what all hosts spent, in earlier runs too, against the budgets that they share.
    /// `stored` are states of hosts, each of which may be older than what is known.
    pub(crate) fn share(&mut self, stored: impl Iterator<Item = (HostKey, Vec<u8>)>) {
        let mut accounts = self.by_host.clone();
        for (host, bytes) in stored {
            if let Some((account, _)) = self.read(&bytes) {
                let known = accounts.entry(host).or_default();
                *known = known.at_least(account);
            }
        }
        let of_run = self.served.saturating_sub(self.served_before);
        self.served = Duration::ZERO;
        self.groups = GroupBudgets::new(&self.budgets.groups);
        for (host, account) in accounts {
            let HostSpending {
                pages,
                bytes,
                served,
                leases,
                since: _,
            } = account;
            self.served += served;
            self.groups.add(&host, pages, bytes, served);
            (0..leases).for_each(|_| self.groups.leased(&host));
        }
        self.served_before = self.served.saturating_sub(of_run);
    }

    /// Returns whether there is a budget that several hosts share, so that what earlier runs spent
    /// on each counts from the start.
    pub(crate) fn are_shared(&self) -> bool {
        self.budgets.max_server_time.is_some() || !self.groups.is_empty()
    }

    /// A host left memory. Where hosts have budgets its account stays.
    pub(crate) fn forget(&mut self, host: &HostKey) {
        if !self.limit_hosts() {
            self.by_host.remove(host);
        }
    }

    /// Returns whether any host has a budget, by itself or with others.
    pub(crate) fn limit_hosts(&self) -> bool {
        !self.budgets.per_host.is_unlimited()
            || !self.budgets.per_site.is_empty()
            || !self.groups.is_empty()
    }

    /// The number of URLs that wait and that their hosts have room for.
    pub(crate) fn with_room(&self, waiting: Vec<(Origin, u64)>) -> u64 {
        let mut by_host: HashMap<HostKey, u64> = HashMap::new();
        for (origin, count) in waiting {
            *by_host.entry(origin.host_key()).or_default() += count;
        }
        let mut by_group: HashMap<&str, (u64, u64)> = HashMap::new();
        let mut alone = 0;
        for (host, count) in by_host {
            let count = count.min(self.room(&host));
            match self.groups.room(&host) {
                Some((group, room)) => by_group.entry(group).or_insert((room, 0)).1 += count,
                None => alone += count,
            }
        }
        let in_groups = by_group.into_values().map(|(room, count)| count.min(room));
        alone + in_groups.sum::<u64>()
    }

    /// Pages that a host may still be asked for. What budgets of bytes and time leave is known only
    /// once they are spent.
    fn room(&self, host: &HostKey) -> u64 {
        let HostSpending { pages, leases, .. } = self.account(host);
        match (self.full.contains_key(host), self.budget(host).max_pages) {
            (true, _) => 0,
            (false, Some(most)) => most.saturating_sub(pages + leases),
            (false, None) => u64::MAX,
        }
    }

    /// The durable form of a host's account.
    pub(crate) fn stored(&self, host: &HostKey) -> StoredBudget {
        let account = self.account(host);
        let served = u64::try_from(account.served.as_micros()).unwrap_or(u64::MAX);
        let numbers = [self.round.into(), account.pages, account.bytes, served];
        let mut stored = StoredBudget::default();
        for (bytes, number) in stored.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        stored
    }

    /// A request was answered, or failed, after so long.
    pub(crate) fn asked(&mut self, host: &HostKey, started: Tick, took: Duration, bytes: u64) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.since.get_or_insert(started);
        account.bytes += bytes;
        account.served += took;
        self.served += took;
        self.groups.add(host, 0, bytes, took);
    }

    pub(crate) fn leased(&mut self, host: &HostKey) {
        self.by_host.entry(host.clone()).or_default().leases += 1;
        self.groups.leased(host);
    }

    /// A lease became a page, or none. Returns the host's origins that were turned away and may have
    /// room now.
    pub(crate) fn lease_ended(&mut self, host: &HostKey) -> Vec<Origin> {
        if let Some(account) = self.by_host.get_mut(host) {
            account.leases = account.leases.saturating_sub(1);
        }
        self.groups.lease_ended(host);
        self.turned_away.remove(host).unwrap_or_default()
    }

    /// The origins of a host's group that were turned away and for which there is room again, once
    /// it is known whether a lease of that host became a page.
    pub(crate) fn with_room_again(&mut self, host: &HostKey) -> BTreeSet<Origin> {
        self.groups.with_room_again(host)
    }

    /// An origin has URLs for which its full host has no room.
    pub(crate) fn turn_away(&mut self, origin: &Origin) {
        self.groups.turn_away(origin);
        let host = origin.host_key();
        // Only what leases fill can have room again.
        if self.account(&host).leases > 0 {
            let origins = self.turned_away.entry(host).or_default();
            if !origins.contains(origin) {
                origins.push(origin.clone());
            }
        }
    }

    /// Leases of all hosts that may still become pages.
    #[cfg(test)]
    pub(super) fn all_leases(&self) -> u64 {
        self.by_host.values().map(|account| account.leases).sum()
    }

    /// Leases of a host that may still become pages.
    pub(crate) fn leases(&self, host: &HostKey) -> u64 {
        self.account(host).leases
    }

    pub(crate) fn settled(&mut self, host: &HostKey) {
        self.by_host.entry(host.clone()).or_default().pages += 1;
        self.groups.add(host, 1, 0, Duration::ZERO);
    }

    /// A URL that counted as settled is pending again.
    pub(crate) fn unsettled(&mut self, host: &HostKey) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.pages = account.pages.saturating_sub(1);
        self.groups.unsettled(host);
    }

    /// Returns whether a host's budget, or that of its group, leaves room for no further lease. What is in flight may
    /// still go beyond budgets of bytes and time.
    pub(crate) fn is_full(&mut self, now: Tick, host: &HostKey) -> bool {
        let budget = self.budget(host);
        let account = self.account(host);
        let reached = |spent: u64, max: Option<u64>| max.is_some_and(|max| spent >= max);
        let over = |spent: Duration, max: Option<Duration>| max.is_some_and(|max| spent >= max);
        let known = account
            .since
            .map_or(Duration::ZERO, |since| now.since(since));
        let spent = if reached(account.pages, budget.max_pages) {
            "max-pages-per-host"
        } else if reached(account.bytes, budget.max_bytes) {
            "max-bytes-per-host"
        } else if over(account.served, budget.max_server_time) {
            "max-server-time-per-host"
        } else if over(known, budget.max_time) {
            "max-time-per-host"
        } else {
            // Leases come back, so this is no end; and a group knows its own.
            return reached(account.pages + account.leases, budget.max_pages)
                || self.groups.state(host) != GroupState::HasRoom;
        };
        self.full.insert(host.clone(), spent);
        true
    }

    /// The name of the budget that a host has spent, by itself or with its group.
    pub(crate) fn spent_by(&self, host: &HostKey) -> Option<String> {
        let own = self.full.get(host).map(|budget| (*budget).to_owned());
        own.or_else(|| self.groups.spent_by(host))
    }

    /// The end of a crawl in which some host or group has spent its budget.
    pub(crate) fn spent(&self) -> Option<Ended> {
        let of_hosts = self.full.values().min().copied();
        of_hosts
            .map(Ended::Budget)
            .or_else(|| self.groups.spent().map(Ended::GroupBudget))
    }

    /// Time that servers spent on our requests, over all hosts and the runs of this round.
    pub(crate) fn served(&self) -> Duration {
        self.served
    }

    /// The same in microseconds, and what of it this run spent.
    pub(crate) fn served_micros(&self) -> (u64, u64) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let of_run = self.served.saturating_sub(self.served_before);
        (micros(self.served), micros(of_run))
    }

    fn read<'a>(&self, stored: &'a [u8]) -> Option<(HostSpending, &'a [u8])> {
        let (numbers, rest) = stored.split_first_chunk::<{ size_of::<StoredBudget>() }>()?;
        let number = |at: usize| {
            let bytes = numbers[8 * at..].first_chunk::<8>();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let account = match number(0) == u64::from(self.round) {
            true => HostSpending {
                pages: number(1),
                bytes: number(2),
                served: Duration::from_micros(number(3)),
                ..HostSpending::default()
            },
            false => HostSpending::default(),
        };
        Some((account, rest))
    }

    fn account(&self, host: &HostKey) -> HostSpending {
        self.by_host.get(host).copied().unwrap_or_default()
    }

    fn budget(&self, host: &HostKey) -> HostBudget {
        let usual = &self.budgets.per_host;
        match self.budgets.per_site.find(host) {
            None => *usual,
            Some((_, own)) => HostBudget {
                max_pages: own.max_pages.or(usual.max_pages),
                max_bytes: own.max_bytes.or(usual.max_bytes),
                max_server_time: own.max_server_time.or(usual.max_server_time),
                max_time: own.max_time.or(usual.max_time),
            },
        }
    }
}

#[cfg(test)]
mod tests;
