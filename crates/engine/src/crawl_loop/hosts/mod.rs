//! Hosts: which of them may get a request and when, what each has spent of its budgets, and which
//! are in memory.

mod earlier_runs;
mod natural_run_end;
mod operator_commands;
mod residency;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crawl_fetcher::{Exchange, ExchangeFailure};
use crawl_frontier::Frontier;
use crawl_scheduler::{
    HostWait, HostWorkload, HostsSummary, OutcomeKind, PaceFromRobots, Permit,
    PermitAdmissionResult, PollOutcome, RequestOutcome, RequestPurpose, RobotsState, Scheduler,
    SpentPermit, Tick,
};
use crawl_weburl::{CanonicalUrl, HostKey, Origin};

#[cfg(test)]
pub(super) use self::operator_commands::MAX_DELAYS;
use self::residency::ResidentHosts;
use super::host_budgets::HostBudgetTracker;
use super::host_locks::{HostLocks, HostRefusal};
use super::requests_in_flight::InFlightRequests;
use super::retries::{FetchAttempt, RetryDecider};
use crate::config::Config;
use crate::messages::HostState;
use crate::trace_events::HostSpans;

/// The slowest host is determined only if at most this many hosts are in memory. Progress is
/// reported several times a second, so searching more hosts would cost too much.
const MAX_HOSTS_SEARCHED: usize = 20_000;

/// Number of hosts to compare to find the slowest: those with the most pending URLs.
const MAX_HOSTS_COMPARED: usize = 50;

/// All hosts of a crawl. Combines the scheduler with the budgets, locks, retries and requests in
/// flight of each host, and decides which hosts stay in memory.
///
/// - Set up: [`enter_round`](Self::enter_round), [`share_locks`](Self::share_locks), then the state
///   of earlier runs with [`restore`](Self::restore),
///   [`note_past_request`](Self::note_past_request) and
///   [`note_unknown_requests`](Self::note_unknown_requests).
/// - Work of an origin: [`recall`](Self::recall) its host, then [`set_pending`](Self::set_pending)
///   (0 if [`turns_away`](Self::turns_away) returns true), `set_robots`, `set_robots_pace` and
///   [`queue_rules_request`](Self::queue_rules_request).
/// - A permit: [`poll`](Self::poll) or [`poll_host`](Self::poll_host), then [`hold`](Self::hold).
///   If the host's address must be looked up, [`set_aside`](Self::set_aside),
///   [`look_up_ended`](Self::look_up_ended) and [`next_looked_up`](Self::next_looked_up). At the end
///   [`sent`](Self::sent), or [`give_back`](Self::give_back).
/// - A request: [`request_ended`](Self::request_ended). A page is also reported with
///   [`page_leased`](Self::page_leased) before its request, [`page_ended`](Self::page_ended) after
///   it, and [`page_settled`](Self::page_settled) once it counts as a page of its host. If a page
///   must be read before it is known whether it counts, [`page_undecided`](Self::page_undecided)
///   comes first, and then `page_ended` again.
/// - A host: [`state`](Self::state) returns its durable state after each change. The caller has the
///   state written, and reports the commit with [`states_kept`](Self::states_kept). Each step of
///   the loop calls [`evict_idle`](Self::evict_idle).
///
/// Emits no effects. Methods return origins to wake, or origins of evicted hosts.
pub(crate) struct Hosts {
    config: Arc<Config>,
    frontier: Arc<dyn Frontier>,
    scheduler: Scheduler,
    residents: ResidentHosts,
    budgets: HostBudgetTracker,
    retries: RetryDecider,
    requests: InFlightRequests,
    /// The start of this run, if the log may lack requests of an earlier run. The missing requests
    /// ended before this time. `None` if the log is complete.
    unknown_before: Option<Tick>,
    /// The time until which hosts may have to wait, because the log may lack requests to them.
    unknown_until: Tick,
    /// Hosts that an operator parked. They get no requests.
    parked: BTreeSet<HostKey>,
    /// Hosts that get no requests because the login to their site failed in this run, with the
    /// reason.
    without_login: HashMap<HostKey, String>,
    /// How the last request to a host failed, for each host in memory that has not answered since.
    last_failures: HashMap<HostKey, String>,
}

impl Hosts {
    pub(super) fn new(config: &Arc<Config>, frontier: &Arc<dyn Frontier>, seed: u64) -> Hosts {
        Hosts {
            config: Arc::clone(config),
            frontier: Arc::clone(frontier),
            scheduler: Scheduler::new(config.politeness.clone(), seed),
            residents: ResidentHosts::new(config),
            budgets: HostBudgetTracker::new(&config.budgets),
            retries: RetryDecider::new(config.retries),
            requests: InFlightRequests::default(),
            unknown_before: None,
            unknown_until: Tick::ZERO,
            parked: BTreeSet::new(),
            without_login: HashMap::new(),
            last_failures: HashMap::new(),
        }
    }

    pub(super) fn enter_round(&mut self, round: u32) {
        self.budgets.enter_round(round);
    }

    /// Respects host locks held by the user's other crawls.
    pub(super) fn share_locks(&mut self, locks: HostLocks) {
        self.residents.share(locks);
    }

    pub(super) fn host_of(&self, origin: &Origin) -> HostKey {
        let host = self.scheduler.host_of(origin).cloned();
        host.unwrap_or_else(|| origin.host_key())
    }

    pub(super) fn knows(&self, host: &HostKey) -> bool {
        self.scheduler.knows(host)
    }

    pub(super) fn set_pending(&mut self, now: Tick, origin: &Origin, urls: u64) {
        self.scheduler.set_pending(now, origin, urls);
    }

    /// Returns whether the budgets of a host leave no room for another page. If so, and if a lease
    /// of the host may still turn out not to count as a page, [`page_ended`](Self::page_ended)
    /// returns the origin later.
    pub(super) fn turns_away(&mut self, now: Tick, host: &HostKey, origin: &Origin) -> bool {
        let is_full = self.budgets.is_full(now, host);
        if is_full {
            self.budgets.turn_away(origin);
        }
        is_full
    }

    /// Returns whether a host has spent a budget other than its page budget.
    pub(super) fn is_budget_spent(&mut self, now: Tick, host: &HostKey) -> bool {
        self.budgets.is_spent(now, host)
    }

    pub(super) fn set_robots(&mut self, now: Tick, origin: &Origin, state: RobotsState) {
        self.scheduler.set_robots(now, origin, state);
        self.extend_wait_for_unknown(&origin.host_key());
    }

    pub(super) fn set_robots_pace(&mut self, now: Tick, origin: &Origin, pace: &PaceFromRobots) {
        self.scheduler.set_robots_pace(now, origin, pace);
        self.extend_wait_for_unknown(&origin.host_key());
    }

    /// Schedules another request for an origin's robots.txt. No effect if the origin was evicted
    /// from memory.
    pub(super) fn begin_rules_again(&mut self, now: Tick, origin: &Origin) {
        if self.scheduler.host_of(origin).is_some() {
            self.set_robots(now, origin, RobotsState::Unknown);
        }
    }

    /// Queues a request to `host` that the rules of the origin `of` depend on, for example because
    /// the robots.txt of `of` redirects to `host`. The request comes before those for pages of
    /// `host`.
    pub(super) fn queue_rules_request(&mut self, now: Tick, host: &HostKey, of: &Origin) {
        let purpose = RequestPurpose::Hop { of: of.clone() };
        self.scheduler.queue_request(now, host, purpose);
    }

    pub(super) fn poll(&mut self, now: Tick) -> PollOutcome {
        self.scheduler.poll(now)
    }

    pub(super) fn poll_host(&mut self, now: Tick, host: &HostKey) -> PollOutcome {
        self.scheduler.poll_host(now, host)
    }

    /// Locks the host of a permit against the user's other crawls. If another crawl holds the host
    /// or fetched from it just now, gives the permit back and makes the host wait.
    pub(super) fn hold(&mut self, now: Tick, permit: Permit) -> Option<Permit> {
        let delay = self.delay_in_force(permit.host());
        let Err(refusal) = self.residents.hold(now, delay, permit.host()) else {
            return Some(permit);
        };
        let host = permit.host().clone();
        self.scheduler.give_back(now, permit);
        match refusal {
            HostRefusal::TryAgainAt(again_at) => {
                self.scheduler.wait_for_other_crawl(now, &host, again_at);
            }
            // Make each request slot of the host wait, as if this crawl had sent the other crawl's
            // request.
            HostRefusal::WithinGap(since, gap) => {
                for _ in 0..self.config.politeness.per_host.max(1) {
                    (self.scheduler).note_past_request(now, &host, since, gap, None);
                }
            }
        }
        None
    }

    pub(super) fn has_address(&self, host: &HostKey) -> bool {
        self.scheduler.has_address(host)
    }

    /// Sets a permit aside until the address of its host has been looked up.
    pub(super) fn set_aside(&mut self, now: Tick, permit: Permit) -> Permit {
        self.requests.look_up_began();
        self.scheduler.set_aside(now, permit)
    }

    pub(super) fn look_up_ended(&mut self, permit: Permit, address: Option<IpAddr>) {
        self.requests.look_up_ended(permit, address);
    }

    /// Queues a permit that was set aside, as if the look-up of its address had ended without a
    /// result.
    pub(super) fn skip_look_up(&mut self, permit: Permit) {
        self.requests.skip_look_up(permit);
    }

    /// Takes the oldest permit whose address look-up ended. `Ok(None)` means that the scheduler
    /// took that permit back, but another permit may be ready.
    ///
    /// # Errors
    /// No request may be sent now: no permit is ready, or the request must wait for room. The error
    /// is the time at which there is room, if known.
    pub(super) fn next_looked_up(&mut self, now: Tick) -> Result<Option<Permit>, Option<Tick>> {
        let (permit, address) = self.requests.next_looked_up().ok_or(None)?;
        let host = permit.host().clone();
        match self.scheduler.admit(now, permit, address) {
            PermitAdmissionResult::Send(permit) => Ok(Some(permit)),
            PermitAdmissionResult::GivenBack => {
                self.free_if_idle(now, &host);
                Ok(None)
            }
            PermitAdmissionResult::Wait(permit, until) => {
                self.requests.put_back(permit, address);
                Err(until)
            }
        }
    }

    /// Gives back all permits whose address look-up ended, for a run that sends no more requests.
    pub(super) fn give_found_back(&mut self, now: Tick) {
        while let Some((permit, _)) = self.requests.next_looked_up() {
            self.give_back(now, permit);
        }
    }

    pub(super) fn give_back(&mut self, now: Tick, permit: Permit) {
        let host = permit.host().clone();
        self.scheduler.give_back(now, permit);
        self.free_if_idle(now, &host);
    }

    /// Gives back a permit whose origin has nothing to request.
    pub(super) fn give_back_unneeded(&mut self, now: Tick, permit: Permit) {
        let (host, purpose) = (permit.host().clone(), permit.purpose().clone());
        self.scheduler.give_back(now, permit);
        if let RequestPurpose::Hop { .. } = purpose {
            self.scheduler.cancel_request(now, &host, &purpose);
        }
        self.free_if_idle(now, &host);
    }

    pub(super) fn sent(&mut self) {
        self.requests.sent();
    }

    /// Records the end of a request, and the failure if the request failed. Returns when the host
    /// may get its next request.
    pub(super) fn request_ended(
        &mut self,
        now: Tick,
        spent: SpentPermit,
        signal: RequestOutcome,
        failure: Option<&ExchangeFailure>,
    ) -> HostWait {
        self.requests.ended();
        let (host, started) = (spent.host(), spent.issued());
        let is_hosts = matches!(
            signal.kind,
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection
        );
        match failure.filter(|_| is_hosts) {
            Some(failure) => drop(self.last_failures.insert(host.clone(), failure.reason())),
            None => drop(self.last_failures.remove(host)),
        }
        self.budgets
            .request_ended(host, started, signal.response_time);
        let host = host.clone();
        let wait = self.scheduler.done(now, spent, signal);
        self.note_gap(&host);
        wait
    }

    /// Notes the gap after the last request to a host, for the user's other crawls.
    pub(super) fn note_gap(&mut self, host: &HostKey) {
        if self.residents.are_locks_shared() {
            let gap = self.scheduler.gap_for_other_crawls(host);
            let is_in_flight = self.scheduler.has_in_flight(host);
            self.residents.note_gap(host, gap, is_in_flight);
        }
    }

    /// Unlocks all hosts for the user's other crawls, because this run sends no more requests.
    pub(super) fn end_locks(&mut self, now: Tick) {
        self.residents.end_locks(now);
    }

    /// Unlocks all hosts for the user's other crawls, for a run that is paused.
    pub(super) fn free_all(&mut self, now: Tick) {
        self.residents.free_all(now);
    }

    /// Returns the requests in flight, look-ups included.
    pub(super) fn requests(&self) -> &InFlightRequests {
        &self.requests
    }

    pub(super) fn page_leased(&mut self, now: Tick, host: &HostKey, origin: &Origin) {
        self.budgets.leased(host);
        self.set_pending(now, origin, self.frontier.pending(origin));
    }

    /// Counts the end of a lease, before it is known whether the leased URL counts as a page.
    /// Returns origins of the host that got no permit before and may get one now.
    pub(super) fn page_ended(&mut self, host: &HostKey) -> Vec<Origin> {
        self.budgets.lease_ended(host)
    }

    /// Counts a page with a body of this many bytes.
    pub(super) fn page_settled(&mut self, host: &HostKey, bytes: u64) {
        self.budgets.settled(host, bytes);
    }

    /// Counts a page as leased again, until a reader decides whether it counts as a page of its
    /// host.
    pub(super) fn page_undecided(&mut self, host: &HostKey) {
        self.budgets.leased(host);
    }

    /// Stops counting a page, because its URL is pending again.
    pub(super) fn page_unsettled(&mut self, host: &HostKey, bytes: u64) {
        self.budgets.unsettled(host, bytes);
    }

    /// If the hosts that share a budget with this one have budget left again, returns the origins
    /// that got no permit while that budget was full.
    pub(super) fn with_room_again(
        &mut self,
        host: &HostKey,
    ) -> impl Iterator<Item = Origin> + use<> {
        self.budgets.with_room_again(host).into_iter()
    }

    /// Returns whether to retry a URL after an attempt.
    pub(super) fn is_tried_again(
        &mut self,
        attempt: FetchAttempt<'_>,
        host: &HostKey,
        kind: OutcomeKind,
        result: &Result<Box<Exchange>, ExchangeFailure>,
    ) -> bool {
        self.retries.is_tried_again(attempt, host, kind, result)
    }

    /// Returns whether the server refused the conditional request of a URL that is retried.
    pub(super) fn refused_condition(&self, url: &CanonicalUrl) -> bool {
        self.retries.refused_condition(&url.host_key(), url)
    }

    /// Returns the durable form of a host's state, for the writer to store.
    pub(super) fn state(&mut self, host: &HostKey) -> HostState {
        let sequence = self.residents.state_sent(host);
        let (wake, politeness) = self.scheduler.host_state(host).unzip();
        HostState {
            host: host.clone(),
            wake: wake.unwrap_or(Tick::ZERO).as_micros(),
            budget: self.budgets.stored(host),
            politeness,
            sequence,
        }
    }

    /// Records that a state of each host in `hosts` is on disk, or was replaced by a newer state.
    pub(super) fn states_kept(&mut self, now: Tick, hosts: &[HostKey]) {
        self.residents.states_kept(now, hosts);
    }

    /// Returns the host states to store again, because the clock was ahead when they were stored.
    pub(super) fn redated_states(&mut self) -> Vec<HostState> {
        let hosts = self.residents.take_redated();
        hosts.iter().map(|host| self.state(host)).collect()
    }

    pub(super) fn spans(&mut self) -> &mut HostSpans {
        self.residents.spans()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.scheduler.in_flight()
    }

    pub(super) fn budgets(&self) -> &HostBudgetTracker {
        &self.budgets
    }

    pub(super) fn summary(&self, now: Tick) -> HostsSummary {
        self.scheduler.host_summary(now)
    }

    pub(super) fn busiest(&self, now: Tick, max: usize) -> Vec<HostWorkload> {
        self.scheduler.busiest(now, max)
    }

    /// Returns how long the slowest host needs to fetch its pending URLs at its gap. Compares only
    /// the hosts with the most pending URLs, and ignores pauses that this run doesn't wait for.
    /// `None` if the crawl has too many hosts to search, or if hosts have budgets, since some URLs
    /// may then never be fetched.
    pub(super) fn slowest(&self, now: Tick) -> Option<Duration> {
        let hosts = self.scheduler.known_hosts().count();
        if self.budgets.limit_hosts() || hosts > MAX_HOSTS_SEARCHED {
            return None;
        }
        let slots = self.config.politeness.per_host.max(1);
        let busiest = self.busiest(now, MAX_HOSTS_COMPARED);
        let latest = now + self.config.wait_unreachable;
        let paused = self.scheduler.host_summary(now).paused.into_iter();
        let paused = paused.filter(|rest| rest.until > latest);
        let ignored: HashSet<HostKey> = paused.map(|rest| rest.host).collect();
        let active = busiest
            .iter()
            .filter(|host| !host.is_parked && !ignored.contains(&host.host));
        let times = active.map(|host| {
            let first = host.next_at.map_or(Duration::ZERO, |at| at.since(now));
            let gaps = u32::try_from(host.waiting.saturating_sub(1)).unwrap_or(u32::MAX);
            first.saturating_add(host.gap.saturating_mul(gaps) / slots)
        });
        times.max()
    }

    /// Checks the counters against each other and against other parts of the loop.
    ///
    /// # Panics
    /// If they do not agree.
    #[cfg(test)]
    pub(super) fn check_invariants(&self, unsettled: u64) {
        assert_eq!(
            self.requests.count(),
            self.scheduler.in_flight() + self.scheduler.look_ups(),
            "in flight"
        );
        self.residents.check_invariants(unsettled);
    }

    #[cfg(test)]
    pub(super) fn scheduler(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    #[cfg(test)]
    pub(super) fn budgets_mut(&mut self) -> &mut HostBudgetTracker {
        &mut self.budgets
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crawl_frontier::{Frontier, MemoryFrontier};
    use crawl_scheduler::{Permit, PollOutcome, RequestPurpose, RobotsState};
    use crawl_weburl::Origin;

    use super::super::fixtures::{at, config, open_to_all};
    use super::Hosts;
    use crate::config::Config;

    fn hosts(change: impl FnOnce(&mut Config)) -> Hosts {
        let mut config = config();
        change(&mut config);
        let frontier: Arc<dyn Frontier> = Arc::new(MemoryFrontier::new());
        Hosts::new(&Arc::new(config), &frontier, 1)
    }

    fn origin() -> Origin {
        Origin::parse("http://a.example").unwrap()
    }

    fn permit(hosts: &mut Hosts) -> Permit {
        match hosts.poll(at(20)) {
            PollOutcome::Issue(permit) => permit,
            other => panic!("no permit: {other:?}"),
        }
    }

    #[test]
    fn a_pause_that_the_run_does_not_wait_for_is_not_estimated() {
        for (wait, slowest) in [(60, None), (300, Some(300))] {
            let mut hosts = hosts(|config| config.wait_unreachable = Duration::from_secs(wait));
            let state = RobotsState::Unreachable { retry_at: at(320) };
            hosts.scheduler().set_robots(at(20), &origin(), state);
            hosts.set_pending(at(20), &origin(), 1);
            assert_eq!(
                hosts.slowest(at(20)),
                slowest.map(Duration::from_secs),
                "{wait}"
            );
        }
    }

    #[test]
    fn a_permit_is_found_after_its_look_up_and_waits_for_room() {
        let mut hosts = hosts(|config| config.politeness.concurrency = 1);
        for name in ["a.example", "b.example"] {
            let origin = Origin::parse(&format!("http://{name}")).unwrap();
            hosts.set_pending(at(20), &origin, 1);
            let permit = permit(&mut hosts);
            let permit = hosts.set_aside(at(20), permit);
            hosts.look_up_ended(permit, None);
            hosts.check_invariants(0);
        }
        let first = hosts.next_looked_up(at(20)).unwrap().unwrap();
        hosts.sent();
        assert_eq!(first.host().as_str(), "a.example");
        // The concurrency is used up by the first request, so the second must wait.
        assert!(hosts.next_looked_up(at(20)).is_err());
        hosts.check_invariants(0);
        hosts.give_found_back(at(20));
        assert!(matches!(hosts.next_looked_up(at(20)), Err(None)));
        hosts.check_invariants(0);
        assert_eq!((hosts.in_flight(), hosts.requests().count()), (1, 1));
    }

    #[test]
    fn an_origin_is_turned_away_while_leases_fill_the_budget_of_its_host() {
        let mut hosts = hosts(|config| config.budgets.per_host.max_pages = Some(1));
        let (origin, host) = (origin(), origin().host_key());
        assert!(!hosts.turns_away(at(20), &host, &origin));
        hosts.page_leased(at(20), &host, &origin);
        assert!(hosts.turns_away(at(20), &host, &origin));
        assert!(hosts.page_ended(&host).contains(&origin));
        assert!(!hosts.turns_away(at(20), &host, &origin));
        hosts.page_settled(&host, 0);
        assert!(hosts.turns_away(at(20), &host, &origin));
        assert!(hosts.page_ended(&host).is_empty());
        hosts.page_unsettled(&host, 0);
        assert!(!hosts.turns_away(at(20), &host, &origin));
    }

    #[test]
    fn a_request_for_rules_is_dropped_with_its_permit() {
        let mut hosts = hosts(|_| {});
        hosts.set_pending(at(20), &origin(), 0);
        hosts.set_robots(at(20), &origin(), open_to_all());
        hosts.queue_rules_request(at(20), &origin().host_key(), &origin());
        let permit = permit(&mut hosts);
        assert_eq!(*permit.purpose(), RequestPurpose::Hop { of: origin() });
        hosts.give_back_unneeded(at(20), permit);
        assert!(matches!(hosts.poll(at(20)), PollOutcome::Idle));
    }

    #[test]
    fn rules_are_fetched_again_only_for_origins_in_memory() {
        for is_in_memory in [false, true] {
            let mut hosts = hosts(|_| {});
            if is_in_memory {
                hosts.set_pending(at(20), &origin(), 1);
                hosts.set_robots(at(20), &origin(), open_to_all());
            }
            hosts.begin_rules_again(at(20), &origin());
            assert_eq!(hosts.knows(&origin().host_key()), is_in_memory);
            if is_in_memory {
                let purpose = permit(&mut hosts).purpose().clone();
                assert_eq!(purpose, RequestPurpose::Robots { origin: origin() });
            }
        }
    }
}
