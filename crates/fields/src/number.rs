//! Parses numbers in texts.

use crate::locale::Locale;

/// Returns the first number in a text. `None` if the text contains no number, or if its separators
/// don't follow the locale. For example, `1.5` is not a number in German, where a dot separates
/// groups of three digits. `1 234` is not a number in English: it may be two numbers, or one whose
/// digits are grouped by a space (ISO 80000-1).
pub(crate) fn read_number(text: &str, locale: &Locale) -> Option<f64> {
    let chars: Vec<char> = text.chars().collect();
    let mut at = chars.iter().position(char::is_ascii_digit)?;
    let has_no_whole = at > 0 && chars[at - 1] == locale.decimal;
    let first = at - usize::from(has_no_whole);
    let is_negative = first > 0 && matches!(chars[first - 1], '-' | '\u{2212}') && {
        // A `-` after a letter or digit is a hyphen, not a minus sign, as in `A-7` and `10-20`.
        first < 2 || !chars[first - 2].is_alphanumeric()
    };
    let mut plain = String::from(if is_negative { "-" } else { "" });
    let digit = |at: usize| chars.get(at).copied().filter(char::is_ascii_digit);
    let mut separator = None;
    if !has_no_whole {
        let begin = at;
        while let Some(c) = digit(at) {
            plain.push(c);
            at += 1;
        }
        // In a number with groups such as `12,345`, at most three digits precede the first
        // separator, and the first digit is not 0.
        let may_have_groups = at - begin <= 3 && chars[begin] != '0';
        let is_possible_separator = |c: &&char| locale.groups.contains(**c) || c.is_whitespace();
        while let Some(group) = chars.get(at).filter(is_possible_separator) {
            let digits = (at + 1..).take_while(|at| digit(*at).is_some()).count();
            let is_group = may_have_groups
                && (digits == 3
                    || digits == 2 && locale.has_short_groups && !group.is_whitespace())
                && separator.is_none_or(|first| first == *group);
            // In `12 34`, the digits after the space are not a group, so they belong to another
            // number.
            if digits == 0 || group.is_whitespace() && !is_group {
                break;
            }
            if !is_group || !locale.groups.contains(*group) {
                return None;
            }
            separator = Some(*group);
            plain.extend((at + 1..=at + digits).filter_map(digit));
            at += digits + 1;
        }
    }
    let at_fraction = if has_no_whole { at.checked_sub(1)? } else { at };
    if chars.get(at_fraction) == Some(&locale.decimal) && digit(at_fraction + 1).is_some() {
        plain.push('.');
        at = at_fraction + 1;
        while let Some(c) = digit(at) {
            plain.push(c);
            at += 1;
        }
    }
    // If another separator and digit follow, the number doesn't follow this locale.
    let is_separator = |c: &char| matches!(c, '.' | ',' | '\'' | '\u{2019}');
    if chars.get(at).is_some_and(is_separator) && digit(at + 1).is_some() {
        return None;
    }
    let plain = match plain.strip_prefix('-') {
        Some(rest) if rest.starts_with('.') => format!("-0{rest}"),
        None if plain.starts_with('.') => format!("0{plain}"),
        _ => plain,
    };
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::read_number;
    use crate::locale::{Locale, NEUTRAL};

    fn check(locale: &str, cases: &[(&str, Option<f64>)]) {
        let of = Locale::find(locale).unwrap_or(NEUTRAL);
        for (text, expected) in cases {
            assert_eq!(read_number(text, &of), *expected, "{locale}: {text}");
        }
    }

    #[test]
    fn numbers_are_read_as_the_locale_writes_them() {
        check(
            "",
            &[
                ("1207.5", Some(1207.5)),
                ("$1,207.50", Some(1207.5)),
                ("1,207,300", Some(1_207_300.0)),
                ("-3", Some(-3.0)),
                (".5 l", Some(0.5)),
                ("\u{2212}4.25 °C", Some(-4.25)),
                ("none", None),
                ("", None),
            ],
        );
        check(
            "de",
            &[
                ("1.207,50 €", Some(1207.5)),
                ("1207,5", Some(1207.5)),
                ("ab 12.000.000 Stück", Some(12_000_000.0)),
                ("5,-", Some(5.0)),
                ("Das kostet 7.", Some(7.0)),
                ("0,75 %", Some(0.75)),
            ],
        );
        check("de-CH", &[("CHF 1’207.50", Some(1207.5))]);
        check(
            "fr",
            &[("1\u{202f}207,50 €", Some(1207.5)), ("3 10", Some(3.0))],
        );
        check("en-IN", &[("₹12,34,567.8", Some(1_234_567.8))]);
    }

    #[test]
    fn digits_grouped_by_spaces_are_one_number_or_none() {
        for locale in ["de", "de-AT", "es", "fr", "it", "pt-PT", "sv"] {
            check(
                locale,
                &[
                    ("1 234,50 €", Some(1234.5)),
                    ("1 234 567 €", Some(1_234_567.0)),
                    ("ab 12\u{a0}345", Some(12_345.0)),
                    ("1\u{202f}234", Some(1234.0)),
                    ("1\u{2009}234", Some(1234.0)),
                    // Two numbers.
                    ("2 3", Some(2.0)),
                    ("2026 120 Seiten", Some(2026.0)),
                    ("0 800 12", Some(0.0)),
                    ("9,99 100 g", Some(9.99)),
                ],
            );
        }
        check("de", &[("1.234 100 g", Some(1234.0))]);
        check("de-CH", &[("CHF 1 234.50", Some(1234.5))]);
        for locale in ["", "en", "es-MX", "ja"] {
            check(
                locale,
                &[
                    ("1 234.50", None),
                    ("1 234 567", None),
                    ("1\u{a0}234,50", None),
                    ("2 3", Some(2.0)),
                    ("2026 120 pages", Some(2026.0)),
                    ("1,234 100 g", Some(1234.0)),
                ],
            );
        }
    }

    #[test]
    fn a_number_in_another_form_is_refused_and_not_misread() {
        check(
            "de",
            &[
                ("1.5", None),
                ("1,207.50", None),
                ("08.03.2026", None),
                ("12.34.567", None),
                ("0.750 kg", None),
            ],
        );
        check(
            "en",
            &[("1.207,50", None), ("12,5", None), ("1234,567", None)],
        );
    }

    #[test]
    fn a_hyphen_is_not_a_sign() {
        check(
            "en",
            &[
                ("Part A-7", Some(7.0)),
                ("10-20 pieces", Some(10.0)),
                ("a -7", Some(-7.0)),
            ],
        );
    }
}
