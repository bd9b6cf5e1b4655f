//! Limits the memory that the long bodies of all exchanges take together.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of memory per permit of the semaphore.
const UNIT: u64 = 1 << 10;

/// Memory reserved for one body. The reservation ends when the last clone is dropped, so keep a
/// clone for as long as you keep the body's bytes.
#[derive(Clone, Default)]
pub struct BodyMemoryReservation(
    #[expect(dead_code, reason = "held for its drop alone")] Option<Arc<OwnedSemaphorePermit>>,
);

impl fmt::Debug for BodyMemoryReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyMemoryReservation")
    }
}

/// The memory for all long bodies.
///
/// A body that turns out to be long immediately reserves memory for its maximum length. No body
/// waits for more memory while it holds some, so bodies can't deadlock. Waiting bodies are served
/// in order.
#[derive(Debug)]
pub(crate) struct BodyMemoryPool {
    free: Arc<Semaphore>,
    all: u32,
}

impl BodyMemoryPool {
    /// Creates a pool of this many bytes, at least a kibibyte.
    pub(crate) fn new(bytes: u64) -> BodyMemoryPool {
        let all = units(bytes).max(1);
        BodyMemoryPool {
            free: Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(usize::MAX))),
            all,
        }
    }

    /// Reserves memory for a body of this many bytes, or the whole pool if the pool is smaller.
    /// Waits until enough memory is free.
    pub(crate) async fn take(&self, bytes: u64) -> BodyMemoryReservation {
        let wanted = units(bytes).min(self.all);
        let permit = Arc::clone(&self.free).acquire_many_owned(wanted).await;
        // `ok` loses no error, because the semaphore is never closed.
        BodyMemoryReservation(permit.ok().map(Arc::new))
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT))
        .unwrap_or(u32::MAX)
        .min(u32::MAX >> 3)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::{BodyMemoryPool, BodyMemoryReservation};

    fn try_take(rooms: &BodyMemoryPool, bytes: u64) -> Option<BodyMemoryReservation> {
        let taking = pin!(rooms.take(bytes));
        match taking.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_body_waits_for_memory_held_by_another() {
        let rooms = BodyMemoryPool::new(10 << 10);
        let first = try_take(&rooms, 6 << 10).unwrap();
        assert!(try_take(&rooms, 6 << 10).is_none());
        let small = try_take(&rooms, 1).unwrap();
        let clone = first.clone();
        drop(first);
        assert!(try_take(&rooms, 6 << 10).is_none(), "a clone holds it");
        drop(clone);
        assert!(try_take(&rooms, 6 << 10).is_some());
        drop(small);
    }

    #[test]
    fn a_body_longer_than_the_pool_takes_all_of_it() {
        let rooms = BodyMemoryPool::new(4 << 10);
        let all = try_take(&rooms, u64::MAX).unwrap();
        assert!(try_take(&rooms, 1).is_none());
        drop(all);
        assert!(try_take(&rooms, 1).is_some());
    }
}
