//! Formats dates in the form that other programs expect.

use jiff::Timestamp;

/// The first second of the year 1, in seconds since 1970 UTC. The date library rejects years after
/// 9999 itself.
const FIRST: i64 = -62_135_596_800;

/// Formats a time in seconds since 1970 UTC as RFC 3339. `None` if the year doesn't have four
/// digits.
pub(super) fn rfc3339(seconds: i64) -> Option<String> {
    let seconds = Some(seconds).filter(|seconds| *seconds >= FIRST)?;
    Some(Timestamp::from_second(seconds).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn years_of_four_digits() {
        let check = |seconds, expected: Option<&str>| {
            assert_eq!(rfc3339(seconds).as_deref(), expected, "{seconds}");
        };
        check(0, Some("1970-01-01T00:00:00Z"));
        check(1_767_225_600, Some("2026-01-01T00:00:00Z"));
        check(-62_135_596_800, Some("0001-01-01T00:00:00Z"));
        check(253_402_207_200, Some("9999-12-30T22:00:00Z"));
        check(-62_135_596_801, None);
        check(253_402_300_800, None);
        check(i64::MIN, None);
        check(i64::MAX, None);
    }
}
