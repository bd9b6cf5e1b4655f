//! Counts, factors and optional bounds, as users write them.

use std::fmt;
use std::str::FromStr;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};

use super::ValueParseError;
use super::text_serde::{read, read_from_text};

/// A count, at most 2^63 - 1 as for TOML integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct CountSetting(pub(crate) u64);

/// A finite number, zero or greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
pub(crate) struct NonNegativeNumber(pub(crate) f64);

/// An optional bound: `unlimited`, or the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionalLimit<T>(pub(crate) Option<T>);

read_from_text!(CountSetting);
read_from_text!(NonNegativeNumber);

impl FromStr for CountSetting {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<CountSetting, ValueParseError> {
        match text.parse::<u64>() {
            Ok(count) if i64::try_from(count).is_ok() => Ok(CountSetting(count)),
            _ => Err(ValueParseError::new(format!(
                "`{text}` isn't a whole number of 0 or more"
            ))),
        }
    }
}

impl fmt::Display for CountSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for NonNegativeNumber {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<NonNegativeNumber, ValueParseError> {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(NonNegativeNumber(number)),
            _ => Err(ValueParseError::new(format!(
                "`{text}` isn't a number of 0 or more"
            ))),
        }
    }
}

impl fmt::Display for NonNegativeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<T> OptionalLimit<T> {
    pub(crate) const UNLIMITED: OptionalLimit<T> = OptionalLimit(None);
}

impl<T: FromStr<Err = ValueParseError>> FromStr for OptionalLimit<T> {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<OptionalLimit<T>, ValueParseError> {
        match text {
            "unlimited" => Ok(OptionalLimit(None)),
            _ => text.parse().map(Some).map(OptionalLimit),
        }
    }
}

impl<T: fmt::Display> fmt::Display for OptionalLimit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(bound) => bound.fmt(f),
            None => f.write_str("unlimited"),
        }
    }
}

impl<T: Serialize> Serialize for OptionalLimit<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(bound) => bound.serialize(serializer),
            None => serializer.serialize_str("unlimited"),
        }
    }
}

impl<'de, T: FromStr<Err = ValueParseError>> Deserialize<'de> for OptionalLimit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OptionalLimit<T>, D::Error> {
        read(deserializer)
    }
}
