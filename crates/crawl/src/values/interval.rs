//! The time between two repeated events, such as the starts of rounds, as users write it.

use std::fmt;
use std::str::FromStr;

use super::BadValue;
use super::span::Span;
use super::text_serde::as_text;

/// The time between two events: `never`, or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval(pub(crate) Option<Span>);

impl Interval {
    pub(crate) const NEVER: Interval = Interval(None);
}

impl FromStr for Interval {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Interval, BadValue> {
        match text {
            "never" => Ok(Interval(None)),
            _ => text.parse().map(Some).map(Interval),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(span) => span.fmt(f),
            None => f.write_str("never"),
        }
    }
}

as_text!(Interval);

#[cfg(test)]
mod tests {
    use super::Interval;

    #[test]
    fn written_period_is_read_back() {
        for (text, written) in [("never", "never"), ("36h", "1d12h"), ("0", "0s")] {
            let period: Interval = text.parse().unwrap();
            assert_eq!(period.to_string(), written);
            assert_eq!(written.parse(), Ok(period));
        }
        for bad in ["", "daily", "1", "off"] {
            assert!(bad.parse::<Interval>().is_err(), "{bad}");
        }
    }
}
