//! Snapshots of a host: they outlive the process, and stand in for idle hosts that left memory.

use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

use crate::backoff::{Backoff, MAX_PAUSE};
use crate::gate::GateKey;
use crate::host::{Host, NO_GATE};
use crate::permit::{GapReason, Slot};
use crate::scheduler::Scheduler;
use crate::snapshot_format::HostSnapshot;
use crate::tick::{Tick, micros};

/// The event after which a snapshot is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartKind {
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
    HostSnapshot::decode(bytes)?.address
}

impl Scheduler {
    /// The state of this host that must outlive the process, and when it may be asked next as far
    /// as it goes itself. Opaque bytes for [`Scheduler::restore`]; `None`: nothing known.
    ///
    /// Kept are the ends and gaps of its slots, what it asked us to wait, what its
    /// rate-limit fields ask for, back-off levels, failures, the smoothed response time and
    /// the address. Robots are not: their copies live elsewhere, and what they ask for
    /// comes from there.
    #[must_use]
    pub fn snapshot(&self, host: &HostKey) -> Option<(Tick, Vec<u8>)> {
        let (wake, state) = self.host_state(host)?;
        Some((wake, state.encode()))
    }

    /// As [`Scheduler::snapshot`], not in bytes yet: of many states of a host the newest alone may
    /// be worth them.
    #[must_use]
    pub fn host_state(&self, host: &HostKey) -> Option<(Tick, HostSnapshot)> {
        let id = *self.by_host.get(host)?;
        Some(self.stored(&self.hosts[id]))
    }

    /// Takes back what [`Scheduler::snapshot`] or [`Scheduler::evict`] gave.
    ///
    /// A slot that was in flight counts as ended now. Bytes that are not ours count as
    /// nothing known, and a full gap is waited. What is known of the host already stays:
    /// the longer wait stands. No wait is believed that could not have been asked for, so
    /// a clock that was wrong once blocks nobody for years.
    pub fn restore(&mut self, now: Tick, host: &HostKey, bytes: &[u8], rest: RestartKind) {
        self.advance(now);
        let id = self.host_index(host);
        let stored = HostSnapshot::decode(bytes);
        let known = stored.is_some();
        let delay = micros(self.limits_of(&self.hosts[id]).delay);
        let stored = stored.unwrap_or_default();
        let gap = Duration::from_micros(stored.gap.max(delay));
        if let Some(address) = stored.address
            && self.hosts[id].address == NO_GATE
        {
            self.join_address_gate(id, address);
        }
        self.merge(id, &stored);
        if !known || rest == RestartKind::AfterPowerLoss {
            let until = self.now + gap;
            self.hosts[id].backoff_mut().hold(until, GapReason::Restart);
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
        let id = self.host_index(host);
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
                .backoff_mut()
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
            host.is_in_idle_queue = false;
            if !host.is_idle() {
                continue;
            }
            let (wake, state) = self.stored(&self.hosts[id]);
            let host = self.hosts.remove(id)?;
            self.by_host.remove(&host.key);
            for entry in &host.origins {
                self.by_origin.remove(&entry.origin);
            }
            for gate in [host.address, host.site] {
                if gate != NO_GATE {
                    self.gates.leave(gate, self.now);
                }
            }
            return Some(Evicted {
                host: host.key,
                origins: host.origins.into_iter().map(|entry| entry.origin).collect(),
                wake,
                bytes: state.encode(),
            });
        }
        None
    }

    /// Takes a host out of memory for good, with all that waits for it: somebody else asks it from
    /// now on. Gives its origins; none while something is in flight, and then nothing more is issued
    /// for it.
    pub fn hand_over(&mut self, now: Tick, host: &HostKey) -> Option<Vec<Origin>> {
        self.advance(now);
        let Some(&id) = self.by_host.get(host) else {
            return Some(Vec::new());
        };
        if self.hosts[id].in_flight > 0 {
            self.hosts[id].is_parked = true;
            self.refresh(id);
            return None;
        }
        self.dequeue(id);
        self.queued_requests.remove(&id);
        if self.hosts[id].is_in_idle_queue {
            self.idle.retain(|idle| *idle != id);
        }
        let host = self.hosts.remove(id)?;
        self.by_host.remove(&host.key);
        for (index, entry) in (0..).zip(&host.origins) {
            self.by_origin.remove(&entry.origin);
            if let Some(at) = entry.status().retry_at {
                self.retries.remove(&(at, id, index));
            }
        }
        for gate in [host.address, host.site] {
            if gate != NO_GATE {
                self.gates.leave(gate, self.now);
            }
        }
        Some(host.origins.into_iter().map(|entry| entry.origin).collect())
    }

    /// No host can have asked us to wait any longer.
    fn longest_wait(&self) -> Tick {
        let politeness = self.politeness();
        self.now + politeness.max_retry_after.max(politeness.wait_max)
    }

    fn stored(&self, host: &Host) -> (Tick, HostSnapshot) {
        let address = match self.gates.get(host.address).map(|gate| &gate.key) {
            Some(GateKey::Address(address)) => Some(*address),
            _ => None,
        };
        let limits = self.limits_of(host);
        let stored = HostSnapshot {
            smoothed: host.smoothed,
            gap: host.gap(limits).0,
            in_flight: host.in_flight,
            slots: host.slots.clone(),
            address,
            backoff: host.backoff().clone(),
        };
        (host.earliest(limits, self.now).0, stored)
    }

    fn merge(&mut self, id: u32, stored: &HostSnapshot) {
        let now = self.now;
        let gap = Duration::from_micros(stored.gap);
        for slot in &stored.slots {
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
        let per_host = self.limits_of(&self.hosts[id]).per_host;
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
        let ends = stored.slots.iter().map(|slot| slot.last_end);
        let ahead = ends.max().unwrap_or(Tick::ZERO).since(now);
        let meant = |until: Tick, longest: Tick| until.before(ahead).min(longest);
        let host = &mut self.hosts[id];
        if host.smoothed == 0 {
            host.smoothed = stored.smoothed;
        }
        let old = &stored.backoff;
        if *old == Backoff::NONE {
            return;
        }
        let backoff = host.backoff_mut();
        backoff.hold(meant(old.hold_until, longest_wait), old.hold_why);
        backoff.hold_level = backoff.hold_level.max(old.hold_level);
        let pause_until = meant(old.trip_until, now + MAX_PAUSE);
        backoff.trip_until = backoff.trip_until.max(pause_until);
        backoff.trip_level = backoff.trip_level.max(old.trip_level);
        backoff.ease = match (backoff.ease, old.ease) {
            (0, ease) | (ease, 0) => ease,
            (one, other) => one.min(other),
        };
        backoff.fails = backoff.fails.max(old.fails);
        for url in &old.failed_urls {
            if !backoff.failed_urls.contains(url) {
                backoff.failed_urls.push(*url);
            }
        }
        let limit = &mut backoff.limit;
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
        if address != NO_GATE {
            let gate = self.gates.get_mut(address);
            gate.rate.note_earlier(slot.last_end);
        }
        self.used(address, slot.last_end);
        self.used(site, slot.last_end);
        let per_host = self.limits_of(&self.hosts[id]).per_host;
        let host = &mut self.hosts[id];
        host.free_slot(slot);
        host.drop_slots(per_host);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crawl_weburl::HostKey;

    use super::RestartKind;
    use crate::backoff::{Backoff, RateLimitState};
    use crate::permit::{GapReason, Slot};
    use crate::politeness::Politeness;
    use crate::scheduler::Scheduler;
    use crate::snapshot_format::HostSnapshot;
    use crate::tick::Tick;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: i64 = 3600;

    /// So many seconds from now.
    fn at(seconds: i64) -> Tick {
        Tick::from_micros(1_700_000_000_000_000_u64.saturating_add_signed(seconds * 1_000_000))
    }

    fn slot(last_end: i64, next_at: i64, why: GapReason) -> Slot {
        Slot {
            last_end: at(last_end),
            next_at: at(next_at),
            why,
        }
    }

    /// The stored form of a host after it was restored from these, one after the other.
    fn restored(politeness: Politeness, stored: &[&HostSnapshot]) -> HostSnapshot {
        let mut scheduler = Scheduler::new(politeness, 1);
        let host = HostKey::parse("a.example").unwrap();
        for stored in stored {
            scheduler.restore(at(0), &host, &stored.encode(), RestartKind::AfterKill);
        }
        let (_, bytes) = scheduler.snapshot(&host).unwrap();
        HostSnapshot::decode(&bytes).unwrap()
    }

    fn three_slots() -> Politeness {
        Politeness {
            per_host: 3,
            ..Politeness::default()
        }
    }

    /// A host in trouble, in all its parts.
    fn known() -> HostSnapshot {
        HostSnapshot {
            smoothed: 700_000,
            // Ten times twice the response time, halved by two answers.
            gap: 3_500_000,
            in_flight: 0,
            slots: vec![
                slot(-5, -4, GapReason::Delay),
                slot(-3, 7, GapReason::CrawlDelay),
            ],
            address: Some("192.0.2.1".parse().unwrap()),
            backoff: Backoff {
                hold_until: at(50),
                hold_why: GapReason::RetryAfter,
                hold_level: 3,
                trip_until: at(20),
                trip_level: 2,
                ease: 2,
                fails: 5,
                failed_urls: vec![1, 2],
                limit: RateLimitState {
                    gap: 7_000_000,
                    gap_until: at(100),
                    wait_until: at(30),
                },
            },
        }
    }

    #[test]
    fn ours_a_host_comes_back_in_all_its_parts() {
        assert_eq!(restored(three_slots(), &[&known()]), known());
    }

    #[test]
    fn ours_of_two_accounts_of_a_host_the_stricter_holds() {
        let other = HostSnapshot {
            smoothed: 1,
            address: Some("192.0.2.2".parse().unwrap()),
            backoff: Backoff {
                hold_until: at(60),
                hold_why: GapReason::Wait,
                hold_level: 1,
                trip_until: at(10),
                trip_level: 3,
                ease: 1,
                fails: 2,
                failed_urls: vec![2, 3],
                limit: RateLimitState {
                    gap: 6_000_000,
                    gap_until: at(200),
                    wait_until: at(40),
                },
            },
            ..HostSnapshot::default()
        };
        let both = |gap_until: i64, failed_urls: &[u32]| Backoff {
            hold_until: at(60),
            hold_why: GapReason::Wait,
            hold_level: 3,
            trip_until: at(20),
            trip_level: 3,
            ease: 1,
            fails: 5,
            failed_urls: failed_urls.to_vec(),
            limit: RateLimitState {
                gap: 7_000_000,
                gap_until: at(gap_until),
                wait_until: at(40),
            },
        };
        let expected = HostSnapshot {
            gap: 7_000_000,
            backoff: both(100, &[1, 2, 3]),
            ..known()
        };
        assert_eq!(restored(three_slots(), &[&known(), &other]), expected);
        // The response time and the address are those that came first.
        let expected = HostSnapshot {
            smoothed: 1,
            gap: 5_000_000,
            slots: known().slots,
            address: other.address,
            backoff: both(200, &[2, 3, 1]),
            ..HostSnapshot::default()
        };
        assert_eq!(restored(three_slots(), &[&other, &known()]), expected);
        // A host without trouble takes none away.
        let calm = HostSnapshot::default();
        assert_eq!(restored(three_slots(), &[&known(), &calm]), known());
    }

    #[test]
    fn ours_no_wait_is_longer_than_one_that_could_be_asked_for() {
        let stored = HostSnapshot {
            backoff: Backoff {
                hold_until: at(100 * HOUR),
                trip_until: at(100 * HOUR),
                trip_level: 1,
                limit: RateLimitState {
                    gap: 1,
                    gap_until: at(100 * HOUR),
                    wait_until: at(100 * HOUR),
                },
                ..Backoff::NONE
            },
            ..HostSnapshot::default()
        };
        for (retry_after, wait, longest) in [(10, 5, 10), (5, 10, 10)] {
            let politeness = Politeness {
                max_retry_after: 3600 * retry_after * SECOND,
                wait_max: 3600 * wait * SECOND,
                ..Politeness::default()
            };
            let found = restored(politeness, &[&stored]).backoff;
            assert_eq!(found.hold_until, at(longest * HOUR));
            assert_eq!(found.trip_until, at(24 * HOUR));
            assert_eq!(found.limit.gap_until, at(longest * HOUR));
            assert_eq!(found.limit.wait_until, at(longest * HOUR));
        }
    }

    #[test]
    fn ours_times_of_a_clock_that_was_ahead_count_from_now() {
        let mut ahead = known();
        ahead.slots = vec![
            slot(90, 95, GapReason::Delay),
            slot(100, 108, GapReason::Wait),
        ];
        let found = restored(three_slots(), &[&ahead]);
        let slots = [slot(0, 5, GapReason::Delay), slot(0, 8, GapReason::Wait)];
        assert_eq!(found.slots, slots);
        let backoff = found.backoff;
        assert_eq!(backoff.hold_until, at(-50));
        assert_eq!(backoff.trip_until, at(-80));
        assert_eq!(backoff.limit.gap_until, at(0));
        assert_eq!(backoff.limit.wait_until, at(-70));
    }

    #[test]
    fn ours_what_was_in_flight_ends_now_in_as_many_slots_as_there_are() {
        for (in_flight, slots) in [(0, 0), (1, 1), (3, 3), (9, 3)] {
            let stored = HostSnapshot {
                gap: 2_000_000,
                in_flight,
                ..HostSnapshot::default()
            };
            let found = restored(three_slots(), &[&stored]).slots;
            assert_eq!(found, vec![slot(0, 2, GapReason::Restart); slots]);
        }
    }

    #[test]
    fn ours_the_slot_that_is_free_first_goes_and_the_latest_end_stays() {
        let stored = HostSnapshot {
            slots: vec![
                slot(-1, 0, GapReason::Delay),
                slot(-5, 9, GapReason::CrawlDelay),
                slot(-7, 3, GapReason::Wait),
            ],
            ..HostSnapshot::default()
        };
        let one = restored(Politeness::default(), &[&stored]).slots;
        assert_eq!(one, [slot(-1, 9, GapReason::CrawlDelay)]);
    }
}
