//! Snapshots of hosts: stored states that outlive the process and restore evicted idle hosts.

use std::net::IpAddr;
use std::time::Duration;

use crawl_weburl::{HostKey, Origin};

use crate::backoff::{Backoff, MAX_PAUSE};
use crate::host::{NO_GATE, ScheduledHost};
use crate::permit::{GapReason, HostRequestSlot, RequestPurpose};
use crate::scheduler::Scheduler;
use crate::shared_limit_gate::GateKey;
use crate::snapshot_format::HostSnapshot;
use crate::tick::{Tick, micros};

/// How long a request matters to the user's other crawls, at least. A crawl with a longer delay than
/// this crawl counts it from the request for that long.
const MIN_KEPT: Duration = Duration::from_secs(60);
/// How long a request may have been in flight when its crawl was killed. If it began earlier, it
/// doesn't matter to other crawls.
const MAX_LOST_REQUEST: Duration = Duration::from_secs(10 * 60);
/// Maximum time for which the user's other crawls respect the gap after a request.
/// Beyond the limit: the gap is over.
const MAX_KEPT: Duration = Duration::from_secs(48 * 60 * 60);
/// Maximum number of gaps that follow each other because they apply at different hours.
const MAX_HOURLY_GAPS: usize = 8;

/// Whether a stored snapshot of a host includes all requests that were sent to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotCompleteness {
    /// The snapshot includes all requests, because the last run ended cleanly or the host was
    /// evicted.
    Complete,
    /// The last run was cut off, so later requests may be missing from the snapshot. The host waits
    /// a full gap first.
    WritesMayBeLost,
}

/// A host that was evicted from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedHost {
    /// The evicted host.
    pub host: HostKey,
    /// Known origins of the host.
    pub origins: Vec<Origin>,
    /// When the host's own limits allow the next request.
    pub wake: Tick,
    /// The host's state, for [`Scheduler::restore`].
    pub bytes: Vec<u8>,
}

/// What the scheduler knew of a host that another worker owns now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelinquishedHost {
    /// Known origins of the host.
    pub origins: Vec<Origin>,
    /// Other origins whose robots.txt redirects to this host, if the request for the redirect
    /// target was not sent. Their robots.txt must be fetched again.
    pub unsent_hops: Vec<Origin>,
}

/// Returns the last known address of a host from the bytes of its [`Scheduler::snapshot`].
#[must_use]
pub fn stored_address(bytes: &[u8]) -> Option<IpAddr> {
    HostSnapshot::decode(bytes)?.address
}

/// The gap after the last request to a host, for the user's other crawls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherCrawlsGap {
    /// The end of the last request.
    pub since: Tick,
    /// The gap after it that the host's robots.txt demands from every crawl. The other crawl's own
    /// delay applies too.
    pub pace: Duration,
    /// The wait after it that the host demanded, by a Retry-After or a rate limit.
    pub wait: Duration,
    /// How long the last request matters to other crawls: for `pace` and `wait`, for the own delay
    /// of the crawl that sent it, and for at least a minute, since other crawls may have longer
    /// delays.
    pub kept: Duration,
}

impl OtherCrawlsGap {
    /// The gap of a host that got no request.
    pub const NONE: OtherCrawlsGap = OtherCrawlsGap {
        since: Tick::ZERO,
        pace: Duration::ZERO,
        wait: Duration::ZERO,
        kept: Duration::ZERO,
    };

    /// Returns the gap that a crawl with this delay must respect.
    #[must_use]
    pub fn for_delay(&self, delay: Duration) -> Duration {
        self.pace.max(self.wait).max(delay.min(self.kept))
    }

    /// Returns the gap after another request whose end is unknown, if it counts from `at`.
    #[must_use]
    pub fn after_lost_request(&self, at: Tick) -> OtherCrawlsGap {
        OtherCrawlsGap {
            since: at,
            pace: self.pace,
            wait: (self.since + self.wait).since(at),
            kept: self.kept.max(MAX_LOST_REQUEST),
        }
    }
}

impl Scheduler {
    /// Returns the time at which the host's own limits allow the next request, and the host's state
    /// as opaque bytes for [`Scheduler::restore`]. `None` if nothing is known of the host.
    ///
    /// The state holds the ends and gaps of the host's slots, the waits it requested, its
    /// rate-limit fields, back-off levels, failures, smoothed response time and address. The pace
    /// in its robots.txt is not included, because the caller stores robots.txt copies elsewhere and
    /// applies their pace again.
    #[must_use]
    pub fn snapshot(&self, host: &HostKey) -> Option<(Tick, Vec<u8>)> {
        let (wake, state) = self.host_state(host)?;
        Some((wake, state.encode()))
    }

    /// Returns the same state as [`Scheduler::snapshot`], but not yet encoded. This saves work for
    /// a caller that encodes only the newest of several states of a host.
    #[must_use]
    pub fn host_state(&self, host: &HostKey) -> Option<(Tick, HostSnapshot)> {
        let id = *self.by_host.get(host)?;
        Some(self.stored(&self.hosts[id]))
    }

    /// Returns the gap after the last request to a host, for the user's other crawls. Quiet hours
    /// and pauses after failures are this crawl's own. `None` if the host got no request.
    #[must_use]
    pub fn gap_for_other_crawls(&self, host: &HostKey) -> Option<OtherCrawlsGap> {
        let host = &self.hosts[*self.by_host.get(host)?];
        let since = host.slots.iter().map(|slot| slot.last_end).max()?;
        let gap = since.after(host.gap(self.limits_of(host)).0);
        let slots = host.slots.iter().map(|slot| slot.next_at);
        let own_ends = slots.fold(gap, Tick::max);
        let pace = host
            .pace
            .as_ref()
            .map_or(0, |pace| pace.crawl_delay.max(pace.rate));
        let mut pace_ends = since.after(pace);
        for _ in 0..MAX_HOURLY_GAPS {
            let Some((until, _)) = host.too_soon(since, pace_ends) else {
                break;
            };
            pace_ends = until;
        }
        let backoff = host.backoff();
        let is_demanded = matches!(backoff.hold_why, GapReason::RetryAfter | GapReason::Wait);
        let hold = if is_demanded {
            backoff.hold_until
        } else {
            Tick::ZERO
        };
        let wait_ends = hold.max(backoff.limit.wait_until);
        let kept = own_ends.max(pace_ends).max(wait_ends).since(since);
        Some(OtherCrawlsGap {
            since,
            pace: pace_ends.since(since).min(MAX_KEPT),
            wait: wait_ends.since(since).min(MAX_KEPT),
            kept: kept.clamp(MIN_KEPT, MAX_KEPT),
        })
    }

    /// Returns the gap between two requests to a host, at the hour in which its robots.txt requires
    /// the longest gap. `None` if nothing is known of the host.
    #[must_use]
    pub fn longest_gap(&self, host: &HostKey) -> Option<Duration> {
        let host = &self.hosts[*self.by_host.get(host)?];
        let gap = host.gap(self.limits_of(host)).0;
        Some(Duration::from_micros(gap.max(host.largest_rate())))
    }

    /// Restores the state from [`Scheduler::snapshot`] or [`Scheduler::evict`].
    ///
    /// A slot that was in flight counts as ended now. If the bytes are invalid, nothing is restored
    /// and the host waits a full gap. If something is already known of the host, both states are
    /// merged, and the longer wait wins. Waits are capped at the longest possible wait, so a wrong
    /// clock can't block a host for years.
    pub fn restore(&mut self, now: Tick, host: &HostKey, bytes: &[u8], kind: SnapshotCompleteness) {
        self.advance(now);
        let id = self.host_index(host);
        let stored = HostSnapshot::decode(bytes);
        let is_valid = stored.is_some();
        let delay = micros(self.limits_of(&self.hosts[id]).delay);
        let stored = stored.unwrap_or_default();
        let gap = Duration::from_micros(stored.gap.max(delay));
        if let Some(address) = stored.address
            && self.hosts[id].address == NO_GATE
        {
            self.join_address_gate(id, address);
        }
        self.merge(id, &stored);
        if !is_valid || kind == SnapshotCompleteness::WritesMayBeLost {
            let until = self.now + gap;
            self.hosts[id].backoff_mut().hold(until, GapReason::Restart);
        }
        self.refresh(id);
    }

    /// Applies the record of a request of an earlier run: the gap after the request, and the wait
    /// that the answer caused, with its end and reason. May be called before or after
    /// [`Scheduler::restore`]. If the same request is applied twice to a host with several slots, a
    /// second slot stays closed for one gap.
    pub fn note_past_request(
        &mut self,
        now: Tick,
        host: &HostKey,
        end: Tick,
        gap: Duration,
        wait: Option<(Tick, GapReason)>,
    ) {
        self.advance(now);
        let id = self.host_index(host);
        let end = end.min(self.now);
        let slot = HostRequestSlot {
            last_end: end,
            next_at: end + gap,
            why: GapReason::Delay,
        };
        self.add_slot(id, slot);
        if let Some((until, why)) = wait {
            let until = until.min(self.longest_wait());
            self.hosts[id].backoff_mut().hold(until, why);
        }
        self.refresh(id);
    }

    /// Evicts a host with no pending work and nothing in flight. Returns `None` if there is no such
    /// host.
    ///
    /// The state of its robots.txt is lost: call [`Scheduler::set_robots`] again when the host has
    /// pending URLs again.
    pub fn evict(&mut self) -> Option<EvictedHost> {
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
                    self.gates.remove_host(gate, self.now);
                }
            }
            return Some(EvictedHost {
                host: host.key,
                origins: host.origins.into_iter().map(|entry| entry.origin).collect(),
                wake,
                bytes: state.encode(),
            });
        }
        None
    }

    /// Removes a host and all its pending work for good, because another worker owns the host now.
    /// While requests to the host are in flight, returns `None`, and the host gets no new permit.
    pub fn hand_over(&mut self, now: Tick, host: &HostKey) -> Option<RelinquishedHost> {
        self.advance(now);
        let Some(&id) = self.by_host.get(host) else {
            return Some(RelinquishedHost::default());
        };
        if self.hosts[id].in_flight > 0 {
            self.hosts[id].is_parked = true;
            self.refresh(id);
            return None;
        }
        self.dequeue(id);
        let queued = self.queued_requests.remove(&id).unwrap_or_default();
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
                self.gates.remove_host(gate, self.now);
            }
        }
        let hops = queued.into_iter().filter_map(|purpose| match purpose {
            RequestPurpose::Hop { of } => Some(of),
            RequestPurpose::Page { .. } | RequestPurpose::Robots { .. } => None,
        });
        Some(RelinquishedHost {
            origins: host.origins.into_iter().map(|entry| entry.origin).collect(),
            unsent_hops: hops.collect(),
        })
    }

    /// Returns the latest possible end, counted from now, of a wait that a host requested.
    fn longest_wait(&self) -> Tick {
        let politeness = self.politeness();
        self.now + politeness.max_retry_after.max(politeness.wait_max)
    }

    fn stored(&self, host: &ScheduledHost) -> (Tick, HostSnapshot) {
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
            // A request can't have ended later than now. The length of the gap doesn't change.
            let last_end = slot.last_end.min(now);
            let next_at = slot.next_at.min(now + slot.next_at.since(slot.last_end));
            self.add_slot(
                id,
                HostRequestSlot {
                    last_end,
                    next_at,
                    why: slot.why,
                },
            );
        }
        let per_host = self.limits_of(&self.hosts[id]).per_host;
        for _ in 0..stored.in_flight.min(per_host) {
            let ended = HostRequestSlot {
                last_end: now,
                next_at: now + gap,
                why: GapReason::Restart,
            };
            self.add_slot(id, ended);
        }
        let longest_wait = self.longest_wait();
        // If any end is later than now, the clock was ahead when the state was stored. Then all
        // stored times are ahead by the same amount.
        let ends = stored.slots.iter().map(|slot| slot.last_end);
        let ahead = ends.max().unwrap_or(Tick::ZERO).since(now);
        let adjusted = |until: Tick, longest: Tick| until.before(ahead).min(longest);
        let host = &mut self.hosts[id];
        if host.smoothed == 0 {
            host.smoothed = stored.smoothed;
        }
        let old = &stored.backoff;
        if *old == Backoff::NONE {
            return;
        }
        let backoff = host.backoff_mut();
        backoff.hold(adjusted(old.hold_until, longest_wait), old.hold_why);
        backoff.hold_level = backoff.hold_level.max(old.hold_level);
        let pause_until = adjusted(old.trip_until, now + MAX_PAUSE);
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
                .max(adjusted(old.limit.gap_until, longest_wait));
        }
        limit.wait_until = limit
            .wait_until
            .max(adjusted(old.limit.wait_until, longest_wait));
    }

    /// Adds a used slot. If the host then has too many slots, drops the slot that becomes ready
    /// first. If the last request of the dropped slot ended later than that of a remaining slot,
    /// the remaining slot takes over this later end.
    fn add_slot(&mut self, id: u32, slot: HostRequestSlot) {
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

    use super::SnapshotCompleteness;
    use crate::backoff::{Backoff, HostRateLimit};
    use crate::permit::{GapReason, HostRequestSlot};
    use crate::politeness_settings::Politeness;
    use crate::scheduler::Scheduler;
    use crate::snapshot_format::HostSnapshot;
    use crate::tick::Tick;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: i64 = 3600;

    /// Returns the time that is this many seconds from now.
    fn at(seconds: i64) -> Tick {
        Tick::from_micros(1_700_000_000_000_000_u64.saturating_add_signed(seconds * 1_000_000))
    }

    fn slot(last_end: i64, next_at: i64, why: GapReason) -> HostRequestSlot {
        HostRequestSlot {
            last_end: at(last_end),
            next_at: at(next_at),
            why,
        }
    }

    /// Returns the state of a host after restoring these snapshots in order.
    fn restored(politeness: Politeness, stored: &[&HostSnapshot]) -> HostSnapshot {
        let mut scheduler = Scheduler::new(politeness, 1);
        let host = HostKey::parse("a.example").unwrap();
        for stored in stored {
            scheduler.restore(
                at(0),
                &host,
                &stored.encode(),
                SnapshotCompleteness::Complete,
            );
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

    /// Returns the state of a host with failures and waits, with every field set.
    fn troubled() -> HostSnapshot {
        HostSnapshot {
            smoothed: 700_000,
            // The first pause, ten times the steady gap of 1.4 s, halved by each of two answers
            // since.
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
                zero_waits: 0,
                trip_until: at(20),
                trip_level: 2,
                ease: 2,
                fails: 5,
                failed_urls: vec![1, 2],
                limit: HostRateLimit {
                    gap: 7_000_000,
                    gap_until: at(100),
                    wait_until: at(30),
                },
            },
        }
    }

    #[test]
    fn a_host_is_restored_completely() {
        assert_eq!(restored(three_slots(), &[&troubled()]), troubled());
    }

    #[test]
    fn the_stricter_of_two_snapshots_wins() {
        let newer = HostSnapshot {
            smoothed: 1,
            address: Some("192.0.2.2".parse().unwrap()),
            backoff: Backoff {
                hold_until: at(60),
                hold_why: GapReason::Wait,
                hold_level: 1,
                zero_waits: 0,
                trip_until: at(10),
                trip_level: 3,
                ease: 1,
                fails: 2,
                failed_urls: vec![2, 3],
                limit: HostRateLimit {
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
            zero_waits: 0,
            trip_until: at(20),
            trip_level: 3,
            ease: 1,
            fails: 5,
            failed_urls: failed_urls.to_vec(),
            limit: HostRateLimit {
                gap: 7_000_000,
                gap_until: at(gap_until),
                wait_until: at(40),
            },
        };
        let expected = HostSnapshot {
            gap: 7_000_000,
            backoff: both(100, &[1, 2, 3]),
            ..troubled()
        };
        assert_eq!(restored(three_slots(), &[&troubled(), &newer]), expected);
        // The response time and the address of the first restored snapshot win.
        let expected = HostSnapshot {
            smoothed: 1,
            gap: 5_000_000,
            slots: troubled().slots,
            address: newer.address,
            backoff: both(200, &[2, 3, 1]),
            ..HostSnapshot::default()
        };
        assert_eq!(restored(three_slots(), &[&newer, &troubled()]), expected);
        // Merging in a state without failures keeps the failures already known.
        let calm = HostSnapshot::default();
        assert_eq!(restored(three_slots(), &[&troubled(), &calm]), troubled());
    }

    #[test]
    fn no_wait_exceeds_the_longest_possible_one() {
        let stored = HostSnapshot {
            backoff: Backoff {
                hold_until: at(100 * HOUR),
                trip_until: at(100 * HOUR),
                trip_level: 1,
                limit: HostRateLimit {
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
            let backoff = restored(politeness, &[&stored]).backoff;
            assert_eq!(backoff.hold_until, at(longest * HOUR));
            assert_eq!(backoff.trip_until, at(24 * HOUR));
            assert_eq!(backoff.limit.gap_until, at(longest * HOUR));
            assert_eq!(backoff.limit.wait_until, at(longest * HOUR));
        }
    }

    #[test]
    fn times_of_a_clock_that_was_ahead_count_from_now() {
        let mut ahead = troubled();
        ahead.slots = vec![
            slot(90, 95, GapReason::Delay),
            slot(100, 108, GapReason::Wait),
        ];
        let snapshot = restored(three_slots(), &[&ahead]);
        let slots = [slot(0, 5, GapReason::Delay), slot(0, 8, GapReason::Wait)];
        assert_eq!(snapshot.slots, slots);
        let backoff = snapshot.backoff;
        assert_eq!(backoff.hold_until, at(-50));
        assert_eq!(backoff.trip_until, at(-80));
        assert_eq!(backoff.limit.gap_until, at(0));
        assert_eq!(backoff.limit.wait_until, at(-70));
    }

    #[test]
    fn requests_in_flight_end_now_within_the_slots_there_are() {
        for (in_flight, slots) in [(0, 0), (1, 1), (3, 3), (9, 3)] {
            let stored = HostSnapshot {
                gap: 2_000_000,
                in_flight,
                ..HostSnapshot::default()
            };
            let restored_slots = restored(three_slots(), &[&stored]).slots;
            assert_eq!(restored_slots, vec![slot(0, 2, GapReason::Restart); slots]);
        }
    }

    #[test]
    fn the_slot_that_is_ready_first_is_dropped_and_the_latest_end_stays() {
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
