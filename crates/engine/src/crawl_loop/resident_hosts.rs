//! Which hosts are in memory: those with work, and of the others the latest.

use std::collections::{BTreeSet, HashSet};

use crawl_frontier::FrontierError;
use crawl_scheduler::{Evicted, RestartKind, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use foldhash::{HashMap, HashMapExt as _};

use super::Coordinator;
use super::host_locks::HostLocks;
use crate::config::Config;
use crate::trace_events::HostSpans;

/// The state of hosts that the loop keeps besides the scheduler's: those in memory, and those that
/// left it not long ago.
///
/// Before a permit is used, [`hold`](Self::hold) locks its host; [`forget`](Self::forget) unlocks a
/// host that leaves memory. `put` then keeps its state until the disk has it, and `take` returns it
/// when the host is recalled. The disk has it once each [`state_sent`](Self::state_sent) was followed
/// by a [`states_kept`](Self::states_kept).
pub(crate) struct ResidentHosts {
    /// Hosts of the seeds, which come before others that are ready as long.
    of_seeds: HashSet<HostKey>,
    /// The care that the last run's end asks of hosts that are met for the first time.
    restart: RestartKind,
    /// States of each host that are on their way to the disk.
    sent: HashMap<HostKey, u32>,
    /// Hosts that left memory, each until it may be asked and its state is on disk.
    away: HashMap<HostKey, (Tick, Vec<u8>)>,
    wakes: BTreeSet<(Tick, HostKey)>,
    /// Hosts whose stored times are to be written anew.
    redated: Vec<HostKey>,
    /// The number of the last host state or order.
    sequence: u64,
    spans: HostSpans,
    locks: HostLocks,
}

impl ResidentHosts {
    pub(crate) fn new(config: &Config) -> ResidentHosts {
        ResidentHosts {
            of_seeds: config.seeds.iter().map(CanonicalUrl::host_key).collect(),
            restart: RestartKind::AfterKill,
            sent: HashMap::new(),
            away: HashMap::new(),
            wakes: BTreeSet::new(),
            redated: Vec::new(),
            sequence: 0,
            spans: HostSpans::default(),
            locks: HostLocks::none(),
        }
    }

    /// This run goes on with an earlier one, which ended so.
    pub(super) fn resume(&mut self, restart: RestartKind) {
        self.restart = restart;
    }

    /// Returns how cautiously to treat hosts not seen since the last run ended.
    fn restart(&self) -> RestartKind {
        self.restart
    }

    /// Returns whether a host has a seed.
    fn is_of_seed(&self, host: &HostKey) -> bool {
        self.of_seeds.contains(host)
    }

    /// Has the stored times of a host written again.
    fn redate(&mut self, host: &HostKey) {
        self.redated.push(host.clone());
    }

    /// Takes the hosts whose stored times are to be written anew.
    pub(super) fn take_redated(&mut self) -> Vec<HostKey> {
        std::mem::take(&mut self.redated)
    }

    /// Counts that must agree between two events.
    #[cfg(test)]
    pub(super) fn check_invariants(&self, unsettled: u64) {
        let sent: u64 = self.sent.values().map(|count| u64::from(*count)).sum();
        assert!(
            sent <= unsettled,
            "{sent} states of hosts, {unsettled} unsettled"
        );
        assert!(self.sent.values().all(|count| *count > 0));
        let are_away = self
            .wakes
            .iter()
            .all(|(_, host)| self.away.contains_key(host));
        assert!(are_away, "a host is waited for that is not away");
    }

    /// A state of the host is handed to the writer. Returns its number.
    pub(crate) fn state_sent(&mut self, host: &HostKey) -> u64 {
        *self.sent.entry(host.clone()).or_default() += 1;
        self.next_sequence()
    }

    /// Returns the number of the next host state or order of this run, from 1. The writer keeps the
    /// state with the highest one, as messages overtake each other.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Respects host locks held by the user's other crawls from now on.
    pub(super) fn share(&mut self, locks: HostLocks) {
        self.locks = locks;
    }

    /// Locks a host against the user's other crawls. Returns false, and logs who has it, if one of them
    /// fetches from it.
    pub(super) fn hold(&mut self, host: &HostKey) -> bool {
        let is_held = self.locks.hold(host);
        if !is_held {
            self.locks.tell_who_asks(host);
        }
        is_held
    }

    /// Names the crawl that fetches from a host, for messages.
    pub(super) fn who_asks(&self, host: &HostKey) -> String {
        self.locks.who_asks(host)
    }

    /// Unlocks a host for the user's other crawls.
    fn free(&mut self, host: &HostKey) {
        self.locks.free(host);
    }

    /// A host leaves memory: unlocks it and drops its span.
    pub(super) fn forget(&mut self, host: &HostKey) {
        self.free(host);
        self.spans.forget(host);
    }

    /// Returns the tracing spans of hosts in memory.
    pub(super) fn spans(&mut self) -> &mut HostSpans {
        &mut self.spans
    }

    /// States of these hosts are on disk, or newer ones are.
    pub(crate) fn states_kept(&mut self, now: Tick, hosts: &[HostKey]) {
        for host in hosts {
            let Some(sent) = self.sent.get_mut(host) else {
                continue;
            };
            *sent -= 1;
            if *sent == 0 {
                self.sent.remove(host);
                if self.away.get(host).is_some_and(|(wake, _)| *wake <= now) {
                    self.take(host);
                }
            }
        }
    }

    /// The states of hosts that left memory, as far as they may be newer than those on the disk.
    pub(super) fn away(&self) -> impl Iterator<Item = (HostKey, Vec<u8>)> {
        let away = self.away.iter();
        away.map(|(host, (_, bytes))| (host.clone(), bytes.clone()))
    }

    /// The hosts whose states are on their way to the disk.
    pub(super) fn hosts_on_their_way(&self) -> impl Iterator<Item = &HostKey> {
        self.sent.keys()
    }

    /// Somebody else asks the hosts from now on that `is_gone`.
    pub(super) fn leave(&mut self, is_gone: impl Fn(&HostKey) -> bool) {
        self.away.retain(|host, _| !is_gone(host));
        self.wakes.retain(|(_, host)| !is_gone(host));
        self.redated.retain(|host| !is_gone(host));
    }

    fn take(&mut self, host: &HostKey) -> Option<Vec<u8>> {
        let (wake, bytes) = self.away.remove(host)?;
        self.wakes.remove(&(wake, host.clone()));
        Some(bytes)
    }

    fn put(&mut self, now: Tick, host: HostKey, wake: Tick, bytes: Vec<u8>) {
        self.take(&host);
        if wake > now || self.sent.contains_key(&host) {
            self.wakes.insert((wake, host.clone()));
            self.away.insert(host, (wake, bytes));
        }
    }

    fn drop_until(&mut self, now: Tick) {
        while let Some((wake, host)) = self.wakes.pop_first() {
            if wake > now {
                self.wakes.insert((wake, host));
                return;
            }
            // One whose state is still under way is dropped when that is on disk.
            if !self.sent.contains_key(&host) {
                self.away.remove(&host);
            }
        }
    }
}

impl Coordinator {
    /// Sees to it that a host is in memory with all that is known of it.
    pub(crate) fn recall(&mut self, now: Tick, host: &HostKey) -> Result<(), FrontierError> {
        if self.scheduler.knows(host) {
            return Ok(());
        }
        if let Some(bytes) = self.hosts.take(host) {
            let bytes = self.host_budgets.restore(host, &bytes);
            self.scheduler
                .restore(now, host, bytes, RestartKind::AfterKill);
        } else if let Some((wake, bytes)) = self.frontier.host(host)? {
            let bytes = self.host_budgets.restore(host, &bytes);
            self.scheduler
                .restore(now, host, bytes, self.hosts.restart());
            let restored = self.scheduler.host_state(host);
            let is_earlier = restored.is_some_and(|(restored, _)| restored.as_micros() < wake);
            if wake > now.as_micros() && is_earlier {
                // It was dated by a clock that was ahead. The next start is to find the time that
                // counts from now on, or it would count from there again.
                self.hosts.redate(host);
            }
        }
        self.note_taken_over(now, host);
        let is_seed = self.hosts.is_of_seed(host);
        self.scheduler.prioritize(now, host, u8::from(!is_seed));
        Ok(())
    }

    /// Lets go of idle hosts, the longest idle first, as far as memory asks for it.
    pub(crate) fn let_hosts_go(&mut self, now: Tick) {
        self.hosts.drop_until(now);
        while self.scheduler.hosts() > self.config.hosts_in_memory {
            let Some(evicted) = self.scheduler.evict() else {
                return;
            };
            let Evicted {
                host,
                origins,
                wake,
                bytes,
            } = evicted;
            let mut stored = self.host_budgets.stored(&host).to_vec();
            stored.extend_from_slice(&bytes);
            self.forget_host(&host, &origins);
            self.hosts.put(now, host, wake, stored);
        }
    }

    /// Another crawl may ask a host that has nothing to do, or is parked.
    pub(crate) fn free_if_idle(&mut self, host: &HostKey) {
        let is_free = self.scheduler.is_idle(host) || self.scheduler.is_parked(host);
        if is_free && self.host_budgets.leases(host) == 0 {
            self.hosts.free(host);
        }
    }

    /// A host's origins share its pace: what the others ask for holds as long as their
    /// copies of robots.txt do. Looked for at the usual ports.
    pub(crate) fn heed_siblings(
        &mut self,
        now: Tick,
        origin: &Origin,
    ) -> Result<(), FrontierError> {
        for scheme in ["http", "https"] {
            let sibling = Origin::parse(&format!("{scheme}://{}", origin.host_key()));
            let Some(sibling) = sibling.ok().filter(|sibling| sibling != origin) else {
                continue;
            };
            if let Some(pace) = self.origins.pace_of(now, &sibling, &*self.frontier)? {
                self.scheduler.set_robots_pace(now, &sibling, &pace);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_scheduler::Poll;
    use crawl_weburl::{HostKey, Origin};

    use super::super::by_itself::{at, config, coordinator, copy, open_to_all};
    use super::super::host_locks::HostLocks;
    use super::ResidentHosts;
    use crate::config::Config;

    fn hosts() -> ResidentHosts {
        ResidentHosts::new(&config())
    }

    #[test]
    fn ours_a_host_is_kept_until_it_may_be_asked() {
        let (mut hosts, host) = (hosts(), HostKey::parse("a.example").unwrap());
        hosts.put(at(1), host.clone(), at(1), vec![1]);
        assert_eq!(hosts.take(&host), None, "it may be asked already");
        hosts.put(at(1), host.clone(), at(5), vec![2]);
        hosts.drop_until(at(4));
        assert_eq!(hosts.take(&host), Some(vec![2]));
        assert_eq!(hosts.take(&host), None);
        hosts.put(at(1), host.clone(), at(5), vec![3]);
        hosts.drop_until(at(5));
        assert_eq!(hosts.take(&host), None);
    }

    #[test]
    fn ours_a_host_is_kept_until_its_state_is_on_disk() {
        let (mut hosts, host) = (hosts(), HostKey::parse("a.example").unwrap());
        hosts.state_sent(&host);
        hosts.state_sent(&host);
        hosts.put(at(1), host.clone(), at(1), vec![1]);
        hosts.drop_until(at(9));
        hosts.states_kept(at(9), std::slice::from_ref(&host));
        hosts.check_invariants(1);
        assert_eq!(hosts.take(&host), Some(vec![1]), "one is under way still");
        hosts.put(at(9), host.clone(), at(9), vec![2]);
        hosts.states_kept(at(9), std::slice::from_ref(&host));
        hosts.check_invariants(0);
        assert_eq!(hosts.take(&host), None);
    }

    #[test]
    fn ours_a_host_that_was_dated_by_a_clock_ahead_is_dated_anew() {
        let host = HostKey::parse("a.example").unwrap();
        for (asked, is_ahead) in [(20, false), (5_000, true)] {
            let mut before = coordinator(|_| {});
            let gap = Duration::from_secs(1);
            let scheduler = &mut before.scheduler;
            scheduler.note_past_request(at(asked), &host, at(asked), gap, None);
            let state = before.host_state(&host);
            let mut now = coordinator(|_| {});
            let frontier = Arc::clone(&now.frontier);
            let mut transaction = frontier.begin().unwrap();
            transaction.keep_host(&host, state.wake, &state.bytes());
            transaction.commit().unwrap();
            now.recall(at(20), &host).unwrap();
            assert!(now.scheduler.knows(&host));
            let redated = now.hosts.take_redated();
            assert_eq!(redated.contains(&host), is_ahead, "{asked}");
        }
    }

    #[test]
    fn ours_idle_hosts_leave_memory_as_far_as_others_need_it() {
        for (hosts_in_memory, left) in [(5, 3), (3, 3), (2, 2), (1, 1)] {
            let mut coordinator = coordinator(|config| config.hosts_in_memory = hosts_in_memory);
            for name in ["a", "b", "c"] {
                let origin = Origin::parse(&format!("http://{name}.example")).unwrap();
                let scheduler = &mut coordinator.scheduler;
                scheduler.set_robots(at(20), &origin, open_to_all());
                scheduler.set_pending(at(20), &origin, 0);
            }
            coordinator.let_hosts_go(at(20));
            assert_eq!(coordinator.scheduler.hosts(), left, "{hosts_in_memory}");
        }
    }

    #[test]
    fn ours_another_crawl_may_ask_a_host_with_nothing_to_do_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let shared = |config: &mut Config| {
            config.host_locks = Some(dir.path().join("hosts.lock"));
        };
        let locks = || {
            let mut config = config();
            shared(&mut config);
            HostLocks::shared(&config, at(10)).unwrap()
        };
        let origin = Origin::parse("http://a.example").unwrap();
        let host = origin.host_key();
        for (pending, leases, is_parked, is_free) in [
            (0, 0, false, true),
            (1, 0, false, false),
            (1, 0, true, true),
            (0, 1, false, false),
            (0, 1, true, false),
        ] {
            let (mut coordinator, mut other) = (coordinator(shared), locks());
            coordinator.share_hosts(locks());
            assert!(coordinator.hosts.hold(&host));
            coordinator.scheduler.set_pending(at(20), &origin, pending);
            (0..leases).for_each(|_| coordinator.host_budgets.leased(&host));
            if is_parked {
                coordinator.scheduler.park(at(20), &host);
            }
            coordinator.free_if_idle(&host);
            assert_eq!(other.hold(&host), is_free, "{pending} {leases} {is_parked}");
        }
    }

    #[test]
    fn ours_a_host_that_left_memory_comes_back_with_all_that_is_known_of_it() {
        let mut coordinator = coordinator(|config| {
            config.hosts_in_memory = 0;
            config.budgets.max_time = None;
        });
        let origin = Origin::parse("http://a.example").unwrap();
        let host = origin.host_key();
        let gap = Duration::from_secs(50);
        let scheduler = &mut coordinator.scheduler;
        scheduler.note_past_request(at(20), &host, at(20), gap, None);
        scheduler.set_robots(at(20), &origin, open_to_all());
        scheduler.set_pending(at(20), &origin, 0);
        coordinator
            .origins
            .meet(at(20), &origin, &*coordinator.frontier)
            .unwrap();
        coordinator.host_budgets.settled(&host);
        let before = coordinator.host_budgets.stored(&host);
        coordinator.let_hosts_go(at(20));
        assert!(!coordinator.scheduler.knows(&host) && !coordinator.origins.is_met(&origin));
        assert_ne!(coordinator.host_budgets.stored(&host), before);
        coordinator.recall(at(30), &host).unwrap();
        assert!(coordinator.scheduler.knows(&host));
        assert_eq!(coordinator.host_budgets.stored(&host), before);
        let wake = coordinator.scheduler.snapshot(&host).map(|(wake, _)| wake);
        assert_eq!(wake, Some(at(70)));
        assert_eq!(coordinator.hosts.take(&host), None, "it is away no more");
        assert!(coordinator.hosts.take_redated().is_empty());
    }

    #[test]
    fn ours_of_hosts_that_are_ready_together_those_of_the_seeds_come_first() {
        let mut coordinator = coordinator(|_| {});
        let origins =
            ["b", "a", "c"].map(|name| Origin::parse(&format!("http://{name}.example")).unwrap());
        for origin in &origins {
            coordinator.wake(at(20), origin, 1);
        }
        let Poll::Issue(permit) = coordinator.scheduler.poll(at(20)) else {
            panic!("no permit");
        };
        assert_eq!(permit.host().as_str(), "a.example");
    }

    #[test]
    fn ours_a_state_that_is_on_disk_ends_the_wait_of_a_host_that_may_be_asked() {
        let host = HostKey::parse("a.example").unwrap();
        for (kept_at, is_away) in [(4, true), (5, false), (6, false)] {
            let mut hosts = hosts();
            hosts.state_sent(&host);
            hosts.put(at(1), host.clone(), at(5), vec![1]);
            hosts.states_kept(at(kept_at), std::slice::from_ref(&host));
            assert_eq!(hosts.take(&host).is_some(), is_away, "{kept_at}");
        }
    }

    #[test]
    fn ours_the_newest_that_is_known_of_a_host_counts() {
        let (mut hosts, host) = (hosts(), HostKey::parse("a.example").unwrap());
        hosts.put(at(1), host.clone(), at(5), vec![1]);
        hosts.put(at(2), host.clone(), at(9), vec![2]);
        hosts.check_invariants(0);
        hosts.drop_until(at(6));
        assert_eq!(hosts.take(&host), Some(vec![2]));
    }

    #[test]
    fn ours_an_origin_keeps_to_what_the_other_scheme_of_its_host_asks_for() {
        for (known, other) in [("http", "https"), ("https", "http")] {
            let mut coordinator = coordinator(|_| {});
            let [known, other] = [known, other]
                .map(|scheme| Origin::parse(&format!("{scheme}://a.example")).unwrap());
            let copy = copy(&known, "User-agent: *\nCrawl-delay: 7\n");
            let mut transaction = coordinator.frontier.begin().unwrap();
            transaction.keep_robots(&known, &copy.to_bytes());
            transaction.commit().unwrap();
            coordinator.wake(at(20), &other, 1);
            let work = coordinator.scheduler.busiest(at(20), 1);
            assert_eq!(work[0].gap, Duration::from_secs(7), "{known}");
            // One's own copy is no sibling's.
            let mut coordinator = super::super::by_itself::coordinator(|_| {});
            coordinator.heed_siblings(at(20), &known).unwrap();
            assert!(!coordinator.scheduler.knows(&known.host_key()));
        }
    }
}
