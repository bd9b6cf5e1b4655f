//! Budgets of hosts, and how much of each is spent.

use std::collections::BTreeSet;
use std::mem::size_of;
use std::time::Duration;

use crawl_scheduler::Tick;
use crawl_weburl::{HostKey, Origin};
use foldhash::{HashMap, HashMapExt as _};

use super::host_group_budgets::{GroupBudgetAvailability, GroupBudgetTracker};
use crate::config::{CrawlBudgets, HostBudget};
use crate::messages::StoredHostSpending;
use crate::summary::EndReason;

/// The budgets and spending of all hosts that this crawl knows.
///
/// Records what a host spends: [`request_ended`](Self::request_ended) for each request,
/// [`leased`](Self::leased) and [`lease_ended`](Self::lease_ended) for each page request, and
/// [`settled`](Self::settled) or [`unsettled`](Self::unsettled) for each page.
/// [`is_full`](Self::is_full) decides about permits. Origins that get no permit are reported with
/// [`turn_away`](Self::turn_away), and returned later by `lease_ended` and
/// [`with_room_again`](Self::with_room_again). The spending is stored with the state of a host
/// ([`stored`](Self::stored), [`restore`](Self::restore)). Emits no effects.
pub(crate) struct HostBudgetTracker {
    budgets: CrawlBudgets,
    by_host: HashMap<HostKey, HostSpending>,
    groups: GroupBudgetTracker,
    /// Hosts that have spent a budget, with the name of that budget.
    full: HashMap<HostKey, &'static str>,
    /// Origins that got no permit because leased URLs could use up the budget.
    turned_away: HashMap<HostKey, Vec<Origin>>,
    /// Server response time, over all hosts and all runs of this round.
    served: Duration,
    /// The part of `served` that earlier runs spent.
    served_before: Duration,
    /// The number of this round. Stored spending of an earlier round does not count.
    round: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct HostSpending {
    /// Number of settled pages, over all runs of this round.
    pages: u64,
    /// Bytes of the bodies of settled pages, over all runs of this round.
    bytes: u64,
    /// Server response time, over all runs of this round.
    served: Duration,
    /// Number of leased URLs that may count as pages.
    leases: u64,
    /// The start of the host's first request in this run.
    since: Option<Tick>,
}

impl HostSpending {
    /// Returns, for each amount, the larger of this value and the stored one, because either may be
    /// the newer one.
    fn max_with(self, stored: HostSpending) -> HostSpending {
        HostSpending {
            pages: self.pages.max(stored.pages),
            bytes: self.bytes.max(stored.bytes),
            served: self.served.max(stored.served),
            ..self
        }
    }
}

impl HostBudgetTracker {
    pub(crate) fn new(budgets: &CrawlBudgets) -> HostBudgetTracker {
        HostBudgetTracker {
            budgets: budgets.clone(),
            by_host: HashMap::new(),
            groups: GroupBudgetTracker::new(&budgets.groups),
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

    /// Restores what a host has spent from its stored state. Returns the remaining bytes of the
    /// state, which describe the host's politeness.
    pub(crate) fn restore<'a>(&mut self, host: &HostKey, stored: &'a [u8]) -> &'a [u8] {
        let Some((account, rest)) = self.read(stored) else {
            return &[];
        };
        let spending = self.by_host.entry(host.clone()).or_default();
        *spending = spending.max_with(account);
        rest
    }

    /// Returns the part of a host's stored state that describes its politeness, without restoring
    /// what the host has spent.
    pub(crate) fn politeness<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        self.read(stored).map_or(&[], |(_, rest)| rest)
    }

    /// Replaces the budgets. Past spending counts towards the new budgets. Call
    /// [`share`](Self::share) next if hosts share a budget.
    pub(crate) fn set_budgets(&mut self, budgets: &CrawlBudgets) {
        self.budgets = budgets.clone();
        self.groups = GroupBudgetTracker::new(&budgets.groups);
        self.full.clear();
        self.turned_away.clear();
    }

    /// Counts the spending of all hosts, including earlier runs, towards the budgets that several
    /// hosts share. `stored` contains the stored states of hosts, which may be older than those in
    /// memory.
    pub(crate) fn share(&mut self, stored: impl Iterator<Item = (HostKey, Vec<u8>)>) {
        let mut accounts = self.by_host.clone();
        for (host, bytes) in stored {
            if let Some((account, _)) = self.read(&bytes) {
                let spending = accounts.entry(host).or_default();
                *spending = spending.max_with(account);
            }
        }
        let of_run = self.served.saturating_sub(self.served_before);
        self.served = Duration::ZERO;
        self.groups = GroupBudgetTracker::new(&self.budgets.groups);
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

    /// Returns whether several hosts share a budget. If so, the spending of all hosts must be known
    /// from the start of the run.
    pub(crate) fn are_shared(&self) -> bool {
        self.budgets.max_server_time.is_some() || !self.groups.is_empty()
    }

    /// Forgets a host that was evicted from memory. No effect if hosts have budgets, since then all
    /// spending is kept.
    pub(crate) fn forget(&mut self, host: &HostKey) {
        if !self.limit_hosts() {
            self.by_host.remove(host);
        }
    }

    /// Returns whether hosts or groups of hosts have budgets.
    pub(crate) fn limit_hosts(&self) -> bool {
        !self.budgets.per_host.is_unlimited()
            || !self.budgets.per_site.is_empty()
            || !self.groups.is_empty()
    }

    /// Returns how many of the pending URLs the budgets of their hosts still allow.
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

    /// Returns how many pages a host may still fetch. Budgets of bytes and time don't lower this
    /// number until they are spent.
    fn room(&self, host: &HostKey) -> u64 {
        let HostSpending { pages, leases, .. } = self.account(host);
        match (self.full.contains_key(host), self.budget(host).max_pages) {
            (true, _) => 0,
            (false, Some(most)) => most.saturating_sub(pages + leases),
            (false, None) => u64::MAX,
        }
    }

    /// Returns the durable form of a host's spending.
    pub(crate) fn stored(&self, host: &HostKey) -> StoredHostSpending {
        let account = self.account(host);
        let served = u64::try_from(account.served.as_micros()).unwrap_or(u64::MAX);
        let numbers = [self.round.into(), account.pages, account.bytes, served];
        let mut stored = StoredHostSpending::default();
        for (bytes, number) in stored.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        stored
    }

    pub(crate) fn request_ended(&mut self, host: &HostKey, started: Tick, took: Duration) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.since.get_or_insert(started);
        account.served += took;
        self.served += took;
        self.groups.add(host, 0, 0, took);
    }

    pub(crate) fn leased(&mut self, host: &HostKey) {
        self.by_host.entry(host.clone()).or_default().leases += 1;
        self.groups.leased(host);
    }

    /// Counts the end of a lease. Returns the host's origins that got no permit while the host's
    /// budget was full, and may get one now.
    pub(crate) fn lease_ended(&mut self, host: &HostKey) -> Vec<Origin> {
        if let Some(account) = self.by_host.get_mut(host) {
            account.leases = account.leases.saturating_sub(1);
        }
        self.groups.lease_ended(host);
        self.turned_away.remove(host).unwrap_or_default()
    }

    /// If the hosts that share a budget with this one have budget left again, returns the origins
    /// that got no permit while that budget was full. Call this once it is known whether a leased
    /// URL of the host counts as a page.
    pub(crate) fn with_room_again(&mut self, host: &HostKey) -> BTreeSet<Origin> {
        self.groups.with_room_again(host)
    }

    /// Notes an origin that gets no permit because its host's budget is full.
    pub(crate) fn turn_away(&mut self, origin: &Origin) {
        self.groups.turn_away(origin);
        let host = origin.host_key();
        // Room becomes free only if a leased URL turns out not to count as a page. Without a lease,
        // the origin would wait forever.
        if self.account(&host).leases > 0 {
            let origins = self.turned_away.entry(host).or_default();
            if !origins.contains(origin) {
                origins.push(origin.clone());
            }
        }
    }

    /// Returns the number of leased URLs of all hosts. Each may count as a page when it is settled.
    #[cfg(test)]
    pub(super) fn all_leases(&self) -> u64 {
        self.by_host.values().map(|account| account.leases).sum()
    }

    /// Returns the number of leased URLs of a host. Each may count as a page when it is settled.
    pub(crate) fn leases(&self, host: &HostKey) -> u64 {
        self.account(host).leases
    }

    /// Counts a page, and the bytes of its body.
    pub(crate) fn settled(&mut self, host: &HostKey, bytes: u64) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.pages += 1;
        account.bytes += bytes;
        self.groups.add(host, 1, bytes, Duration::ZERO);
    }

    /// Stops counting a page, because its URL is pending again.
    pub(crate) fn unsettled(&mut self, host: &HostKey, bytes: u64) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.pages = account.pages.saturating_sub(1);
        account.bytes = account.bytes.saturating_sub(bytes);
        self.groups.unsettled(host, bytes);
    }

    /// Returns whether the budget of a host or of its group leaves no room for another lease.
    /// Requests in flight don't count towards budgets of bytes and time, so spending may exceed
    /// these budgets.
    pub(crate) fn is_full(&mut self, now: Tick, host: &HostKey) -> bool {
        let budget = self.budget(host);
        let account = self.account(host);
        let reached = |spent: u64, max: Option<u64>| max.is_some_and(|max| spent >= max);
        let over = |spent: Duration, max: Option<Duration>| max.is_some_and(|max| spent >= max);
        let active = account
            .since
            .map_or(Duration::ZERO, |since| now.since(since));
        let spent = if reached(account.pages, budget.max_pages) {
            "max-pages-per-host"
        } else if reached(account.bytes, budget.max_bytes) {
            "max-bytes-per-host"
        } else if over(account.served, budget.max_server_time) {
            "max-server-time-per-host"
        } else if over(active, budget.max_time) {
            "max-time-per-host"
        } else {
            // A host can be full although its budget isn't spent: its remaining pages may all be
            // leased, or its group may be full.
            return reached(account.pages + account.leases, budget.max_pages)
                || self.groups.state(host) != GroupBudgetAvailability::HasRoom;
        };
        self.full.insert(host.clone(), spent);
        true
    }

    /// Returns whether a host has spent a budget other than its page budget.
    pub(crate) fn is_spent(&mut self, now: Tick, host: &HostKey) -> bool {
        self.is_full(now, host)
            && self
                .full
                .get(host)
                .is_some_and(|budget| *budget != "max-pages-per-host")
    }

    /// Returns the name of the budget that a host or its group has spent; `None` if neither has
    /// spent one.
    pub(crate) fn spent_by(&self, host: &HostKey) -> Option<String> {
        let own = self.full.get(host).map(|budget| {
            let of_site = self.in_site_words(host, budget);
            of_site.unwrap_or_else(|| (*budget).to_owned())
        });
        own.or_else(|| self.groups.spent_by(host))
    }

    /// Names a budget that `[site]` sets for a host, for example `max-pages of [site."a.example"]`.
    /// `None` if the budget applies to every host.
    fn in_site_words(&self, host: &HostKey, budget: &str) -> Option<String> {
        let (pattern, own) = self.budgets.per_site.find(host)?;
        let key = budget.trim_end_matches("-per-host");
        let is_own = match key {
            "max-pages" => own.max_pages.is_some(),
            "max-bytes" => own.max_bytes.is_some(),
            "max-server-time" => own.max_server_time.is_some(),
            _ => own.max_time.is_some(),
        };
        is_own.then(|| format!("{key} of [site.\"{pattern}\"]"))
    }

    /// Returns a reason to end the run that names a spent budget of some host or group; `None` if
    /// no budget is spent.
    pub(crate) fn spent(&self) -> Option<EndReason> {
        let mut of_all: Option<&'static str> = None;
        let mut of_site: Option<String> = None;
        for (host, budget) in &self.full {
            match self.in_site_words(host, budget) {
                Some(words) if of_site.as_ref().is_none_or(|first| words < *first) => {
                    of_site = Some(words);
                }
                Some(_) => {}
                None => of_all = Some(of_all.map_or(*budget, |first| first.min(*budget))),
            }
        }
        of_all.map(EndReason::Budget).or_else(|| {
            of_site
                .or_else(|| self.groups.spent())
                .map(EndReason::TableBudget)
        })
    }

    /// Returns the server response time, over all hosts and all runs of this round.
    pub(crate) fn served(&self) -> Duration {
        self.served
    }

    /// Returns the server response time of all hosts in microseconds: in all runs of this round,
    /// and in this run.
    pub(crate) fn served_micros(&self) -> (u64, u64) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let of_run = self.served.saturating_sub(self.served_before);
        (micros(self.served), micros(of_run))
    }

    fn read<'a>(&self, stored: &'a [u8]) -> Option<(HostSpending, &'a [u8])> {
        let (numbers, rest) = stored.split_first_chunk::<{ size_of::<StoredHostSpending>() }>()?;
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
