//! The scheduler's public interface.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin, Site};
use foldhash::fast::RandomState;

use crate::host::{HostQueueMembership, NO_GATE, ScheduledHost};
use crate::origin::{FEW_ORIGINS, OriginEntry, RobotsState};
use crate::pace_from_robots::PaceFromRobots;
use crate::permit::{
    GapReason, GateCharge, Permit, PermitAdmissionResult, PollOutcome, RequestPurpose, SpentPermit,
};
use crate::politeness_settings::{Politeness, SharedHostLimits};
use crate::random::SplitMix64;
use crate::rate_limits::MaxRateLimiter;
use crate::ready_queue_entry::{ReadyQueueEntry, ReadyQueueKey};
use crate::request_outcome::{HostWait, OutcomeKind, RequestOutcome};
use crate::shared_limit_gate::{GateKey, SharedLimitGate, SharedLimitGates};
use crate::slab::Slab;
use crate::tick::Tick;

/// Decides which host may be fetched from, when, and for what purpose.
///
/// Report work with [`Scheduler::set_pending`], [`Scheduler::set_robots`] and
/// [`Scheduler::queue_request`], take permits with [`Scheduler::poll`], and end each permit with
/// [`Scheduler::done`] or [`Scheduler::give_back`].
///
/// Every call takes the time as `now`. Time never runs backwards: if `now` is earlier than in a
/// previous call, the latest `now` so far is used.
pub struct Scheduler {
    /// The general limits, then those of each pattern, then those of single hosts.
    pub(crate) limits: Vec<Politeness>,
    /// Index of each pattern in `limits`.
    pub(crate) by_pattern: HashMap<Box<str>, u32, RandomState>,
    pub(crate) now: Tick,
    pub(crate) hosts: Slab<ScheduledHost>,
    pub(crate) by_host: HashMap<HostKey, u32, RandomState>,
    /// By origin: the index of its host, and the origin's index within the host.
    pub(crate) by_origin: HashMap<Origin, (u32, u32), RandomState>,
    pub(crate) gates: SharedLimitGates,
    /// Index of the gate that limits look-ups.
    pub(crate) look_ups: u32,
    /// Whether a host with an unknown address waits for a name look-up before its requests.
    pub(crate) looks_up_first: bool,
    /// Hosts by the time they become ready, and closed gates (shared limits) by the time they open.
    pub(crate) later: BTreeSet<(Tick, u64, ReadyQueueEntry)>,
    /// Ready hosts and open gates (shared limits), in the order in which they are served.
    pub(crate) ready: BTreeSet<(ReadyQueueKey, ReadyQueueEntry)>,
    /// Counts queue entries, to break ties by order of arrival.
    pub(crate) order: u64,
    /// When to retry an unreachable robots.txt or when visit times begin, with the index of the
    /// host and of its origin.
    pub(crate) retries: BTreeSet<(Tick, u32, u32)>,
    /// Requests queued by `queue_request`, per host. Most hosts have none.
    pub(crate) queued_requests: HashMap<u32, VecDeque<RequestPurpose>, RandomState>,
    /// Hosts that may be evicted. Each is checked again before its eviction.
    pub(crate) idle: VecDeque<u32>,
    pub(crate) rate: MaxRateLimiter,
    pub(crate) in_flight: u32,
    /// Hosts parked by the operator, whether in memory or not.
    pub(crate) parked: BTreeSet<HostKey>,
    /// Index in `limits` of each host whose delay was set during the crawl.
    pub(crate) host_limits: HashMap<HostKey, u32, RandomState>,
    /// The delay set for all hosts during the crawl.
    pub(crate) set_delay: Option<Duration>,
    /// Whether any site is limited.
    pub(crate) limits_sites: bool,
    jitter_source: SplitMix64,
}

impl Scheduler {
    /// Creates a scheduler without hosts. `seed` determines the jitter.
    #[must_use]
    pub fn new(politeness: Politeness, seed: u64) -> Scheduler {
        let politeness = politeness.made_usable();
        let mut gates = SharedLimitGates::new(&politeness);
        let look_ups = gates.open_look_ups(politeness.look_ups);
        Scheduler {
            by_pattern: politeness.by_pattern(),
            limits: politeness.of_all_patterns(),
            now: Tick::ZERO,
            hosts: Slab::new(),
            by_host: HashMap::default(),
            by_origin: HashMap::default(),
            gates,
            look_ups,
            looks_up_first: politeness.look_ups > 0,
            later: BTreeSet::new(),
            ready: BTreeSet::new(),
            order: 0,
            retries: BTreeSet::new(),
            queued_requests: HashMap::default(),
            idle: VecDeque::new(),
            rate: MaxRateLimiter::new(politeness.max_rate),
            in_flight: 0,
            parked: BTreeSet::new(),
            host_limits: HashMap::default(),
            set_delay: None,
            limits_sites: politeness.limits_sites(),
            jitter_source: SplitMix64::new(seed),
        }
    }

    /// Sets the number of pending, unleased URLs of an origin. With 0, no page permit is issued.
    ///
    /// Each page permit issued after this call uses up one of these URLs. A new origin starts with
    /// its robots.txt unknown.
    pub fn set_pending(&mut self, now: Tick, origin: &Origin, urls: u64) {
        self.advance(now);
        if urls == 0 && !self.by_origin.contains_key(origin) {
            return;
        }
        let (id, index) = self.origin_index(origin);
        self.update_origin(id, index, |entry| entry.set_waiting(urls));
        self.refresh(id);
    }

    /// Sets the state of an origin's robots.txt. After a permit for robots.txt, no page permit is
    /// issued for the origin before this call.
    pub fn set_robots(&mut self, now: Tick, origin: &Origin, state: RobotsState) {
        self.advance(now);
        let (id, index) = self.origin_index(origin);
        self.update_origin(id, index, |entry| entry.set_robots(now, state));
        self.hosts[id].learn_pace();
        self.refresh(id);
    }

    /// Sets only the pace of an origin's robots.txt, not its state: page permits still require
    /// [`Scheduler::set_robots`]. The pace applies to all later requests to the host,
    /// including requests other than pages.
    pub fn set_robots_pace(&mut self, now: Tick, origin: &Origin, pace: &PaceFromRobots) {
        self.advance(now);
        let (id, index) = self.origin_index(origin);
        self.update_origin(id, index, |entry| entry.heed(pace));
        self.hosts[id].learn_pace();
        self.refresh(id);
    }

    /// Returns whether a host has no pending work and nothing in flight. True for a host that is
    /// not in memory.
    #[must_use]
    pub fn is_idle(&self, host: &HostKey) -> bool {
        let id = self.by_host.get(host);
        id.is_none_or(|id| self.hosts[*id].is_idle())
    }

    /// Returns whether a host has permits that were neither spent nor given back.
    #[must_use]
    pub fn has_in_flight(&self, host: &HostKey) -> bool {
        let id = self.by_host.get(host);
        id.is_some_and(|id| self.hosts[*id].in_flight > 0)
    }

    /// Returns the host of an origin, if it is in memory.
    #[must_use]
    pub fn host_of(&self, origin: &Origin) -> Option<&HostKey> {
        let (id, _) = self.by_origin.get(origin)?;
        Some(&self.hosts[*id].key)
    }

    /// Returns whether a host is in memory.
    #[must_use]
    pub fn knows(&self, host: &HostKey) -> bool {
        self.by_host.contains_key(host)
    }

    /// Sets the priority of a host. The default, 0, is served first.
    ///
    /// Priority only orders hosts that became ready in the same millisecond. A host that has waited
    /// longer always goes first, so no host starves. Priority therefore matters only if more hosts
    /// become ready at once than may be in flight: at the start, or after a commit that adds many
    /// hosts. An evicted host loses its priority.
    pub fn prioritize(&mut self, now: Tick, host: &HostKey, priority: u8) {
        self.advance(now);
        let id = self.host_index(host);
        if self.hosts[id].priority != priority {
            let placed = self.hosts[id].position != HostQueueMembership::NotQueued;
            self.dequeue(id);
            self.hosts[id].priority = priority;
            if placed {
                self.enqueue(id);
            }
        }
    }

    /// Queues a request that has no pending URL: a redirect hop of a robots request, or the
    /// robots.txt of an origin without URLs. The request is issued before the host's pages.
    ///
    /// A page purpose is ignored: pages need [`Scheduler::set_pending`], which makes robots.txt
    /// come first.
    pub fn queue_request(&mut self, now: Tick, host: &HostKey, purpose: RequestPurpose) {
        self.advance(now);
        if matches!(purpose, RequestPurpose::Page { .. }) {
            return;
        }
        let id = self.host_index(host);
        self.hosts[id].queued_requests += 1;
        self.queued_requests
            .entry(id)
            .or_default()
            .push_back(purpose);
        self.refresh(id);
    }

    /// Cancels a request for `host` from [`Scheduler::queue_request`] if it is not issued yet.
    pub fn cancel_request(&mut self, now: Tick, host: &HostKey, purpose: &RequestPurpose) {
        self.advance(now);
        let Some(&id) = self.by_host.get(host) else {
            return;
        };
        let Some(queued) = self.queued_requests.get_mut(&id) else {
            return;
        };
        queued.retain(|queued| queued != purpose);
        self.hosts[id].queued_requests = u32::try_from(queued.len()).unwrap_or(u32::MAX);
        if queued.is_empty() {
            self.queued_requests.remove(&id);
        }
        self.refresh(id);
    }

    /// Sets a permit aside during a name look-up. Until [`Scheduler::admit`], the permit counts as
    /// a look-up and not as a request in flight.
    pub fn set_aside(&mut self, now: Tick, mut permit: Permit) -> Permit {
        self.advance(now);
        if permit.0.look_up.is_none() {
            permit.0.look_up = self.charge(self.look_ups);
            self.hosts[permit.0.id].set_aside += 1;
            self.in_flight -= 1;
            if let Some(number) = permit.0.number.take() {
                self.rate.give_back(number);
            }
        }
        permit
    }

    /// Trades a set-aside permit for one that can be used now. `address` is the look-up's result;
    /// this and later requests to the host count towards that address's limits.
    ///
    /// Every limit is checked again, because time has passed. The new permit may be for another
    /// request to the same host.
    pub fn admit(
        &mut self,
        now: Tick,
        permit: Permit,
        address: Option<IpAddr>,
    ) -> PermitAdmissionResult {
        self.advance(now);
        if permit.0.look_up.is_none() {
            return PermitAdmissionResult::Send(permit);
        }
        if self.in_flight >= self.politeness().concurrency {
            return PermitAdmissionResult::Wait(permit, None);
        }
        let closed_until = self.rate.opens_at();
        if closed_until > self.now {
            return PermitAdmissionResult::Wait(permit, Some(closed_until));
        }
        let id = permit.0.id;
        if let Some(address) = address {
            self.join_address_gate(id, address);
        }
        let (place, number) = (permit.0.address, self.hosts[id].address);
        let has_place = place.is_some_and(|place| place.gate == number);
        let origin = match permit.purpose() {
            RequestPurpose::Page { origin } | RequestPurpose::Robots { origin } => {
                self.by_origin.get(origin)
            }
            RequestPurpose::Hop { .. } => None,
        };
        if let Some(&(_, index)) = origin {
            // Prefer the origin that the permit was for.
            self.hosts[id].turn = index;
        }
        self.give_back(now, permit);
        let host = &self.hosts[id];
        let is_ready = matches!(
            host.position,
            HostQueueMembership::Ready | HostQueueMembership::AtGate(_)
        );
        // Hosts already waiting at the address go first.
        let is_first = |gate: &SharedLimitGate| has_place || gate.queue.is_empty();
        if is_ready && self.gates.get(number).is_none_or(is_first) {
            self.dequeue(id);
            if let Some(permit) = self.attempt(id, true) {
                return PermitAdmissionResult::Send(permit);
            }
        }
        PermitAdmissionResult::GivenBack
    }

    /// Returns whether a host's address is known.
    #[must_use]
    pub fn has_address(&self, host: &HostKey) -> bool {
        let id = self.by_host.get(host);
        id.is_some_and(|id| self.hosts[*id].address != NO_GATE)
    }

    /// Sets the address that a host resolves to. The host's next request counts towards that
    /// address's limits. Without this call, the address is learned from [`Scheduler::admit`] or
    /// from a [`RequestOutcome`].
    pub fn set_address(&mut self, now: Tick, host: &HostKey, address: IpAddr) {
        self.advance(now);
        let id = self.host_index(host);
        self.join_address_gate(id, address);
        self.refresh(id);
    }

    /// Returns the next permit, or when to poll again.
    ///
    /// Call it in a loop until it issues no permit, and again after each call to another method
    /// that could change the result. The host that has been ready longest comes first. Hosts that
    /// became ready in the same millisecond are ordered by priority.
    pub fn poll(&mut self, now: Tick) -> PollOutcome {
        self.advance(now);
        match self.next_permit() {
            Some(permit) => PollOutcome::Issue(permit),
            None => self
                .soonest()
                .map_or(PollOutcome::Idle, PollOutcome::SleepUntil),
        }
    }

    /// Returns the next permit of one host, or when to poll again, ignoring other ready hosts. This
    /// is for callers that choose the next host themselves. Returns [`PollOutcome::Idle`] if a
    /// request to the host's address or site must end first, because the time of that end is
    /// unknown.
    pub fn poll_host(&mut self, now: Tick, host: &HostKey) -> PollOutcome {
        self.advance(now);
        let Some(&id) = self.by_host.get(host) else {
            return PollOutcome::Idle;
        };
        if self.in_flight >= self.politeness().concurrency {
            return PollOutcome::Idle;
        }
        let closed_until = self.rate.opens_at();
        if closed_until > self.now {
            return PollOutcome::SleepUntil(closed_until);
        }
        if matches!(
            self.hosts[id].position,
            HostQueueMembership::Ready | HostQueueMembership::AtGate(_)
        ) {
            self.dequeue(id);
            if let Some(permit) = self.attempt(id, false) {
                return PollOutcome::Issue(permit);
            }
        }
        let host = &self.hosts[id];
        match host.position {
            HostQueueMembership::Later => PollOutcome::SleepUntil(host.at),
            HostQueueMembership::AtGate(number) => {
                let opens_at = self.gates.get(number).and_then(SharedLimitGate::opens_at);
                opens_at.map_or(PollOutcome::Idle, |at| {
                    PollOutcome::SleepUntil(at.max(self.now))
                })
            }
            HostQueueMembership::NotQueued | HostQueueMembership::Ready => PollOutcome::Idle,
        }
    }

    /// Ends a request: frees its slot and updates its host from the outcome. Returns how long
    /// the host must wait before its next request.
    pub fn done(&mut self, now: Tick, spent: SpentPermit, signal: RequestOutcome) -> HostWait {
        self.advance(now);
        let data = *spent.0;
        let id = data.id;
        let end = signal.end.max(data.issued);
        self.in_flight -= 1;
        if let Some(address) = signal.address {
            self.join_address_gate(id, address);
            self.used(self.hosts[id].address, end);
        }
        self.release(data.address, Some(end));
        self.release(data.site, Some(end));
        let stretch = match self.politeness().jitter {
            jitter if jitter > 0.0 => jitter * self.jitter_source.fraction(),
            _ => 0.0,
        };
        let host = &mut self.hosts[id];
        let limits = &self.limits[host.limits as usize];
        // No connection to this port doesn't mean that the host is down: it may still answer on the
        // port of another origin.
        let is_of_origin =
            signal.kind == OutcomeKind::NoConnection && host.may_answer_elsewhere(&data.purpose);
        let wait_asked = match is_of_origin {
            true => None,
            false => host.learn(limits, data.issued, end, &signal),
        };
        host.end_slot(limits, end, stretch);
        let backoff = host.backoff();
        let learned = HostWait {
            next_at: host.earliest(limits, end).0,
            wait_asked,
            paused: (backoff.trip_level > 0).then_some(backoff.trip_until),
        };
        self.refresh(id);
        learned
    }

    /// Takes back an unused permit, as if it had never been issued.
    ///
    /// The next poll issues the same request again. To prevent that, call
    /// [`Scheduler::set_pending`] with 0 before this if no URL was left for the permit, or
    /// [`Scheduler::cancel_request`] after this if the permit came from
    /// [`Scheduler::queue_request`].
    pub fn give_back(&mut self, now: Tick, permit: Permit) {
        self.advance(now);
        let data = *permit.0;
        let id = data.id;
        match data.look_up {
            Some(_) => self.hosts[id].set_aside -= 1,
            None => self.in_flight -= 1,
        }
        self.release(data.look_up, None);
        self.release(data.address, None);
        self.release(data.site, None);
        if let Some(number) = data.number {
            self.rate.give_back(number);
        }
        let host = &mut self.hosts[id];
        host.in_flight -= 1;
        if let Some(slot) = data.slot {
            host.free_slot(slot);
            host.drop_slots(self.limits[host.limits as usize].per_host);
        }
        match &data.purpose {
            RequestPurpose::Page { origin } => {
                self.update_known_origin(origin, OriginEntry::page_given_back);
            }
            RequestPurpose::Robots { origin } => {
                self.update_known_origin(origin, OriginEntry::robots_given_back);
            }
            RequestPurpose::Hop { .. } => {}
        }
        if data.asked {
            self.hosts[id].queued_requests += 1;
            self.queued_requests
                .entry(id)
                .or_default()
                .push_front(data.purpose);
        }
        self.refresh(id);
    }

    /// Issues no permit for a host before `until`, because another crawl is fetching from it.
    pub fn wait_for_other_crawl(&mut self, now: Tick, host: &HostKey, until: Tick) {
        self.advance(now);
        let id = self.host_index(host);
        let backoff = self.hosts[id].backoff_mut();
        backoff.hold(until, GapReason::OtherCrawl);
        self.refresh(id);
    }

    /// Returns the number of permits that are neither done, given back nor set aside.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of permits set aside.
    #[must_use]
    pub fn look_ups(&self) -> u32 {
        self.gates
            .get(self.look_ups)
            .map_or(0, |gate| gate.in_flight)
    }

    /// Returns the operator's politeness in force, without overrides for some hosts.
    #[must_use]
    pub fn politeness(&self) -> &Politeness {
        &self.limits[0]
    }

    /// Returns the politeness in force for a host.
    pub(crate) fn limits_of(&self, host: &ScheduledHost) -> &Politeness {
        &self.limits[host.limits as usize]
    }

    /// Returns the number of hosts in memory.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.by_host.len()
    }

    /// Returns the index of a host. Adds the host if it is new.
    pub(crate) fn host_index(&mut self, key: &HostKey) -> u32 {
        if let Some(&id) = self.by_host.get(key) {
            return id;
        }
        let mut host = ScheduledHost::new(key.clone());
        host.limits = self.limits_index(key);
        host.is_parked = self.parked.contains(key);
        if let Some((site, limits)) = self.site_limits(key) {
            host.site = self.gates.join_site(self.now, site, limits);
        }
        let id = self.hosts.insert(host);
        self.by_host.insert(key.clone(), id);
        id
    }

    /// Returns the site of a host and its limits, or `None` if the site is not limited.
    pub(crate) fn site_limits(&self, key: &HostKey) -> Option<(Site, SharedHostLimits)> {
        if !self.limits_sites {
            return None;
        }
        // The scheme and port do not change the site.
        let site = Origin::parse(&format!("http://{key}")).ok()?.site();
        let limits = self.limits[0].site_limits(&site)?;
        Some((site, limits))
    }

    /// Returns the index in `limits` of the limits that apply to a host.
    pub(crate) fn limits_index(&self, key: &HostKey) -> u32 {
        let usual = || {
            let (pattern, _) = self.limits[0].sites.find(key)?;
            self.by_pattern.get(pattern).copied()
        };
        let own = self.host_limits.get(key).copied();
        own.or_else(usual).unwrap_or(0)
    }

    fn origin_index(&mut self, origin: &Origin) -> (u32, u32) {
        if let Some(&number) = self.by_origin.get(origin) {
            return number;
        }
        let id = self.host_index(&origin.host_key());
        let origins = &mut self.hosts[id].origins;
        let index = u32::try_from(origins.len()).expect(FEW_ORIGINS);
        origins.reserve_exact(1);
        origins.push(OriginEntry::new(origin.clone()));
        self.by_origin.insert(origin.clone(), (id, index));
        (id, index)
    }

    pub(crate) fn update_known_origin(
        &mut self,
        origin: &Origin,
        change: impl FnOnce(&mut OriginEntry),
    ) {
        if let Some(&(id, index)) = self.by_origin.get(origin) {
            self.update_origin(id, index, change);
        }
    }

    /// Changes an origin and updates the counts of its host. Call `refresh` afterwards, because the
    /// host may now become ready at another time.
    pub(crate) fn update_origin(
        &mut self,
        id: u32,
        index: u32,
        change: impl FnOnce(&mut OriginEntry),
    ) {
        let host = &mut self.hosts[id];
        let entry = &mut host.origins[index as usize];
        let before = entry.status();
        change(entry);
        let after = entry.status();
        host.due = host.due + u32::from(after.due) - u32::from(before.due);
        host.busy = host.busy + u32::from(after.busy) - u32::from(before.busy);
        if before.retry_at != after.retry_at {
            if let Some(at) = before.retry_at {
                self.retries.remove(&(at, id, index));
            }
            if let Some(at) = after.retry_at {
                self.retries.insert((at, id, index));
            }
        }
    }

    /// Moves a host to the gate (shared limit) of its address.
    pub(crate) fn join_address_gate(&mut self, id: u32, address: IpAddr) {
        // An IPv4 address and its IPv4-mapped IPv6 form are the same machine.
        let address = address.to_canonical();
        let key = GateKey::Address(address);
        let old = self.hosts[id].address;
        if self.gates.get(old).is_some_and(|gate| gate.key == key) {
            return;
        }
        self.dequeue(id);
        self.hosts[id].address = self.gates.join_address(self.now, address);
        if old != NO_GATE {
            self.gates.remove_host(old, self.now);
        }
    }

    /// Records that a request used a gate (shared limit) at `at`, even if the request was not
    /// counted there.
    pub(crate) fn used(&mut self, number: u32, at: Tick) {
        if number != NO_GATE {
            let gate = self.gates.get_mut(number);
            gate.last = gate.last.max(at);
            self.requeue_gate(number);
        }
    }

    /// Releases a gate (shared limit) after a request ended at `end`. If `end` is `None`, the
    /// request was never sent.
    fn release(&mut self, charge: Option<GateCharge>, end: Option<Tick>) {
        let Some(GateCharge {
            gate: number,
            at,
            last,
            number: of_rate,
        }) = charge
        else {
            return;
        };
        let gate = self.gates.get_mut(number);
        match end {
            Some(end) => gate.last = gate.last.max(end),
            None => {
                if gate.last == at {
                    gate.last = last;
                }
                gate.rate.give_back(of_rate);
            }
        }
        self.gates.release(number, self.now);
        self.requeue_gate(number);
    }
}
