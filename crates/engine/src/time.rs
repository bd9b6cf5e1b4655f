//! Times as rows, visits and the search index hold them.

use std::time::Duration;

use crawl_scheduler::Tick;

/// Milliseconds, rounded to the nearest, as rows hold them.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from((duration.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Whole seconds since the Unix epoch, as visits have them.
pub(crate) fn seconds(tick: Tick) -> u32 {
    u32::try_from(tick.as_micros() / 1_000_000).unwrap_or(u32::MAX)
}

/// Seconds since 1970 UTC.
pub(crate) fn seconds_of(at: Tick) -> i64 {
    i64::try_from(at.as_micros() / 1_000_000).unwrap_or(i64::MAX)
}

/// The whole seconds of a time.
pub(crate) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
