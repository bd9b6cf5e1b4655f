//! The crawler's only clock: reads UTC once at the start, and measures elapsed time with the
//! monotonic clock.

use std::time::{Duration, Instant, SystemTime};

use crawl_scheduler::Tick;

/// How many times to read both clocks; the quickest reading is used. An interruption between the
/// two reads would make this process's time lag behind that of other processes for the whole run.
const READINGS: usize = 5;

/// Produces [`Tick`]s that never go backwards. The time of day is read once, and elapsed time comes
/// from the monotonic clock. So setting the system clock during a run does not affect politeness.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    utc: Duration,
    since: Instant,
}

impl MonotonicClock {
    /// Reads the time of day. A system clock before 1970 counts as 1970.
    #[must_use]
    pub fn start() -> MonotonicClock {
        let first = Reading::take();
        let readings = (1..READINGS).map(|_| Reading::take());
        let Reading { utc, since, .. } = readings.fold(first, Reading::closer);
        MonotonicClock { utc, since }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Tick {
        let micros = (self.utc + self.since.elapsed()).as_micros();
        Tick::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// A reading of the time of day, and of the monotonic clock just before it.
#[derive(Clone, Copy)]
struct Reading {
    utc: Duration,
    since: Instant,
    /// How long it took to read both clocks.
    took: Duration,
}

impl Reading {
    fn take() -> Reading {
        let since = Instant::now();
        let utc = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Reading {
            utc: utc.unwrap_or_default(),
            since,
            took: since.elapsed(),
        }
    }

    fn closer(self, other: Reading) -> Reading {
        if other.took < self.took { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_interrupted_reading_wins() {
        let since = Instant::now();
        let readings = [40, 2, 900, 3].map(|micros| Reading {
            utc: Duration::from_micros(micros),
            since,
            took: Duration::from_micros(micros),
        });
        let closest = readings.into_iter().reduce(Reading::closer);
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
