//! Gates: limits shared by the hosts at one address or of one site, and the limit on name look-ups.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::Site;
use foldhash::fast::RandomState;

use crate::politeness_settings::{Politeness, SharedHostLimits};
use crate::rate_limits::{MaxRateLimiter, SettableGovernorClock};
use crate::ready_queue_entry::ReadyQueueKey;
use crate::slab::Slab;
use crate::tick::Tick;

/// What a gate (shared limit) limits: the hosts at one address or of one site, or all look-ups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GateKey {
    Address(IpAddr),
    Site(Site),
    /// The gate (shared limit) of all name look-ups, for hosts with an unknown address.
    LookUps,
}

/// A limit on concurrent requests and their spacing, for an address, a site or all look-ups.
pub(crate) struct SharedLimitGate {
    pub(crate) key: GateKey,
    limit: u32,
    pub(crate) in_flight: u32,
    /// Number of requests reserved at this gate by hosts that still wait for another gate.
    pub(crate) held: u32,
    delay: Duration,
    pub(crate) rate: MaxRateLimiter,
    /// When a request at this gate last started or ended.
    pub(crate) last: Tick,
    /// End of the delay that was under way when the limits changed. This delay is never shortened.
    promised: Tick,
    hosts: u32,
    /// Hosts that wait at the gate, in order.
    pub(crate) queue: BTreeSet<(ReadyQueueKey, u32)>,
    /// The gate's position in the ready queue, where it stands in for its first waiting host.
    pub(crate) wake: Option<GateReadyQueuePosition>,
}

/// The position of a gate (shared limit) in the ready queue, on behalf of the first host that waits
/// for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateReadyQueuePosition {
    /// The gate (shared limit) is closed until this time. The number breaks ties between equal
    /// times.
    Later(Tick, u64),
    /// The gate (shared limit) is open and takes the position of its first waiting host.
    Ready(ReadyQueueKey),
}

impl SharedLimitGate {
    /// Returns when the gate (shared limit) opens for the next request. `None` if a request in
    /// flight must end first, or if a host that has reserved a request here goes first.
    pub(crate) fn opens_at(&self) -> Option<Tick> {
        let room = self.in_flight + self.held < self.limit;
        // With a delay or rate, each request delays the next, so a host with a reserved request
        // goes first.
        let is_spaced = !self.delay.is_zero() || self.rate.has_limit();
        let turn = self.held == 0 || !is_spaced;
        (room && turn).then(|| self.rested_at())
    }

    pub(crate) fn is_open(&self, now: Tick) -> bool {
        self.opens_at().is_some_and(|at| at <= now)
    }

    /// Returns whether a host that has reserved a request at this gate (shared limit) may send the
    /// request now. False during the delay, or if the requests in flight use up a lowered limit.
    pub(crate) fn is_open_to_holder(&self, now: Tick) -> bool {
        self.in_flight < self.limit && self.is_rested(now)
    }

    fn is_rested(&self, now: Tick) -> bool {
        self.rested_at() <= now
    }

    fn rested_at(&self) -> Tick {
        let delayed = (self.last + self.delay).max(self.promised);
        delayed.max(self.rate.opens_at())
    }
}

/// All gates (shared limits) with hosts, or with a delay still running.
pub(crate) struct SharedLimitGates {
    slab: Slab<SharedLimitGate>,
    by_key: HashMap<GateKey, u32, RandomState>,
    /// Gates (shared limits) without hosts, ordered by when their delay ends.
    fading: BTreeSet<(Tick, u32)>,
    address: SharedHostLimits,
    clock: SettableGovernorClock,
    /// When the operator last changed the limits.
    changed: Tick,
}

impl SharedLimitGates {
    pub(crate) fn new(politeness: &Politeness) -> SharedLimitGates {
        SharedLimitGates {
            slab: Slab::new(),
            by_key: HashMap::default(),
            fading: BTreeSet::new(),
            address: SharedHostLimits::of_address(politeness),
            clock: SettableGovernorClock::default(),
            changed: Tick::ZERO,
        }
    }

    /// Creates the gate (shared limit) of look-ups, which is never dropped, and returns its index.
    pub(crate) fn open_look_ups(&mut self, limit: u32) -> u32 {
        self.join(
            Tick::ZERO,
            GateKey::LookUps,
            SharedHostLimits::of_number(limit.max(1)),
        )
    }

    /// Adds a host to the gate (shared limit) of its address and returns the gate's index.
    pub(crate) fn join_address(&mut self, now: Tick, address: IpAddr) -> u32 {
        self.join(now, GateKey::Address(address), self.address.at(address))
    }

    /// Adds a host to the gate (shared limit) of its site and returns the gate's index.
    pub(crate) fn join_site(&mut self, now: Tick, site: Site, limits: SharedHostLimits) -> u32 {
        self.join(now, GateKey::Site(site), limits)
    }

    fn join(&mut self, now: Tick, key: GateKey, limits: SharedHostLimits) -> u32 {
        // A gate for this key may have been dropped earlier, when its delay was shorter or its
        // limits were off, so its last request is unknown. Assume the latest possible time for that
        // request.
        let last = now.before(limits.delay).max(self.changed);
        let mut rate = MaxRateLimiter::with_clock(&self.clock, limits.rate);
        if self.changed > Tick::ZERO {
            rate.take(self.changed);
        }
        let slab = &mut self.slab;
        let id = *self.by_key.entry(key).or_insert_with_key(|key| {
            slab.insert(SharedLimitGate {
                key: key.clone(),
                limit: limits.number,
                in_flight: 0,
                held: 0,
                delay: limits.delay,
                rate,
                last,
                promised: Tick::ZERO,
                hosts: 0,
                queue: BTreeSet::new(),
                wake: None,
            })
        });
        self.slab[id].hosts += 1;
        id
    }

    /// Changes the limits. A delay under way does not end earlier. Returns the indices of all gates
    /// (shared limits), because their waiting hosts may now become ready at another time.
    pub(crate) fn set_limits(&mut self, now: Tick, politeness: &Politeness) -> Vec<u32> {
        self.changed = now;
        self.address = SharedHostLimits::of_address(politeness);
        let of_addresses = self.address;
        let ids: Vec<u32> = self.slab.ids().collect();
        for &id in &ids {
            let gate = &mut self.slab[id];
            let limits = match gate.key {
                GateKey::Address(address) => Some(of_addresses.at(address)),
                GateKey::Site(ref site) => politeness.site_limits(site),
                // The limit on look-ups is fixed when the scheduler is created.
                GateKey::LookUps => Some(SharedHostLimits::of_number(gate.limit)),
            };
            gate.promised = gate.rested_at();
            // Without limits, the site needs no gate. Lift all limits, so that no request waits
            // until the gate is dropped.
            let limits = limits.unwrap_or(SharedHostLimits::of_number(u32::MAX));
            (gate.limit, gate.delay) = (limits.number, limits.delay);
            gate.rate.set(now, limits.rate);
            if gate.hosts == 0 {
                self.drop_unused(id, now);
            }
        }
        ids
    }

    /// Removes a host from the gate (shared limit). Drops the gate if it is unused and its
    /// delay is over at `now`.
    pub(crate) fn remove_host(&mut self, id: u32, now: Tick) {
        self.slab[id].hosts -= 1;
        self.drop_unused(id, now);
    }

    /// Ends a request that was counted at the gate (shared limit).
    pub(crate) fn release(&mut self, id: u32, now: Tick) {
        self.slab[id].in_flight -= 1;
        self.drop_unused(id, now);
    }

    /// Drops gates (shared limits) that have no hosts and whose delay has ended.
    pub(crate) fn fade(&mut self, now: Tick) {
        while let Some(&(at, id)) = self.fading.first() {
            if at > now {
                return;
            }
            self.fading.pop_first();
            // The gate may have been dropped already, and its index reused. `drop_unused` checks
            // again whether the gate is unused.
            if self.slab.get(id).is_some() {
                self.drop_unused(id, now);
            }
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&SharedLimitGate> {
        self.slab.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut SharedLimitGate {
        &mut self.slab[id]
    }

    fn drop_unused(&mut self, id: u32, now: Tick) {
        let gate = &self.slab[id];
        if gate.hosts > 0 || gate.in_flight > 0 {
            return;
        }
        if !gate.is_rested(now) {
            self.fading.insert((gate.rested_at(), id));
            return;
        }
        self.by_key.remove(&gate.key);
        self.slab.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::SharedLimitGates;
    use crate::politeness_settings::Politeness;
    use crate::tick::Tick;

    #[test]
    fn a_gate_without_hosts_stays_until_its_delay_is_over() {
        let mut gates = SharedLimitGates::new(&Politeness {
            address_delay: Duration::from_micros(50),
            ..Politeness::default()
        });
        let at = Tick::from_micros;
        let address = "192.0.2.7".parse().unwrap();
        let id = gates.join_address(at(100), address);
        assert_eq!(gates.join_address(at(100), address), id);
        gates.get_mut(id).in_flight = 1;
        gates.get_mut(id).last = at(100);
        gates.remove_host(id, at(100));
        gates.remove_host(id, at(100));
        assert_eq!((gates.by_key.len(), gates.fading.len()), (1, 0));
        gates.release(id, at(120));
        for (now, left) in [(149, 1), (150, 0)] {
            gates.fade(at(now));
            assert_eq!(
                (gates.by_key.len(), gates.fading.len()),
                (left, left),
                "{now}"
            );
        }
        // A gate whose delay is over is dropped with its last host.
        let id = gates.join_address(at(150), address);
        gates.remove_host(id, at(150));
        assert!(gates.by_key.is_empty() && gates.get(id).is_none());
    }
}
