//! Daily time spans in UTC, such as quiet hours.

use crate::tick::Tick;

const MINUTE: u64 = 60_000_000;
const DAY: u64 = 24 * 60 * MINUTE;
const MINUTES_OF_DAY: u16 = 24 * 60;

/// A daily time span in UTC. Crosses midnight if it ends before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyHours {
    // `from` and `until` are minutes of the day. If they are equal, the span is the whole day.
    from: u16,
    until: u16,
}

impl DailyHours {
    /// Creates a span from the minute `from` of the day up to, but excluding, `until`. Both
    /// arguments are taken modulo a day. If they are equal, the span is the whole day.
    #[must_use]
    pub const fn new(from: u16, until: u16) -> DailyHours {
        DailyHours {
            from: from % MINUTES_OF_DAY,
            until: until % MINUTES_OF_DAY,
        }
    }

    /// Returns whether the span contains a time.
    #[must_use]
    pub fn contain(self, at: Tick) -> bool {
        let minute = at.as_micros() % DAY / MINUTE;
        let (from, until) = (u64::from(self.from), u64::from(self.until));
        match from < until {
            true => (from..until).contains(&minute),
            false => minute >= from || minute < until,
        }
    }

    /// Returns whether the span covers the whole day.
    pub(crate) fn is_whole_day(self) -> bool {
        self.from == self.until
    }

    /// Returns the next time after `at` when the span begins.
    pub(crate) fn begins_after(self, at: Tick) -> Tick {
        next(self.from, at)
    }

    /// Returns the next time after `at` when the span ends.
    pub(crate) fn ends_after(self, at: Tick) -> Tick {
        next(self.until, at)
    }
}

/// Returns the next time after `at` at this minute of the day.
fn next(minute: u16, at: Tick) -> Tick {
    let at = at.as_micros();
    let today = (at - at % DAY).saturating_add(u64::from(minute) * MINUTE);
    Tick::from_micros(match today > at {
        true => today,
        false => today.saturating_add(DAY),
    })
}

#[cfg(test)]
mod tests {
    use super::{DAY, DailyHours, MINUTE};
    use crate::tick::Tick;

    fn at(minute: u64) -> Tick {
        Tick::from_micros(20_000 * DAY + minute * MINUTE)
    }

    #[test]
    fn spans_may_cross_midnight() {
        let check = |hours: DailyHours, inside: &[u64], outside: &[u64]| {
            assert!(inside.iter().all(|minute| hours.contain(at(*minute))));
            assert!(!outside.iter().any(|minute| hours.contain(at(*minute))));
        };
        check(DailyHours::new(360, 526), &[360, 525], &[359, 526, 0]);
        check(
            DailyHours::new(22 * 60, 60),
            &[22 * 60, 1439, 0, 59],
            &[60, 1319],
        );
        check(DailyHours::new(0, 1440), &[0, 700, 1439], &[]);
        check(DailyHours::new(5, 5), &[0, 5, 1439], &[]);
    }

    #[test]
    fn the_next_edge_is_after_now() {
        let hours = DailyHours::new(60, 120);
        assert_eq!(hours.begins_after(at(0)), at(60));
        assert_eq!(hours.begins_after(at(60)), at(60 + 1440));
        assert_eq!(hours.ends_after(at(119)), at(120));
        assert_eq!(hours.ends_after(at(120)), at(120 + 1440));
        let last = Tick::from_micros(u64::MAX);
        assert_eq!(hours.begins_after(last), last);
    }
}
