//! A span of the day as users write it: `22:00-06:00`.

use std::fmt;
use std::str::FromStr;

use super::ValueParseError;
use super::text_serde::as_string;

/// A span of each day in UTC. If the end is before the start, the span crosses midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DayHours {
    /// Start of the span, in minutes since midnight.
    pub(crate) from: u16,
    /// End of the span, in minutes since midnight. The span does not include this minute.
    pub(crate) until: u16,
}

impl DayHours {
    /// Returns whether the spans together cover the whole day.
    pub(crate) fn cover_day(spans: &[DayHours]) -> bool {
        let holds = |span: &DayHours, minute: u16| match span.from < span.until {
            true => (span.from..span.until).contains(&minute),
            false => minute >= span.from || minute < span.until,
        };
        (0..24 * 60).all(|minute| spans.iter().any(|span| holds(span, minute)))
    }
}

impl FromStr for DayHours {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<DayHours, ValueParseError> {
        let bad = || {
            ValueParseError::new(format!(
                "`{text}` isn't a time range: it looks like `22:00-06:00`, in UTC"
            ))
        };
        let (from, until) = text.split_once('-').ok_or_else(bad)?;
        let hours = DayHours {
            from: minute(from.trim()).ok_or_else(bad)?,
            until: minute(until.trim()).ok_or_else(bad)?,
        };
        match hours.from == hours.until {
            true => Err(ValueParseError::new(format!("`{text}` is the whole day"))),
            false => Ok(hours),
        }
    }
}

/// Parses `HH:MM`; `24:00` is the end of the day.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let two_digits = |part: &str| match part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())
    {
        true => part.parse::<u16>().ok(),
        false => None,
    };
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    match (hours, minutes) {
        (0..24, 0..60) => Some(60 * hours + minutes),
        (24, 0) => Some(0),
        _ => None,
    }
}

impl fmt::Display for DayHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = |minute: u16| (minute / 60, minute % 60);
        let ((h, m), (until_h, until_m)) = (clock(self.from), clock(self.until));
        write!(f, "{h:02}:{m:02}-{until_h:02}:{until_m:02}")
    }
}

as_string!(DayHours);

#[cfg(test)]
mod tests {
    use super::DayHours;

    #[test]
    fn several_spans_may_cover_the_day() {
        for (spans, expected) in [
            (&["00:00-12:00", "12:00-24:00"][..], true),
            (&["18:00-07:00", "06:00-12:30", "12:00-18:00"], true),
            (&["00:00-12:00", "12:01-24:00"], false),
            (&["06:00-05:59"], false),
            (&[], false),
        ] {
            let parsed: Vec<DayHours> = spans.iter().map(|span| span.parse().unwrap()).collect();
            assert_eq!(DayHours::cover_day(&parsed), expected, "{spans:?}");
        }
    }

    #[test]
    fn a_span_is_read_and_written() {
        for (text, written) in [
            ("22:00-06:00", Some("22:00-06:00")),
            ("08:30-24:00", Some("08:30-00:00")),
            ("00:00-00:01", Some("00:00-00:01")),
            ("8:00-9:00", None),
            ("08:00", None),
            ("08:00-08:60", None),
            ("24:01-01:00", None),
            ("08:00-08:00", None),
        ] {
            let read = text.parse::<DayHours>().ok();
            let read = read.map(|hours| hours.to_string());
            assert_eq!(read.as_deref(), written, "{text}");
        }
    }
}
