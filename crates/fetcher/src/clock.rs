//! The crawler's only clock: reads UTC once at the start, and measures elapsed time with a clock
//! that is never set and that continues while the machine is suspended.

use std::time::{Duration, SystemTime};

use crawl_scheduler::Tick;
use nix::time::{ClockId, clock_gettime};

/// A monotonic clock that includes the time for which the machine was suspended, unlike
/// [`std::time::Instant`].
#[cfg(target_os = "linux")]
const ELAPSED: ClockId = ClockId::CLOCK_BOOTTIME;
/// Continues while suspended on macOS.
#[cfg(not(target_os = "linux"))]
const ELAPSED: ClockId = ClockId::CLOCK_MONOTONIC;

/// How many times to read both clocks; the quickest reading is used. An interruption between the
/// two reads would make this process's time lag behind that of other processes for the whole run.
const READINGS: usize = 5;

/// Produces [`Tick`]s that never go backwards. The time of day is read once, and elapsed time comes
/// from a monotonic clock. So setting the system clock during a run does not affect politeness.
/// Time for which the machine is suspended counts as elapsed.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    utc: Duration,
    /// The value of [`monotonic_time`] when the time of day was `utc`.
    since: Duration,
}

impl MonotonicClock {
    /// Reads the time of day. A system clock before 1970 counts as 1970.
    #[must_use]
    pub fn start() -> MonotonicClock {
        let first = ClockReading::take();
        let readings = (1..READINGS).map(|_| ClockReading::take());
        let ClockReading { utc, since, .. } = readings.fold(first, ClockReading::closer);
        MonotonicClock { utc, since }
    }

    /// Returns the time at which the monotonic clock was zero. On Linux, this is when the machine
    /// was started. It differs between two processes if the system clock was set between their
    /// starts.
    #[must_use]
    pub fn zero(&self) -> Tick {
        let micros = self.utc.saturating_sub(self.since).as_micros();
        Tick::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Tick {
        let elapsed = monotonic_time().saturating_sub(self.since);
        let micros = (self.utc + elapsed).as_micros();
        Tick::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// Reads [`ELAPSED`], which counts from an arbitrary time. Only differences have a meaning.
fn monotonic_time() -> Duration {
    // Fails only if the system doesn't have the clock. Linux has had it since 2.6.39.
    clock_gettime(ELAPSED)
        .map(Duration::from)
        .unwrap_or_default()
}

/// A reading of the time of day, and of the monotonic clock just before it.
#[derive(Clone, Copy)]
struct ClockReading {
    utc: Duration,
    since: Duration,
    /// How long it took to read both clocks.
    took: Duration,
}

impl ClockReading {
    fn take() -> ClockReading {
        let since = monotonic_time();
        let utc = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        ClockReading {
            utc: utc.unwrap_or_default(),
            since,
            took: monotonic_time().saturating_sub(since),
        }
    }

    fn closer(self, other: ClockReading) -> ClockReading {
        if other.took < self.took { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_interrupted_reading_wins() {
        let since = monotonic_time();
        let readings = [40, 2, 900, 3].map(|micros| ClockReading {
            utc: Duration::from_micros(micros),
            since,
            took: Duration::from_micros(micros),
        });
        let closest = readings.into_iter().reduce(ClockReading::closer);
        assert_eq!(
            closest.map(|reading| reading.utc),
            Some(Duration::from_micros(2))
        );
    }

    #[test]
    fn never_goes_backwards() {
        let clock = MonotonicClock::start();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(last.as_micros() > 1_600_000_000_000_000);
    }
}
