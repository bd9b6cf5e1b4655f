//! Byte counts as users write them.

use std::fmt;
use std::str::FromStr;

use super::ValueParseError;
use super::number_with_unit::{scaled, split_at};
use super::text_serde::as_text;

/// A number of bytes: `5MiB`, `10MB`, `512KiB`, or plain bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ByteSize(pub(crate) u64);

as_text!(ByteSize);

const BYTES: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl FromStr for ByteSize {
    type Err = ValueParseError;

    fn from_str(text: &str) -> Result<ByteSize, ValueParseError> {
        let bad = |why: &str| ValueParseError::new(format!("`{text}` isn't a size: {why}"));
        let (number, unit) = split_at(text, |c| !c.is_ascii_digit() && c != '.');
        let unit = unit.trim();
        let scale = match BYTES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        {
            _ if number.is_empty() => {
                return Err(bad("it looks like `5MiB`, `10MB`, `512KiB` or `4096`"));
            }
            Some((_, scale)) => *scale,
            None if unit.is_empty() => 1,
            None => {
                return Err(bad(&format!(
                    "unknown unit `{unit}`, use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
                )));
            }
        };
        scaled(number, scale)
            .map(ByteSize)
            .ok_or_else(|| bad("not a number, or too large"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BYTES
            .iter()
            .find(|(_, scale)| *scale > 1 && self.0 > 0 && self.0.is_multiple_of(*scale))
        {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}
