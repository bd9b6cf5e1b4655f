//! The system clock, as far as the program can work with it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::CommandError;

/// The beginning of the year 9999, since 1970 UTC: WARC dates and those of libraries end with that year.
const LATEST: Duration = Duration::from_secs(253_370_764_800);

/// Refuses a clock whose time rows and archives can't hold.
pub(crate) fn check(now: SystemTime) -> Result<(), CommandError> {
    let what = match now.duration_since(UNIX_EPOCH) {
        Err(_) => "the system clock is set to a time before 1970",
        Ok(since) if since >= LATEST => "the system clock is set to the year 9999 or later",
        Ok(_) => return Ok(()),
    };
    Err(CommandError::usage(what)
        .hint("set the clock, for example with `timedatectl set-ntp true`"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{LATEST, check};

    #[test]
    fn a_clock_that_dates_cannot_hold_is_refused() {
        let second = Duration::from_secs(1);
        for good in [UNIX_EPOCH, UNIX_EPOCH + LATEST - second] {
            assert!(check(good).is_ok());
        }
        for bad in [
            UNIX_EPOCH - second,
            UNIX_EPOCH + LATEST,
            UNIX_EPOCH + 2 * LATEST,
        ] {
            let refused = check(bad).unwrap_err().to_string();
            assert!(refused.contains("hint: "), "{refused}");
        }
    }
}
