//! The one clock: UTC at the start, monotonic from there.

use std::time::{Duration, Instant, SystemTime};

use crawl_scheduler::Tick;

/// How often both clocks are read: a process that is interrupted between the two would be behind
/// others of its machine for as long as it runs.
const READINGS: usize = 5;

/// Turns the machine's clocks into [`Tick`]s that never go backwards: the time of day is
/// read once, and what has passed since comes from the monotonic clock. A clock that is
/// set in mid-run does not move politeness.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    utc: Duration,
    since: Instant,
}

impl Clock {
    /// Reads the time of day. A machine whose clock stands before 1970 starts at 1970.
    #[must_use]
    pub fn start() -> Clock {
        let first = Reading::take();
        let others = (1..READINGS).map(|_| Reading::take());
        let Reading { utc, since, .. } = others.fold(first, Reading::closer);
        Clock { utc, since }
    }

    /// This moment.
    #[must_use]
    pub fn now(&self) -> Tick {
        let micros = (self.utc + self.since.elapsed()).as_micros();
        Tick::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// The time of day, and the monotonic clock before it was read.
#[derive(Clone, Copy)]
struct Reading {
    utc: Duration,
    since: Instant,
    /// How long it took to read both.
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
    fn ours_the_reading_counts_that_nothing_came_between() {
        let since = Instant::now();
        let readings = [40, 2, 900, 3].map(|micros| Reading {
            utc: Duration::from_micros(micros),
            since,
            took: Duration::from_micros(micros),
        });
        let closest = readings.into_iter().reduce(Reading::closer);
        assert_eq!(closest.map(|it| it.utc), Some(Duration::from_micros(2)));
    }

    #[test]
    fn never_goes_backwards() {
        let clock = Clock::start();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(last.as_micros() > 1_600_000_000_000_000);
    }
}
