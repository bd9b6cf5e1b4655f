//! The state of one host, and its slots.

mod ended_requests;

use crawl_weburl::HostKey;

use crate::backoff::Backoff;
use crate::origin::OriginEntry;
use crate::permit::Slot;
use crate::robots_pace::Pace;
use crate::tick::Tick;

/// "No gate": the address is not known, or sites are not limited.
pub(crate) const NO_GATE: u32 = u32::MAX;

pub(crate) struct Host {
    pub(crate) key: HostKey,
    /// With the requests in flight never more than `per_host`; the rest of the slots have
    /// never been used.
    pub(crate) slots: Vec<Slot>,
    pub(crate) origins: Vec<OriginEntry>,
    /// The pace that the robots.txt files of its origins ask for; most ask for none.
    pub(crate) pace: Option<Box<Pace>>,
    /// The waits that it asked for, and its failures; most hosts have none.
    pub(crate) backoff: Option<Box<Backoff>>,
    /// Smoothed response time in microseconds; 0: none known.
    pub(crate) smoothed: u64,
    /// Ready at this moment, in this order among equals; only where it is placed.
    pub(crate) at: Tick,
    pub(crate) order: u64,
    pub(crate) in_flight: u32,
    /// The part of `in_flight` that is set aside. Such a permit may be given back unused.
    pub(crate) set_aside: u32,
    /// Origins with something to ask now; see [`OriginEntry::standing`].
    pub(crate) due: u32,
    /// Origins with urls waiting, or whose robots are being asked for.
    pub(crate) busy: u32,
    /// Requests queued by `queue_request`.
    pub(crate) queued_requests: u32,
    /// The index of the origin that is asked next.
    pub(crate) turn: u32,
    pub(crate) address: u32,
    pub(crate) site: u32,
    /// The number of the politeness that holds for it, among the scheduler's limits.
    pub(crate) limits: u32,
    pub(crate) position: QueuePosition,
    /// 0 comes first among those that are ready since the same moment.
    pub(crate) priority: u8,
    /// The number of times that it had its site's leave but not its address's since its last
    /// permit.
    pub(crate) bounces: u8,
    /// It holds a place of its site while it waits for its address.
    pub(crate) reserved: bool,
    /// It is in the queue of idle hosts, which may leave memory.
    pub(crate) is_in_idle_queue: bool,
    /// Some origin of it has visit times.
    pub(crate) has_visit_times: bool,
    /// The operator wants nothing asked of it.
    pub(crate) is_parked: bool,
}

/// The queue that a host with work is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// In no queue: nothing to ask, or no slot free.
    NotQueued,
    /// Its moment is still to come.
    Later,
    /// Ready, and its turn is to come.
    Ready,
    /// At a gate that is closed.
    AtGate(u32),
}

impl Host {
    pub(crate) fn new(key: HostKey) -> Host {
        Host {
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
            position: QueuePosition::NotQueued,
            priority: 0,
            bounces: 0,
            reserved: false,
            is_in_idle_queue: false,
            has_visit_times: false,
            is_parked: false,
        }
    }

    /// A slot that was used is free. Most hosts have one alone, so there is no room for more.
    pub(crate) fn free_slot(&mut self, slot: Slot) {
        self.slots.reserve_exact(1);
        self.slots.push(slot);
    }

    /// Drops slots where there are more than `per_host`. The one that is free first goes, but no
    /// end is forgotten that is later than another's. One stays in any case: were more allowed
    /// again while requests are in flight, its gap is still to be kept.
    pub(crate) fn drop_slots(&mut self, per_host: u32) {
        let requests = self.in_flight - self.set_aside;
        let room = per_host.saturating_sub(requests).max(1);
        while self.slots.len() > room as usize {
            let slots = &self.slots;
            let first = (0..slots.len()).min_by_key(|index| slots[*index].next_at);
            let gone = self.slots.swap_remove(first.unwrap_or(0));
            let oldest = self.slots.iter_mut().min_by_key(|slot| slot.last_end);
            if let Some(oldest) = oldest {
                oldest.last_end = oldest.last_end.max(gone.last_end);
            }
        }
    }

    /// There is something to ask it, and the operator lets us.
    pub(crate) fn has_work(&self) -> bool {
        !self.is_parked && (self.due > 0 || self.queued_requests > 0)
    }

    /// The number of its URLs that wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.origins.iter().map(OriginEntry::left).sum()
    }

    /// Nothing is asked of it, nothing waits, nothing is to come.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.busy == 0 && self.queued_requests == 0
    }

    /// Its origins ask for another pace, or it has other origins.
    pub(crate) fn learn_pace(&mut self) {
        let mut pace = Pace::default();
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

    use super::Host;
    use crate::origin::OriginEntry;
    use crate::ready_key::Waiter;
    use crate::tick::Tick;

    /// A host in memory with one origin: its entry, its origin, its place in line. Names,
    /// maps and allocation come on top, about as much again.
    #[test]
    fn ours_a_host_takes_few_bytes() {
        let queued = size_of::<(Tick, u64, Waiter)>();
        let bytes = size_of::<Host>() + size_of::<OriginEntry>() + queued;
        assert!(bytes <= 250, "{bytes}");
        assert_eq!(size_of::<Option<Host>>(), size_of::<Host>());
    }
}
