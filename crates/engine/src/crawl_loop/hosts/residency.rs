//! Decides which hosts stay in memory: those with work, and the most recently active of the others.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use crawl_frontier::FrontierError;
use crawl_scheduler::{EvictedHost, OtherCrawlsGap, RelinquishedHost, SnapshotCompleteness, Tick};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};
use foldhash::{HashMap, HashMapExt as _};

use super::super::host_locks::{HostLocks, HostRefusal};
use super::super::worker_coordination::WorkerCoordination;
use super::Hosts;
use crate::config::Config;
use crate::messages::Effect;
use crate::trace_events::HostSpans;

/// The state of resident and recently evicted hosts, apart from what the scheduler keeps.
///
/// Before a permit is used, [`hold`](Self::hold) locks its host; [`forget`](Self::forget) unlocks a
/// host that leaves memory. [`put`](Self::put) then keeps the evicted host's state until it is on
/// disk, and [`take`](Self::take) returns the state when the host is recalled. A state is on disk
/// once each [`state_sent`](Self::state_sent) was followed by a [`states_kept`](Self::states_kept).
pub(super) struct ResidentHosts {
    /// Hosts of seeds. They get permits before other hosts that became ready at the same time.
    of_seeds: HashSet<HostKey>,
    /// How the last run ended. It decides how cautiously to treat hosts that are new to this run.
    snapshot_kind: SnapshotCompleteness,
    /// For each host, the number of its states that were sent to the writer but are not on disk
    /// yet.
    sent: HashMap<HostKey, u32>,
    /// States of evicted hosts. Each is kept until it is on disk and the host may get a request.
    away: HashMap<HostKey, (Tick, Vec<u8>)>,
    wakes: BTreeSet<(Tick, HostKey)>,
    /// Hosts whose states must be stored again, because the clock was ahead when they were stored.
    redated: Vec<HostKey>,
    /// The sequence number of the latest host state or operator command of this run.
    sequence: u64,
    spans: HostSpans,
    locks: HostLocks,
}

impl ResidentHosts {
    pub(super) fn new(config: &Config) -> ResidentHosts {
        ResidentHosts {
            of_seeds: config.seeds.iter().map(CanonicalUrl::host_key).collect(),
            snapshot_kind: SnapshotCompleteness::Complete,
            sent: HashMap::new(),
            away: HashMap::new(),
            wakes: BTreeSet::new(),
            redated: Vec::new(),
            sequence: 0,
            spans: HostSpans::default(),
            locks: HostLocks::none(),
        }
    }

    /// Continues an earlier run. `kind` indicates whether the stored host states may lack requests
    /// of that run.
    pub(super) fn resume(&mut self, kind: SnapshotCompleteness) {
        self.snapshot_kind = kind;
    }

    /// Returns whether the stored states include all requests of earlier runs.
    pub(super) fn snapshots_are_complete(&self) -> bool {
        self.snapshot_kind == SnapshotCompleteness::Complete
    }

    /// Takes the hosts whose states must be stored again, because the clock was ahead when they
    /// were stored.
    pub(super) fn take_redated(&mut self) -> Vec<HostKey> {
        std::mem::take(&mut self.redated)
    }

    /// Checks the counts that must agree whenever no event is being handled.
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

    /// Counts a state of a host that is sent to the writer. Returns the state's sequence number.
    pub(super) fn state_sent(&mut self, host: &HostKey) -> u64 {
        *self.sent.entry(host.clone()).or_default() += 1;
        self.next_sequence()
    }

    /// Returns the next sequence number, from 1, for a host state or an operator command of this
    /// run. The writer keeps the state with the highest number, since messages may overtake each
    /// other.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn share(&mut self, locks: HostLocks) {
        self.locks = locks;
    }

    /// Locks a host against the user's other crawls, unless another crawl keeps this crawl from it.
    pub(super) fn hold(
        &mut self,
        now: Tick,
        delay: Duration,
        host: &HostKey,
    ) -> Result<(), HostRefusal> {
        self.locks.hold(host, delay, now)
    }

    pub(super) fn are_locks_shared(&self) -> bool {
        self.locks.are_shared()
    }

    /// Notes the gap after the last request to a host, for the user's other crawls.
    pub(super) fn note_gap(
        &mut self,
        host: &HostKey,
        gap: Option<OtherCrawlsGap>,
        is_in_flight: bool,
    ) {
        self.locks.note_gap(host, gap, is_in_flight);
    }

    /// Unlocks all hosts, because no request is sent any more.
    pub(super) fn end_locks(&mut self, now: Tick) {
        self.locks.end(now);
    }

    /// Unlocks all hosts that have no request in flight.
    pub(super) fn free_all(&mut self, now: Tick) {
        self.locks.free_all(now);
    }

    pub(super) fn describe_holder(&self, now: Tick, delay: Duration, host: &HostKey) -> String {
        self.locks.describe_holder(host, delay, now)
    }

    pub(super) fn forget(&mut self, now: Tick, host: &HostKey) {
        self.locks.free(host, now);
        self.spans.forget(host);
    }

    pub(super) fn spans(&mut self) -> &mut HostSpans {
        &mut self.spans
    }

    /// Records for each host in `hosts` that one of its sent states is on disk, or was replaced by
    /// a newer state.
    pub(super) fn states_kept(&mut self, now: Tick, hosts: &[HostKey]) {
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

    /// Returns the states of evicted hosts, which may be newer than the states on disk.
    pub(super) fn away(&self) -> impl Iterator<Item = (HostKey, Vec<u8>)> {
        let away = self.away.iter();
        away.map(|(host, (_, bytes))| (host.clone(), bytes.clone()))
    }

    /// Drops hosts that `is_gone` returns true for, because another worker owns them now.
    fn drop_gone(&mut self, is_gone: impl Fn(&HostKey) -> bool) {
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
            // Keep a state that is still being written, until it is on disk.
            if !self.sent.contains_key(&host) {
                self.away.remove(&host);
            }
        }
    }
}

impl Hosts {
    /// Makes sure that a host is in memory, with its stored state.
    ///
    /// # Errors
    /// The frontier can't be read.
    pub(crate) fn recall(
        &mut self,
        now: Tick,
        host: &HostKey,
        shared: &WorkerCoordination,
    ) -> Result<(), FrontierError> {
        if self.scheduler.knows(host) {
            return Ok(());
        }
        if let Some(bytes) = self.residents.take(host) {
            let bytes = self.budgets.restore(host, &bytes);
            self.scheduler
                .restore(now, host, bytes, SnapshotCompleteness::Complete);
        } else if let Some((wake, bytes)) = self.frontier.host(host)? {
            let bytes = self.budgets.restore(host, &bytes);
            self.scheduler
                .restore(now, host, bytes, self.residents.snapshot_kind);
            let restored = self.scheduler.host_state(host);
            let is_earlier = restored.is_some_and(|(restored, _)| restored.as_micros() < wake);
            if wake > now.as_micros() && is_earlier {
                // The stored time was in the future, because the clock was ahead. Have it corrected
                // on disk, or the next start would wait for it again.
                self.residents.redated.push(host.clone());
            }
        }
        if let Some(ago) = shared.taken_over_for(host) {
            self.wait_after_takeover(now, host, ago);
        }
        let is_seed = self.residents.of_seeds.contains(host);
        self.scheduler.prioritize(now, host, u8::from(!is_seed));
        Ok(())
    }

    /// Makes a host wait for a gap, counted from when this worker took it over, which is `ago`
    /// before now. The previous owner may have sent requests until then.
    fn wait_after_takeover(&mut self, now: Tick, host: &HostKey, ago: Duration) {
        let ago = u64::try_from(ago.as_micros()).unwrap_or(u64::MAX);
        let taken_at = Tick::from_micros(now.as_micros().saturating_sub(ago));
        let gap = self.own_delay(host);
        // The previous owner may have had the maximum number of requests to the host in flight.
        for _ in 0..self.config.politeness.per_host.max(1) {
            self.scheduler
                .note_past_request(now, host, taken_at, gap, None);
        }
    }

    /// Evicts idle hosts, least recently active first, until memory use is below the limit. Returns
    /// the origins of the evicted hosts.
    pub(crate) fn evict_idle(&mut self, now: Tick) -> Vec<Origin> {
        let mut evicted = Vec::new();
        self.residents.drop_until(now);
        while self.scheduler.hosts() > self.config.hosts_in_memory {
            let Some(EvictedHost {
                host,
                origins,
                wake,
                bytes,
            }) = self.scheduler.evict()
            else {
                break;
            };
            let mut stored = self.budgets.stored(&host).to_vec();
            stored.extend_from_slice(&bytes);
            self.forget(now, &host);
            self.residents.put(now, host, wake, stored);
            evicted.extend(origins);
        }
        evicted
    }

    /// Evicts the hosts that other workers take over. Then requests the hand-over of each bucket (a
    /// set of hosts) that has nothing in flight. Returns the origins of the evicted hosts, and
    /// their unsent requests for rules.
    pub(crate) fn hand_over(
        &mut self,
        now: Tick,
        shared: &mut WorkerCoordination,
        out: &mut Vec<Effect>,
    ) -> RelinquishedHost {
        let mut busy = shared.busy_buckets(self.residents.sent.keys());
        let hosts = self.scheduler.known_hosts();
        let leaving = hosts.filter(|host| shared.is_leaving(host));
        let leaving: Vec<HostKey> = leaving.cloned().collect();
        let (mut evicted, mut left) = (RelinquishedHost::default(), Vec::new());
        for host in leaving {
            match self.scheduler.hand_over(now, &host) {
                Some(of_host) => {
                    evicted.origins.extend(of_host.origins);
                    evicted.unsent_hops.extend(of_host.unsent_hops);
                    left.push(host);
                }
                None => busy.extend(shared.bucket_of(&host)),
            }
        }
        let free = shared.hand_over(&busy, out);
        if !free.is_empty() {
            let is_gone = |host: &HostKey| {
                shared
                    .bucket_of(host)
                    .is_some_and(|bucket| free.contains(&bucket))
            };
            self.residents.drop_gone(is_gone);
        }
        for host in left {
            self.forget(now, &host);
        }
        evicted
    }

    /// Forgets an evicted host.
    fn forget(&mut self, now: Tick, host: &HostKey) {
        self.budgets.forget(host);
        self.retries.forget(host);
        self.last_failures.remove(host);
        self.residents.forget(now, host);
    }

    /// Unlocks a host for the user's other crawls if this crawl doesn't need it now: the host is
    /// parked or has nothing to fetch, and has neither leased URLs nor requests in flight.
    pub(crate) fn free_if_idle(&mut self, now: Tick, host: &HostKey) {
        // Note the gap once more: the request that just ended may have been for robots.txt, which
        // can change the host's pace.
        self.note_gap(host);
        let is_free = self.scheduler.is_idle(host) || self.scheduler.is_parked(host);
        let is_busy = self.budgets.leases(host) > 0 || self.scheduler.has_in_flight(host);
        if is_free && !is_busy {
            self.residents.locks.free(host, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_scheduler::PollOutcome;
    use crawl_weburl::{HostKey, Origin};

    use super::super::super::fixtures::{at, config, coordinator, copy, open_to_all};
    use super::super::super::host_locks::HostLocks;
    use super::ResidentHosts;
    use crate::config::Config;

    fn hosts() -> ResidentHosts {
        ResidentHosts::new(&config())
    }

    #[test]
    fn a_host_is_kept_until_it_may_get_a_request() {
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
    fn a_host_is_kept_until_its_state_is_on_disk() {
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
    fn a_host_stored_by_a_fast_clock_is_written_again() {
        let host = HostKey::parse("a.example").unwrap();
        for (asked, is_ahead) in [(20, false), (5_000, true)] {
            let mut before = coordinator(|_| {});
            let gap = Duration::from_secs(1);
            let scheduler = before.hosts.scheduler();
            scheduler.note_past_request(at(asked), &host, at(asked), gap, None);
            let state = before.hosts.state(&host);
            let mut now = coordinator(|_| {});
            let frontier = Arc::clone(&now.frontier);
            let mut transaction = frontier.begin().unwrap();
            transaction.keep_host(&host, state.wake, &state.bytes());
            transaction.commit().unwrap();
            now.hosts.recall(at(20), &host, &now.shared).unwrap();
            assert!(now.hosts.knows(&host));
            let redated = now.hosts.residents.take_redated();
            assert_eq!(redated.contains(&host), is_ahead, "{asked}");
        }
    }

    #[test]
    fn idle_hosts_are_evicted_down_to_the_limit() {
        for (hosts_in_memory, left) in [(5, 3), (3, 3), (2, 2), (1, 1)] {
            let mut coordinator = coordinator(|config| config.hosts_in_memory = hosts_in_memory);
            for name in ["a", "b", "c"] {
                let origin = Origin::parse(&format!("http://{name}.example")).unwrap();
                let scheduler = coordinator.hosts.scheduler();
                scheduler.set_robots(at(20), &origin, open_to_all());
                scheduler.set_pending(at(20), &origin, 0);
            }
            coordinator.evict_idle(at(20));
            assert_eq!(
                coordinator.hosts.scheduler().hosts(),
                left,
                "{hosts_in_memory}"
            );
        }
    }

    #[test]
    fn idle_and_parked_hosts_are_unlocked() {
        let dir = tempfile::tempdir().unwrap();
        let shared = |config: &mut Config| {
            config.host_locks = Some(dir.path().join("hosts.lock"));
        };
        let locks = || {
            let mut config = config();
            shared(&mut config);
            HostLocks::shared(&config, None, at(10)).unwrap()
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
            assert!(
                coordinator
                    .hosts
                    .residents
                    .hold(at(20), Duration::ZERO, &host)
                    .is_ok()
            );
            coordinator.hosts.set_pending(at(20), &origin, pending);
            (0..leases).for_each(|_| coordinator.hosts.budgets_mut().leased(&host));
            if is_parked {
                coordinator.hosts.scheduler().park(at(20), &host);
            }
            coordinator.hosts.free_if_idle(at(20), &host);
            let held = other.hold(&host, Duration::ZERO, at(20));
            assert_eq!(held.is_ok(), is_free, "{pending} {leases} {is_parked}");
        }
    }

    #[test]
    fn a_recalled_host_has_its_state() {
        let mut coordinator = coordinator(|config| {
            config.hosts_in_memory = 0;
            config.budgets.max_time = None;
        });
        let origin = Origin::parse("http://a.example").unwrap();
        let host = origin.host_key();
        let gap = Duration::from_secs(50);
        let scheduler = coordinator.hosts.scheduler();
        scheduler.note_past_request(at(20), &host, at(20), gap, None);
        scheduler.set_robots(at(20), &origin, open_to_all());
        scheduler.set_pending(at(20), &origin, 0);
        coordinator.robots.meet(at(20), &origin).unwrap();
        coordinator.hosts.budgets_mut().settled(&host, 0);
        let before = coordinator.hosts.budgets_mut().stored(&host);
        coordinator.evict_idle(at(20));
        assert!(!coordinator.hosts.knows(&host) && !coordinator.robots.is_met(&origin));
        assert_ne!(coordinator.hosts.budgets_mut().stored(&host), before);
        coordinator
            .hosts
            .recall(at(30), &host, &coordinator.shared)
            .unwrap();
        assert!(coordinator.hosts.knows(&host));
        assert_eq!(coordinator.hosts.budgets_mut().stored(&host), before);
        let wake = coordinator
            .hosts
            .scheduler()
            .snapshot(&host)
            .map(|(wake, _)| wake);
        assert_eq!(wake, Some(at(70)));
        assert_eq!(
            coordinator.hosts.residents.take(&host),
            None,
            "it is away no more"
        );
        assert!(coordinator.hosts.residents.take_redated().is_empty());
    }

    #[test]
    fn hosts_of_seeds_come_first() {
        let mut coordinator = coordinator(|_| {});
        let origins =
            ["b", "a", "c"].map(|name| Origin::parse(&format!("http://{name}.example")).unwrap());
        for origin in &origins {
            coordinator.wake(at(20), origin, 1);
        }
        let PollOutcome::Issue(permit) = coordinator.hosts.poll(at(20)) else {
            panic!("no permit");
        };
        assert_eq!(permit.host().as_str(), "a.example");
    }

    #[test]
    fn a_state_on_disk_is_dropped_once_its_host_may_get_a_request() {
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
    fn the_newest_state_of_a_host_wins() {
        let (mut hosts, host) = (hosts(), HostKey::parse("a.example").unwrap());
        hosts.put(at(1), host.clone(), at(5), vec![1]);
        hosts.put(at(2), host.clone(), at(9), vec![2]);
        hosts.check_invariants(0);
        hosts.drop_until(at(6));
        assert_eq!(hosts.take(&host), Some(vec![2]));
    }

    #[test]
    fn an_origin_keeps_to_the_pace_of_the_other_scheme() {
        for (known, other) in [("http", "https"), ("https", "http")] {
            let mut coordinator = coordinator(|_| {});
            let [known, other] = [known, other]
                .map(|scheme| Origin::parse(&format!("{scheme}://a.example")).unwrap());
            let copy = copy(&known, "User-agent: *\nCrawl-delay: 7\n");
            let mut transaction = coordinator.frontier.begin().unwrap();
            transaction.keep_robots(&known, &copy.to_bytes());
            transaction.commit().unwrap();
            coordinator.wake(at(20), &other, 1);
            let work = coordinator.hosts.busiest(at(20), 1);
            assert_eq!(work[0].gap, Duration::from_secs(7), "{known}");
        }
    }
}
