//! Rate limits: requests per second in total and per address, and look-ups per second per name
//! server. Enforced by the `governor` crate on our own clock.
//!
//! A rate is a minimum time between two requests, so it never allows a burst, not even after a
//! restart.

use std::num::NonZeroU32;
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

/// Maximum time between two requests, however low the rate.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Maximum age of a limiter in nanoseconds (146 years). A longer age is passed to governor as this
/// value, because larger values could overflow there.
const MAX_NANOS: u64 = 1 << 62;

/// A maximum number of requests per second, evenly spaced.
pub struct MaxRateLimiter {
    clock: SettableGovernorClock,
    /// Time between two requests; `None` without a limit.
    interval: Option<Duration>,
    /// The limiter, created at the first request.
    limiter: Option<Limiter>,
    /// The sequence number of the last request that was counted.
    last: u64,
    /// The earliest time for the next request that the counted requests allow.
    opens_at: Tick,
    /// The earliest time for the next request that the requests recorded by
    /// [`MaxRateLimiter::note_earlier`] allow.
    earlier_until: Tick,
}

type Limiter =
    RateLimiter<NotKeyed, InMemoryState, SettableGovernorClock, NoOpMiddleware<GovernorInstant>>;

impl MaxRateLimiter {
    /// Creates a limit of `per_second` requests per second. There is no limit if `per_second` is
    /// `None`, not finite, or not above 0.
    #[must_use]
    pub fn new(per_second: Option<f64>) -> MaxRateLimiter {
        MaxRateLimiter::with_clock(&SettableGovernorClock::default(), per_second)
    }

    /// Creates a limit like [`MaxRateLimiter::new`], but with a clock that several limits share.
    pub(crate) fn with_clock(
        clock: &SettableGovernorClock,
        per_second: Option<f64>,
    ) -> MaxRateLimiter {
        MaxRateLimiter {
            clock: clock.clone(),
            interval: interval(per_second),
            limiter: None,
            last: 0,
            opens_at: Tick::ZERO,
            earlier_until: Tick::ZERO,
        }
    }

    pub(crate) fn has_limit(&self) -> bool {
        self.interval.is_some()
    }

    /// Changes the rate. The current wait does not end earlier. The first interval of the new rate
    /// starts now, because the time of the last request is unknown if there was no limit before.
    pub(crate) fn set(&mut self, now: Tick, per_second: Option<f64>) {
        let before = std::mem::replace(&mut self.interval, interval(per_second));
        if self.interval != before {
            let opens_at = self.opens_at;
            self.limiter = None;
            self.take(now);
            self.opens_at = self.opens_at.max(opens_at);
        }
    }

    /// Records a request that ended at `at` but was not counted by this limit, because an earlier
    /// process sent it or its host was evicted since.
    pub(crate) fn note_earlier(&mut self, at: Tick) {
        if let Some(interval) = self.interval {
            self.earlier_until = self.earlier_until.max(at + interval);
        }
    }

    /// Returns the earliest time for the next request.
    #[must_use]
    pub fn opens_at(&self) -> Tick {
        self.opens_at.max(self.earlier_until)
    }

    /// Counts a request sent now and returns its sequence number.
    pub fn take(&mut self, now: Tick) -> u64 {
        let quota = self.interval.and_then(Quota::with_period);
        if let Some(quota) = quota {
            self.clock.set(now);
            let limiter = self.limiter.get_or_insert_with(|| {
                let quota = quota.allow_burst(NonZeroU32::MIN);
                RateLimiter::direct_with_clock(quota, self.clock.clone())
            });
            // Ignore the result. If the caller did not wait for `opens_at`, governor refuses the
            // request and changes nothing.
            let _ = limiter.check();
            if let Err(refusal) = limiter.check() {
                self.opens_at = refusal.earliest_possible().0;
            }
            self.last += 1;
        }
        self.last
    }

    /// Takes back request `number`, which was not sent. Does nothing unless it was the last
    /// request, because later requests were already spaced from it.
    pub(crate) fn give_back(&mut self, number: u64) {
        if number == self.last {
            // governor can't take a request back, so start a new limiter. The new limiter needs no
            // wait: the request before this one was at least one interval ago.
            self.limiter = None;
            self.opens_at = Tick::ZERO;
        }
    }
}

/// Returns the time between two requests, or `None` without a limit.
fn interval(per_second: Option<f64>) -> Option<Duration> {
    let limit = per_second.filter(|rate| *rate > 0.0 && rate.is_finite())?;
    let interval = Duration::try_from_secs_f64(limit.recip()).unwrap_or(MAX_INTERVAL);
    Some(interval.min(MAX_INTERVAL))
}

/// A clock for governor that shows the time it was last set to.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettableGovernorClock(Arc<AtomicU64>);

impl SettableGovernorClock {
    fn set(&self, now: Tick) {
        self.0.store(now.as_micros(), Ordering::Relaxed);
    }
}

impl Clock for SettableGovernorClock {
    type Instant = GovernorInstant;

    fn now(&self) -> GovernorInstant {
        GovernorInstant(Tick::from_micros(self.0.load(Ordering::Relaxed)))
    }
}

/// A [`Tick`] as a governor instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GovernorInstant(Tick);

impl Add<Nanos> for GovernorInstant {
    type Output = GovernorInstant;

    fn add(self, time: Nanos) -> GovernorInstant {
        GovernorInstant(self.0 + Duration::from(time))
    }
}

impl Reference for GovernorInstant {
    fn duration_since(&self, earlier: GovernorInstant) -> Nanos {
        let nanos = u64::try_from(self.0.since(earlier.0).as_nanos());
        Nanos::new(nanos.map_or(MAX_NANOS, |nanos| nanos.min(MAX_NANOS)))
    }

    fn saturating_sub(&self, time: Nanos) -> GovernorInstant {
        let micros = time.as_u64().div_ceil(1000);
        GovernorInstant(
            self.0
                .as_micros()
                .checked_sub(micros)
                .map_or(self.0, Tick::from_micros),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::MaxRateLimiter;
    use crate::tick::Tick;

    #[test]
    fn no_rate_means_no_limit() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN)] {
            let mut rate = MaxRateLimiter::new(rate);
            rate.take(Tick::from_micros(1_700_000_000_000_000));
            assert_eq!(rate.opens_at(), Tick::ZERO);
        }
    }

    #[test]
    fn requests_are_spaced_evenly() {
        let mut rate = MaxRateLimiter::new(Some(3.0));
        let start = Tick::from_micros(1_700_000_000_000_000);
        let mut now = start;
        for _ in 0..300 {
            now = now.max(rate.opens_at());
            rate.take(now);
        }
        let took = now.since(start);
        assert!(took >= Duration::from_millis(299_000 / 3));
        assert!(took <= Duration::from_millis(299_000 / 3 + 2));
        // Idle time does not accumulate.
        now = now + Duration::from_secs(60);
        rate.take(now);
        assert!(rate.opens_at() > now);
    }

    #[test]
    fn only_the_last_request_can_be_given_back() {
        let second = Duration::from_secs(1);
        let mut rate = MaxRateLimiter::new(Some(1.0));
        let first = rate.take(Tick::ZERO);
        rate.give_back(first);
        assert_eq!(rate.opens_at(), Tick::ZERO);
        let earlier = rate.take(Tick::ZERO);
        let last = rate.take(Tick::ZERO + second);
        rate.give_back(earlier);
        assert_eq!(rate.opens_at(), Tick::ZERO + second + second);
        rate.give_back(last);
        assert_eq!(rate.opens_at(), Tick::ZERO);
    }

    #[test]
    fn a_request_given_back_keeps_the_waits_of_earlier_requests() {
        let second = Duration::from_secs(1);
        let mut rate = MaxRateLimiter::new(Some(1.0));
        let number = rate.take(Tick::ZERO);
        rate.note_earlier(Tick::ZERO + 5 * second);
        rate.give_back(number);
        assert_eq!(rate.opens_at(), Tick::ZERO + 6 * second);
    }

    #[test]
    fn extremes_do_not_overflow() {
        for per_second in [f64::MIN_POSITIVE, 1e-12, 1e12, f64::MAX] {
            let mut rate = MaxRateLimiter::new(Some(per_second));
            rate.take(Tick::ZERO);
            let year = Tick::from_micros(365 * 86_400_000_000);
            let is_rare = per_second < 1.0;
            assert_eq!(rate.opens_at() == year, is_rare, "{per_second}");
            for now in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                rate.take(Tick::from_micros(now));
            }
        }
    }
}
