//! Numbers and times as people read them. `page/results.js` writes them the same way.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `1234567` as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same for a count in memory.
pub(super) fn counted(number: usize) -> String {
    grouped(u64::try_from(number).unwrap_or(u64::MAX))
}

/// `1 page`, `2 pages`.
pub(super) fn plural(number: u64, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{} {more}", grouped(number)),
    }
}

/// Octets as `1.2 MB`.
pub(super) fn octets(number: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut tenths = number / 100;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1000;
        unit = next;
    }
    match tenths {
        tenths if tenths < 1000 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        tenths => format!("{} {unit}", grouped(tenths / 10)),
    }
}

/// Milliseconds as `1.5 s`, `2 min`, `3 h 20 min`.
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

/// A day in UTC, as `2026-11-20` and as `20 Nov 2026`; none where there is no such day.
pub(super) fn day(seconds: i64) -> Option<(String, String)> {
    let time = Timestamp::from_second(seconds).ok()?;
    let date = time.to_zoned(TimeZone::UTC).date();
    let shown = date.strftime("%-d %b %Y").to_string();
    Some((date.to_string(), shown))
}

/// A moment in UTC, as `20 Nov 2026, 23:59 UTC`.
pub(super) fn moment(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?;
    let time = time.to_zoned(TimeZone::UTC);
    Some(time.strftime("%-d %b %Y, %H:%M UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::{day, duration, grouped, moment, octets, plural};

    #[test]
    fn ours_numbers_are_easy_to_read() {
        let shown = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        let shown = [0, 1, 1000].map(|number| plural(number, "page", "pages"));
        assert_eq!(shown, ["0 pages", "1 page", "1,000 pages"]);
        let shown = [999, 1000, 12_345, 999_999, 1_500_000, 5_000_000_000_000_000].map(octets);
        let expected = ["999 B", "1.0 kB", "12.3 kB", "999 kB", "1.5 MB", "5,000 TB"];
        assert_eq!(shown, expected);
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
    fn ours_times_are_days_in_utc() {
        let (machine, person) = day(1_795_305_599).unwrap();
        assert_eq!(
            (machine.as_str(), person.as_str()),
            ("2026-11-21", "21 Nov 2026")
        );
        assert_eq!(moment(0).unwrap(), "1 Jan 1970, 00:00 UTC");
        assert_eq!((day(i64::MAX), moment(i64::MIN)), (None, None));
    }
}
