//! Dates as pages, sitemaps and headers write them.
//!
//! [`TimeWithPrecision::parse`] is the only parser for dates from web sites, whether they are in a
//! META element, in JSON-LD, in a sitemap's `lastmod` or in `unavailable_after`. The parser has no
//! clock, so it never guesses the year of a date without one.
//!
//! ```
//! use crawl_dates::{DatePrecision, TimeWithPrecision};
//!
//! let day = TimeWithPrecision::parse("5th of March 2024").unwrap();
//! assert_eq!((day.unix_seconds, day.precision), (1_709_596_800, DatePrecision::Day));
//! assert_eq!(TimeWithPrecision::parse("2024-03-05").unwrap(), day);
//! assert!(TimeWithPrecision::parse("05/03/2024").is_none());
//! ```

use std::fmt;

/// A point in time, and how precisely it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct TimeWithPrecision {
    /// The start of the known period (such as the year or the day), in seconds since
    /// 1970-01-01T00:00:00Z.
    pub unix_seconds: i64,
    /// The smallest unit that the text gave: the year, the month, the day or the time of day.
    pub precision: DatePrecision,
}

/// How precisely a point in time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DatePrecision {
    /// Only the year is known.
    Year,
    /// The year and the month are known.
    Month,
    /// The day is known.
    Day,
    /// The time of day is known. Without a time zone, UTC is assumed.
    Time,
}

impl fmt::Display for TimeWithPrecision {
    /// Formats as RFC 3339 in UTC: `2024-03-05T10:00:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, seconds) = (
            self.unix_seconds.div_euclid(86_400),
            self.unix_seconds.rem_euclid(86_400),
        );
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl TimeWithPrecision {
    /// Parses a date or time in one of these forms: ISO 8601 with the year first (also with
    /// slashes, with dots, or without separators), RFC 5322, RFC 850, asctime, or an English date
    /// with the name of the month. `None` if `text` is not a date or is ambiguous.
    #[must_use]
    pub fn parse(text: &str) -> Option<TimeWithPrecision> {
        let text = text.trim();
        if text.len() > 80 {
            return None;
        }
        year_first(text).or_else(|| named_month(text))
    }

    /// Returns the end of the known period, in seconds since 1970-01-01T00:00:00Z. For example, a
    /// date without a time ends at the start of the next day. Months count as 31 days, and years as
    /// 366.
    #[must_use]
    pub fn latest(self) -> i64 {
        let days = match self.precision {
            DatePrecision::Year => 366,
            DatePrecision::Month => 31,
            DatePrecision::Day => 1,
            DatePrecision::Time => 0,
        };
        self.unix_seconds + days * 86_400
    }

    /// Returns the year in UTC.
    #[must_use]
    pub fn year(self) -> i64 {
        civil(self.unix_seconds.div_euclid(86_400)).0
    }

    fn at(date: [i64; 3], precision: DatePrecision, seconds: i64) -> Option<TimeWithPrecision> {
        let unix_seconds = days(date)? * 86_400 + seconds;
        Some(TimeWithPrecision {
            unix_seconds,
            precision,
        })
    }
}

/// Parses `2024`, `2024-03`, `2024-03-05`, `2024/3/5`, `20240305`, `2024年3月5日`, optionally with a
/// time.
fn year_first(text: &str) -> Option<TimeWithPrecision> {
    let (digits, rest) = digits(text);
    match digits.len() {
        4 => {}
        8 => {
            let date = [
                number(&digits[..4])?,
                number(&digits[4..6])?,
                number(&digits[6..])?,
            ];
            return behind(date, rest);
        }
        _ => return None,
    }
    let year = number(digits)?;
    let Some(rest) = separated(rest) else {
        return rest
            .is_empty()
            .then(|| TimeWithPrecision::at([year, 1, 1], DatePrecision::Year, 0))?;
    };
    let (digits_of_month, rest) = self::digits(rest);
    let month = short(digits_of_month)?;
    if rest.is_empty() || rest == "月" {
        return TimeWithPrecision::at([year, month, 1], DatePrecision::Month, 0);
    }
    let (digits_of_day, rest) = self::digits(separated(rest)?);
    let rest = rest.strip_prefix('日').unwrap_or(rest);
    behind([year, month, short(digits_of_day)?], rest)
}

/// Combines `date` with the time of day in `rest`, which may end with a time zone. If `rest` is
/// empty, the precision is the day.
fn behind(date: [i64; 3], rest: &str) -> Option<TimeWithPrecision> {
    if rest.is_empty() {
        return TimeWithPrecision::at(date, DatePrecision::Day, 0);
    }
    let rest = rest.strip_prefix(['T', 't', ' ', '_'])?.trim();
    let split = rest.find(|c: char| !matches!(c, '0'..='9' | ':' | '.' | ','));
    let (time, zone) = rest.split_at(split.unwrap_or(rest.len()));
    TimeWithPrecision::at(
        date,
        DatePrecision::Time,
        clock(time)? - offset(zone.trim())?,
    )
}

/// Parses `Tue, 05 Mar 2024 10:00:00 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37
/// 1994`, `March 5, 2024`, `5th of March 2024, 10:30 am`.
fn named_month(text: &str) -> Option<TimeWithPrecision> {
    let (mut day, mut month, mut year, mut time, mut zone, mut noon) =
        (None, None, None, None, None, None);
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    let words = words.flat_map(hyphens).filter(|word| !word.is_empty());
    for word in words {
        if word.contains(':') {
            set(&mut time, clock(word)?)?;
        } else if let Some(found) = month_number(word) {
            set(&mut month, found)?;
        } else if let Some(value) = number(ordinal(word)) {
            match (day, ordinal(word).len()) {
                (None, 1 | 2) => day = Some(value),
                (Some(_), 2) => set(
                    &mut year,
                    if value >= 70 {
                        1900 + value
                    } else {
                        2000 + value
                    },
                )?,
                (_, 4) => set(&mut year, value)?,
                _ => return None,
            }
        } else if let Some(half) = half_of_day(word) {
            set(&mut noon, half)?;
        } else if !is_filler(word) {
            set(&mut zone, offset(word)?)?;
        }
    }
    let Some(day) = day else {
        return TimeWithPrecision::at([year?, month?, 1], DatePrecision::Month, 0);
    };
    let date = [year?, month?, day];
    let Some(time) = time else {
        return TimeWithPrecision::at(date, DatePrecision::Day, 0);
    };
    let time = match noon {
        Some(true) if time < 43_200 => time + 43_200,
        Some(false) if time >= 43_200 => time - 43_200,
        _ => time,
    };
    TimeWithPrecision::at(date, DatePrecision::Time, time - zone.unwrap_or(0))
}

/// Splits a word at hyphens, which separate day, month and year in RFC 850. A word that begins with
/// a sign is a time zone offset, so it is not split.
fn hyphens(word: &str) -> std::str::Split<'_, char> {
    let leads = word.starts_with(['-', '+']);
    word.split(if leads { '\0' } else { '-' })
}

fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

fn separated(text: &str) -> Option<&str> {
    text.strip_prefix(['-', '/', '.', '年', '月'])
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn short(text: &str) -> Option<i64> {
    number(text).filter(|_| text.len() <= 2)
}

fn number(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// Removes the suffix of an ordinal number: `5th` becomes `5`.
fn ordinal(word: &str) -> &str {
    let (digits, rest) = digits(word);
    match rest {
        "st" | "nd" | "rd" | "th" | "." => digits,
        _ => word,
    }
}

/// Parses a time of day, such as `10:30`, `10:30:05.25`, `103005`, `1030` or `10`, to seconds since
/// midnight.
fn clock(text: &str) -> Option<i64> {
    let whole = text.split(['.', ',']).next()?;
    let (hour, minute, second) = if whole.contains(':') {
        let mut parts = whole.split(':');
        let (hour, minute) = (short(parts.next()?)?, short(parts.next()?)?);
        let second = parts.next().map_or(Some(0), short)?;
        parts.next().is_none().then_some((hour, minute, second))?
    } else {
        let part = |at: usize| whole.get(at..at + 2).map_or(Some(0), number);
        matches!(whole.len(), 2 | 4 | 6).then_some(())?;
        (part(0)?, part(2)?, part(4)?)
    };
    let valid = hour <= 24 && minute < 60 && second <= 60;
    valid.then_some(hour * 3600 + minute * 60 + second)
}

/// Parses the offset of a time zone to seconds east of UTC: `Z`, `+02:00`, `-0800`, `+1`, the zone
/// names of RFC 5322, and those of Central Europe.
fn offset(text: &str) -> Option<i64> {
    let hours = match text.to_ascii_uppercase().as_str() {
        "" | "Z" | "UTC" | "GMT" | "UT" => 0,
        "CET" => 1,
        "CEST" => 2,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return numeric_offset(text),
    };
    Some(hours * 3600)
}

fn numeric_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let rest = text.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None if rest.len() == 4 => rest.split_at_checked(2)?,
        None => (rest, "0"),
    };
    let (hours, minutes) = (short(hours)?, short(minutes)?);
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
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
    let word = word.trim_end_matches('.');
    if word.len() < 3 {
        return None;
    }
    let at = MONTHS.iter().position(|month| {
        begins(month, word) || (word.eq_ignore_ascii_case("sept") && *month == "september")
    })?;
    i64::try_from(at).ok().map(|at| at + 1)
}

fn half_of_day(word: &str) -> Option<bool> {
    match word {
        "am" | "AM" | "a.m." => Some(false),
        "pm" | "PM" | "p.m." => Some(true),
        _ => None,
    }
}

/// Returns whether a word in a date can be skipped: a weekday, or a word such as `of`.
fn is_filler(word: &str) -> bool {
    matches!(word, "at" | "of" | "on" | "the") || is_weekday(word.trim_end_matches('.'))
}

/// Returns whether a word is the English name of a weekday, or its first three or more letters.
#[must_use]
pub fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    word.len() >= 3 && DAYS.iter().any(|day| begins(day, word))
}

/// Returns whether `name` starts with `word`, ignoring case.
fn begins(name: &str, word: &str) -> bool {
    let head = name.get(..word.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Returns the number of days from 1970-01-01 to a Gregorian date. `None` if the date doesn't
/// exist.
fn days([year, month, day]: [i64; 3]) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Let years begin in March, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Returns the Gregorian date that is `days` days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = year + era * 400;
    if month < 10 {
        (year, month + 3, day)
    } else {
        (year + 1, month - 9, day)
    }
}
