//! Back-off: waits that a host requested, and pauses after failures of the host.

use std::time::Duration;

use crate::permit::GapReason;
use crate::politeness_settings::Politeness;
use crate::tick::Tick;

/// Maximum pause after failures of a host. Each failure doubles the pause.
/// Beyond the limit: paused for this long.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The back-off state of a host: waits that it requested, and pauses after its failures. A host
/// without waits or failures has no such state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// No requests before this time. `hold_why` is the reason, such as a Retry-After, a restart or
    /// another crawl.
    pub(crate) hold_until: Tick,
    pub(crate) hold_why: GapReason,
    /// Number of default waits in a row, which follow a 429 or 503 without a Retry-After. Each
    /// doubles the next one. Such answers to requests in flight at the same time count once.
    pub(crate) hold_level: u8,
    /// Number of answers in a row that refused a request with a Retry-After of zero.
    pub(crate) zero_waits: u8,
    /// No requests before this time: the end of the pause after failures.
    pub(crate) trip_until: Tick,
    /// Number of pauses in a row, each twice as long as the one before. Above 0, only one request
    /// may be in flight.
    pub(crate) trip_level: u8,
    /// Number of answers since the last pause, while the host restarts slowly: each answer halves
    /// the gap, until it is as short as usual. 0 if the host doesn't restart slowly.
    pub(crate) ease: u8,
    /// Number of failed requests since the last answer.
    pub(crate) fails: u32,
    /// Hashes of the distinct URLs that failed since the last answer, at most `fails_in_a_row`.
    pub(crate) failed_urls: Vec<u32>,
    pub(crate) limit: HostRateLimit,
}

/// The rate limit in force at a host, set by the rate-limit fields of its responses: a gap and a
/// wait, each until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostRateLimit {
    /// Minimum gap between requests, in microseconds.
    pub(crate) gap: u64,
    pub(crate) gap_until: Tick,
    /// No requests before this time, because the quota is used up.
    pub(crate) wait_until: Tick,
}

impl Backoff {
    pub(crate) const NONE: Backoff = Backoff {
        hold_until: Tick::ZERO,
        hold_why: GapReason::First,
        hold_level: 0,
        zero_waits: 0,
        trip_until: Tick::ZERO,
        trip_level: 0,
        ease: 0,
        fails: 0,
        failed_urls: Vec::new(),
        limit: HostRateLimit {
            gap: 0,
            gap_until: Tick::ZERO,
            wait_until: Tick::ZERO,
        },
    };

    /// Returns whether this state no longer affects any request at `now` or later.
    pub(crate) fn is_over(&self, politeness: &Politeness, now: Tick) -> bool {
        let limit = self.limit.gap_until.max(self.limit.wait_until);
        let calm = self.fails == 0 && self.trip_level == 0 && self.ease == 0;
        calm && limit <= now && self.hold_until + politeness.wait_forget <= now
    }

    pub(crate) fn hold(&mut self, until: Tick, why: GapReason) {
        if until > self.hold_until {
            self.hold_until = until;
            self.hold_why = why;
        }
    }

    /// Counts the failure of the URL with the hash `url`, unless a failure of the same URL was
    /// already counted. A failure without a hash (`None`) always counts.
    pub(crate) fn note_failed_url(&mut self, politeness: &Politeness, url: Option<u64>) {
        if self.failed_urls.len() >= politeness.fails_in_a_row as usize {
            return;
        }
        // 32 bits of the hash suffice: the chance that two of about twenty URLs share them is one
        // in ten million.
        let mark = match url {
            Some(url) => url as u32,
            None => self.fails,
        };
        if url.is_none() || !self.failed_urls.contains(&mark) {
            self.failed_urls.push(mark);
        }
    }
}
