//! Parses numbers in texts.

use crate::locale::Locale;

/// Returns the first number in a text. `None` if the text contains no number, or if its separators
/// don't follow the locale. For example, `1.5` is not a number in German, where a dot separates
/// groups of three digits.
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
        let mut is_grouped = at - begin <= 3;
        while let Some(group) = chars.get(at).filter(|c| locale.groups.contains(**c)) {
            let digits = (at + 1..).take_while(|at| digit(*at).is_some()).count();
            let is_group = digits == 3 || locale.has_short_groups && digits == 2;
            let is_space = group.is_whitespace();
            if digits == 0 || is_space && !is_group {
                break;
            }
            is_grouped &= is_group && separator.is_none_or(|first| first == *group);
            if !is_grouped {
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
    fn a_number_in_another_form_is_refused_and_not_misread() {
        check(
            "de",
            &[
                ("1.5", None),
                ("1,207.50", None),
                ("08.03.2026", None),
                ("12.34.567", None),
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
