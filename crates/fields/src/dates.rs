//! Parses dates in texts.

use crawl_dates::{DatePrecision, TimeWithPrecision};

use crate::locale::Locale;

/// Maximum bytes of a text that may be a date.
const MAX_DATE_BYTES: usize = 120;

/// Returns the date in a text, formatted as `2026-03-08`. Ignores the time of day and the time
/// zone, so the result is the date as written. `None` if the text is not a date in the format of
/// `locale`, in ISO 8601 or in a common English format.
pub(crate) fn read_day(text: &str, locale: Option<&Locale>) -> Option<String> {
    let text = text.trim();
    if text.len() > MAX_DATE_BYTES {
        return None;
    }
    let day = without_time(text);
    let local = || locale.and_then(|locale| numeric(day, locale).or_else(|| named(day, locale)));
    let written = local()
        .or_else(|| full_day(day))
        .or_else(|| full_day(text))?;
    Some(written)
}

fn full_day(text: &str) -> Option<String> {
    let moment = TimeWithPrecision::parse(text)?;
    let is_day = matches!(moment.precision, DatePrecision::Day | DatePrecision::Time);
    is_day.then(|| moment.to_string()[..10].to_owned())
}

/// Returns the part of a text before its time of day.
fn without_time(text: &str) -> &str {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let colon =
        (1..bytes.len()).find(|at| bytes[*at] == b':' && is_digit(at - 1) && is_digit(at + 1));
    let Some(colon) = colon else {
        return text;
    };
    let digits = bytes[..colon]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit());
    let before = &text[..colon - digits.count()];
    // In `10:30, 8 March 2026`, the time comes before the date, so keep the whole text.
    if before.trim().is_empty() {
        return text;
    }
    let before =
        before.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | '-' | '|'));
    before.strip_suffix('T').unwrap_or(before)
}

/// Parses `08.03.2026`, `8/3/26` or `8-3-2026`. The locale determines whether the day or the month
/// comes first.
fn numeric(text: &str, locale: &Locale) -> Option<String> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '/' | '-' | ' ');
    let part = &text[start..];
    let end = part.find(|c| !is_part(c)).unwrap_or(part.len());
    let numbers: Vec<&str> = part[..end]
        .split(|c: char| !c.is_ascii_digit())
        .filter(|number| !number.is_empty())
        .collect();
    let [first, second, year] = numbers.try_into().ok()?;
    if first.len() > 2 || second.len() > 2 {
        return None;
    }
    let (day, month) = match locale.is_month_first {
        true => (second, first),
        false => (first, second),
    };
    written(year_of(year)?, month.parse().ok()?, day.parse().ok()?)
}

/// Parses a date with the name of a month in the locale's language, such as `8. März 2026` or
/// `dimanche 8 mars 2026`.
fn named(text: &str, locale: &Locale) -> Option<String> {
    let (mut day, mut month, mut year) = (None, None, None);
    let words = text.split(|c: char| !c.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        match digits.len() {
            1 | 2 if day.is_none() => day = digits.parse().ok(),
            4 if year.is_none() => year = year_of(digits),
            _ if month.is_none() => month = month_of(word, locale),
            _ => {}
        }
    }
    written(year?, month?, day?)
}

/// Returns the number of the month, given its name or an abbreviation of at least three letters.
/// `None` if the word is neither, or is ambiguous.
fn month_of(word: &str, locale: &Locale) -> Option<u32> {
    let word = word.to_lowercase();
    let is_long_enough = word.chars().count() >= 3;
    let is_named = |names: &str| names.split('|').any(|name| name.starts_with(&word));
    let mut named = locale
        .months
        .iter()
        .enumerate()
        .filter(|(_, names)| is_long_enough && is_named(names));
    // A prefix of two names is ambiguous, such as `jui` for the French juin and juillet.
    match (named.next(), named.next()) {
        (Some((at, _)), None) => u32::try_from(at + 1).ok(),
        _ => None,
    }
}

/// Parses a year of four or two digits. As in POSIX, 69 to 99 are in the 20th century, and 00 to 68
/// in the 21st.
fn year_of(digits: &str) -> Option<u32> {
    let year: u32 = digits.parse().ok()?;
    match (digits.len(), year) {
        (4, _) => Some(year),
        (2, 69..) => Some(1900 + year),
        (2, _) => Some(2000 + year),
        _ => None,
    }
}

fn written(year: u32, month: u32, day: u32) -> Option<String> {
    full_day(&format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::read_day;
    use crate::locale::Locale;

    fn check(locale: &str, cases: &[(&str, Option<&str>)]) {
        let locale = Locale::find(locale);
        for (text, expected) in cases {
            assert_eq!(
                read_day(text, locale.as_ref()).as_deref(),
                *expected,
                "{text}"
            );
        }
    }

    #[test]
    fn an_unambiguous_day_is_parsed_without_a_locale() {
        check(
            "",
            &[
                ("2026-03-08", Some("2026-03-08")),
                ("2026-03-08T00:30:00+02:00", Some("2026-03-08")),
                ("Sun, 08 Mar 2026 23:30:00 -0500", Some("2026-03-08")),
                ("March 8, 2026", Some("2026-03-08")),
                ("08.03.2026", None),
                ("2026-03", None),
                ("2026-02-30", None),
                ("soon", None),
            ],
        );
    }

    #[test]
    fn a_locale_gives_the_order_and_the_names_of_months() {
        check(
            "de",
            &[
                ("08.03.2026", Some("2026-03-08")),
                ("So, 8. März 2026, 19:30 Uhr", Some("2026-03-08")),
                ("8.3.26", Some("2026-03-08")),
                ("31. Dez. 2025", Some("2025-12-31")),
                ("31.02.2026", None),
            ],
        );
        check(
            "de-AT",
            &[
                ("8. Jänner 2026", Some("2026-01-08")),
                ("8. Jän. 2026", Some("2026-01-08")),
                ("8. Januar 2026", Some("2026-01-08")),
            ],
        );
        check("es-UY", &[("8 de setiembre de 2026", Some("2026-09-08"))]);
        check("en-US", &[("3/8/2026", Some("2026-03-08"))]);
        check("en-GB", &[("3/8/2026", Some("2026-08-03"))]);
        check(
            "fr",
            &[
                ("dimanche 8 mars 2026", Some("2026-03-08")),
                ("8 jui 2026", None),
            ],
        );
    }
}
