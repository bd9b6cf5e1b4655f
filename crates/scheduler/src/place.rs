//! Who is next: the hosts by time, and the gates some of them wait at.
//!
//! A host that could be asked stands in exactly one place. It is ordered by the moment at
//! which it is ready, and from then on by its turn. Where a gate (address, site) is closed
//! then, it waits there, and the gate itself stands for the moment at which it opens;
//! from then on it stands where the first of its hosts would. So no decision walks over
//! hosts that can't be asked, and who waited at a gate has lost no time.

use crate::gate::{Gate, Wake};
use crate::host::{Host, NO_GATE, Place};
use crate::origin::OriginEntry;
use crate::permit::{Charge, Grant, Permit, Purpose};
use crate::scheduler::Scheduler;
use crate::tick::Tick;

/// When it is whose turn: by the millisecond since which a host is ready, then by its
/// priority, then by the order in which hosts were placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    // Milliseconds, with the priority in the lowest byte: 64 bits hold both up to the
    // last tick there is.
    since: u64,
    order: u64,
}

impl Turn {
    fn of(host: &Host) -> Turn {
        Turn {
            since: host.at.as_millis() << 8 | u64::from(host.priority),
            order: host.order,
        }
    }
}

/// Who stands in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Host(u32),
    Gate(u32),
}

/// A host whose site let it through so often while its address did not holds a place of
/// its site from then on: otherwise two busy gates could pass it to and fro for ever. Only
/// a site's place is ever held while waiting for an address, never the other way round, so
/// no two wait for each other.
const PATIENCE: u8 = 4;

/// Why the number of a host's origin fits in 32 bits.
pub(crate) const FEW_ORIGINS: &str = "invariant: two schemes, 65,536 ports";

impl Scheduler {
    /// Takes the time, and does what it brings with it.
    pub(crate) fn advance(&mut self, now: Tick) {
        self.now = self.now.max(now);
        while let Some(&(at, id, index)) = self.retries.first() {
            if at > self.now {
                break;
            }
            self.touch_origin(id, index, OriginEntry::retry);
            self.refresh(id);
        }
        while let Some(&(at, order, who)) = self.later.first() {
            if at > self.now {
                break;
            }
            self.later.remove(&(at, order, who));
            match who {
                Who::Host(id) => self.stand(id),
                Who::Gate(number) => {
                    self.gates.get_mut(number).wake = None;
                    self.arm(number);
                }
            }
        }
        self.gates.fade(self.now);
    }

    /// The permit that is due now.
    pub(crate) fn next_permit(&mut self) -> Option<Permit> {
        if self.in_flight >= self.politeness().concurrency {
            return None;
        }
        while self.rate.closed_until() <= self.now {
            let permit = match self.ready.pop_first()?.1 {
                Who::Host(id) => self.attempt(id),
                Who::Gate(number) => {
                    let permit = self.wake(number).and_then(|id| self.attempt(id));
                    self.arm(number);
                    permit
                }
            };
            if permit.is_some() {
                return permit;
            }
        }
        None
    }

    /// When something may be due next, if nothing is learned meanwhile.
    pub(crate) fn soonest(&self) -> Option<Tick> {
        if self.in_flight >= self.politeness().concurrency {
            return None;
        }
        let ready = self.ready.first().map(|_| self.now);
        let later = self.later.first().map(|(at, ..)| *at);
        // What is asked for again of a parked host waits with it.
        let mut retries = self.retries.iter();
        let retry = retries.find(|(_, id, _)| !self.hosts[*id].is_parked);
        let retry = retry.map(|(at, ..)| *at);
        let soonest = [ready, later, retry].into_iter().flatten().min();
        soonest.map(|at| at.max(self.rate.closed_until()))
    }

    /// Puts a host where it belongs after anything about it changed.
    pub(crate) fn refresh(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        let opens_at = match host.has_work() {
            true => host.opens_at(&self.terms[host.terms as usize], self.now),
            false => None,
        };
        let (place, stands_at, now) = (host.place, host.at, self.now);
        if host.is_idle() && !host.resting {
            host.resting = true;
            self.idle.push_back(id);
        }
        let Some(at) = opens_at else {
            self.unplace(id);
            return;
        };
        // One that is ready keeps its place: it has been waiting since.
        let keeps = at == stands_at || (at <= now && stands_at <= now);
        if place == Place::Out || !keeps {
            self.unplace(id);
            self.order += 1;
            let (at, order) = (at.max(now), self.order);
            let host = &mut self.hosts[id];
            host.at = at;
            host.order = order;
            self.stand(id);
        }
    }

    /// Stands a host in line for its moment, or for its turn where that has come.
    pub(crate) fn stand(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        if host.at > self.now {
            host.place = Place::Later;
            self.later.insert((host.at, host.order, Who::Host(id)));
        } else {
            host.place = Place::Ready;
            self.ready.insert((Turn::of(host), Who::Host(id)));
        }
    }

    /// Takes a host out of its line or from the gate it waits at.
    pub(crate) fn unplace(&mut self, id: u32) {
        let host = &mut self.hosts[id];
        let place = std::mem::replace(&mut host.place, Place::Out);
        let (at, order, turn) = (host.at, host.order, Turn::of(host));
        match place {
            Place::Out => {}
            Place::Later => {
                self.later.remove(&(at, order, Who::Host(id)));
            }
            Place::Ready => {
                self.ready.remove(&(turn, Who::Host(id)));
            }
            Place::AtGate(number) => {
                self.gates.get_mut(number).queue.remove(&(turn, id));
                self.arm(number);
            }
        }
        self.unreserve(id);
    }

    /// Stands a gate in line for the moment it lets the next waiting host through.
    pub(crate) fn arm(&mut self, number: u32) {
        let Some(gate) = self.gates.get(number) else {
            return;
        };
        let first = gate.queue.first().map(|(turn, _)| *turn);
        let wanted = first.and_then(|turn| Some((gate.opens_at()?, turn)));
        let wake = match (gate.wake, wanted) {
            (Some(Wake::Later(at, _)), Some((opens, _))) if at == opens && at > self.now => return,
            (Some(Wake::Ready(at)), Some((opens, turn))) if at == turn && opens <= self.now => {
                return;
            }
            (wake, _) => wake,
        };
        match wake {
            None => {}
            Some(Wake::Later(at, order)) => {
                self.later.remove(&(at, order, Who::Gate(number)));
            }
            Some(Wake::Ready(turn)) => {
                self.ready.remove(&(turn, Who::Gate(number)));
            }
        }
        let wake = wanted.map(|(opens, turn)| {
            if opens <= self.now {
                self.ready.insert((turn, Who::Gate(number)));
                return Wake::Ready(turn);
            }
            self.order += 1;
            self.later.insert((opens, self.order, Who::Gate(number)));
            Wake::Later(opens, self.order)
        });
        self.gates.get_mut(number).wake = wake;
    }

    /// The host that waited longest at a gate that left its line.
    fn wake(&mut self, number: u32) -> Option<u32> {
        let now = self.now;
        let gate = self.gates.get_mut(number);
        gate.wake = None;
        if !gate.is_open(now) {
            return None;
        }
        gate.queue.pop_first().map(|(_, id)| id)
    }

    /// Issues a permit to a ready host that was taken from its place, unless the hour bars
    /// it, or a gate or the rate is closed: then it waits for its hour, queues there, or
    /// stands where it stood.
    fn attempt(&mut self, id: u32) -> Option<Permit> {
        self.hosts[id].place = Place::Out;
        if !self.is_hour(id) {
            self.refresh(id);
            return None;
        }
        if let Some(number) = self.closed_gate(id) {
            let host = &mut self.hosts[id];
            host.place = Place::AtGate(number);
            let entry = (Turn::of(host), id);
            self.gates.get_mut(number).queue.insert(entry);
            self.arm(number);
            return None;
        }
        let Ok(cell) = self.rate.take(self.now) else {
            self.stand(id);
            return None;
        };
        Some(self.issue(id, cell))
    }

    /// Whether a host that was ready still is, now that its turn has come: visit times,
    /// rates and quiet hours may have begun or ended meanwhile.
    fn is_hour(&mut self, id: u32) -> bool {
        if self.hosts[id].visited {
            let now = self.now;
            for index in 0..self.hosts[id].origins.len() {
                if self.hosts[id].origins[index].is_unwelcome(now) {
                    let index = u32::try_from(index).expect(FEW_ORIGINS);
                    self.touch_origin(id, index, |entry| entry.close(now));
                }
            }
        }
        let host = &self.hosts[id];
        let terms = self.terms_of(host);
        host.has_work() && (!host.is_timed(terms) || host.earliest(terms, self.now).0 <= self.now)
    }

    /// The gate that a ready host must wait for.
    fn closed_gate(&mut self, id: u32) -> Option<u32> {
        let host = &self.hosts[id];
        let (site, address, reserved) = (host.site, host.address, host.reserved);
        let now = self.now;
        let opens = |gate: &Gate| gate.is_open(now) || (reserved && gate.is_rested(now));
        if self.gates.get(site).is_some_and(|gate| !opens(gate)) {
            self.unreserve(id);
            return Some(site);
        }
        if self.gates.get(address).is_none_or(|gate| gate.is_open(now)) {
            return None;
        }
        if site != NO_GATE && !reserved {
            let host = &mut self.hosts[id];
            host.bounces = host.bounces.saturating_add(1);
            if host.bounces >= PATIENCE {
                host.reserved = true;
                self.gates.get_mut(site).held += 1;
                self.arm(site);
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
            self.arm(site);
        }
    }

    fn issue(&mut self, id: u32, cell: u64) -> Permit {
        let (purpose, asked, opened) = self.next_purpose(id);
        let host = &mut self.hosts[id];
        let terms = &self.terms[host.terms as usize];
        let (slot, gap, why) = host.take_slot(terms, self.now, opened);
        let (site, address) = (host.site, host.address);
        host.bounces = 0;
        let key = host.key.clone();
        self.unreserve(id);
        let grant = Grant {
            host: key,
            purpose,
            gap,
            why,
            issued: self.now,
            id,
            slot,
            address: self.charge(address),
            site: self.charge(site),
            cell,
            asked,
        };
        self.in_flight += 1;
        self.refresh(id);
        Permit(Box::new(grant))
    }

    /// Counts a request at a gate.
    fn charge(&mut self, number: u32) -> Option<Charge> {
        if number == NO_GATE {
            return None;
        }
        let gate = self.gates.get_mut(number);
        let last = gate.last;
        gate.in_flight += 1;
        gate.last = last.max(self.now);
        self.arm(number);
        Some(Charge { gate: number, last })
    }

    /// What to ask a host for: what was asked for expressly, then its origins in turn. And
    /// whether it was asked for, and the visit time that was waited for.
    fn next_purpose(&mut self, id: u32) -> (Purpose, bool, Tick) {
        if let Some(asks) = self.asks.get_mut(&id)
            && let Some(purpose) = asks.pop_front()
        {
            if asks.is_empty() {
                self.asks.remove(&id);
            }
            self.hosts[id].asks -= 1;
            if let Purpose::Robots { origin } = &purpose {
                self.touch_known(origin, OriginEntry::robots_issued);
            }
            return (purpose, true, Tick::ZERO);
        }
        let host = &mut self.hosts[id];
        let turn = host.turn as usize % host.origins.len().max(1);
        let (before, after) = host.origins.split_at(turn);
        let next = after
            .iter()
            .chain(before)
            .position(|entry| entry.standing().due);
        let next = next.expect("invariant: a host in its place has work");
        let index = (turn + next) % host.origins.len();
        let entry = &host.origins[index];
        let (origin, page) = (entry.origin.clone(), entry.rules_in_force(self.now));
        let opened = entry.opened();
        let index = u32::try_from(index).expect(FEW_ORIGINS);
        host.turn = index + 1;
        if page {
            self.touch_origin(id, index, OriginEntry::page_issued);
            return (Purpose::Page { origin }, false, opened);
        }
        self.touch_origin(id, index, OriginEntry::robots_issued);
        (Purpose::Robots { origin }, false, opened)
    }
}
