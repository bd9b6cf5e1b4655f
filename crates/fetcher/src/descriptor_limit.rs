//! The number of exchanges that may be under way when file descriptors run out.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// The longest wait of the next try for another exchange to end. Kept connections that are
/// idle give their descriptors back by themselves.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Where descriptors ran out, so many exchanges for each that may be under way have to end
/// before an eighth more may be. Whatever holds the descriptors may let go of them, and each
/// try that fails is a moment without one for the files of the crawl.
const MIN_ENDED: usize = 32;

/// EMFILE and ENFILE: the limit of this process, and that of the machine.
pub(crate) fn is_no_descriptor(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

/// Lets any number of exchanges begin, until there are no descriptors for so many.
#[derive(Debug)]
pub(crate) struct DescriptorLimit {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug)]
struct State {
    underway: usize,
    max: usize,
    /// Exchanges that ended since descriptors ran out, or more were allowed.
    ended_since: usize,
}

/// An exchange under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ExchangeSlot<'a> {
    descriptor_limit: &'a DescriptorLimit,
    /// The number that was allowed when it began.
    max: usize,
}

impl DescriptorLimit {
    pub(crate) fn new() -> DescriptorLimit {
        DescriptorLimit {
            state: Mutex::new(State {
                underway: 0,
                max: usize::MAX,
                ended_since: 0,
            }),
            ended: Notify::new(),
        }
    }

    /// Waits until an exchange may begin.
    pub(crate) async fn begin(&self) -> ExchangeSlot<'_> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // From here on no end is missed.
            ended.as_mut().enable();
            if let Some(slot) = self.try_begin() {
                return slot;
            }
            ended.await;
        }
    }

    /// An exchange found no descriptor: from now on a quarter fewer are under way at once than
    /// when it began, until there have been enough for so many for a while. Waits until it is worth
    /// another try.
    pub(crate) async fn have_fewer(&self, slot: ExchangeSlot<'_>) {
        if self.allow_fewer(&slot) {
            tracing::warn!(
                "no file descriptors are left: fewer connections at once for now\n\
                 hint: raise the limit (`ulimit -n`), or lower --concurrency"
            );
        }
        // Its own end frees nothing.
        drop(slot);
        let _ = timeout(RETRY_INTERVAL, self.ended.notified()).await;
    }

    /// Returns whether this was the first time. Those that ran out together count once: each began
    /// under the same number, and only the first finds it still in force.
    fn allow_fewer(&self, slot: &ExchangeSlot<'_>) -> bool {
        let mut state = self.state();
        let is_first = state.max == usize::MAX;
        state.ended_since = 0;
        if state.max == slot.max {
            state.max = state.max.min((state.underway * 3 / 4).max(1));
        }
        is_first
    }

    fn try_begin(&self) -> Option<ExchangeSlot<'_>> {
        let mut state = self.state();
        (state.underway < state.max).then(|| {
            state.underway += 1;
            ExchangeSlot {
                descriptor_limit: self,
                max: state.max,
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Two numbers are whole after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ExchangeSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.descriptor_limit.state();
        state.underway -= 1;
        state.ended_since = state.ended_since.saturating_add(1);
        if state.ended_since >= state.max.saturating_mul(MIN_ENDED) {
            state.ended_since = 0;
            state.max = state.max.saturating_add((state.max / 8).max(1));
        }
        drop(state);
        self.descriptor_limit.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ours_a_quarter_fewer_are_under_way_where_descriptors_ran_out() {
        let descriptor_limit = DescriptorLimit::new();
        let mut underway = Vec::new();
        for _ in 0..8 {
            underway.push(descriptor_limit.begin().await);
        }
        for slot in &underway {
            // All eight ran out at once.
            descriptor_limit.allow_fewer(slot);
        }
        drop(underway.pop());
        assert!(
            descriptor_limit.try_begin().is_none(),
            "seven are more than six"
        );
        underway.truncate(5);
        let sixth = descriptor_limit.begin().await;
        assert!(descriptor_limit.try_begin().is_none());
        // The last one left is never given up.
        drop((underway, sixth));
        for _ in 0..3 {
            let only = descriptor_limit.begin().await;
            descriptor_limit.allow_fewer(&only);
        }
        let _only = descriptor_limit.begin().await;
        assert!(descriptor_limit.try_begin().is_none());
    }

    #[tokio::test]
    async fn ours_more_are_under_way_again_where_descriptors_suffice() {
        let descriptor_limit = DescriptorLimit::new();
        let first = descriptor_limit.begin().await;
        descriptor_limit.allow_fewer(&first);
        drop(first);
        let at_once = || {
            let all: Vec<_> = std::iter::from_fn(|| descriptor_limit.try_begin())
                .take(99)
                .collect();
            all.len()
        };
        for _ in 2..MIN_ENDED {
            assert_eq!(at_once(), 1);
        }
        at_once();
        assert_eq!(at_once(), 2);
        // It goes on to grow, whatever the number was.
        for _ in 0..2000 {
            at_once();
        }
        assert_eq!(at_once(), 99);
        // They run out anew.
        let slot = descriptor_limit.begin().await;
        descriptor_limit.allow_fewer(&slot);
        drop(slot);
        assert_eq!(at_once(), 1);
    }
}
