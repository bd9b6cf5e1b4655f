//! A moment in UTC, and its textual forms.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The pattern of fourteen digits, from year to second, for [`jiff::fmt::strtime`].
const FOURTEEN_DIGITS: &str = "%Y%m%d%H%M%S";

/// A moment, in microseconds since the Unix epoch, UTC.
///
/// In JSON it is a string such as `2026-11-20T23:59:59.123Z` (RFC 3339 with milliseconds), so
/// reading it back loses the microseconds. Moments after the year 9999 are written as the last
/// moment of that year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Creates a moment from microseconds since the Unix epoch.
    #[must_use]
    pub fn from_micros(micros: u64) -> Timestamp {
        Timestamp(micros)
    }

    /// Returns the microseconds since the Unix epoch.
    #[must_use]
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the milliseconds since the Unix epoch, rounded down.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// Parses an RFC 3339 date and time. `None` if the text is invalid or the time is before 1970.
    #[must_use]
    pub fn parse(text: &str) -> Option<Timestamp> {
        let parsed: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(parsed.as_microsecond()).ok().map(Timestamp)
    }

    /// Returns the form used in rows: `2026-11-20T23:59:59.123Z`.
    #[must_use]
    pub fn rfc3339_millis(self) -> String {
        text_of(&self.rfc3339(*b"0000-00-00T00:00:00.000Z")).to_owned()
    }

    /// Returns the form used in `WARC-Date`: `2026-11-20T23:59:59.123456Z`. WARC 1.1 allows up to
    /// nine digits after the second (section 5.4).
    #[must_use]
    pub fn rfc3339_micros(self) -> String {
        text_of(&self.rfc3339(*b"0000-00-00T00:00:00.000000Z")).to_owned()
    }

    /// Writes the digits of the moment over the zeros of a pattern such as
    /// `0000-00-00T00:00:00.000Z`. This is fast: a formatter would take as long as the rest of a
    /// row, and every row contains a moment.
    fn rfc3339<const BYTES: usize>(self, mut zeros: [u8; BYTES]) -> [u8; BYTES] {
        let at = self.civil();
        let fields = [
            (0..4, u32::from(at.year().unsigned_abs())),
            (5..7, u32::from(at.month().unsigned_abs())),
            (8..10, u32::from(at.day().unsigned_abs())),
            (11..13, u32::from(at.hour().unsigned_abs())),
            (14..16, u32::from(at.minute().unsigned_abs())),
            (17..19, u32::from(at.second().unsigned_abs())),
        ];
        for (places, mut number) in fields {
            for digit in zeros[places].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        let mut second = at.subsec_nanosecond().unsigned_abs();
        let mut place = 100_000_000;
        for digit in &mut zeros[20..BYTES - 1] {
            *digit = b'0' + (second / place) as u8;
            second %= place;
            place /= 10;
        }
        zeros
    }

    /// Returns the form used in file names and index lines: `20261120235959`.
    #[must_use]
    pub fn fourteen_digits(self) -> String {
        self.civil().strftime(FOURTEEN_DIGITS).to_string()
    }

    /// Parses the form that [`fourteen_digits`](Timestamp::fourteen_digits) returns. `None` before
    /// 1970.
    #[must_use]
    pub fn parse_fourteen_digits(digits: &[u8]) -> Option<Timestamp> {
        let at = jiff::fmt::strtime::parse(FOURTEEN_DIGITS, digits).ok()?;
        let at = Offset::UTC.to_timestamp(at.to_datetime().ok()?).ok()?;
        u64::try_from(at.as_microsecond()).ok().map(Timestamp)
    }

    fn civil(self) -> DateTime {
        let at = i64::try_from(self.0)
            .ok()
            .and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok());
        Offset::UTC.to_datetime(at.unwrap_or(jiff::Timestamp::MAX))
    }
}

fn text_of(ascii: &[u8]) -> &str {
    std::str::from_utf8(ascii).unwrap_or_default()
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text_of(&self.rfc3339(*b"0000-00-00T00:00:00.000Z")))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text).ok_or_else(|| D::Error::custom(format!("not a date: {text}")))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::Timestamp;

    fn check(micros: u64, expect: Expect) {
        let at = Timestamp::from_micros(micros);
        let read = Timestamp::parse(&at.rfc3339_micros());
        expect.assert_eq(&format!(
            "{at} {} {} read back: {}",
            at.rfc3339_micros(),
            at.fourteen_digits(),
            read == Some(at)
        ));
    }

    #[test]
    fn rfc3339_spellings() {
        check(
            0,
            expect![
                "1970-01-01T00:00:00.000Z 1970-01-01T00:00:00.000000Z 19700101000000 read back: true"
            ],
        );
        check(
            1_795_219_199_123_456,
            expect![
                "2026-11-20T23:59:59.123Z 2026-11-20T23:59:59.123456Z 20261120235959 read back: true"
            ],
        );
        check(
            u64::MAX,
            expect![
                "9999-12-30T22:00:00.999Z 9999-12-30T22:00:00.999999Z 99991230220000 read back: false"
            ],
        );
    }

    #[test]
    fn json_has_milliseconds() {
        let json = serde_json::to_string(&Timestamp::from_micros(1_500)).unwrap();
        assert_eq!(json, r#""1970-01-01T00:00:00.001Z""#);
        let read: Timestamp = serde_json::from_str(&json).unwrap();
        assert_eq!(read.as_micros(), 1_000);
        assert!(serde_json::from_str::<Timestamp>("\"yesterday\"").is_err());
    }
}
