//! Gates: the limits that hosts share, one for each address and each site, and one for look-ups.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::Site;
use foldhash::fast::RandomState;

use crate::max_rate::{MaxRate, RateClock};
use crate::politeness::{Limits, Politeness};
use crate::ready_key::ReadyKey;
use crate::slab::Slab;
use crate::tick::Tick;

/// The address or site that a gate limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GateKey {
    Address(IpAddr),
    Site(Site),
    /// Look-ups of hosts with an unknown address.
    LookUps,
}

/// A limit on concurrent requests and their spacing, for an address, a site or all look-ups.
pub(crate) struct Gate {
    pub(crate) key: GateKey,
    limit: u32,
    pub(crate) in_flight: u32,
    /// Places held by hosts that wait for another gate.
    pub(crate) held: u32,
    delay: Duration,
    pub(crate) rate: MaxRate,
    /// Start or end of a request, whichever came last.
    pub(crate) last: Tick,
    /// A delay that was longer holds until then.
    promised: Tick,
    /// Hosts that belong to it.
    hosts: u32,
    /// Hosts that wait for it, each in its turn.
    pub(crate) queue: BTreeSet<(ReadyKey, u32)>,
    /// Its place among those to come: it wakes the first that waits.
    pub(crate) wake: Option<Wake>,
}

/// The position that a gate holds in the ready queue for the first host that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// It is closed until then; the number orders it among equals.
    Later(Tick, u64),
    /// It is open: it stands where that host would.
    Ready(ReadyKey),
}

impl Gate {
    /// When it lets the next request through; `None`: when one in flight has ended, or one
    /// that holds a place has begun.
    pub(crate) fn opens_at(&self) -> Option<Tick> {
        let room = self.in_flight + self.held < self.limit;
        // Each start delays the next one, so a host that holds a place goes first.
        let is_spaced = !self.delay.is_zero() || self.rate.has_limit();
        let turn = self.held == 0 || !is_spaced;
        (room && turn).then(|| self.rested_at())
    }

    pub(crate) fn is_open(&self, now: Tick) -> bool {
        self.opens_at().is_some_and(|at| at <= now)
    }

    /// Returns whether a host that holds a place may be asked: its delay is over, and no lower
    /// limit has taken the place away.
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

/// All gates that some host belongs to, or that must still be waited for.
pub(crate) struct Gates {
    slab: Slab<Gate>,
    by_key: HashMap<GateKey, u32, RandomState>,
    /// Gates without hosts that still keep their delay, by when it ends.
    fading: BTreeSet<(Tick, u32)>,
    address: Limits,
    clock: RateClock,
    /// When the limits changed.
    changed: Tick,
}

impl Gates {
    pub(crate) fn new(politeness: &Politeness) -> Gates {
        Gates {
            slab: Slab::new(),
            by_key: HashMap::default(),
            fading: BTreeSet::new(),
            address: Limits::of_address(politeness),
            clock: RateClock::default(),
            changed: Tick::ZERO,
        }
    }

    /// Creates the permanent gate of look-ups, and returns its number.
    pub(crate) fn open_look_ups(&mut self, limit: u32) -> u32 {
        self.join(
            Tick::ZERO,
            GateKey::LookUps,
            Limits::of_number(limit.max(1)),
        )
    }

    /// The number of the gate of an address that one more host belongs to now.
    pub(crate) fn join_address(&mut self, now: Tick, address: IpAddr) -> u32 {
        self.join(now, GateKey::Address(address), self.address.at(address))
    }

    /// The number of the gate of a site that one more host belongs to now: so many
    /// requests in flight, so long between two.
    pub(crate) fn join_site(&mut self, now: Tick, site: Site, limits: Limits) -> u32 {
        self.join(now, GateKey::Site(site), limits)
    }

    fn join(&mut self, now: Tick, key: GateKey, limits: Limits) -> u32 {
        // A gate that is new may have been let go of once its delay was over, or under limits that
        // asked for a shorter one or counted nothing. So late its last request can have been.
        let last = now.before(limits.delay).max(self.changed);
        let mut rate = MaxRate::with_clock(&self.clock, limits.rate);
        if self.changed > Tick::ZERO {
            rate.take(self.changed);
        }
        let slab = &mut self.slab;
        let id = *self.by_key.entry(key).or_insert_with_key(|key| {
            slab.insert(Gate {
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

    /// Other limits hold from now on, but the delay under way ends no earlier. Gives the numbers of
    /// the gates that there are: what waits at them may be due at another time.
    pub(crate) fn set_limits(&mut self, now: Tick, politeness: &Politeness) -> Vec<u32> {
        self.changed = now;
        self.address = Limits::of_address(politeness);
        let of_addresses = self.address;
        let ids: Vec<u32> = self.slab.ids().collect();
        for &id in &ids {
            let gate = &mut self.slab[id];
            let limits = match gate.key {
                GateKey::Address(address) => Some(of_addresses.at(address)),
                GateKey::Site(ref site) => politeness.site_limits(site),
                // As many as when the scheduler was made, like `concurrency`.
                GateKey::LookUps => Some(Limits::of_number(gate.limit)),
            };
            gate.promised = gate.rested_at();
            // A site without limits goes once its requests have ended.
            let limits = limits.unwrap_or(Limits::of_number(u32::MAX));
            (gate.limit, gate.delay) = (limits.number, limits.delay);
            gate.rate.set(now, limits.rate);
            if gate.hosts == 0 {
                self.drop_unused(id, now);
            }
        }
        ids
    }

    /// One host fewer belongs to the gate; `now` tells whether its delay is over.
    pub(crate) fn leave(&mut self, id: u32, now: Tick) {
        self.slab[id].hosts -= 1;
        self.drop_unused(id, now);
    }

    /// A request ended that was counted here.
    pub(crate) fn release(&mut self, id: u32, now: Tick) {
        self.slab[id].in_flight -= 1;
        self.drop_unused(id, now);
    }

    /// Lets go of gates whose delay has ended meanwhile.
    pub(crate) fn fade(&mut self, now: Tick) {
        while let Some(&(at, id)) = self.fading.first() {
            if at > now {
                return;
            }
            self.fading.pop_first();
            // The number may stand for another gate by now, or hosts may have come back.
            if self.slab.get(id).is_some() {
                self.drop_unused(id, now);
            }
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Gate> {
        self.slab.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Gate {
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

    use super::Gates;
    use crate::politeness::Politeness;
    use crate::tick::Tick;

    #[test]
    fn ours_a_gate_without_hosts_stays_until_its_delay_is_over() {
        let mut gates = Gates::new(&Politeness {
            address_delay: Duration::from_micros(50),
            ..Politeness::default()
        });
        let at = Tick::from_micros;
        let address = "192.0.2.7".parse().unwrap();
        let id = gates.join_address(at(100), address);
        assert_eq!(gates.join_address(at(100), address), id);
        gates.get_mut(id).in_flight = 1;
        gates.get_mut(id).last = at(100);
        gates.leave(id, at(100));
        gates.leave(id, at(100));
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
        // One that is rested when its last host leaves goes at once.
        let id = gates.join_address(at(150), address);
        gates.leave(id, at(150));
        assert!(gates.by_key.is_empty() && gates.get(id).is_none());
    }
}
