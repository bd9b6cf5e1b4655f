//! One host: its slots, its gap, what it asked us to wait, and its failures.

use std::time::Duration;

use crawl_weburl::HostKey;

use crate::origin::OriginEntry;
use crate::permit::GapReason;
use crate::politeness::Politeness;
use crate::signal::SignalKind;
use crate::tick::{Tick, micros};

/// "No gate": the address is not known, or sites are not limited.
pub(crate) const NO_GATE: u32 = u32::MAX;

/// A pause is at least this, and at most [`PAUSE_MAX`].
const PAUSE_LEAST: Duration = Duration::from_secs(5);
/// A pause is at least so many gaps.
const PAUSE_GAPS: u64 = 10;
/// What a pause doubles up to.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The part of a new response time in the smoothed one: a slow host is given air within a
/// few answers, one odd answer does not set the pace.
const SMOOTHING: u64 = 4;

/// A slot between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) last_end: Tick,
    /// What was promised when that request ended; the gap may have grown since.
    pub(crate) next_at: Tick,
    pub(crate) why: GapReason,
}

pub(crate) struct Host {
    pub(crate) key: HostKey,
    /// The free slots that were used before, in no order. With the requests in flight
    /// never more than `per_host`; the rest of the slots have never been used.
    pub(crate) slots: Vec<Slot>,
    pub(crate) origins: Vec<OriginEntry>,
    /// Smoothed response time in microseconds; 0: none known.
    pub(crate) smoothed: u64,
    /// The largest crawl delay of its origins in microseconds; 0: none.
    pub(crate) crawl_delay: u64,
    /// What the host asked for, or a restart: nothing before this.
    pub(crate) hold_until: Tick,
    pub(crate) trip_until: Tick,
    /// Failures since the last answer.
    pub(crate) fails: u32,
    pub(crate) in_flight: u32,
    /// Origins with something to ask now; see [`OriginEntry::due`].
    pub(crate) due: u32,
    /// Origins with urls waiting, or whose robots are being asked for.
    pub(crate) busy: u32,
    /// Requests queued by `ask`.
    pub(crate) asks: u32,
    /// Whose turn it is among the origins.
    pub(crate) turn: u32,
    pub(crate) address: u32,
    pub(crate) site: u32,
    /// Ready at this moment, in this order among equals; only where it is placed.
    pub(crate) at: Tick,
    pub(crate) order: u64,
    pub(crate) place: Place,
    /// How often it had its site's leave but not its address's since its last permit.
    pub(crate) bounces: u8,
    /// It holds a place of its site while it waits for its address.
    pub(crate) reserved: bool,
    /// It stands in the queue of hosts that may leave memory.
    pub(crate) resting: bool,
    pub(crate) hold_why: GapReason,
    /// How often in a row it asked us to wait without saying how long.
    pub(crate) hold_level: u8,
    /// How often in a row it was paused; above 0 only one request is in flight.
    pub(crate) trip_level: u8,
}

/// Where a host stands that could be asked, but for the time or for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: nothing to ask, or no slot free.
    Out,
    /// In the queue, by time.
    Queue,
    /// At a gate that is closed.
    Parked(u32),
}

impl Host {
    pub(crate) fn new(key: HostKey) -> Host {
        Host {
            key,
            slots: Vec::new(),
            origins: Vec::new(),
            smoothed: 0,
            crawl_delay: 0,
            hold_until: Tick::ZERO,
            trip_until: Tick::ZERO,
            fails: 0,
            in_flight: 0,
            due: 0,
            busy: 0,
            asks: 0,
            turn: 0,
            address: NO_GATE,
            site: NO_GATE,
            at: Tick::ZERO,
            order: 0,
            place: Place::Out,
            bounces: 0,
            reserved: false,
            resting: false,
            hold_why: GapReason::First,
            hold_level: 0,
            trip_level: 0,
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        self.due > 0 || self.asks > 0
    }

    /// Nothing is asked of it, nothing waits, nothing is to come.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.busy == 0 && self.asks == 0
    }

    /// The gap in force, in microseconds, and the rule that makes it so long.
    pub(crate) fn gap(&self, politeness: &Politeness) -> (u64, GapReason) {
        let mut gap = (micros(politeness.delay), GapReason::Delay);
        // The cast saturates, and NaN (0 times infinity) becomes 0.
        let factor = (self.smoothed as f64 * politeness.delay_factor).ceil() as u64;
        if factor > gap.0 {
            gap = (factor, GapReason::DelayFactor);
        }
        if self.crawl_delay > gap.0 {
            gap = (self.crawl_delay, GapReason::CrawlDelay);
        }
        gap
    }

    /// How many requests may be in flight at once: one only under a crawl delay, which
    /// speaks of successive requests, and from a pause to the next answer.
    fn width(&self, politeness: &Politeness) -> u32 {
        if self.trip_level > 0 || self.crawl_delay > 0 {
            1
        } else {
            politeness.per_host
        }
    }

    /// The earliest moment for the next request; `None` while every slot is in flight.
    pub(crate) fn opens_at(&self, politeness: &Politeness) -> Option<Tick> {
        (self.in_flight < self.width(politeness)).then(|| self.earliest(politeness))
    }

    /// The earliest moment for the next request, whatever is in flight.
    pub(crate) fn earliest(&self, politeness: &Politeness) -> Tick {
        let gap = self.gap(politeness).0;
        let slot = match self.next_slot(politeness) {
            Some(index) => self.slots[index].ready(gap),
            None => Tick::ZERO,
        };
        slot.max(self.hold_until).max(self.trip_until)
    }

    /// The slot that comes next; `None`: one that was never used.
    fn next_slot(&self, politeness: &Politeness) -> Option<usize> {
        let gap = self.gap(politeness).0;
        let ready = |index: &usize| self.slots[*index].ready(gap);
        if self.width(politeness) == 1 {
            // One after the other: the gap counts from the latest end of all.
            return (0..self.slots.len()).max_by_key(ready);
        }
        let used = self.slots.len() + self.in_flight as usize;
        if used < politeness.per_host as usize {
            return None;
        }
        (0..self.slots.len()).min_by_key(ready)
    }

    /// Takes the next slot for a request that starts now: it, the gap that was asked for,
    /// and why.
    pub(crate) fn take_slot(
        &mut self,
        politeness: &Politeness,
    ) -> (Option<Slot>, Duration, GapReason) {
        let (gap, gap_why) = self.gap(politeness);
        let index = self.next_slot(politeness);
        let slot = index.map(|index| self.slots[index]);
        let latest = self.slots.iter().map(|slot| slot.last_end).max();
        let base = slot.map(|slot| slot.last_end).or(latest);
        let mut asked = (Tick::ZERO, GapReason::First);
        let mut consider = |at: Tick, why: GapReason| {
            if at > asked.0 {
                asked = (at, why);
            }
        };
        if let Some(slot) = slot {
            consider(slot.last_end + Duration::from_micros(gap), gap_why);
            consider(slot.next_at, slot.why);
        }
        // An old wait that a fresh slot outlived is not what it waits for.
        if base.is_none_or(|base| self.hold_until > base) {
            consider(self.hold_until, self.hold_why);
        }
        if base.is_none_or(|base| self.trip_until > base) {
            consider(self.trip_until, GapReason::Pause);
        }
        if let Some(index) = index {
            self.slots.swap_remove(index);
        }
        self.in_flight += 1;
        let gap = base.map_or(Duration::ZERO, |base| asked.0.since(base));
        (slot, gap, asked.1)
    }

    /// A request of this host ended; `stretch` is a fraction of the gap to add.
    pub(crate) fn end_slot(&mut self, politeness: &Politeness, end: Tick, stretch: f64) {
        let (gap, why) = self.gap(politeness);
        let stretched = gap.saturating_add((gap as f64 * stretch) as u64);
        self.in_flight -= 1;
        self.free_slot(Slot {
            last_end: end,
            next_at: end + Duration::from_micros(stretched),
            why,
        });
    }

    pub(crate) fn free_slot(&mut self, slot: Slot) {
        self.slots.reserve_exact(1);
        self.slots.push(slot);
    }

    /// Learns from how a request ended that was issued at `issued`: how long we were asked
    /// to wait.
    pub(crate) fn learn(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        kind: SignalKind,
    ) -> Option<Duration> {
        match kind {
            SignalKind::Answered => {
                self.answered();
                None
            }
            SignalKind::AskedToWait { retry_after } => {
                self.answered();
                Some(self.asked_to_wait(politeness, issued, end, retry_after))
            }
            SignalKind::UrlFailed => {
                self.failed(politeness, issued, end, false);
                None
            }
            SignalKind::NoConnection => {
                self.failed(politeness, issued, end, true);
                None
            }
        }
    }

    /// An answer took this long; one that took no time counts as a microsecond.
    pub(crate) fn smooth(&mut self, response_time: Duration) {
        let sample = micros(response_time).max(1);
        self.smoothed = match self.smoothed {
            0 => sample,
            old if sample > old => old + (sample - old).div_ceil(SMOOTHING),
            old => old - (old - sample) / SMOOTHING,
        };
    }

    pub(crate) fn hold(&mut self, until: Tick, why: GapReason) {
        if until > self.hold_until {
            self.hold_until = until;
            self.hold_why = why;
        }
    }

    fn answered(&mut self) {
        self.fails = 0;
        self.trip_level = 0;
        self.trip_until = Tick::ZERO;
    }

    fn asked_to_wait(
        &mut self,
        politeness: &Politeness,
        issued: Tick,
        end: Tick,
        retry_after: Option<Duration>,
    ) -> Duration {
        if let Some(wait) = retry_after {
            let wait = wait.min(politeness.max_retry_after);
            self.hold(end + wait, GapReason::RetryAfter);
            return wait;
        }
        // Requests that were in flight together were asked to wait once, not doubly.
        if issued >= self.hold_until {
            let quiet = end >= self.hold_until + politeness.wait_forget;
            let before = if quiet { 0 } else { self.hold_level };
            self.hold_level = before.saturating_add(1);
        }
        self.hold_level = self.hold_level.max(1);
        let wait = doubled(politeness.wait_first, self.hold_level).min(politeness.wait_max);
        self.hold(end + wait, GapReason::Wait);
        wait
    }

    fn failed(&mut self, politeness: &Politeness, issued: Tick, end: Tick, no_connection: bool) {
        self.fails = self.fails.saturating_add(1);
        // Requests that were in flight when the pause began say nothing new.
        let probe = self.trip_level > 0 && issued >= self.trip_until;
        let news =
            self.trip_level == 0 && (no_connection || self.fails >= politeness.fails_in_a_row);
        if !probe && !news {
            return;
        }
        self.trip_level = self.trip_level.saturating_add(1);
        let gaps = self.gap(politeness).0.saturating_mul(PAUSE_GAPS);
        let least = Duration::from_micros(gaps).max(PAUSE_LEAST);
        self.trip_until = end + doubled(least, self.trip_level).min(PAUSE_MAX);
    }
}

impl Slot {
    fn ready(&self, gap: u64) -> Tick {
        (self.last_end + Duration::from_micros(gap)).max(self.next_at)
    }
}

/// `first`, doubled for each level above 1; saturating.
fn doubled(first: Duration, level: u8) -> Duration {
    let factor = 1u32.checked_shl(u32::from(level.saturating_sub(1)));
    first.saturating_mul(factor.unwrap_or(u32::MAX))
}
