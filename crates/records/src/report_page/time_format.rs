//! Formats times and durations.

use crawl_archive::Timestamp;

use crate::histograms::TimeBins;

use super::svg_plots::AxisMark;

/// Formats a time in milliseconds since the Unix epoch: `2026-11-22 22:41`, in UTC.
pub(super) fn moment(ms: u64) -> String {
    digits(ms, 0..16)
}

/// Formats a duration: `450 ms`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
pub(super) fn span(ms: u64) -> String {
    let two = |large: u64, one: &str, small: u64, other: &str| match small {
        0 => format!("{large} {one}"),
        small => format!("{large} {one} {small} {other}"),
    };
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => match ms % 1000 / 100 {
            0 => format!("{seconds} s"),
            tenths => format!("{seconds}.{tenths} s"),
        },
        60_000..3_600_000 => two(minutes, "min", seconds % 60, "s"),
        3_600_000..86_400_000 => two(hours, "h", minutes % 60, "min"),
        _ => two(hours / 24, "d", hours % 24, "h"),
    }
}

/// Returns up to four marks of a time axis. Their labels show dates, or times of day if the axis is
/// short.
pub(super) fn marks(axis: TimeBins) -> Vec<AxisMark> {
    let label = |ms: u64| match axis.width_ms.saturating_mul(axis.bins as u64) {
        ..4_000 => digits(ms, 11..23),
        4_000..1_800_000 => digits(ms, 11..19),
        1_800_000..172_800_000 => digits(ms, 11..16),
        _ => digits(ms, 0..10),
    };
    let step = axis.bins.div_ceil(4);
    let bins = (0..axis.bins).step_by(step);
    bins.map(|bin| (bin as f64, label(axis.start_of(bin))))
        .collect()
}

/// Formats a time in RFC 3339, and returns the characters at `places` with a space in place of the
/// `T`.
fn digits(ms: u64, places: std::ops::Range<usize>) -> String {
    let text = Timestamp::from_micros(ms.saturating_mul(1000)).rfc3339_millis();
    text.get(places).unwrap_or_default().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::{marks, moment, span};
    use crate::histograms::TimeBins;

    #[test]
    fn times_have_two_units_at_most() {
        assert_eq!(moment(1_795_219_199_123), "2026-11-20 23:59");
        let spans = [
            0,
            999,
            1_000,
            12_340,
            60_000,
            185_000,
            7_800_000,
            3_600_000,
            273_600_000,
        ]
        .map(span);
        let expected = [
            "0 ms",
            "999 ms",
            "1 s",
            "12.3 s",
            "1 min",
            "3 min 5 s",
            "2 h 10 min",
            "1 h",
            "3 d 4 h",
        ];
        assert_eq!(spans, expected);
    }

    #[test]
    fn no_moment_is_too_late_to_format() {
        assert!(!moment(u64::MAX).is_empty());
        assert!(marks(TimeBins::new(0, u64::MAX)).len() <= 4);
    }

    #[test]
    fn a_time_axis_has_four_marks_at_most() {
        let check = |span: u64, first: &str, count: usize| {
            let marks = marks(TimeBins::new(1_795_219_199_000, 1_795_219_199_000 + span));
            assert_eq!((marks[0].1.as_str(), marks.len()), (first, count), "{span}");
        };
        check(0, "23:59:59.000", 1);
        check(2_000, "23:59:59.000", 4);
        check(50_000, "23:59:59", 4);
        check(7_200_000, "23:55", 4);
        check(864_000_000, "2026-11-20", 4);
    }
}
