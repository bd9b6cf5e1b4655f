//! The state of one host and its slots.

mod request_completion;

use crawl_weburl::HostKey;

use crate::backoff::Backoff;
use crate::origin::OriginEntry;
use crate::pace_from_robots::RobotsGaps;
use crate::permit::{HostRequestSlot, RequestPurpose};
use crate::tick::Tick;

/// The index that stands for "no gate" (no shared limit): the host's address is unknown, or its
/// site has no limit.
pub(crate) const NO_GATE: u32 = u32::MAX;

/// A host as the scheduler tracks it: its origins, free slots, pace, back-off and place in the
/// queues.
pub(crate) struct ScheduledHost {
    pub(crate) key: HostKey,
    /// Free slots that were used before. Excludes slots whose request is in flight, and slots never
    /// used.
    pub(crate) slots: Vec<HostRequestSlot>,
    pub(crate) origins: Vec<OriginEntry>,
    /// The pace set by the robots.txt files of the host's origins. `None` for most hosts.
    pub(crate) pace: Option<Box<RobotsGaps>>,
    /// Waits that the host requested, and its failures. `None` for most hosts.
    pub(crate) backoff: Option<Box<Backoff>>,
    /// Smoothed response time in microseconds; 0 if unknown.
    pub(crate) smoothed: u64,
    /// When the host becomes ready. `order` breaks ties. Both are valid only while the host is
    /// queued.
    pub(crate) at: Tick,
    pub(crate) order: u64,
    pub(crate) in_flight: u32,
    /// How many of the `in_flight` requests are waiting for a name look-up. Their permits may still
    /// be given back unused.
    pub(crate) set_aside: u32,
    /// Number of origins that have a request to issue now; see [`OriginEntry::status`].
    pub(crate) due: u32,
    /// Number of origins with pending URLs or a robots request under way.
    pub(crate) busy: u32,
    /// Number of requests queued by `queue_request`.
    pub(crate) queued_requests: u32,
    /// Index of the origin to consider first for the next request. The others follow in order.
    pub(crate) turn: u32,
    pub(crate) address: u32,
    pub(crate) site: u32,
    /// Index of this host's politeness in the scheduler's `limits`.
    pub(crate) limits: u32,
    pub(crate) position: HostQueueMembership,
    /// Orders hosts that became ready in the same millisecond; 0 comes first.
    pub(crate) priority: u8,
    /// Number of times since the host's last permit that the limit of its site allowed a request,
    /// but the limit of its address did not.
    pub(crate) bounces: u8,
    /// Whether the host has reserved a request under its site's limit while it waits for its
    /// address.
    pub(crate) reserved: bool,
    /// Whether the host is in the queue of idle hosts.
    pub(crate) is_in_idle_queue: bool,
    /// Whether the robots.txt of any of the host's origins sets visit times.
    pub(crate) has_visit_times: bool,
    /// Whether the operator parked the host.
    pub(crate) is_parked: bool,
}

/// The queue that holds a host with work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostQueueMembership {
    /// In no queue: the host has no work or no free slot, is parked, or may never be fetched from.
    NotQueued,
    /// In `Scheduler::later`: the host is not ready yet.
    Later,
    /// In `Scheduler::ready`: the host is ready and waits for its turn.
    Ready,
    /// In the queue of the gate (shared limit) with this index, until the gate opens.
    AtGate(u32),
}

impl ScheduledHost {
    pub(crate) fn new(key: HostKey) -> ScheduledHost {
        ScheduledHost {
            key,
            slots: Vec::new(),
            origins: Vec::new(),
            pace: None,
            backoff: None,
            smoothed: 0,
            at: Tick::ZERO,
            order: 0,
            in_flight: 0,
            set_aside: 0,
            due: 0,
            busy: 0,
            queued_requests: 0,
            turn: 0,
            address: NO_GATE,
            site: NO_GATE,
            limits: 0,
            position: HostQueueMembership::NotQueued,
            priority: 0,
            bounces: 0,
            reserved: false,
            is_in_idle_queue: false,
            has_visit_times: false,
            is_parked: false,
        }
    }

    /// Adds a used slot that is now free. No spare capacity is reserved, because most hosts have
    /// only one slot.
    pub(crate) fn free_slot(&mut self, slot: HostRequestSlot) {
        self.slots.reserve_exact(1);
        self.slots.push(slot);
    }

    /// Removes free slots until the free slots and the requests in flight together are at most
    /// `per_host`. The slots that become ready first are removed first. If the last request of a
    /// removed slot ended later than that of a remaining slot, the remaining slot takes over this
    /// later end. At least one slot remains, so that its gap still applies if `per_host` is raised
    /// while requests are in flight.
    pub(crate) fn drop_slots(&mut self, per_host: u32) {
        let requests = self.in_flight - self.set_aside;
        let room = per_host.saturating_sub(requests).max(1);
        while self.slots.len() > room as usize {
            let slots = &self.slots;
            let first = (0..slots.len()).min_by_key(|index| slots[*index].next_at);
            let dropped = self.slots.swap_remove(first.unwrap_or(0));
            let oldest = self.slots.iter_mut().min_by_key(|slot| slot.last_end);
            if let Some(oldest) = oldest {
                oldest.last_end = oldest.last_end.max(dropped.last_end);
            }
        }
    }

    /// Returns whether a request is due and the host is not parked.
    pub(crate) fn has_work(&self) -> bool {
        !self.is_parked && (self.due > 0 || self.queued_requests > 0)
    }

    /// Returns whether another origin of the host may still answer after a request for the
    /// robots.txt of one origin failed. False for any other request. Also false for a host with
    /// more than two origins, because links to many ports of a host would otherwise make the crawl
    /// try each port in turn.
    pub(crate) fn may_answer_elsewhere(&self, purpose: &RequestPurpose) -> bool {
        let RequestPurpose::Robots { origin } = purpose else {
            return false;
        };
        let mut rest = self.origins.iter().filter(|entry| entry.origin != *origin);
        self.origins.len() == 2 && rest.any(OriginEntry::may_answer)
    }

    /// Returns the number of pending URLs without a permit.
    pub(crate) fn waiting(&self) -> u64 {
        self.origins.iter().map(OriginEntry::left).sum()
    }

    /// Returns whether nothing is in flight, pending or queued.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.busy == 0 && self.queued_requests == 0
    }

    /// Recomputes the pace after an origin was added or an origin's pace changed.
    pub(crate) fn learn_pace(&mut self) {
        let mut pace = RobotsGaps::default();
        self.has_visit_times = false;
        for asked in self.origins.iter().filter_map(|entry| entry.pace.as_ref()) {
            pace.join(&asked.pace);
            self.has_visit_times |= !asked.visits.is_empty();
        }
        self.pace = (!pace.is_empty()).then(|| Box::new(pace));
    }
}

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::ScheduledHost;
    use crate::origin::OriginEntry;
    use crate::ready_queue_entry::ReadyQueueEntry;
    use crate::tick::Tick;

    /// Adds up the sizes of a host, its only origin and its queue entry. Names, maps and allocation
    /// overhead take about as much again.
    #[test]
    fn a_host_takes_at_most_250_bytes() {
        let queued = size_of::<(Tick, u64, ReadyQueueEntry)>();
        let bytes = size_of::<ScheduledHost>() + size_of::<OriginEntry>() + queued;
        assert!(bytes <= 250, "{bytes}");
        assert_eq!(
            size_of::<Option<ScheduledHost>>(),
            size_of::<ScheduledHost>()
        );
    }
}
