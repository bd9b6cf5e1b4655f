//! Times passed in by the caller: the crate reads no clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A time in microseconds since the Unix epoch. Never decreases within a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl Tick {
    /// The Unix epoch. As the time of an event, it means "long ago" or "never".
    pub const ZERO: Tick = Tick(0);

    /// The last tick, which is never reached. Waits that are too long for a tick end then.
    pub const NEVER: Tick = Tick(u64::MAX);

    /// Creates a tick from microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Tick {
        Tick(micros)
    }

    /// Returns microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns whole milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the time from `earlier` to this tick, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Tick) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Tick {
    /// Adds microseconds, saturating.
    pub(crate) const fn after(self, micros: u64) -> Tick {
        Tick(self.0.saturating_add(micros))
    }

    /// Subtracts a duration, down to the epoch.
    pub(crate) fn before(self, time: Duration) -> Tick {
        Tick(self.0.saturating_sub(micros(time)))
    }
}

/// Addition saturates, and rounds a fraction of a microsecond up so that a wait is never shortened.
impl Add<Duration> for Tick {
    type Output = Tick;

    fn add(self, wait: Duration) -> Tick {
        self.after(micros(wait))
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

/// Converts a duration to microseconds, rounding up and saturating.
pub(crate) fn micros(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos().div_ceil(1000)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Tick;

    #[test]
    fn a_wait_is_never_shortened() {
        let tick = Tick::from_micros(5);
        assert_eq!(tick + Duration::from_nanos(1), Tick::from_micros(6));
        assert_eq!(tick + Duration::MAX, Tick::from_micros(u64::MAX));
        assert_eq!(Tick::ZERO.since(tick), Duration::ZERO);
        assert_eq!(tick.since(Tick::ZERO), Duration::from_micros(5));
    }
}
