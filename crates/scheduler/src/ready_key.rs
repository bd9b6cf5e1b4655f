//! The places of the ready queue: who waits there, and in which order.

use crate::host::Host;

/// The order of hosts in the ready queue: by the millisecond since which a host is ready, then
/// by its priority, then by the order in which hosts entered the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyKey {
    // Milliseconds, with the priority in the lowest byte: 64 bits hold both up to the
    // last tick there is.
    since: u64,
    order: u64,
}

impl ReadyKey {
    pub(crate) fn of(host: &Host) -> ReadyKey {
        ReadyKey {
            since: host.at.as_millis() << 8 | u64::from(host.priority),
            order: host.order,
        }
    }
}

/// A host, or a gate on behalf of the first host that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Waiter {
    Host(u32),
    Gate(u32),
}
