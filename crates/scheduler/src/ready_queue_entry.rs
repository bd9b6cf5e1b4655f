//! The entries of the ready queue and their order.

use crate::host::ScheduledHost;

/// The order of hosts in the ready queue: by the millisecond in which the host became ready, then
/// by priority, then by order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyQueueKey {
    // The millisecond, shifted left by 8 bits; the low 8 bits hold the priority. 64 bits suffice up
    // to the last tick.
    since: u64,
    order: u64,
}

impl ReadyQueueKey {
    pub(crate) fn of(host: &ScheduledHost) -> ReadyQueueKey {
        ReadyQueueKey {
            since: host.at.as_millis() << 8 | u64::from(host.priority),
            order: host.order,
        }
    }
}

/// An entry of the ready queue: a host, or a gate (shared limit) on behalf of the first host that
/// waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadyQueueEntry {
    Host(u32),
    Gate(u32),
}
