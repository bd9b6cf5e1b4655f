//! The system clock, limited to the dates that the crawler and its libraries can represent.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use crate::error::CommandError;

/// The start of the year 9999. A clock at or after this time counts as wrong. The date libraries
/// accept dates until the end of that year, which leaves room for adding durations to the current
/// time.
const END: Duration = Duration::from_secs(253_370_764_800);

/// Checks that the system clock is set to a date that can be recorded.
///
/// # Errors
/// Returns an error if the clock is before 1970 or after 9998.
pub(crate) fn check() -> Result<(), CommandError> {
    check_time(SystemTime::now())
}

/// Returns the current time. If the clock was set out of range after [`check`], the nearest time in
/// range is returned.
pub(crate) fn now() -> Timestamp {
    clamp(SystemTime::now())
}

fn check_time(time: SystemTime) -> Result<(), CommandError> {
    let problem = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Err(_) => "before 1970",
        Ok(since) if since >= END => "after 9998",
        Ok(_) => return Ok(()),
    };
    let error = CommandError::disk(format!("the system clock is set to a date {problem}"));
    Err(error.hint("set this machine's clock, then run the command again"))
}

fn clamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default().min(END);
    Timestamp::try_from(SystemTime::UNIX_EPOCH + since).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after_epoch(since: Duration) -> SystemTime {
        SystemTime::UNIX_EPOCH + since
    }

    #[test]
    fn a_clock_out_of_range_is_refused_with_its_reason() {
        let before = check_time(SystemTime::UNIX_EPOCH - SECOND).unwrap_err();
        assert_eq!(
            before.message,
            "the system clock is set to a date before 1970"
        );
        for since in [END, END + Duration::from_secs(366 * 86_400)] {
            let after = check_time(after_epoch(since)).unwrap_err();
            assert_eq!(
                after.message,
                "the system clock is set to a date after 9998"
            );
        }
        for since in [Duration::ZERO, END - SECOND] {
            assert_eq!(check_time(after_epoch(since)), Ok(()));
        }
    }

    #[test]
    fn a_time_out_of_range_becomes_the_nearest_one_within() {
        let long_before = SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40);
        assert_eq!(clamp(long_before), Timestamp::UNIX_EPOCH);
        let last = clamp(after_epoch(END));
        assert_eq!(last.to_string(), "9999-01-01T00:00:00Z");
        assert_eq!(clamp(after_epoch(Duration::from_secs(1 << 40))), last);
        let inside = clamp(after_epoch(1_795_000_000 * SECOND));
        assert_eq!(inside.as_second(), 1_795_000_000);
    }
}
