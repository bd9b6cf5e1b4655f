//! Time conversions for rows, visits and the search index.

use std::time::Duration;

use crawl_scheduler::Tick;

/// Converts a duration to milliseconds for rows, rounded.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from((duration.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Converts a time to whole seconds since the Unix epoch, for visits.
pub(crate) fn seconds(tick: Tick) -> u32 {
    u32::try_from(tick.as_micros() / 1_000_000).unwrap_or(u32::MAX)
}

/// Converts a time to seconds since 1970 UTC.
pub(crate) fn seconds_of(at: Tick) -> i64 {
    i64::try_from(at.as_micros() / 1_000_000).unwrap_or(i64::MAX)
}

/// Converts a duration to whole seconds, rounded down.
pub(crate) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
