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
    // Ignore decimal places beyond the ninth, which are too small to matter.
    let digits = &fraction[..fraction.len().min(9)];
    let part = match digits {
        "" => 0,
        _ => {
            let parts = u128::from(digits.parse::<u64>().ok()?) * u128::from(scale);
            let divisor = 10_u128.pow(u32::try_from(digits.len()).ok()?);
            u64::try_from(parts / divisor).ok()?
        }
    };
    whole.checked_mul(scale)?.checked_add(part)
}
