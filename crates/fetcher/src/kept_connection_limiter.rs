//! Limits the connections kept alive between requests to all hosts together, to bound memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crawl_weburl::HostKey;
use foldhash::fast::RandomState;
use tokio::time::Instant;

/// Minimum time between two searches for hosts whose connections have been closed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Limits the connections that are kept alive, of all hosts together.
#[derive(Debug)]
pub(crate) struct KeptConnectionLimiter {
    max: u32,
    /// After this time without use, a connection is surely closed.
    closed_after: Duration,
    state: Mutex<KeptConnectionState>,
}

#[derive(Debug)]
struct KeptConnectionState {
    hosts: HashMap<HostKey, HostConnections, RandomState>,
    /// Number of connections of all hosts.
    connections: u32,
    looked: Instant,
}

/// The connections of a host.
#[derive(Debug)]
struct HostConnections {
    /// The highest number of connections that were in use at the same time so far. Up to this many
    /// may be open and idle now.
    made: u32,
    in_use: u32,
    used_last: Instant,
}

/// A request over a connection that is kept alive afterwards. Dropping this value ends the request.
#[derive(Debug)]
pub(crate) struct KeptConnectionSlot<'a> {
    of: &'a KeptConnectionLimiter,
    host: HostKey,
}

impl KeptConnectionLimiter {
    /// Creates a limit of `max` connections, each kept idle for up to `keep_alive`.
    pub(crate) fn new(max: u32, keep_alive: Duration) -> KeptConnectionLimiter {
        KeptConnectionLimiter {
            max,
            // The client looks for expired idle connections only once per `keep_alive`, so a
            // connection may stay open twice as long.
            closed_after: 2 * keep_alive,
            state: Mutex::new(KeptConnectionState {
                hosts: HashMap::default(),
                connections: 0,
                looked: Instant::now(),
            }),
        }
    }

    /// Begins a request over a connection that is kept alive afterwards. Returns `None` if the
    /// limit of such connections is reached.
    pub(crate) fn begin(&self, host: HostKey, now: Instant) -> Option<KeptConnectionSlot<'_>> {
        let mut state = self.state();
        if state.connections >= self.max && now >= state.looked + LOOK_INTERVAL {
            state.drop_closed(now, self.closed_after);
        }
        let KeptConnectionState {
            hosts, connections, ..
        } = &mut *state;
        let has_room = *connections < self.max;
        match hosts.entry(host.clone()) {
            Entry::Occupied(of_host) => {
                let of_host = of_host.into_mut();
                if of_host.in_use == of_host.made {
                    if !has_room {
                        return None;
                    }
                    of_host.made += 1;
                    *connections += 1;
                }
                of_host.in_use += 1;
            }
            Entry::Vacant(_) if !has_room => return None,
            Entry::Vacant(entry) => {
                entry.insert(HostConnections {
                    made: 1,
                    in_use: 1,
                    used_last: now,
                });
                *connections += 1;
            }
        }
        Some(KeptConnectionSlot { of: self, host })
    }

    fn state(&self) -> MutexGuard<'_, KeptConnectionState> {
        // The counters are valid even if another thread panicked while it held the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptConnectionState {
    fn drop_closed(&mut self, now: Instant, closed_after: Duration) {
        let is_open = |of_host: &HostConnections| {
            of_host.in_use > 0 || of_host.used_last + closed_after > now
        };
        self.hosts.retain(|_, of_host| is_open(of_host));
        self.connections = self.hosts.values().map(|of_host| of_host.made).sum();
        self.looked = now;
    }
}

impl Drop for KeptConnectionSlot<'_> {
    fn drop(&mut self) {
        if let Some(of_host) = self.of.state().hosts.get_mut(&self.host) {
            of_host.in_use -= 1;
            of_host.used_last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostKey {
        HostKey::parse(name).unwrap()
    }

    #[test]
    fn kept_connections_are_limited() {
        let connections = KeptConnectionLimiter::new(3, Duration::from_secs(5));
        let [a, b, c, d] = ["a.example", "b.example", "c.example", "d.example"].map(host);
        let start = Instant::now();
        let begin = |host: &HostKey, second| {
            connections.begin(host.clone(), start + Duration::from_secs(second))
        };
        let (one, two, of_b) = (begin(&a, 0), begin(&a, 0), begin(&b, 0));
        assert!(one.is_some() && two.is_some() && of_b.is_some());
        assert!(begin(&b, 0).is_none());
        drop((one, two, of_b));
        // Existing connections are reused.
        let of_b = begin(&b, 8);
        assert!(of_b.is_some() && begin(&b, 8).is_none());
        assert!(begin(&c, 8).is_none());
        // The two connections to `a` now count as closed, which makes room for `c` and `d`. The
        // connection to `b` is still in use.
        let more = (begin(&c, 20), begin(&d, 20));
        assert!(more.0.is_some() && more.1.is_some());
        assert!(begin(&a, 20).is_none() && begin(&b, 20).is_none());
        drop(of_b);
        assert!(begin(&b, 20).is_some());
    }
}
