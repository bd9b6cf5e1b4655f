//! Limits the memory of values in transit between threads.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Limits the number of bytes in transit between threads. All clones share one limit.
#[derive(Clone)]
pub struct BytesInTransitLimit {
    most: usize,
    state: Arc<(Mutex<TransitLimitState>, Condvar)>,
}

#[derive(Default)]
struct TransitLimitState {
    under_way: usize,
    /// Number of threads that wait in [`BytesInTransitLimit::enter`].
    waiting: usize,
}

impl BytesInTransitLimit {
    /// Creates a limit of `most` bytes in transit at a time.
    #[must_use]
    pub fn new(most: usize) -> BytesInTransitLimit {
        BytesInTransitLimit {
            most,
            state: Arc::default(),
        }
    }

    /// Blocks until `bytes` more bytes fit into the limit, then counts them as in transit until the
    /// returned permit is dropped. If `bytes` exceeds the limit itself, blocks until nothing else
    /// is in transit.
    #[must_use]
    pub fn enter(&self, bytes: usize) -> BytesInTransitPermit {
        let (state, freed) = &*self.state;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.under_way > 0 && state.under_way.saturating_add(bytes) > self.most {
            state.waiting += 1;
            state = freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.under_way += bytes;
        BytesInTransitPermit {
            gate: self.clone(),
            bytes,
        }
    }

    /// Returns the number of bytes in transit.
    #[must_use]
    pub fn under_way(&self) -> usize {
        let state = self.state.0.lock();
        state.unwrap_or_else(PoisonError::into_inner).under_way
    }
}

impl fmt::Debug for BytesInTransitLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "BytesInTransitLimit({} of {})",
            self.under_way(),
            self.most
        )
    }
}

/// A reservation of bytes that count as in transit through a [`BytesInTransitLimit`]. Drop it when
/// the bytes have arrived.
#[derive(Debug)]
pub struct BytesInTransitPermit {
    gate: BytesInTransitLimit,
    bytes: usize,
}

impl Drop for BytesInTransitPermit {
    fn drop(&mut self) {
        let (state, freed) = &*self.gate.state;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way -= self.bytes;
        // Only notify if a thread is waiting, because notifying is a system call.
        if state.waiting > 0 {
            freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::BytesInTransitLimit;

    #[test]
    fn bytes_under_way_stay_within_the_bound() {
        let gate = BytesInTransitLimit::new(100);
        let large = gate.enter(1000);
        assert_eq!(gate.under_way(), 1000);
        thread::scope(|scope| {
            let senders: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let pass = gate.enter(40);
                        let under_way = gate.under_way();
                        drop(pass);
                        under_way
                    })
                })
                .collect();
            drop(large);
            for other in senders {
                assert!(other.join().unwrap() <= 100);
            }
        });
        assert_eq!(gate.under_way(), 0);
    }
}
