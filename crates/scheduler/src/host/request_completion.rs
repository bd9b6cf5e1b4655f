//! Updates a host when one of its requests ends: the response time, and the waits that follow.

use std::time::Duration;

use super::ScheduledHost;
use crate::backoff::{Backoff, HostRateLimit, MAX_PAUSE};
use crate::permit::GapReason;
use crate::politeness_settings::Politeness;
use crate::request_outcome::{OutcomeKind, PaceFromRateLimit, RequestOutcome};
use crate::tick::{Tick, micros};

/// A new response time has a weight of 1 / `SMOOTHING` in the smoothed one. A slow host is noticed
/// within a few answers, but a single outlier does not set the pace.
const SMOOTHING: u64 = 4;

impl ScheduledHost {
    pub(crate) fn backoff(&self) -> &Backoff {
        static NONE: Backoff = Backoff::NONE;
        self.backoff.as_deref().unwrap_or(&NONE)
    }

    pub(crate) fn backoff_mut(&mut self) -> &mut Backoff {
        self.backoff.get_or_insert_with(|| Box::new(Backoff::NONE))
    }

    /// Updates the host's state from a request that was issued at `issued` and ended at `end`.
    /// Returns the wait that the host requested, or the default wait after a 429 or 503 without a
    /// Retry-After.
    pub(crate) fn learn(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        signal: &RequestOutcome,
    ) -> Option<Duration> {
        match signal.kind {
            OutcomeKind::Answered => {
                self.answered(politeness, signal.response_time);
                if let Some(backoff) = &mut self.backoff {
                    backoff.zero_waits = 0;
                }
                self.limited(politeness, end, signal.rate_limit);
                let limit = self.backoff.as_ref()?.limit;
                if self.backoff().is_over(politeness, end) {
                    self.backoff = None;
                }
                let wait = limit.wait_until.since(end);
                (signal.rate_limit.is_some() && !wait.is_zero()).then_some(wait)
            }
            OutcomeKind::AskedToWait { retry_after } => {
                self.answered(politeness, signal.response_time);
                let retry_after = self.credible(retry_after);
                let limit = signal.rate_limit.map(|limit| PaceFromRateLimit {
                    wait: limit.wait.filter(|_| retry_after.is_none()),
                    ..limit
                });
                self.limited(politeness, end, limit);
                let wait = self.back_off(politeness, issued, end, retry_after);
                Some(wait.max(self.backoff().limit.wait_until.since(end)))
            }
            OutcomeKind::UrlFailed | OutcomeKind::NoConnection => {
                self.failed(politeness, issued, end, signal);
                None
            }
        }
    }

    /// Updates the smoothed response time. A time of zero counts as one microsecond.
    fn smooth(&mut self, response_time: Duration) {
        let sample = micros(response_time).max(1);
        self.smoothed = match self.smoothed {
            0 => sample,
            old if sample > old => old + (sample - old).div_ceil(SMOOTHING),
            old => old - (old - sample) / SMOOTHING,
        };
    }

    fn answered(&mut self, politeness: &Politeness, response_time: Duration) {
        self.smooth(response_time);
        let Some(backoff) = &mut self.backoff else {
            return;
        };
        backoff.fails = 0;
        backoff.failed_urls = Vec::new();
        let paused = std::mem::take(&mut backoff.trip_level) > 0;
        backoff.trip_until = Tick::ZERO;
        let ease = match backoff.ease {
            _ if paused => 1,
            0 => return,
            ease => ease.saturating_add(1),
        };
        let eased = self.is_eased(politeness, ease);
        self.backoff_mut().ease = if eased { 0 } else { ease };
    }

    /// Applies an answer's rate-limit fields. Without such fields the pace stays as it was. The
    /// maximum for waits is the same as for a Retry-After.
    fn limited(&mut self, politeness: &Politeness, end: Tick, limit: Option<PaceFromRateLimit>) {
        let Some(limit) = limit else {
            return;
        };
        if limit == PaceFromRateLimit::default() && self.backoff.is_none() {
            return;
        }
        let longest = politeness.max_retry_after;
        let gap = limit.gap.unwrap_or_default().min(longest);
        self.backoff_mut().limit = HostRateLimit {
            gap: micros(gap),
            gap_until: match gap.is_zero() {
                true => Tick::ZERO,
                false => end + limit.lasts.min(longest),
            },
            wait_until: limit
                .wait
                .map_or(Tick::ZERO, |wait| end + wait.min(longest)),
        };
    }

    /// Returns the Retry-After to apply. If a host refuses several requests in a row with a
    /// Retry-After of zero, the second and later ones count as missing, so that the default wait
    /// follows. Otherwise the host would get requests at full speed.
    fn credible(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let backoff = self.backoff_mut();
        backoff.zero_waits = match retry_after {
            Some(Duration::ZERO) => backoff.zero_waits.saturating_add(1),
            _ => 0,
        };
        retry_after.filter(|_| backoff.zero_waits < 2)
    }

    fn back_off(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        retry_after: Option<Duration>,
    ) -> Duration {
        let backoff = self.backoff_mut();
        if let Some(wait) = retry_after {
            let wait = wait.min(politeness.max_retry_after);
            backoff.hold(end + wait, GapReason::RetryAfter);
            return wait;
        }
        // Several 429 or 503 answers to requests in flight at the same time raise the back-off
        // level only once.
        if issued >= backoff.hold_until {
            let quiet = end >= backoff.hold_until + politeness.wait_forget;
            let before = if quiet { 0 } else { backoff.hold_level };
            backoff.hold_level = before.saturating_add(1);
        }
        backoff.hold_level = backoff.hold_level.max(1);
        let wait = doubled(politeness.wait_first, backoff.hold_level).min(politeness.wait_max);
        backoff.hold(end + wait, GapReason::Wait);
        wait
    }

    fn failed(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        signal: &RequestOutcome,
    ) {
        let least = Duration::from_micros(self.min_pause(politeness));
        let backoff = self.backoff_mut();
        backoff.fails = backoff.fails.saturating_add(1);
        backoff.note_failed_url(politeness, signal.url);
        let many = backoff.failed_urls.len() >= politeness.fails_in_a_row as usize;
        // Only a request issued after the pause tests the host. The outcome of an earlier request
        // doesn't show whether the host is back.
        let probe = backoff.trip_level > 0 && issued >= backoff.trip_until;
        let no_connection = signal.kind == OutcomeKind::NoConnection;
        let is_new = backoff.trip_level == 0 && (no_connection || many);
        if !probe && !is_new {
            return;
        }
        backoff.trip_level = backoff.trip_level.saturating_add(1);
        let pause = doubled(least, backoff.trip_level).min(MAX_PAUSE);
        backoff.trip_until = end + pause;
    }
}

/// Returns `first`, doubled for each level above 1. The result saturates.
fn doubled(first: Duration, level: u8) -> Duration {
    let factor = 1u32.checked_shl(u32::from(level.saturating_sub(1)));
    first.saturating_mul(factor.unwrap_or(u32::MAX))
}
