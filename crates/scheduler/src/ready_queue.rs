//! Ready queue: hosts ordered by when they may next be fetched from.
//!
//! A host with work and a free slot is in exactly one queue. Before it is ready it is in `later`,
//! ordered by the time when it will be ready. After that it is in `ready`, ordered by its
//! [`ReadyQueueKey`].
//!
//! When a host is first in `ready` but one of its gates (address, site, look-ups) is closed, the
//! host moves to the gate's queue, and the gate takes the host's position. A closed gate is in
//! `later` until it opens, and then in `ready` with the key of its first host. So no decision
//! iterates over blocked hosts, and a host that waited at a gate does not lose its position.

use crate::host::{HostQueueMembership, NO_GATE};
use crate::origin::{FEW_ORIGINS, OriginEntry};
use crate::permit::{GateCharge, Permit, PermitData, RequestPurpose};
use crate::ready_queue_entry::{ReadyQueueEntry, ReadyQueueKey};
use crate::scheduler::Scheduler;
use crate::shared_limit_gate::{GateReadyQueuePosition, SharedLimitGate};
use crate::tick::Tick;

/// How often a host may find the gate (shared limit) of its site open but the gate of its address
/// closed, before it reserves a request at its site. Without reservations, two busy gates could
/// pass the host back and forth forever. A host never reserves a request at its address while it
/// waits for its site, so no two hosts deadlock.
const BOUNCES_BEFORE_RESERVING: u8 = 4;

impl Scheduler {
    /// Advances the clock to `now`, and moves hosts, gates (shared limits) and retries that are due
    /// by then.
    pub(crate) fn advance(&mut self, now: Tick) {
        self.now = self.now.max(now);
        while let Some(&(at, id, index)) = self.retries.first() {
            if at > self.now {
                break;
            }
            self.update_origin(id, index, OriginEntry::retry);
            self.refresh(id);
        }
        while let Some(&(at, order, who)) = self.later.first() {
            if at > self.now {
                break;
            }
            self.later.remove(&(at, order, who));
            match who {
                ReadyQueueEntry::Host(id) => self.enqueue(id),
                ReadyQueueEntry::Gate(number) => {
                    self.gates.get_mut(number).wake = None;
                    self.requeue_gate(number);
                }
            }
        }
        self.gates.fade(self.now);
    }

    /// Issues the permit that is due now, if any.
    pub(crate) fn next_permit(&mut self) -> Option<Permit> {
        let is_full = self.in_flight >= self.politeness().concurrency;
        while !is_full && self.rate.opens_at() <= self.now {
            let Some((_, first)) = self.ready.pop_first() else {
                break;
            };
            let permit = match first {
                ReadyQueueEntry::Host(id) => self.attempt(id, false),
                ReadyQueueEntry::Gate(number) => {
                    let permit = self.wake(number).and_then(|id| self.attempt(id, false));
                    self.requeue_gate(number);
                    permit
                }
            };
            if permit.is_some() {
                return permit;
            }
        }
        self.next_look_up()
    }

    /// Issues a permit for a name look-up. Look-ups don't count against `concurrency`.
    fn next_look_up(&mut self) -> Option<Permit> {
        let number = self.look_ups;
        loop {
            let Some(GateReadyQueuePosition::Ready(turn)) = self.gates.get(number)?.wake else {
                return None;
            };
            self.ready.remove(&(turn, ReadyQueueEntry::Gate(number)));
            let permit = self.wake(number).and_then(|id| self.attempt(id, false));
            self.requeue_gate(number);
            if permit.is_some() {
                return permit;
            }
        }
    }

    /// Returns the earliest time when a permit may be due if nothing else changes before then.
    pub(crate) fn soonest(&self) -> Option<Tick> {
        if self.in_flight >= self.politeness().concurrency {
            return None;
        }
        let ready = self.ready.first().map(|_| self.now);
        let later = self.later.first().map(|(at, ..)| *at);
        // The retries of a parked host are ignored until the host is unparked.
        let mut retries = self.retries.iter();
        let retry = retries.find(|(_, id, _)| !self.hosts[*id].is_parked);
        let retry = retry.map(|(at, ..)| *at);
        let soonest = [ready, later, retry].into_iter().flatten().min();
        soonest.map(|at| at.max(self.rate.opens_at()))
    }

    /// Moves a host to the queue where it belongs after its state changed.
    pub(crate) fn refresh(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        let opens_at = match host.has_work() {
            true => host.opens_at(&self.limits[host.limits as usize], self.now),
            false => None,
        };
        let (place, stands_at, now) = (host.position, host.at, self.now);
        if host.is_idle() && !host.is_in_idle_queue {
            host.is_in_idle_queue = true;
            self.idle.push_back(id);
        }
        let Some(at) = opens_at else {
            self.dequeue(id);
            return;
        };
        // If a host was ready before and still is, it keeps its position in the queue.
        let keeps = at == stands_at || (at <= now && stands_at <= now);
        if place == HostQueueMembership::NotQueued || !keeps {
            self.dequeue(id);
            self.order += 1;
            let (at, order) = (at.max(now), self.order);
            let host = &mut self.hosts[id];
            host.at = at;
            host.order = order;
            self.enqueue(id);
        }
    }

    /// Puts a host into `later`, or into `ready` if the host's time has come.
    pub(crate) fn enqueue(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        if host.at > self.now {
            host.position = HostQueueMembership::Later;
            self.later
                .insert((host.at, host.order, ReadyQueueEntry::Host(id)));
        } else {
            host.position = HostQueueMembership::Ready;
            if host.address == NO_GATE && self.looks_up_first {
                return self.wait_at(self.look_ups, id);
            }
            self.ready
                .insert((ReadyQueueKey::of(host), ReadyQueueEntry::Host(id)));
        }
    }

    /// Puts a ready host into the queue of a gate (shared limit).
    fn wait_at(&mut self, number: u32, id: u32) {
        let host = &mut self.hosts[id];
        host.position = HostQueueMembership::AtGate(number);
        let entry = (ReadyQueueKey::of(host), id);
        self.gates.get_mut(number).queue.insert(entry);
        self.requeue_gate(number);
    }

    /// Removes a host from its queue, which may be that of a gate (shared limit).
    pub(crate) fn dequeue(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        let place = std::mem::replace(&mut host.position, HostQueueMembership::NotQueued);
        let (at, order, turn) = (host.at, host.order, ReadyQueueKey::of(host));
        match place {
            HostQueueMembership::NotQueued => {}
            HostQueueMembership::Later => {
                self.later.remove(&(at, order, ReadyQueueEntry::Host(id)));
            }
            HostQueueMembership::Ready => {
                self.ready.remove(&(turn, ReadyQueueEntry::Host(id)));
            }
            HostQueueMembership::AtGate(number) => {
                self.gates.get_mut(number).queue.remove(&(turn, id));
                self.requeue_gate(number);
            }
        }
        self.unreserve(id);
    }

    /// Queues a gate (shared limit) for the time when its next waiting host may pass.
    pub(crate) fn requeue_gate(&mut self, number: u32) {
        let Some(gate) = self.gates.get(number) else {
            return;
        };
        let first = gate.queue.first().map(|(turn, _)| *turn);
        let wanted = first.and_then(|turn| Some((gate.opens_at()?, turn)));
        let wake = match (gate.wake, wanted) {
            (Some(GateReadyQueuePosition::Later(at, _)), Some((opens, _))) if at == opens => return,
            (Some(GateReadyQueuePosition::Ready(at)), Some((opens, turn)))
                if at == turn && opens <= self.now =>
            {
                return;
            }
            (wake, _) => wake,
        };
        match wake {
            None => {}
            Some(GateReadyQueuePosition::Later(at, order)) => {
                self.later
                    .remove(&(at, order, ReadyQueueEntry::Gate(number)));
            }
            Some(GateReadyQueuePosition::Ready(turn)) => {
                self.ready.remove(&(turn, ReadyQueueEntry::Gate(number)));
            }
        }
        let wake = wanted.map(|(opens, turn)| {
            if opens <= self.now {
                self.ready.insert((turn, ReadyQueueEntry::Gate(number)));
                return GateReadyQueuePosition::Ready(turn);
            }
            self.order += 1;
            self.later
                .insert((opens, self.order, ReadyQueueEntry::Gate(number)));
            GateReadyQueuePosition::Later(opens, self.order)
        });
        self.gates.get_mut(number).wake = wake;
    }

    /// Removes and returns the host that has waited longest at this gate (shared limit).
    fn wake(&mut self, number: u32) -> Option<u32> {
        let now = self.now;
        let gate = self.gates.get_mut(number);
        gate.wake = None;
        if !gate.is_open(now) {
            return None;
        }
        gate.queue.pop_first().map(|(_, id)| id)
    }

    /// Issues a permit to a ready host that was just dequeued. Returns `None` if the host must wait
    /// again, either for an hour that allows requests or for a limit shared with other hosts. If
    /// `is_looked_up` is true, the host's look-up has ended, so an unknown address no longer blocks
    /// it.
    pub(crate) fn attempt(&mut self, id: u32, is_looked_up: bool) -> Option<Permit> {
        self.hosts[id].position = HostQueueMembership::NotQueued;
        if !self.is_hour(id) {
            self.refresh(id);
            return None;
        }
        let look_up = match self.hosts[id].address == NO_GATE && !is_looked_up {
            true if self.looks_up_first => self.look_ups,
            _ => NO_GATE,
        };
        if let Some(number) = self.closed_gate(id, look_up) {
            self.wait_at(number, id);
            return None;
        }
        Some(self.issue(id, look_up))
    }

    /// Returns whether the current hour still allows a request to the host, which was just
    /// dequeued. Visit times, hourly rates and quiet hours may have begun or ended since the host
    /// was queued.
    fn is_hour(&mut self, id: u32) -> bool {
        if self.hosts[id].has_visit_times {
            let now = self.now;
            for index in 0..self.hosts[id].origins.len() {
                if self.hosts[id].origins[index].is_outside_visit_time(now) {
                    let index = u32::try_from(index).expect(FEW_ORIGINS);
                    self.update_origin(id, index, |entry| entry.close(now));
                }
            }
        }
        let host = &self.hosts[id];
        let limits = self.limits_of(host);
        host.has_work() && (!host.is_timed(limits) || host.earliest(limits, self.now).0 <= self.now)
    }

    /// Returns the closed gate (shared limit) that a ready host must wait for, if any. `look_up` is
    /// the gate of look-ups if the host's address is unknown.
    fn closed_gate(&mut self, id: u32, look_up: u32) -> Option<u32> {
        let host = &self.hosts[id];
        let (site, address, reserved) = (host.site, host.address, host.reserved);
        let now = self.now;
        let opens =
            |gate: &SharedLimitGate| gate.is_open(now) || (reserved && gate.is_open_to_holder(now));
        if self.gates.get(site).is_some_and(|gate| !opens(gate)) {
            self.unreserve(id);
            return Some(site);
        }
        let address = match address {
            NO_GATE => look_up,
            known => known,
        };
        if self.gates.get(address).is_none_or(|gate| gate.is_open(now)) {
            return None;
        }
        if site != NO_GATE && !reserved {
            let host = &mut self.hosts[id];
            host.bounces = host.bounces.saturating_add(1);
            if host.bounces >= BOUNCES_BEFORE_RESERVING {
                host.reserved = true;
                self.gates.get_mut(site).held += 1;
                self.requeue_gate(site);
            }
        }
        Some(address)
    }

    fn unreserve(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        if host.reserved {
            host.reserved = false;
            let site = host.site;
            self.gates.get_mut(site).held -= 1;
            self.requeue_gate(site);
        }
    }

    fn issue(&mut self, id: u32, look_up: u32) -> Permit {
        let (purpose, asked, opened) = self.next_purpose(id);
        let host = &mut self.hosts[id];
        let limits = &self.limits[host.limits as usize];
        let (slot, gap, why) = host.take_slot(limits, self.now, opened);
        let (site, address) = (host.site, host.address);
        host.bounces = 0;
        let key = host.key.clone();
        self.unreserve(id);
        let look_up = self.charge(look_up);
        let number = look_up.is_none().then(|| self.rate.take(self.now));
        let data = PermitData {
            host: key,
            purpose,
            gap,
            why,
            issued: self.now,
            id,
            slot,
            address: self.charge(address),
            site: self.charge(site),
            look_up,
            number,
            asked,
        };
        match look_up {
            Some(_) => self.hosts[id].set_aside += 1,
            None => self.in_flight += 1,
        }
        self.refresh(id);
        Permit(Box::new(data))
    }

    /// Counts a request at a gate.
    pub(crate) fn charge(&mut self, number: u32) -> Option<GateCharge> {
        if number == NO_GATE {
            return None;
        }
        let gate = self.gates.get_mut(number);
        let last = gate.last;
        gate.in_flight += 1;
        gate.last = last.max(self.now);
        let of_rate = gate.rate.take(self.now);
        self.requeue_gate(number);
        Some(GateCharge {
            gate: number,
            at: self.now,
            last,
            number: of_rate,
        })
    }

    /// Returns the purpose of a host's next request: a queued request comes first, then a request
    /// for one of the origins, in turn. Also returns whether the request was queued, and the visit
    /// time that the request waited for.
    fn next_purpose(&mut self, id: u32) -> (RequestPurpose, bool, Tick) {
        if let Some(queued) = self.queued_requests.get_mut(&id)
            && let Some(purpose) = queued.pop_front()
        {
            if queued.is_empty() {
                self.queued_requests.remove(&id);
            }
            self.hosts[id].queued_requests -= 1;
            if let RequestPurpose::Robots { origin } = &purpose {
                self.update_known_origin(origin, OriginEntry::robots_issued);
            }
            return (purpose, true, Tick::ZERO);
        }
        let host = &mut self.hosts[id];
        let turn = host.turn as usize % host.origins.len().max(1);
        let (before, after) = host.origins.split_at(turn);
        let next = after
            .iter()
            .chain(before)
            .position(|entry| entry.status().due);
        let next = next.expect("invariant: a host in its place has work");
        let index = (turn + next) % host.origins.len();
        let entry = &host.origins[index];
        let (origin, page) = (entry.origin.clone(), entry.rules_in_force(self.now));
        let opened = entry.opened();
        let index = u32::try_from(index).expect(FEW_ORIGINS);
        host.turn = index + 1;
        if page {
            self.update_origin(id, index, OriginEntry::page_issued);
            return (RequestPurpose::Page { origin }, false, opened);
        }
        self.update_origin(id, index, OriginEntry::robots_issued);
        (RequestPurpose::Robots { origin }, false, opened)
    }
}
