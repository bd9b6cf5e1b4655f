//! The budget of each host, and the part of it that is spent.

use std::collections::HashMap;
use std::time::Duration;

use crawl_scheduler::{PolitenessOverrides, Tick};
use crawl_weburl::{HostKey, Origin};

use crate::config::{Budgets, HostBudget};

/// The durable form: the round, pages, bytes, microseconds, eight bytes each.
const STORED: usize = 32;

/// The budgets of all hosts that this crawl knows.
pub(crate) struct HostBudgets {
    budgets: Budgets,
    /// Tells which of the budgets of single sites counts for a host.
    sites: PolitenessOverrides,
    by_host: HashMap<HostKey, HostSpending>,
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

impl HostBudgets {
    pub(crate) fn new(budgets: &Budgets, sites: &PolitenessOverrides) -> HostBudgets {
        HostBudgets {
            budgets: budgets.clone(),
            sites: sites.clone(),
            by_host: HashMap::new(),
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
        *known = HostSpending {
            // What is known may be newer than what was stored.
            pages: known.pages.max(account.pages),
            bytes: known.bytes.max(account.bytes),
            served: known.served.max(account.served),
            ..*known
        };
        rest
    }

    /// The bytes behind the budget in a host's stored state, without taking anything up.
    pub(crate) fn politeness<'a>(&self, stored: &'a [u8]) -> &'a [u8] {
        self.read(stored).map_or(&[], |(_, rest)| rest)
    }

    /// Earlier runs had servers spend so long on their requests.
    pub(crate) fn add_served(&mut self, stored: &[u8]) {
        let served = self.read(stored).map(|(account, _)| account.served);
        self.served += served.unwrap_or_default();
        self.served_before += served.unwrap_or_default();
    }

    /// A host left memory. Where hosts have budgets its account stays.
    pub(crate) fn forget(&mut self, host: &HostKey) {
        if !self.limit_hosts() {
            self.by_host.remove(host);
        }
    }

    /// Returns whether any host has a budget.
    pub(crate) fn limit_hosts(&self) -> bool {
        !self.budgets.per_host.is_unlimited() || !self.budgets.per_site.is_empty()
    }

    /// The number of URLs that wait and that their hosts have room for.
    pub(crate) fn with_room(&self, waiting: Vec<(Origin, u64)>) -> u64 {
        let mut by_host: HashMap<HostKey, u64> = HashMap::new();
        for (origin, count) in waiting {
            *by_host.entry(origin.host_key()).or_default() += count;
        }
        let hosts = by_host.into_iter();
        hosts.map(|(host, count)| count.min(self.room(&host))).sum()
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
    pub(crate) fn stored(&self, host: &HostKey) -> Vec<u8> {
        let account = self.account(host);
        let served = u64::try_from(account.served.as_micros()).unwrap_or(u64::MAX);
        [self.round.into(), account.pages, account.bytes, served]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// A request was answered, or failed, after so long.
    pub(crate) fn asked(&mut self, host: &HostKey, started: Tick, took: Duration, bytes: u64) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.since.get_or_insert(started);
        account.bytes += bytes;
        account.served += took;
        self.served += took;
    }

    pub(crate) fn leased(&mut self, host: &HostKey) {
        self.by_host.entry(host.clone()).or_default().leases += 1;
    }

    /// A lease became a page, or none. The host's origins that were turned away, whose turn
    /// it may be now.
    pub(crate) fn lease_ended(&mut self, host: &HostKey) -> Vec<Origin> {
        if let Some(account) = self.by_host.get_mut(host) {
            account.leases = account.leases.saturating_sub(1);
        }
        self.turned_away.remove(host).unwrap_or_default()
    }

    /// An origin has URLs for which its full host has no room.
    pub(crate) fn turn_away(&mut self, origin: &Origin) {
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
    }

    /// A URL that counted as settled is pending again.
    pub(crate) fn unsettled(&mut self, host: &HostKey) {
        let account = self.by_host.entry(host.clone()).or_default();
        account.pages = account.pages.saturating_sub(1);
    }

    /// Returns whether a host's budget leaves room for no further lease. What is in flight may
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
            // Leases come back, so this is no end.
            return reached(account.pages + account.leases, budget.max_pages);
        };
        self.full.insert(host.clone(), spent);
        true
    }

    /// The name of the budget that a host has spent.
    pub(crate) fn spent_by(&self, host: &HostKey) -> Option<&'static str> {
        self.full.get(host).copied()
    }

    /// The name of a budget that some host has spent.
    pub(crate) fn spent(&self) -> Option<&'static str> {
        self.full.values().min().copied()
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
        let (numbers, rest) = stored.split_first_chunk::<STORED>()?;
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
        let own = self.sites.find(host);
        match own.and_then(|(pattern, _)| self.budgets.per_site.get(pattern)) {
            None => *usual,
            Some(own) => HostBudget {
                max_pages: own.max_pages.or(usual.max_pages),
                max_bytes: own.max_bytes.or(usual.max_bytes),
                max_server_time: own.max_server_time.or(usual.max_server_time),
                max_time: own.max_time.or(usual.max_time),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_scheduler::{PolitenessOverride, PolitenessOverrides, Tick};
    use crawl_weburl::{HostKey, Origin, canonicalize};

    use super::HostBudgets;
    use crate::config::{Budgets, HostBudget};

    const SECOND: Duration = Duration::from_secs(1);

    fn origin(text: &str) -> Origin {
        canonicalize(None, text).unwrap().origin()
    }

    fn at(seconds: u64) -> Tick {
        Tick::from_micros(seconds * 1_000_000)
    }

    fn budgets(per_host: HostBudget) -> HostBudgets {
        let budgets = Budgets {
            per_host,
            ..Budgets::default()
        };
        HostBudgets::new(&budgets, &PolitenessOverrides::default())
    }

    fn two_pages() -> HostBudget {
        HostBudget {
            max_pages: Some(2),
            ..HostBudget::default()
        }
    }

    #[test]
    fn ours_each_budget_of_a_host_is_spent_when_it_is_reached() {
        let host = origin("http://a.example/").host_key();
        let none = HostBudget::default();
        for (budget, name) in [
            (two_pages(), "max-pages-per-host"),
            (
                HostBudget {
                    max_bytes: Some(2_000),
                    ..none
                },
                "max-bytes-per-host",
            ),
            (
                HostBudget {
                    max_server_time: Some(2 * SECOND),
                    ..none
                },
                "max-server-time-per-host",
            ),
            (
                HostBudget {
                    max_time: Some(2 * SECOND),
                    ..none
                },
                "max-time-per-host",
            ),
        ] {
            let mut budgets = budgets(budget);
            assert!(budgets.limit_hosts(), "{name}");
            // A page each second, of a thousand bytes, that takes the server a second.
            for page in 0..2 {
                assert!(!budgets.is_full(at(10 + page), &host), "{name}");
                assert_eq!(budgets.spent(), None, "{name}");
                budgets.asked(&host, at(10 + page), SECOND, 1_000);
                budgets.settled(&host);
            }
            assert!(budgets.is_full(at(12), &host), "{name}");
            assert_eq!(budgets.spent(), Some(name));
            assert_eq!(budgets.served(), 2 * SECOND);
            assert_eq!(budgets.served_micros(), (2_000_000, 2_000_000));
        }
        assert!(!budgets(none).limit_hosts());
    }

    #[test]
    fn ours_leases_fill_a_host_until_they_end() {
        let mut budgets = budgets(two_pages());
        let [http, https] = ["http://a.example/", "https://a.example/"].map(origin);
        let host = http.host_key();
        // Nothing that is out could make room again.
        budgets.turn_away(&http);
        assert_eq!(budgets.lease_ended(&host), Vec::new());
        budgets.leased(&host);
        assert!(!budgets.is_full(at(0), &host));
        budgets.leased(&host);
        assert!(budgets.is_full(at(0), &host));
        assert_eq!((budgets.leases(&host), budgets.spent()), (2, None));
        for origin in [&http, &http, &https] {
            budgets.turn_away(origin);
        }
        assert_eq!(budgets.lease_ended(&host), [http, https]);
        assert_eq!(budgets.lease_ended(&host), Vec::new());
        assert_eq!(budgets.leases(&host), 0);
        assert!(!budgets.is_full(at(0), &host));
    }

    #[test]
    fn ours_an_account_outlives_its_run_but_not_its_round() {
        let host = origin("http://a.example/").host_key();
        let in_round = |round: u32| {
            let mut budgets = budgets(two_pages());
            budgets.enter_round(round);
            budgets
        };
        let mut before = in_round(2);
        before.asked(&host, at(1), 3 * SECOND, 500);
        before.settled(&host);
        let mut stored = before.stored(&host);
        stored.extend(b"politeness");

        let mut after = in_round(2);
        assert_eq!(after.politeness(&stored), b"politeness");
        assert_eq!(after.restore(&host, &stored), b"politeness");
        assert_eq!(after.stored(&host), before.stored(&host));
        after.add_served(&stored);
        after.asked(&host, at(9), SECOND, 1);
        assert_eq!(after.served_micros(), (4_000_000, 1_000_000));
        // What this run knows already is not taken back.
        after.settled(&host);
        assert_eq!(after.restore(&host, &stored), b"politeness");
        assert!(after.is_full(at(9), &host));
        assert_eq!(after.restore(&host, b"torn"), b"");

        let mut next = in_round(3);
        assert_eq!(next.restore(&host, &stored), b"politeness");
        assert!(next.stored(&host)[8..].iter().all(|byte| *byte == 0));
        next.add_served(&stored);
        assert_eq!(next.served(), Duration::ZERO);
    }

    #[test]
    fn ours_only_urls_count_for_which_their_hosts_have_room() {
        let budgets = Budgets {
            per_host: HostBudget {
                max_pages: Some(10),
                ..HostBudget::default()
            },
            ..Budgets::default()
        };
        let mut host_budgets = HostBudgets::new(&budgets, &PolitenessOverrides::default());
        let [http, https] = ["http://a.example/", "https://a.example/"].map(origin);
        let [fresh, full] = ["http://b.example/", "http://c.example/"].map(origin);
        // Four pages and one on its way: room for five more, whatever the scheme.
        for _ in 0..4 {
            host_budgets.settled(&http.host_key());
        }
        host_budgets.leased(&http.host_key());
        for _ in 0..10 {
            host_budgets.settled(&full.host_key());
        }
        assert!(host_budgets.is_full(Tick::from_micros(0), &full.host_key()));
        let waiting = vec![(http, 100), (https, 3), (fresh, 2), (full, 50)];
        assert_eq!(host_budgets.with_room(waiting), 5 + 2);
    }

    #[test]
    fn ours_the_budget_of_a_site_goes_before_that_of_every_host() {
        let mut sites = PolitenessOverrides::default();
        sites
            .insert("b.example", PolitenessOverride::default())
            .unwrap();
        let own = HostBudget {
            max_pages: Some(1),
            ..HostBudget::default()
        };
        let usual = HostBudget {
            max_pages: Some(3),
            max_bytes: Some(2_000),
            max_server_time: Some(20 * SECOND),
            max_time: Some(30 * SECOND),
        };
        let own_bytes = HostBudget {
            max_bytes: Some(9_000),
            max_server_time: Some(9 * SECOND),
            max_time: Some(90 * SECOND),
            ..HostBudget::default()
        };
        // Pages of a hundred bytes and a second each.
        for (of_site, host, most) in [
            (own, "b.example", 1),
            (own, "a.example", 3),
            (own_bytes, "b.example", 3),
            (
                HostBudget {
                    max_pages: Some(50),
                    ..own_bytes
                },
                "b.example",
                9,
            ),
        ] {
            let budgets = Budgets {
                per_host: usual,
                per_site: [("b.example".to_owned(), of_site)].into(),
                ..Budgets::default()
            };
            let mut budgets = HostBudgets::new(&budgets, &sites);
            let host = HostKey::parse(host).unwrap();
            let mut pages = 0;
            while !budgets.is_full(at(10), &host) {
                pages += 1;
                budgets.asked(&host, at(10), SECOND, 100);
                budgets.settled(&host);
            }
            assert_eq!(pages, most, "{host} {of_site:?}");
        }
        let of_sites = Budgets {
            per_site: [("b.example".to_owned(), own)].into(),
            ..Budgets::default()
        };
        assert!(HostBudgets::new(&of_sites, &sites).limit_hosts());
    }

    #[test]
    fn ours_what_a_host_spent_is_forgotten_where_no_host_has_a_budget() {
        let host = origin("http://a.example/").host_key();
        for (budget, is_kept) in [(two_pages(), true), (HostBudget::default(), false)] {
            let mut budgets = budgets(budget);
            budgets.settled(&host);
            budgets.settled(&host);
            budgets.unsettled(&host);
            let before = budgets.stored(&host);
            assert_eq!(before[8], 1, "one page");
            budgets.forget(&host);
            assert_eq!(budgets.stored(&host) == before, is_kept);
        }
    }
}
