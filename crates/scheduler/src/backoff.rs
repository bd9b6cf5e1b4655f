//! Back-off: the waits that a host asked for, and those that follow from its failures.

use std::time::Duration;

use crate::permit::GapReason;
use crate::politeness::Politeness;
use crate::tick::Tick;

/// The longest pause that the doubling comes to.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The back-off state of a host; one that simply answers has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// The end of a wait that the host asked for or a restart began: no request before it.
    pub(crate) hold_until: Tick,
    pub(crate) hold_why: GapReason,
    /// The number of times in a row that it asked us to wait without saying how long.
    pub(crate) hold_level: u8,
    /// Failures paused it: nothing before this.
    pub(crate) trip_until: Tick,
    /// The number of pauses in a row; above 0 only one request is in flight.
    pub(crate) trip_level: u8,
    /// Answers since a pause, while the restart is slow; 0: it is not.
    pub(crate) ease: u8,
    /// Failures since the last answer.
    pub(crate) fails: u32,
    /// The urls that failed since, each once; no more than `fails_in_a_row`.
    pub(crate) failed_urls: Vec<u32>,
    pub(crate) limit: RateLimitState,
}

/// The pace that its rate-limit fields ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimitState {
    /// In microseconds.
    pub(crate) gap: u64,
    pub(crate) gap_until: Tick,
    /// Nothing before this.
    pub(crate) wait_until: Tick,
}

impl Backoff {
    pub(crate) const NONE: Backoff = Backoff {
        hold_until: Tick::ZERO,
        hold_why: GapReason::First,
        hold_level: 0,
        trip_until: Tick::ZERO,
        trip_level: 0,
        ease: 0,
        fails: 0,
        failed_urls: Vec::new(),
        limit: RateLimitState {
            gap: 0,
            gap_until: Tick::ZERO,
            wait_until: Tick::ZERO,
        },
    };

    /// Nothing of it counts at `now` or after.
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

    /// Counts a failure of this url where it has not failed yet.
    pub(crate) fn note_failed_url(&mut self, politeness: &Politeness, url: Option<u64>) {
        if self.failed_urls.len() >= politeness.fails_in_a_row as usize {
            return;
        }
        // Two of some twenty urls fall together once in ten million rows.
        let mark = match url {
            Some(url) => url as u32,
            None => self.fails,
        };
        if url.is_none() || !self.failed_urls.contains(&mark) {
            self.failed_urls.push(mark);
        }
    }
}
