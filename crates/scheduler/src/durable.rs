//! What outlives the process, and what leaves memory while a host is idle.

use std::time::Duration;

use crawl_weburl::HostKey;

use crate::gate::GateKey;
use crate::host::{Host, NO_GATE, PAUSE_MAX, Slot};
use crate::permit::GapReason;
use crate::scheduler::Scheduler;
use crate::stored::Stored;
use crate::tick::{Tick, micros};

/// How what was stored came to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The process ended, or the host was evicted: what was stored is what was.
    AfterKill,
    /// The machine went down: the last writes may be lost, so the host waits a full gap
    /// first.
    AfterPowerLoss,
}

impl Scheduler {
    /// What must outlive the process for this host, and when it may be asked next as far
    /// as it goes itself. Opaque bytes for [`Scheduler::restore`]; `None`: nothing known.
    ///
    /// Kept are the ends and gaps of its slots, what it asked us to wait, back-off levels,
    /// failures, the smoothed response time and the address. Robots are not: their copies
    /// live elsewhere.
    #[must_use]
    pub fn snapshot(&self, host: &HostKey) -> Option<(Tick, Vec<u8>)> {
        let id = *self.by_host.get(host)?;
        Some(self.stored(&self.hosts[id]))
    }

    /// Takes back what [`Scheduler::snapshot`] or [`Scheduler::evict`] gave.
    ///
    /// A slot that was in flight counts as ended now. Bytes that are not ours count as
    /// nothing known, and a full gap is waited. What is known of the host already stays:
    /// the longer wait stands. No wait is believed that could not have been asked for, so
    /// a clock that was wrong once blocks nobody for years.
    pub fn restore(&mut self, now: Tick, host: HostKey, bytes: &[u8], rest: Restart) {
        self.advance(now);
        let id = self.host_number(&host);
        let stored = Stored::decode(bytes);
        let known = stored.is_some();
        let delay = micros(self.politeness.delay);
        let stored = stored.unwrap_or_default();
        let gap = Duration::from_micros(stored.gap.max(delay));
        if let Some(address) = stored.address
            && self.hosts[id].address == NO_GATE
        {
            self.set_address(id, address);
        }
        self.merge(id, &stored);
        if !known || rest == Restart::AfterPowerLoss {
            let until = self.now + gap;
            self.hosts[id].hold(until, GapReason::Restart);
        }
        self.refresh(id);
    }

    /// A request of an earlier run, from its record: the gap after it is kept, and the wait
    /// that was asked for. The same request may be noted more than once, and before or after
    /// [`Scheduler::restore`].
    pub fn note_past_request(
        &mut self,
        now: Tick,
        host: &HostKey,
        end: Tick,
        gap: Duration,
        wait_until: Option<Tick>,
    ) {
        self.advance(now);
        let id = self.host_number(host);
        let end = end.min(self.now);
        let slot = Slot {
            last_end: end,
            next_at: end + gap,
            why: GapReason::Delay,
        };
        self.note_slot(id, slot);
        if let Some(until) = wait_until {
            let until = until.min(self.longest_wait());
            self.hosts[id].hold(until, GapReason::RetryAfter);
        }
        self.refresh(id);
    }

    /// Takes an idle host out of memory: nothing waits for it, nothing is in flight. Its
    /// key, when it may be asked next, and the bytes for [`Scheduler::restore`].
    ///
    /// Its robots state is forgotten with it: say it again when its urls wait again.
    pub fn evict(&mut self) -> Option<(HostKey, Tick, Vec<u8>)> {
        while let Some(id) = self.idle.pop_front() {
            let host = &mut self.hosts[id];
            host.resting = false;
            if !host.is_idle() {
                continue;
            }
            let (wake, bytes) = self.stored(&self.hosts[id]);
            let host = self.hosts.remove(id)?;
            self.by_host.remove(&host.key);
            for entry in &host.origins {
                self.by_origin.remove(&entry.origin);
            }
            for gate in [host.address, host.site] {
                if gate != NO_GATE {
                    self.gates.part(gate, self.now);
                }
            }
            return Some((host.key, wake, bytes));
        }
        None
    }

    /// No host can have asked us to wait any longer.
    fn longest_wait(&self) -> Tick {
        let politeness = &self.politeness;
        self.now + politeness.max_retry_after.max(politeness.wait_max)
    }

    fn stored(&self, host: &Host) -> (Tick, Vec<u8>) {
        let address = match self.gates.get(host.address).map(|gate| &gate.key) {
            Some(GateKey::Address(address)) => Some(*address),
            _ => None,
        };
        let stored = Stored {
            smoothed: host.smoothed,
            gap: host.gap(&self.politeness).0,
            hold_until: host.hold_until,
            hold_why: host.hold_why,
            hold_level: host.hold_level,
            trip_until: host.trip_until,
            trip_level: host.trip_level,
            fails: host.fails,
            in_flight: host.in_flight,
            slots: host.slots.clone(),
            address,
        };
        (host.earliest(&self.politeness), stored.encode())
    }

    fn merge(&mut self, id: u32, stored: &Stored) {
        let now = self.now;
        let gap = Duration::from_micros(stored.gap);
        for slot in &stored.slots {
            // Nothing ended later than now; its gap stays as long as it was promised.
            let last_end = slot.last_end.min(now);
            let next_at = slot.next_at.min(now + slot.next_at.since(slot.last_end));
            self.note_slot(
                id,
                Slot {
                    last_end,
                    next_at,
                    ..*slot
                },
            );
        }
        for _ in 0..stored.in_flight.min(self.politeness.per_host) {
            let ended = Slot {
                last_end: now,
                next_at: now + gap,
                why: GapReason::Restart,
            };
            self.add_slot(id, ended);
        }
        let longest_wait = self.longest_wait();
        let host = &mut self.hosts[id];
        let pause_longest = Duration::from_micros(stored.gap.saturating_mul(10)).max(PAUSE_MAX);
        host.hold(stored.hold_until.min(longest_wait), stored.hold_why);
        host.hold_level = host.hold_level.max(stored.hold_level);
        host.trip_until = host
            .trip_until
            .max(stored.trip_until.min(now + pause_longest));
        host.trip_level = host.trip_level.max(stored.trip_level);
        host.fails = host.fails.max(stored.fails);
        if host.smoothed == 0 {
            host.smoothed = stored.smoothed;
        }
    }

    /// Adds a slot unless that very request is known.
    fn note_slot(&mut self, id: u32, slot: Slot) {
        let slots = &mut self.hosts[id].slots;
        match slots
            .iter_mut()
            .find(|known| known.last_end == slot.last_end)
        {
            Some(known) if known.next_at < slot.next_at => *known = slot,
            Some(_) => {}
            None => self.add_slot(id, slot),
        }
    }

    /// Adds a used slot; where there would be more than the host has, the longest free goes.
    fn add_slot(&mut self, id: u32, slot: Slot) {
        let (address, site) = (self.hosts[id].address, self.hosts[id].site);
        self.used(address, slot.last_end);
        self.used(site, slot.last_end);
        let host = &mut self.hosts[id];
        host.free_slot(slot);
        let room = self.politeness.per_host.saturating_sub(host.in_flight);
        while host.slots.len() > room as usize {
            let oldest = (0..host.slots.len()).min_by_key(|index| host.slots[*index].next_at);
            if let Some(index) = oldest {
                host.slots.swap_remove(index);
            }
        }
    }
}
