//! Parses numbers with a unit, such as `10MB` or `30s`.

/// Splits a text before the first character for which `ends` returns true.
pub(super) fn split_at(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Returns `number` (digits with at most one point) times `scale`, rounded down.
pub(super) fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    // Start with the last digit: each step adds a digit in front and divides by 10. Rounding down
    // in each step gives the same result as rounding down once at the end.
    let part = fraction.chars().rev().try_fold(0, |below, digit| {
        let digit = digit.to_digit(10)?;
        Some((u128::from(digit) * u128::from(scale) + below) / 10)
    })?;
    let part = u64::try_from(part).ok()?;
    whole.checked_mul(scale)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn every_decimal_place_counts() {
        for (number, scale, expected) in [
            ("1.5", 1 << 10, Some(1536)),
            ("0.0000000001", 1 << 40, Some(109)),
            ("0.9999999999999999999999999999999999999999", 10, Some(9)),
            ("1.999999999999", 1, Some(1)),
            ("1.", 10, None),
            ("1.x", 10, None),
            ("1.2.3", 10, None),
            ("18446744073709551615.1", 10, None),
        ] {
            assert_eq!(scaled(number, scale), expected, "{number}");
        }
    }
}
