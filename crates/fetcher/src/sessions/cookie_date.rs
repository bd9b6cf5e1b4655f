//! Parses the dates in `Expires` attributes of cookies. Pure.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];
/// The earliest year of a cookie date.
const FIRST_YEAR: u16 = 1601;

/// Parses a date in any of the forms that servers send (RFC 6265 section 5.1.1): the first words
/// that look like a time, a day, a month and a year count, in any order. Other words, such as the
/// time zone, are ignored. `None` if one of the four is missing, or if there is no such date.
pub(super) fn parse_cookie_date(text: &str) -> Option<OffsetDateTime> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.as_bytes().split(|byte| is_delimiter(*byte)) {
        if let (None, Some(found)) = (time, clock_time(word)) {
            time = Some(found);
        } else if let (None, Some((found, _))) = (day, number(word, 1, 2)) {
            day = Some(found);
        } else if let (None, Some(found)) = (month, month_of(word)) {
            month = Some(found);
        } else if let (None, Some((found, _))) = (year, number(word, 2, 4)) {
            year = Some(match found {
                0..=69 => found + 2000,
                70..=99 => found + 1900,
                _ => found,
            });
        }
    }
    let ([hour, minute, second], year) = (time?, year.filter(|year| *year >= FIRST_YEAR)?);
    let time = Time::from_hms(
        u8::try_from(hour).ok()?,
        u8::try_from(minute).ok()?,
        u8::try_from(second).ok()?,
    );
    let date = Date::from_calendar_date(i32::from(year), month?, u8::try_from(day?).ok()?);
    Some(PrimitiveDateTime::new(date.ok()?, time.ok()?).assume_utc())
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'/' | b';'..=b'@' | b'['..=b'`' | b'{'..=b'~')
}

/// Parses a word that starts with hours, minutes and seconds.
fn clock_time(word: &[u8]) -> Option<[u16; 3]> {
    let (hour, rest) = number(word, 1, 2)?;
    let (minute, rest) = number(rest.strip_prefix(b":")?, 1, 2)?;
    let (second, _) = number(rest.strip_prefix(b":")?, 1, 2)?;
    Some([hour, minute, second])
}

fn month_of(word: &[u8]) -> Option<Month> {
    let name = word.first_chunk::<3>()?.to_ascii_lowercase();
    let place = MONTHS.iter().position(|month| month[..] == name)?;
    Month::try_from(u8::try_from(place + 1).ok()?).ok()
}

/// Parses all digits at the start of a word. Returns the number and the rest of the word. `None` if
/// there are fewer than `min` or more than `max` digits.
fn number(word: &[u8], min: usize, max: usize) -> Option<(u16, &[u8])> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = word.split_at(digits);
    let number = std::str::from_utf8(digits).ok()?;
    (min..=max)
        .contains(&digits.len())
        .then(|| Some((number.parse().ok()?, rest)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::parse_cookie_date;

    #[test]
    fn rfc6265_5_1_1_dates_have_many_forms() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 01-Jan-1970 00:00:01 GMT", Some(1)),
            ("Thursday, 01-Jan-70 00:00:00 GMT", Some(0)),
            ("Thu, 1 JANUARY 1970 0:0:2", Some(2)),
            ("Thu Jan  1 00:00:00 1970", Some(0)),
            ("Thu Jan 01 1970 00:00:00 GMT+0000 (UTC)", Some(0)),
            ("\"Do,01 Jan 1970 00:00:00 -0500\"", Some(0)),
            ("1970 Jan 01 00:00:00", Some(0)),
            ("00:01:00x 1st jan 1970ad", Some(60)),
            ("Fri, 31-Dec-69 23:59:59 GMT", Some(3_155_759_999)),
            ("Fri, 01-Jan-99 00:00:00 GMT", Some(915_148_800)),
            ("Mon, 01 Jan 1601 00:00:00 GMT", Some(-11_644_473_600)),
            ("Mon, 01 Jan 1600 00:00:00 GMT", None),
            ("Thu, 01 Jan 1970 24:00:00 GMT", None),
            ("Thu, 01 Jan 1970 00:00 GMT", None),
            ("Mon, 30 Feb 2026 00:00:00 GMT", None),
            ("Mon, 00 Feb 2026 00:00:00 GMT", None),
            ("1970-01-01 00:00:00", None),
            ("01 Jan 19700 00:00:00", None),
            ("", None),
        ] {
            let parsed = parse_cookie_date(text).map(OffsetDateTime::unix_timestamp);
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
