//! What outlives the process, and what leaves memory while a host is idle.

use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

use crate::gate::GateKey;
use crate::host::{Host, NO_GATE};
use crate::permit::GapReason;
use crate::scheduler::Scheduler;
use crate::slots::Slot;
use crate::stored::Stored;
use crate::tick::{Tick, micros};
use crate::trouble::{PAUSE_MAX, Trouble};

/// How what was stored came to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The process ended, or the host was evicted: what was stored is what was.
    AfterKill,
    /// The machine went down: the last writes may be lost, so the host waits a full gap
    /// first.
    AfterPowerLoss,
}

/// A host that left memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The host.
    pub host: HostKey,
    /// Its origins that were known.
    pub origins: Vec<Origin>,
    /// When it may be asked next.
    pub wake: Tick,
    /// For [`Scheduler::restore`].
    pub bytes: Vec<u8>,
}

/// The address at which a host was asked last, from the bytes of its [`Scheduler::snapshot`].
#[must_use]
pub fn stored_address(bytes: &[u8]) -> Option<IpAddr> {
    Stored::decode(bytes)?.address
}

impl Scheduler {
    /// What must outlive the process for this host, and when it may be asked next as far
    /// as it goes itself. Opaque bytes for [`Scheduler::restore`]; `None`: nothing known.
    ///
    /// Kept are the ends and gaps of its slots, what it asked us to wait, what its
    /// rate-limit fields ask for, back-off levels, failures, the smoothed response time and
    /// the address. Robots are not: their copies live elsewhere, and what they ask for
    /// comes from there.
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
    pub fn restore(&mut self, now: Tick, host: &HostKey, bytes: &[u8], rest: Restart) {
        self.advance(now);
        let id = self.host_number(host);
        let stored = Stored::decode(bytes);
        let known = stored.is_some();
        let delay = micros(self.terms_of(&self.hosts[id]).delay);
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
            self.hosts[id].trouble_mut().hold(until, GapReason::Restart);
        }
        self.refresh(id);
    }

    /// A request of an earlier run, from its record: the gap after it is kept, and the wait
    /// that was asked for. Before or after [`Scheduler::restore`]; a request that is noted
    /// more than once takes a slot more of a host that has several, for one gap.
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
        self.add_slot(id, slot);
        if let Some(until) = wait_until {
            let until = until.min(self.longest_wait());
            self.hosts[id]
                .trouble_mut()
                .hold(until, GapReason::RetryAfter);
        }
        self.refresh(id);
    }

    /// Takes an idle host out of memory: nothing waits for it, nothing is in flight.
    ///
    /// Its robots state is forgotten with it: say it again when its urls wait again.
    pub fn evict(&mut self) -> Option<Evicted> {
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
            return Some(Evicted {
                host: host.key,
                origins: host.origins.into_iter().map(|entry| entry.origin).collect(),
                wake,
                bytes,
            });
        }
        None
    }

    /// No host can have asked us to wait any longer.
    fn longest_wait(&self) -> Tick {
        let politeness = self.politeness();
        self.now + politeness.max_retry_after.max(politeness.wait_max)
    }

    fn stored(&self, host: &Host) -> (Tick, Vec<u8>) {
        let address = match self.gates.get(host.address).map(|gate| &gate.key) {
            Some(GateKey::Address(address)) => Some(*address),
            _ => None,
        };
        let terms = self.terms_of(host);
        let stored = Stored {
            smoothed: host.smoothed,
            gap: host.gap(terms).0,
            in_flight: host.in_flight,
            slots: host.slots.clone(),
            address,
            trouble: host.trouble().clone(),
        };
        (host.earliest(terms, self.now).0, stored.encode())
    }

    fn merge(&mut self, id: u32, stored: &Stored) {
        let now = self.now;
        let gap = Duration::from_micros(stored.gap);
        for slot in stored.slots.as_slice() {
            // Nothing ended later than now; its gap stays as long as it was promised.
            let last_end = slot.last_end.min(now);
            let next_at = slot.next_at.min(now + slot.next_at.since(slot.last_end));
            let why = slot.why;
            self.add_slot(
                id,
                Slot {
                    last_end,
                    next_at,
                    why,
                },
            );
        }
        let per_host = self.terms_of(&self.hosts[id]).per_host;
        for _ in 0..stored.in_flight.min(per_host) {
            let ended = Slot {
                last_end: now,
                next_at: now + gap,
                why: GapReason::Restart,
            };
            self.add_slot(id, ended);
        }
        let longest_wait = self.longest_wait();
        // Where requests ended later than now a clock was ahead, and all it dated is as much ahead.
        let ends = stored.slots.as_slice().iter().map(|slot| slot.last_end);
        let ahead = ends.max().unwrap_or(Tick::ZERO).since(now);
        let meant = |until: Tick, longest: Tick| until.before(ahead).min(longest);
        let host = &mut self.hosts[id];
        if host.smoothed == 0 {
            host.smoothed = stored.smoothed;
        }
        let old = &stored.trouble;
        if *old == Trouble::NONE {
            return;
        }
        let trouble = host.trouble_mut();
        trouble.hold(meant(old.hold_until, longest_wait), old.hold_why);
        trouble.hold_level = trouble.hold_level.max(old.hold_level);
        let pause_until = meant(old.trip_until, now + PAUSE_MAX);
        trouble.trip_until = trouble.trip_until.max(pause_until);
        trouble.trip_level = trouble.trip_level.max(old.trip_level);
        trouble.ease = match (trouble.ease, old.ease) {
            (0, ease) | (ease, 0) => ease,
            (one, other) => one.min(other),
        };
        trouble.fails = trouble.fails.max(old.fails);
        for url in &old.failed_urls {
            if !trouble.failed_urls.contains(url) {
                trouble.failed_urls.push(*url);
            }
        }
        let limit = &mut trouble.limit;
        if limit.gap <= old.limit.gap {
            limit.gap = old.limit.gap;
            limit.gap_until = limit
                .gap_until
                .max(meant(old.limit.gap_until, longest_wait));
        }
        limit.wait_until = limit
            .wait_until
            .max(meant(old.limit.wait_until, longest_wait));
    }

    /// Adds a used slot. Where there would be more than the host has, the one free first
    /// goes, but no end is forgotten that is later than another's.
    fn add_slot(&mut self, id: u32, slot: Slot) {
        let (address, site) = (self.hosts[id].address, self.hosts[id].site);
        self.used(address, slot.last_end);
        self.used(site, slot.last_end);
        let per_host = self.terms_of(&self.hosts[id]).per_host;
        let host = &mut self.hosts[id];
        host.slots.push(slot);
        let room = per_host.saturating_sub(host.in_flight);
        while host.slots.as_slice().len() > room as usize {
            let slots = host.slots.as_slice();
            let first = (0..slots.len()).min_by_key(|index| slots[*index].next_at);
            let gone = host.slots.take(first.unwrap_or(0));
            let slots = host.slots.as_mut_slice().iter_mut();
            let oldest = slots.min_by_key(|slot| slot.last_end);
            if let Some(oldest) = oldest {
                oldest.last_end = oldest.last_end.max(gone.last_end);
            }
        }
    }
}
