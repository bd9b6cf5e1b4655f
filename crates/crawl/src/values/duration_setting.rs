//! Durations as users write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::ValueParseError;
use super::number_with_unit::{scaled, split_at};
use super::text_serde::as_text;

/// A duration: `500ms`, `2s`, `1m30s`, `1h`, `1d`; `0` needs no unit. A whole number of
/// microseconds, at most a hundred years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DurationSetting(Duration);

const MICROS: &[(&str, u64)] = &[
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];
const MAX_MICROS: u64 = 36_500 * 86_400_000_000;

as_text!(DurationSetting);

impl DurationSetting {
    pub(crate) const ZERO: DurationSetting = DurationSetting(Duration::ZERO);

    pub(crate) const fn from_secs(secs: u64) -> DurationSetting {
        DurationSetting(Duration::from_secs(secs))
    }

    /// Creates a span of whole microseconds.
    #[cfg(test)]
    pub(crate) const fn from_micros(micros: u64) -> DurationSetting {
        DurationSetting(Duration::from_micros(micros))
    }

    pub(crate) const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for DurationSetting {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<DurationSetting, ValueParseError> {
        let bad = |why: &str| ValueParseError::new(format!("`{text}` isn't a duration: {why}"));
        if text == "0" {
            return Ok(DurationSetting::ZERO);
        }
        let mut rest = text;
        let mut micros: u64 = 0;
        while !rest.is_empty() {
            let (number, after) = split_at(rest, |c| !c.is_ascii_digit() && c != '.');
            let (unit, after) = split_at(after, |c| !c.is_ascii_alphabetic());
            if number.is_empty() {
                return Err(bad("it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`"));
            }
            if unit.is_empty() {
                return Err(bad("add a unit, as in `500ms`, `2s` or `1h`"));
            }
            let Some((_, scale)) = MICROS.iter().find(|(name, _)| *name == unit) else {
                return Err(bad(&format!(
                    "unknown unit `{unit}`, use us, ms, s, m, h or d"
                )));
            };
            let part = scaled(number, *scale).ok_or_else(|| bad("not a number"))?;
            micros = micros
                .checked_add(part)
                .filter(|sum| *sum <= MAX_MICROS)
                .ok_or_else(|| bad("more than a hundred years"))?;
            rest = after;
        }
        match text {
            "" => Err(bad("it looks like `500ms`, `2s`, `1m30s`, `1h` or `1d`")),
            _ => Ok(DurationSetting(Duration::from_micros(micros))),
        }
    }
}

impl fmt::Display for DurationSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_micros()).unwrap_or(MAX_MICROS);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, scale) in MICROS {
            if rest >= *scale {
                write!(f, "{}{unit}", rest / scale)?;
                rest %= scale;
            }
        }
        Ok(())
    }
}
