//! Dates as pages write them: RFC 822, RFC 850, asctime, ISO 8601.

/// Seconds since 1970-01-01T00:00:00Z; none where `text` is no date.
#[must_use]
pub fn unix_seconds(text: &str) -> Option<i64> {
    iso(text.trim()).or_else(|| mail(text.trim()))
}

/// `2030-06-25`, `2030-06-25T15:00:00Z`, `2030-06-25 15:00:00.5+02:00`.
fn iso(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let days = days(number(year)?, number(month)?, number(day)?)?;
    if rest.is_empty() {
        return Some(days * 86400);
    }
    let time = rest.strip_prefix(['T', 't', ' '])?.trim();
    let split = time.find(['Z', 'z', '+', '-', ' ']).unwrap_or(time.len());
    let (time, zone) = time.split_at(split);
    Some(days * 86400 + clock(time)? - offset(zone)?)
}

/// `Wed, 03 Dec 2025 13:09:53 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`,
/// `Sun Nov  6 08:49:37 1994`, `25 Jun 2030 15:00:00 PST`.
fn mail(text: &str) -> Option<i64> {
    let (mut day, mut month, mut year, mut time, mut zone) = (None, None, None, None, None);
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    // A hyphen parts day, month and year (RFC 850), but leads a zone.
    let words = words.flat_map(|word| match word.starts_with('-') {
        true => vec![word],
        false => word.split('-').collect(),
    });
    for word in words.filter(|word| !word.is_empty()) {
        if word.contains(':') {
            set(&mut time, clock(word)?)?;
        } else if let Some(found) = month_number(word).filter(|_| month.is_none()) {
            month = Some(found);
        } else if is_weekday(word) {
        } else if let Some(value) = number(word) {
            match (day, word.len()) {
                (None, 1 | 2) => day = Some(value),
                (Some(_), 2) => set(&mut year, full_year(value))?,
                (_, 4) => set(&mut year, value)?,
                _ => return None,
            }
        } else {
            set(&mut zone, offset(word)?)?;
        }
    }
    let days = days(year?, month?, day?)?;
    Some(days * 86400 + time.unwrap_or(0) - zone.unwrap_or(0))
}

fn set(slot: &mut Option<i64>, value: i64) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

/// Two digits: RFC 850 dates are of the time from 1970 to 2069.
fn full_year(short: i64) -> i64 {
    match short {
        70.. => 1900 + short,
        _ => 2000 + short,
    }
}

fn number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?)?;
    let minute = number(parts.next()?)?;
    let second = match parts.next() {
        Some(second) => number(second.split('.').next()?)?,
        None => 0,
    };
    let fits = hour < 24 && minute < 60 && second <= 60 && parts.next().is_none();
    fits.then_some(hour * 3600 + minute * 60 + second)
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    let hours = match zone.to_ascii_uppercase().as_str() {
        "" | "Z" | "UT" | "UTC" | "GMT" => 0,
        "EST" | "CDT" => -5,
        "EDT" => -4,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "CET" => 1,
        "CEST" => 2,
        _ => return numeric_offset(zone.trim()),
    };
    Some(hours * 3600)
}

fn numeric_offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let digits = rest.replace(':', "");
    let value = number(&digits)?;
    let (hours, minutes) = match digits.len() {
        2 => (value, 0),
        4 => (value / 100, value % 100),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn month_number(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.to_ascii_lowercase();
    let found = MONTHS
        .iter()
        .position(|month| word.len() >= 3 && month.starts_with(&word))?;
    i64::try_from(found + 1).ok()
}

/// The English name of a day of the week, or its first three letters or more.
pub(crate) fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let word = word.to_ascii_lowercase();
    word.len() >= 3 && DAYS.iter().any(|day| day.starts_with(&word))
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years are counted from March, so that the leap day is the last one.
    let (year, month) = match month {
        ..=2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::unix_seconds;

    #[test]
    fn dates_in_their_many_forms() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "6 November 1994 03:49:37 EST",
            "1994-11-06T08:49:37Z",
            "1994-11-06 10:49:37.25+02:00",
            "6 Nov 1994 10:49:37 +0200",
            "6 Nov 1994 06:49:37 -0200",
        ] {
            assert_eq!(unix_seconds(text), Some(784_111_777), "{text}");
        }
        assert_eq!(unix_seconds("1970-01-01"), Some(0));
        assert_eq!(unix_seconds("2000-02-29"), Some(951_782_400));
        assert_eq!(unix_seconds("1 Mar 1970"), Some(59 * 86400));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "someday",
            "2030-13-01",
            "2030-02-29",
            "25 Jun",
            "1:2:3",
            "2030",
            "-",
            "+",
            "32 Jan 2030",
            "1 1 1 1",
            "Wed",
            "2030-06-25Tx",
            "25 Jun 2030 25:00 GMT",
        ] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }
}
