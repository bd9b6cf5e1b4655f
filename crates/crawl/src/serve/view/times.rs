//! Times in readable form. The scripts of the pages format times the same way.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats milliseconds as `1.5 s`, `2 min`, `3 h 20 min`.
pub(super) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        seconds if seconds < 10 && !ms.is_multiple_of(1000) => {
            format!("{seconds}.{} s", ms % 1000 / 100)
        }
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats a day in UTC as `2026-11-20` and as `20 Nov 2026`. `None` if out of range.
pub(super) fn day(seconds: i64) -> Option<(String, String)> {
    let time = Timestamp::from_second(seconds).ok()?;
    let date = time.to_zoned(TimeZone::UTC).date();
    let shown = date.strftime("%-d %b %Y").to_string();
    Some((date.to_string(), shown))
}

/// Formats a time in UTC as `20 Nov 2026, 23:59 UTC`.
pub(super) fn moment(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?;
    let time = time.to_zoned(TimeZone::UTC);
    Some(time.strftime("%-d %b %Y, %H:%M UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::{day, duration, moment};

    #[test]
    fn durations_are_easy_to_read() {
        let shown = [0, 999, 1000, 1500, 59_999, 120_000, 7_260_000].map(duration);
        let expected = [
            "0 ms",
            "999 ms",
            "1 s",
            "1.5 s",
            "59 s",
            "2 min",
            "2 h 1 min",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn times_are_days_in_utc() {
        let (machine, person) = day(1_795_305_599).unwrap();
        assert_eq!(
            (machine.as_str(), person.as_str()),
            ("2026-11-21", "21 Nov 2026")
        );
        assert_eq!(moment(0).unwrap(), "1 Jan 1970, 00:00 UTC");
        assert_eq!((day(i64::MAX), moment(i64::MIN)), (None, None));
    }
}
