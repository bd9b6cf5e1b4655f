//! What a host asked us to wait, and what its failures make us wait.

use std::time::Duration;

use crate::host::Host;
use crate::permit::GapReason;
use crate::politeness::Politeness;
use crate::signal::{RateLimit, Signal, SignalKind};
use crate::tick::{Tick, micros};

/// What a pause doubles up to.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The part of a new response time in the smoothed one: a slow host is given air within a
/// few answers, one odd answer does not set the pace.
const SMOOTHING: u64 = 4;

/// What sets a host apart from one that simply answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What the host asked for, or a restart: nothing before this.
    pub(crate) hold_until: Tick,
    pub(crate) hold_why: GapReason,
    /// How often in a row it asked us to wait without saying how long.
    pub(crate) hold_level: u8,
    /// Failures paused it: nothing before this.
    pub(crate) trip_until: Tick,
    /// How often in a row it was paused; above 0 only one request is in flight.
    pub(crate) trip_level: u8,
    /// Answers since a pause, while the restart is slow; 0: it is not.
    pub(crate) ease: u8,
    /// Failures since the last answer.
    pub(crate) fails: u32,
    /// The urls that failed since, each once; no more than `fails_in_a_row`.
    pub(crate) failed_urls: Vec<u32>,
    pub(crate) limit: Limit,
}

/// What its rate-limit fields ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// In microseconds.
    pub(crate) gap: u64,
    pub(crate) gap_until: Tick,
    /// Nothing before this.
    pub(crate) wait_until: Tick,
}

impl Trouble {
    pub(crate) const NONE: Trouble = Trouble {
        hold_until: Tick::ZERO,
        hold_why: GapReason::First,
        hold_level: 0,
        trip_until: Tick::ZERO,
        trip_level: 0,
        ease: 0,
        fails: 0,
        failed_urls: Vec::new(),
        limit: Limit {
            gap: 0,
            gap_until: Tick::ZERO,
            wait_until: Tick::ZERO,
        },
    };

    /// Nothing of it counts at `now` or after.
    fn is_over(&self, politeness: &Politeness, now: Tick) -> bool {
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
}

impl Host {
    pub(crate) fn trouble(&self) -> &Trouble {
        static NONE: Trouble = Trouble::NONE;
        self.trouble.as_deref().unwrap_or(&NONE)
    }

    pub(crate) fn trouble_mut(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_with(|| Box::new(Trouble::NONE))
    }

    /// Learns from how a request ended at `end` that was issued at `issued`: how long we
    /// were asked to wait.
    pub(crate) fn learn(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        signal: &Signal,
    ) -> Option<Duration> {
        match signal.kind {
            SignalKind::Answered => {
                self.answered(politeness, signal.response_time);
                self.limited(politeness, end, signal.rate_limit);
                let limit = self.trouble.as_ref()?.limit;
                if self.trouble().is_over(politeness, end) {
                    self.trouble = None;
                }
                let wait = limit.wait_until.since(end);
                (signal.rate_limit.is_some() && !wait.is_zero()).then_some(wait)
            }
            SignalKind::AskedToWait { retry_after } => {
                self.answered(politeness, signal.response_time);
                let limit = signal.rate_limit.map(|limit| RateLimit {
                    wait: limit.wait.filter(|_| retry_after.is_none()),
                    ..limit
                });
                self.limited(politeness, end, limit);
                let wait = self.asked_to_wait(politeness, issued, end, retry_after);
                Some(wait.max(self.trouble().limit.wait_until.since(end)))
            }
            SignalKind::UrlFailed | SignalKind::NoConnection => {
                self.failed(politeness, issued, end, signal);
                None
            }
        }
    }

    /// An answer took this long; one that took no time counts as a microsecond.
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
        let Some(trouble) = &mut self.trouble else {
            return;
        };
        trouble.fails = 0;
        trouble.failed_urls = Vec::new();
        let paused = std::mem::take(&mut trouble.trip_level) > 0;
        trouble.trip_until = Tick::ZERO;
        let ease = match trouble.ease {
            _ if paused => 1,
            0 => return,
            ease => ease.saturating_add(1),
        };
        let eased = self.is_eased(politeness, ease);
        self.trouble_mut().ease = if eased { 0 } else { ease };
    }

    /// What the rate-limit fields of an answer ask for; an answer without leaves it as it
    /// was. None of it goes beyond what a Retry-After could ask for.
    fn limited(&mut self, politeness: &Politeness, end: Tick, limit: Option<RateLimit>) {
        let Some(limit) = limit else {
            return;
        };
        if limit == RateLimit::default() && self.trouble.is_none() {
            return;
        }
        let longest = politeness.max_retry_after;
        let gap = limit.gap.unwrap_or_default().min(longest);
        self.trouble_mut().limit = Limit {
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

    fn asked_to_wait(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        retry_after: Option<Duration>,
    ) -> Duration {
        let trouble = self.trouble_mut();
        if let Some(wait) = retry_after {
            let wait = wait.min(politeness.max_retry_after);
            trouble.hold(end + wait, GapReason::RetryAfter);
            return wait;
        }
        // Requests that were in flight together were asked to wait once, not doubly.
        if issued >= trouble.hold_until {
            let quiet = end >= trouble.hold_until + politeness.wait_forget;
            let before = if quiet { 0 } else { trouble.hold_level };
            trouble.hold_level = before.saturating_add(1);
        }
        trouble.hold_level = trouble.hold_level.max(1);
        let wait = doubled(politeness.wait_first, trouble.hold_level).min(politeness.wait_max);
        trouble.hold(end + wait, GapReason::Wait);
        wait
    }

    fn failed(&mut self, politeness: &Politeness, issued: Tick, end: Tick, signal: &Signal) {
        let least = Duration::from_micros(self.pause_least(politeness));
        let trouble = self.trouble_mut();
        trouble.fails = trouble.fails.saturating_add(1);
        trouble.note_failed_url(politeness, signal.url);
        let many = trouble.failed_urls.len() >= politeness.fails_in_a_row as usize;
        // Requests that were in flight when the pause began say nothing new.
        let probe = trouble.trip_level > 0 && issued >= trouble.trip_until;
        let no_connection = signal.kind == SignalKind::NoConnection;
        let news = trouble.trip_level == 0 && (no_connection || many);
        if !probe && !news {
            return;
        }
        trouble.trip_level = trouble.trip_level.saturating_add(1);
        let pause = doubled(least, trouble.trip_level).min(PAUSE_MAX);
        trouble.trip_until = end + pause;
    }
}

impl Trouble {
    fn note_failed_url(&mut self, politeness: &Politeness, url: Option<u64>) {
        if self.failed_urls.len() >= politeness.fails_in_a_row as usize {
            return;
        }
        // Two of some twenty urls fall together once in ten million rows.
        let mark = match url {
            Some(url) => (url ^ (url >> 32)) as u32,
            None => self.fails,
        };
        if url.is_none() || !self.failed_urls.contains(&mark) {
            self.failed_urls.push(mark);
        }
    }
}

/// `first`, doubled for each level above 1; saturating.
fn doubled(first: Duration, level: u8) -> Duration {
    let factor = 1u32.checked_shl(u32::from(level.saturating_sub(1)));
    first.saturating_mul(factor.unwrap_or(u32::MAX))
}
