//! Turns of hosts, as `state/order.jsonl` has them: by them a replay knows who was served when.

use crawl_archive::rows::HostTurn;
use crawl_frontier::Lease;
use crawl_scheduler::{Purpose, Tick};

use super::Coordinator;
use crate::totals::CommitPoint;

/// The facts of a turn, as it goes on.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of the last commit that its URLs were chosen after.
    after: Option<u64>,
    /// URLs that were settled or went behind others.
    passed: u64,
    /// The URLs that may be, where the turn is taken again after a record and sends no request.
    pub(super) most: Option<u64>,
}

impl Coordinator {
    pub(super) fn begin_turn(&mut self) {
        self.turn = Turn {
            most: self.turn.most,
            ..Turn::default()
        };
    }

    /// Returns whether a lease was chosen after the same commit as those of this turn before it.
    /// If not, the turn is over: all that is decided in it is to follow from one state.
    pub(super) fn is_of_turn(&mut self, lease: &Lease) -> bool {
        *self.turn.after.get_or_insert(lease.after) == lease.after
    }

    /// Returns whether nothing came of the turn yet: then it begins anew.
    pub(super) fn is_fresh_turn(&mut self) -> bool {
        let is_fresh = self.turn.passed == 0;
        if is_fresh {
            self.turn.after = None;
        }
        is_fresh
    }

    /// Returns whether the turn goes on without a request.
    pub(super) fn turn_goes_on(&self) -> bool {
        self.turn.most.is_none_or(|most| self.turn.passed < most)
    }

    /// A URL of this turn was settled or went behind others.
    pub(super) fn passed(&mut self) {
        self.turn.passed += 1;
    }

    /// The row of the turn that is over; none where nothing came of it.
    pub(super) fn turn_taken(
        &self,
        now: Tick,
        purpose: &Purpose,
        is_sent: bool,
    ) -> Option<HostTurn> {
        let passed = self.turn.passed;
        let (origin, purpose) = match purpose {
            Purpose::Page { origin } => (origin, "page"),
            Purpose::Robots { origin } => (origin, "robots"),
            Purpose::Hop { of } => (of, "hop"),
        };
        let chosen_after = self.turn.after.map_or(0, |after| {
            CommitPoint::of(after).messages(&self.totals_at_start)
        });
        (is_sent || passed > 0).then(|| HostTurn {
            at: now.as_millis(),
            origin: origin.to_string(),
            purpose: purpose.to_owned(),
            ended: self.ended,
            settled: chosen_after.max(self.totals.messages),
            passed,
            is_sent,
        })
    }
}
