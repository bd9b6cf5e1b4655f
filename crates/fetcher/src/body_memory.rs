//! Memory for long bodies: how much of it all exchanges hold together.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room is counted in these, bytes.
const UNIT: u64 = 1 << 10;

/// Memory that was given to one body. It is free for others when the last clone is dropped,
/// so whoever still holds the bytes holds this as well.
#[derive(Clone, Default)]
pub struct BodyMemory(
    #[expect(dead_code, reason = "held for its drop alone")] Option<Arc<OwnedSemaphorePermit>>,
);

impl fmt::Debug for BodyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Room")
    }
}

/// All the room that there is.
///
/// A body takes the room for its longest possible form at once, and no body takes twice: so
/// whoever has room can end, and bodies never wait for each other in a ring. Those that wait
/// are served in the order they came.
#[derive(Debug)]
pub(crate) struct BodyMemoryPool {
    free: Arc<Semaphore>,
    all: u32,
}

impl BodyMemoryPool {
    /// Room for so many bytes, a kibibyte at least.
    pub(crate) fn new(bytes: u64) -> BodyMemoryPool {
        let all = units(bytes).max(1);
        BodyMemoryPool {
            free: Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(usize::MAX))),
            all,
        }
    }

    /// Room for a body of so many bytes, or all there is where that is less; waits for it.
    pub(crate) async fn take(&self, bytes: u64) -> BodyMemory {
        let wanted = units(bytes).min(self.all);
        let permit = Arc::clone(&self.free).acquire_many_owned(wanted).await;
        // Nobody closes the semaphore.
        BodyMemory(permit.ok().map(Arc::new))
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

    use super::{BodyMemory, BodyMemoryPool};

    fn try_take(rooms: &BodyMemoryPool, bytes: u64) -> Option<BodyMemory> {
        let taking = pin!(rooms.take(bytes));
        match taking.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_one_body_holds_another_waits_for() {
        let rooms = BodyMemoryPool::new(10 << 10);
        let first = try_take(&rooms, 6 << 10).unwrap();
        assert!(try_take(&rooms, 6 << 10).is_none());
        let small = try_take(&rooms, 1).unwrap();
        let kept = first.clone();
        drop(first);
        assert!(try_take(&rooms, 6 << 10).is_none(), "a clone holds it");
        drop(kept);
        assert!(try_take(&rooms, 6 << 10).is_some());
        drop(small);
    }

    #[test]
    fn ours_a_body_longer_than_all_room_takes_all_of_it() {
        let rooms = BodyMemoryPool::new(4 << 10);
        let all = try_take(&rooms, u64::MAX).unwrap();
        assert!(try_take(&rooms, 1).is_none());
        drop(all);
        assert!(try_take(&rooms, 1).is_some());
    }
}
