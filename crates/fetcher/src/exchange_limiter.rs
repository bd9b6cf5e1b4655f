//! Limits concurrent exchanges when file descriptors run out.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Maximum wait for another exchange to end before a retry. A retry may succeed earlier, because
/// idle kept connections free their descriptors when they close.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Number of exchanges, as a multiple of the limit, that must end before the limit grows by an
/// eighth. The limit grows because other processes may free descriptors. It grows slowly, because
/// each failed attempt briefly leaves no descriptor for the crawl's files.
const MIN_ENDED: usize = 32;

/// Returns whether the error is EMFILE (the process has no descriptor left) or ENFILE (the machine
/// has none).
pub(crate) fn is_no_descriptor(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

/// A limit on concurrent exchanges. Unlimited until file descriptors run out.
#[derive(Debug)]
pub(crate) struct ExchangeLimiter {
    state: Mutex<ExchangeLimiterState>,
    ended: Notify,
}

#[derive(Debug)]
struct ExchangeLimiterState {
    underway: usize,
    max: usize,
    /// Number of exchanges that ended since descriptors last ran out or the limit last grew.
    ended_since: usize,
}

/// An exchange under way. Dropping it ends the exchange.
#[derive(Debug)]
pub(crate) struct ExchangeSlot<'a> {
    exchange_limiter: &'a ExchangeLimiter,
    /// The limit when the exchange began.
    max: usize,
}

impl ExchangeLimiter {
    pub(crate) fn new() -> ExchangeLimiter {
        ExchangeLimiter {
            state: Mutex::new(ExchangeLimiterState {
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
            // Listen before checking the limit, so that no exchange ends unnoticed in between.
            ended.as_mut().enable();
            if let Some(slot) = self.try_begin() {
                return slot;
            }
            ended.await;
        }
    }

    /// Lowers the limit to three quarters of the exchanges under way. Call this after an exchange
    /// found no descriptor. Returns when a retry is worthwhile.
    pub(crate) async fn have_fewer(&self, slot: ExchangeSlot<'_>) {
        if self.allow_fewer(&slot) {
            tracing::warn!(
                "out of file descriptors: using fewer connections for now\nhint: raise the limit \
                 (`ulimit -n`), or lower --concurrency"
            );
        }
        // Drop the slot before waiting. The end of this exchange frees no descriptor, so it must
        // not wake the wait below.
        drop(slot);
        let _ = timeout(RETRY_INTERVAL, self.ended.notified()).await;
    }

    /// Lowers the limit. Returns whether descriptors ran out for the first time. Exchanges that
    /// fail together lower the limit only once. All of them began under the same limit, and only
    /// the first to fail finds this limit still in force.
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
                exchange_limiter: self,
                max: state.max,
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, ExchangeLimiterState> {
        // The state is only numbers, which are valid even if another thread panicked while it held
        // the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ExchangeSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.exchange_limiter.state();
        state.underway -= 1;
        state.ended_since = state.ended_since.saturating_add(1);
        if state.ended_since >= state.max.saturating_mul(MIN_ENDED) {
            state.ended_since = 0;
            state.max = state.max.saturating_add((state.max / 8).max(1));
        }
        drop(state);
        self.exchange_limiter.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_limit_drops_by_a_quarter_when_descriptors_run_out() {
        let exchange_limiter = ExchangeLimiter::new();
        let mut underway = Vec::new();
        for _ in 0..8 {
            underway.push(exchange_limiter.begin().await);
        }
        for slot in &underway {
            // All eight exchanges ran out of descriptors at the same time, so the limit is lowered
            // once.
            exchange_limiter.allow_fewer(slot);
        }
        drop(underway.pop());
        assert!(
            exchange_limiter.try_begin().is_none(),
            "seven are more than six"
        );
        underway.truncate(5);
        let sixth = exchange_limiter.begin().await;
        assert!(exchange_limiter.try_begin().is_none());
        // At least one exchange is always allowed.
        drop((underway, sixth));
        for _ in 0..3 {
            let only = exchange_limiter.begin().await;
            exchange_limiter.allow_fewer(&only);
        }
        let _only = exchange_limiter.begin().await;
        assert!(exchange_limiter.try_begin().is_none());
    }

    #[tokio::test]
    async fn the_limit_grows_again_while_descriptors_suffice() {
        let exchange_limiter = ExchangeLimiter::new();
        let first = exchange_limiter.begin().await;
        exchange_limiter.allow_fewer(&first);
        drop(first);
        let at_once = || {
            let slots: Vec<_> = std::iter::from_fn(|| exchange_limiter.try_begin())
                .take(99)
                .collect();
            slots.len()
        };
        for _ in 2..MIN_ENDED {
            assert_eq!(at_once(), 1);
        }
        at_once();
        assert_eq!(at_once(), 2);
        // The limit grows to the maximum again from any value, even though an eighth of a small
        // number is less than one.
        for _ in 0..2000 {
            at_once();
        }
        assert_eq!(at_once(), 99);
        // Descriptors run out again.
        let slot = exchange_limiter.begin().await;
        exchange_limiter.allow_fewer(&slot);
        drop(slot);
        assert_eq!(at_once(), 1);
    }
}
