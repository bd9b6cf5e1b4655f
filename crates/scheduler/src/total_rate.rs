//! The rate of requests in all: governor, on a clock that is set from the tick.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::tick::Tick;

type Limiter = RateLimiter<NotKeyed, InMemoryState, TickClock, NoOpMiddleware<Moment>>;

/// One cell at a time: requests are spaced evenly and never come in a burst, after a
/// restart neither.
pub(crate) struct TotalRate {
    /// `None`: no limit.
    quota: Option<Quota>,
    /// Made at the first request, since its time starts when it is made.
    limiter: Option<Limiter>,
    clock: TickClock,
    /// Cells taken so far, so that the last one can be told from earlier ones.
    cells: u64,
    closed_until: Tick,
}

/// The longest space between two requests; keeps governor's nanoseconds within 64 bits.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl TotalRate {
    /// At most `per_second` requests a second.
    pub(crate) fn new(per_second: Option<f64>) -> TotalRate {
        let period = per_second
            .filter(|rate| *rate > 0.0 && rate.is_finite())
            .map(|rate| Duration::try_from_secs_f64(rate.recip()).unwrap_or(MAX_INTERVAL))
            .map(|period| period.min(MAX_INTERVAL));
        TotalRate {
            quota: period.and_then(Quota::with_period),
            limiter: None,
            clock: TickClock::default(),
            cells: 0,
            closed_until: Tick::ZERO,
        }
    }

    /// Nothing may be sent before this, as far as is known.
    pub(crate) fn closed_until(&self) -> Tick {
        self.closed_until
    }

    /// Takes leave for one request: its number, or when to ask again.
    pub(crate) fn take(&mut self, now: Tick) -> Result<u64, Tick> {
        let Some(quota) = self.quota else {
            return Ok(0);
        };
        self.clock.0.store(now.as_micros(), Ordering::Relaxed);
        let limiter = self
            .limiter
            .get_or_insert_with(|| RateLimiter::direct_with_clock(quota, self.clock.clone()));
        match limiter.check() {
            Ok(()) => {
                self.cells += 1;
                Ok(self.cells)
            }
            Err(closed) => {
                self.closed_until = Tick::from_micros(closed.earliest_possible().0);
                Err(self.closed_until)
            }
        }
    }

    /// Nothing was sent on cell `number`. Only the last cell comes back: a later one was
    /// spaced from it already, so an older one would be a burst.
    pub(crate) fn give_back(&mut self, number: u64) {
        if self.quota.is_some() && number == self.cells {
            self.limiter = None;
            self.closed_until = Tick::ZERO;
        }
    }
}

/// Microseconds, shared with the limiter; no thread but ours reads it.
#[derive(Clone, Default)]
struct TickClock(Arc<AtomicU64>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u64);

impl Clock for TickClock {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Moment) -> Nanos {
        let micros = self.0.saturating_sub(earlier.0);
        // A quarter of the range, so that adding a period can't overflow.
        Nanos::new(micros.saturating_mul(1000).min(u64::MAX / 4))
    }

    fn saturating_sub(&self, duration: Nanos) -> Moment {
        Moment(self.0.saturating_sub(duration.as_u64() / 1000))
    }
}

impl Add<Nanos> for Moment {
    type Output = Moment;

    /// Rounded up: a limit never opens early.
    fn add(self, nanos: Nanos) -> Moment {
        Moment(self.0.saturating_add(nanos.as_u64().div_ceil(1000)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TotalRate;
    use crate::tick::Tick;

    #[test]
    fn ours_no_rate_no_limit() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN)] {
            let mut rate = TotalRate::new(rate);
            assert!((0..1000).all(|_| rate.take(Tick::ZERO).is_ok()));
        }
    }

    #[test]
    fn ours_requests_are_spaced_evenly() {
        let mut rate = TotalRate::new(Some(3.0));
        let mut now = Tick::from_micros(1_700_000_000_000_000);
        let start = now;
        for _ in 0..300 {
            while let Err(at) = rate.take(now) {
                assert!(at > now);
                now = at;
            }
        }
        let took = now.since(start);
        assert!(took >= Duration::from_millis(299_000 / 3));
        assert!(took <= Duration::from_millis(299_000 / 3 + 2));
        // Idleness saves nothing up.
        now = now + Duration::from_secs(60);
        assert!(rate.take(now).is_ok());
        assert!(rate.take(now).is_err());
    }

    #[test]
    fn ours_only_the_last_cell_comes_back() {
        let second = Duration::from_secs(1);
        let mut rate = TotalRate::new(Some(1.0));
        let first = rate.take(Tick::ZERO).unwrap();
        rate.give_back(first);
        let second_cell = rate.take(Tick::ZERO).unwrap();
        let third = rate.take(Tick::ZERO + second).unwrap();
        rate.give_back(second_cell);
        assert_eq!(
            rate.take(Tick::ZERO + second),
            Err(Tick::ZERO + second + second)
        );
        rate.give_back(third);
        assert!(rate.take(Tick::ZERO + second).is_ok());
    }

    #[test]
    fn ours_extremes_do_not_overflow() {
        for per_second in [f64::MIN_POSITIVE, 1e-12, 1e12, f64::MAX] {
            let mut rate = TotalRate::new(Some(per_second));
            for now in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                let _ = rate.take(Tick::from_micros(now));
            }
        }
    }
}
