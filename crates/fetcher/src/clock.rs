//! The one clock: UTC at the start, monotonic from there.

use std::time::{Duration, Instant, SystemTime};

use crawl_scheduler::Tick;

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
        let utc = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Clock {
            utc,
            since: Instant::now(),
        }
    }

    /// This moment.
    #[must_use]
    pub fn now(&self) -> Tick {
        let micros = (self.utc + self.since.elapsed()).as_micros();
        Tick::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
