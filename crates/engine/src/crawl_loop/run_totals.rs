//! The committed totals, as of all runs, of the round and of this run.

use std::time::Duration;

use crawl_scheduler::Tick;

use crate::revisit::visit::{RevisitSchedule, Round};
use crate::totals::Totals;

/// Holds the totals of a crawl against those at the start of the run and of its round.
///
/// [`enter_round`](Self::enter_round) comes before the first commit, and
/// [`committed`](Self::committed) after each. Emits nothing; the loop reads the sums.
#[derive(Debug)]
pub(super) struct RunTotals {
    totals: Totals,
    at_start: Totals,
    round: Round,
    started: Tick,
}

impl RunTotals {
    /// Begins a run of the first round with the totals of the runs before.
    pub(super) fn new(at_start: Totals, now: Tick) -> RunTotals {
        RunTotals {
            totals: at_start,
            at_start,
            round: Round::first(crate::time::seconds(now)),
            started: now,
        }
    }

    /// The run works in this round.
    pub(super) fn enter_round(&mut self, visits: &RevisitSchedule) {
        self.round = visits.round;
    }

    /// The writer committed something, with the new totals of all runs.
    pub(super) fn committed(&mut self, totals: Totals) {
        self.totals = totals;
    }

    /// Returns the sums of all runs, as committed.
    pub(super) fn of_all_runs(&self) -> &Totals {
        &self.totals
    }

    /// Returns the sums since the round began.
    pub(super) fn of_round(&self) -> Totals {
        self.totals.since(&self.round.before)
    }

    /// Returns the sums of this run.
    pub(super) fn of_run(&self) -> Totals {
        self.totals.since(&self.at_start)
    }

    pub(super) fn round(&self) -> &Round {
        &self.round
    }

    pub(super) fn started(&self) -> Tick {
        self.started
    }

    /// Returns the length of this run so far, pauses included.
    pub(super) fn elapsed(&self, now: Tick) -> Duration {
        now.since(self.started)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::by_itself::{at, config};
    use super::RunTotals;
    use crate::revisit::visit::{RevisitSchedule, Round};
    use crate::totals::Totals;

    fn pages(pages: u64) -> Totals {
        Totals {
            pages,
            ..Totals::default()
        }
    }

    #[test]
    fn ours_totals_are_summed_by_run_and_by_round() {
        let mut totals = RunTotals::new(pages(110), at(10));
        assert_eq!(totals.round().number, 1);
        totals.enter_round(&RevisitSchedule {
            round: Round {
                number: 2,
                before: pages(100),
                ..Round::first(5)
            },
            revisits: config().revisits,
        });
        assert_eq!((totals.of_round().pages, totals.of_run().pages), (10, 0));
        totals.committed(pages(150));
        assert_eq!(totals.of_all_runs().pages, 150);
        assert_eq!((totals.of_round().pages, totals.of_run().pages), (50, 40));
        assert_eq!(totals.round().number, 2);
        assert_eq!(totals.elapsed(at(30)), Duration::from_secs(20));
    }
}
