//! The time between two repeated events, such as the starts of rounds, as users write it.

use std::fmt;
use std::str::FromStr;

use super::ValueParseError;
use super::duration_setting::DurationSetting;
use super::text_serde::as_text;

/// The time between two events: `never`, or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatInterval(pub(crate) Option<DurationSetting>);

impl RepeatInterval {
    pub(crate) const NEVER: RepeatInterval = RepeatInterval(None);
}

impl FromStr for RepeatInterval {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<RepeatInterval, ValueParseError> {
        match text {
            "never" => Ok(RepeatInterval(None)),
            _ => text.parse().map(Some).map(RepeatInterval),
        }
    }
}

impl fmt::Display for RepeatInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(span) => span.fmt(f),
            None => f.write_str("never"),
        }
    }
}

as_text!(RepeatInterval);

#[cfg(test)]
mod tests {
    use super::RepeatInterval;

    #[test]
    fn written_period_is_read_back() {
        for (text, written) in [("never", "never"), ("36h", "1d12h"), ("0", "0s")] {
            let period: RepeatInterval = text.parse().unwrap();
            assert_eq!(period.to_string(), written);
            assert_eq!(written.parse(), Ok(period));
        }
        for bad in ["", "daily", "1", "off"] {
            assert!(bad.parse::<RepeatInterval>().is_err(), "{bad}");
        }
    }
}
