//! When a host may next be fetched from: the longest gap that applies, outside quiet hours.

use std::time::Duration;

use crate::host::ScheduledHost;
use crate::permit::{GapReason, HostRequestSlot};
use crate::politeness_settings::Politeness;
use crate::tick::{Tick, micros};

/// Minimum pause after failures.
const MIN_PAUSE: Duration = Duration::from_secs(5);
/// Minimum pause after failures, as a multiple of the host's gap.
const MIN_PAUSE_GAPS: u64 = 10;
/// Maximum number of times that quiet hours and hourly gaps may postpone one request, one after the
/// other. After that, the request waits for the longest gap of all.
const MAX_POSTPONEMENTS: u32 = 64;

/// The earliest time for a request, and the rule that sets this time.
pub(crate) type EarliestRequestTime = (Tick, GapReason);

impl ScheduledHost {
    /// Returns the gap between two requests in microseconds, and the rule that sets it. Ignores
    /// gaps that apply only at certain hours.
    pub(crate) fn gap(&self, politeness: &Politeness) -> (u64, GapReason) {
        let gap = self.steady_gap(politeness);
        match self.backoff().ease {
            0 => gap,
            ease => {
                let slow = min_pause(gap.0).checked_shr(ease.into()).unwrap_or(0);
                longer(gap, slow, GapReason::SlowRestart)
            }
        }
    }

    /// Returns the gap in microseconds, and the rule that sets it. Ignores the longer gap during a
    /// slow restart.
    fn steady_gap(&self, politeness: &Politeness) -> (u64, GapReason) {
        let gap = (micros(politeness.delay), GapReason::Delay);
        // The cast saturates, and NaN (0 times infinity) becomes 0.
        let factor = (self.smoothed as f64 * politeness.delay_factor).ceil() as u64;
        let gap = longer(gap, factor, GapReason::DelayFactor);
        match &self.pace {
            None => gap,
            Some(pace) => {
                let gap = longer(gap, pace.crawl_delay, GapReason::CrawlDelay);
                longer(gap, pace.rate, GapReason::RequestRate)
            }
        }
    }

    /// Returns the length of the first pause after failures, in microseconds.
    pub(crate) fn min_pause(&self, politeness: &Politeness) -> u64 {
        min_pause(self.steady_gap(politeness).0)
    }

    /// Returns whether a slow restart is over after `ease` answers.
    pub(crate) fn is_eased(&self, politeness: &Politeness, ease: u8) -> bool {
        let gap = self.steady_gap(politeness).0;
        let slow = min_pause(gap).checked_shr(ease.into()).unwrap_or(0);
        // A slow gap of at most a millisecond ends the slow restart, even if the steady gap is
        // shorter.
        slow <= gap.max(1000)
    }

    /// Returns the maximum number of requests in flight at once: 1 or `per_host`. It is 1 if the
    /// host sets a pace that several slots together would exceed. It is also 1 from a pause after
    /// failures until the end of the slow restart.
    fn width(&self, politeness: &Politeness, now: Tick) -> u32 {
        let backoff = self.backoff();
        if self.pace.is_some() || backoff.trip_level > 0 || backoff.ease > 0 {
            return 1;
        }
        let limit = backoff.limit;
        let slots = u64::from(politeness.per_host);
        if now < limit.gap_until && limit.gap.saturating_mul(slots) > self.steady_gap(politeness).0
        {
            return 1;
        }
        politeness.per_host
    }

    /// Returns the earliest time for the next request, which is [`Tick::NEVER`] if no future time
    /// is allowed. `None` if the maximum number of requests is in flight.
    pub(crate) fn opens_at(&self, politeness: &Politeness, now: Tick) -> Option<Tick> {
        if self.in_flight >= self.width(politeness, now) {
            return None;
        }
        Some(self.earliest(politeness, now).0)
    }

    /// Returns the earliest time for the next request, ignoring requests in flight. A time in the
    /// past means now.
    pub(crate) fn earliest(&self, politeness: &Politeness, now: Tick) -> EarliestRequestTime {
        let slot = self.next_slot(politeness, now);
        let floor = self.floor(politeness, slot.map(|index| self.slots[index]), None);
        if !self.is_timed(politeness) {
            return floor;
        }
        let from = (floor.0.max(now), floor.1);
        let end = self.end_that_counts(slot);
        match self.postpone(politeness, end, from) {
            moment if moment == from => floor,
            moment => moment,
        }
    }

    /// Returns whether the earliest time for a request depends on the time of day.
    pub(crate) fn is_timed(&self, politeness: &Politeness) -> bool {
        let rates = self
            .pace
            .as_ref()
            .is_some_and(|pace| !pace.rates.is_empty());
        rates || !politeness.quiet.is_empty() || self.backoff().limit.gap > 0
    }

    /// Returns the index of the free slot to use next. `None` means a slot that was never used.
    fn next_slot(&self, politeness: &Politeness, now: Tick) -> Option<usize> {
        let gap = self.gap(politeness).0;
        let slots = &self.slots;
        let ready = |index: &usize| slots[*index].ready(gap);
        if self.width(politeness, now) == 1 {
            // Only one request may run at a time, so the gap counts from the latest end of all
            // slots.
            return (0..slots.len()).max_by_key(ready);
        }
        let used = slots.len() + self.in_flight as usize;
        if used < politeness.per_host as usize {
            return None;
        }
        (0..slots.len()).min_by_key(ready)
    }

    /// Returns when gaps that apply only at certain hours begin: at the end of the last request on
    /// this slot or, if robots.txt sets a pace, at the end of the last request on any slot.
    fn end_that_counts(&self, slot: Option<usize>) -> Option<Tick> {
        let slots = &self.slots;
        let slot = slots[slot?].last_end;
        match self.pace {
            // All slots share the pace that a host sets.
            Some(_) => slots.iter().map(|slot| slot.last_end).max(),
            None => Some(slot),
        }
    }

    /// Returns the earliest time for a request under rules that apply at any hour. Ignores waits
    /// that ended at or before `base`.
    fn floor(
        &self,
        politeness: &Politeness,
        slot: Option<HostRequestSlot>,
        base: Option<Tick>,
    ) -> EarliestRequestTime {
        let mut floor = (Tick::ZERO, GapReason::First);
        let mut consider = |at: Tick, why: GapReason| {
            if at > floor.0 {
                floor = (at, why);
            }
        };
        if let Some(slot) = slot {
            let (gap, why) = self.gap(politeness);
            consider(slot.last_end.after(gap), why);
            consider(slot.next_at, slot.why);
        }
        let backoff = self.backoff();
        for (until, why) in [
            (backoff.hold_until, backoff.hold_why),
            (backoff.trip_until, GapReason::Pause),
            (backoff.limit.wait_until, GapReason::RateLimit),
        ] {
            if base.is_none_or(|base| until > base) {
                consider(until, why);
            }
        }
        floor
    }

    /// Returns the first time at or after `from` that no hourly rule forbids. `end` is the end of
    /// the previous request.
    fn postpone(
        &self,
        politeness: &Politeness,
        end: Option<Tick>,
        from: EarliestRequestTime,
    ) -> EarliestRequestTime {
        let mut at = from;
        for _ in 0..MAX_POSTPONEMENTS {
            let quiet = quiet_until(politeness, at.0).map(|until| (until, GapReason::QuietHours));
            let later = quiet.or_else(|| self.too_soon(end?, at.0));
            match later {
                Some(later) if later.0 < Tick::NEVER => at = later,
                Some(never) => return never,
                None => return at,
            }
        }
        let largest = end.map_or(at.0, |end| end.after(self.largest_rate()));
        let mut at = (at.0.max(largest), GapReason::RequestRate);
        for _ in 0..=politeness.quiet.len() {
            match quiet_until(politeness, at.0) {
                Some(until) => at = (until, GapReason::QuietHours),
                None => return at,
            }
        }
        (Tick::NEVER, GapReason::QuietHours)
    }

    /// Checks the gaps that apply at the hour of `at`, counted from `end`. If a gap is not over
    /// yet, returns when to check again, and the rule that sets the gap.
    pub(crate) fn too_soon(&self, end: Tick, at: Tick) -> Option<EarliestRequestTime> {
        let limit = self.backoff().limit;
        let over = end.after(limit.gap);
        if at < over && at < limit.gap_until {
            return Some((over.min(limit.gap_until), GapReason::RateLimit));
        }
        let rates = self.pace.iter().flat_map(|pace| &pace.rates);
        let later = rates.filter_map(|(gap, hours)| {
            let over = end.after(*gap);
            (at < over && hours.contain(at)).then(|| over.min(hours.ends_after(at)))
        });
        later.max().map(|later| (later, GapReason::RequestRate))
    }

    pub(crate) fn largest_rate(&self) -> u64 {
        let rates = self.pace.iter().flat_map(|pace| &pace.rates);
        rates.map(|(gap, _)| *gap).max().unwrap_or(0)
    }

    /// Takes the next slot for a request that starts now. Returns the slot, the required gap and
    /// the rule that set the gap. `opened` is when the origin's visit time (the hours in which
    /// robots.txt allows pages) began.
    pub(crate) fn take_slot(
        &mut self,
        politeness: &Politeness,
        now: Tick,
        opened: Tick,
    ) -> (Option<HostRequestSlot>, Duration, GapReason) {
        let index = self.next_slot(politeness, now);
        let slot = index.map(|index| self.slots[index]);
        let latest = self.slots.iter().map(|slot| slot.last_end).max();
        let base = slot.map(|slot| slot.last_end).or(latest);
        let mut earliest = self.floor(politeness, slot, base);
        if self.is_timed(politeness) {
            earliest = self.postpone(politeness, self.end_that_counts(index), earliest);
            // The gap of this hour may be longer than the gap that the host waited for.
            for (over, why) in self.gaps_at(now, self.end_that_counts(index)) {
                if over > earliest.0 {
                    earliest = (over, why);
                }
            }
        }
        if opened > earliest.0 && base.is_none_or(|base| opened > base) {
            earliest = (opened, GapReason::VisitTime);
        }
        if let Some(index) = index {
            self.slots.swap_remove(index);
        }
        self.in_flight += 1;
        let gap = base.map_or(Duration::ZERO, |base| earliest.0.min(now).since(base));
        (slot, gap, earliest.1)
    }

    /// Returns the ends of all gaps that apply at the hour of `now`, each with its rule.
    fn gaps_at(&self, now: Tick, end: Option<Tick>) -> Vec<EarliestRequestTime> {
        let Some(end) = end else {
            return Vec::new();
        };
        let rates = self.pace.iter().flat_map(|pace| &pace.rates);
        let limit = self.backoff().limit;
        rates
            .filter(|(_, hours)| hours.contain(now))
            .map(|(gap, _)| (*gap, GapReason::RequestRate))
            .chain((now < limit.gap_until).then_some((limit.gap, GapReason::RateLimit)))
            .map(|(gap, why)| (end.after(gap), why))
            .collect()
    }

    /// Ends a request to this host. The gap after it is lengthened by the fraction `stretch` (the
    /// jitter).
    pub(crate) fn end_slot(&mut self, politeness: &Politeness, end: Tick, stretch: f64) {
        let (gap, why) = self.gap(politeness);
        let stretched = gap.saturating_add((gap as f64 * stretch) as u64);
        self.in_flight -= 1;
        self.free_slot(HostRequestSlot {
            last_end: end,
            next_at: end.after(stretched),
            why,
        });
        // `per_host` may have been lowered since the slots were taken.
        self.drop_slots(politeness.per_host);
    }

    /// Returns when the host's first slot becomes free under the stricter of two politeness values,
    /// ignoring the time of day. `None` if no slot was used.
    pub(crate) fn first_free(
        &self,
        one: &Politeness,
        other: &Politeness,
    ) -> Option<EarliestRequestTime> {
        let (other, reason) = self.gap(other);
        let (gap, why) = longer(self.gap(one), other, reason);
        let ready = self.slots.iter().map(|slot| slot.ready(gap)).min()?;
        Some((ready, why))
    }
}

impl HostRequestSlot {
    fn ready(&self, gap: u64) -> Tick {
        self.last_end.after(gap).max(self.next_at)
    }
}

fn longer(gap: (u64, GapReason), other: u64, why: GapReason) -> (u64, GapReason) {
    if other > gap.0 { (other, why) } else { gap }
}

fn min_pause(gap: u64) -> u64 {
    gap.saturating_mul(MIN_PAUSE_GAPS).max(micros(MIN_PAUSE))
}

/// Returns the end of the operator's quiet hours that contain `at`.
fn quiet_until(politeness: &Politeness, at: Tick) -> Option<Tick> {
    let quiet = politeness.quiet.iter().find(|hours| hours.contain(at))?;
    Some(match quiet.is_whole_day() {
        true => Tick::NEVER,
        false => quiet.ends_after(at),
    })
}
