//! The rate of requests in all: one at a time, evenly spaced.

use std::time::Duration;

use crate::tick::Tick;

/// Requests never come in a burst, after a restart neither: the time between two is what counts.
pub(crate) struct TotalRate {
    /// The time from one request to the next; none without a limit.
    interval: Option<Duration>,
    /// The number of the last request, so that it can be told from earlier ones.
    last: u64,
    closed_until: Tick,
}

/// The longest time between two requests.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl TotalRate {
    /// At most `per_second` requests a second.
    pub(crate) fn new(per_second: Option<f64>) -> TotalRate {
        TotalRate {
            interval: interval(per_second),
            last: 0,
            closed_until: Tick::ZERO,
        }
    }

    /// Another rate holds from now on. The time under way ends no earlier, and that of the new rate
    /// begins now: without a limit before, nobody knows when the last request was sent.
    pub(crate) fn set(&mut self, now: Tick, per_second: Option<f64>) {
        let before = std::mem::replace(&mut self.interval, interval(per_second));
        if let Some(interval) = self.interval
            && before != self.interval
        {
            self.closed_until = self.closed_until.max(now + interval);
            // What was sent before gives no time back.
            self.last += 1;
        }
    }

    /// Nothing may be sent before this.
    pub(crate) fn closed_until(&self) -> Tick {
        self.closed_until
    }

    /// Counts a request that is sent now, and gives its number.
    pub(crate) fn take(&mut self, now: Tick) -> u64 {
        if let Some(interval) = self.interval {
            self.closed_until = now + interval;
            self.last += 1;
        }
        self.last
    }

    /// Request `number` was not sent. Only the last one's time comes back: a later one was
    /// spaced from it already, so an older one's would be a burst.
    pub(crate) fn give_back(&mut self, number: u64) {
        if number == self.last {
            self.closed_until = Tick::ZERO;
        }
    }
}

/// The time from one request to the next; none without a limit.
fn interval(per_second: Option<f64>) -> Option<Duration> {
    let limit = per_second.filter(|rate| *rate > 0.0 && rate.is_finite())?;
    let interval = Duration::try_from_secs_f64(limit.recip()).unwrap_or(MAX_INTERVAL);
    Some(interval.min(MAX_INTERVAL))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TotalRate;
    use crate::tick::Tick;

    #[test]
    fn ours_no_rate_no_limit() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN)] {
            let mut rate = TotalRate::new(rate);
            rate.take(Tick::from_micros(1_700_000_000_000_000));
            assert_eq!(rate.closed_until(), Tick::ZERO);
        }
    }

    #[test]
    fn ours_requests_are_spaced_evenly() {
        let mut rate = TotalRate::new(Some(3.0));
        let start = Tick::from_micros(1_700_000_000_000_000);
        let mut now = start;
        for _ in 0..300 {
            now = now.max(rate.closed_until());
            rate.take(now);
        }
        let took = now.since(start);
        assert!(took >= Duration::from_millis(299_000 / 3));
        assert!(took <= Duration::from_millis(299_000 / 3 + 2));
        // Idleness saves nothing up.
        now = now + Duration::from_secs(60);
        rate.take(now);
        assert!(rate.closed_until() > now);
    }

    #[test]
    fn ours_only_the_last_request_comes_back() {
        let second = Duration::from_secs(1);
        let mut rate = TotalRate::new(Some(1.0));
        let first = rate.take(Tick::ZERO);
        rate.give_back(first);
        assert_eq!(rate.closed_until(), Tick::ZERO);
        let earlier = rate.take(Tick::ZERO);
        let last = rate.take(Tick::ZERO + second);
        rate.give_back(earlier);
        assert_eq!(rate.closed_until(), Tick::ZERO + second + second);
        rate.give_back(last);
        assert_eq!(rate.closed_until(), Tick::ZERO);
    }

    #[test]
    fn ours_extremes_do_not_overflow() {
        for per_second in [f64::MIN_POSITIVE, 1e-12, 1e12, f64::MAX] {
            let mut rate = TotalRate::new(Some(per_second));
            rate.take(Tick::ZERO);
            let year = Tick::from_micros(365 * 86_400_000_000);
            let is_rare = per_second < 1.0;
            assert_eq!(rate.closed_until() == year, is_rare, "{per_second}");
            for now in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                rate.take(Tick::from_micros(now));
            }
        }
    }
}
