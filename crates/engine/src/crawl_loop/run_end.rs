//! The end of a run: by budgets, stops and failures, and how long requests in flight may delay it.

use std::time::Duration;

use crawl_scheduler::Tick;

use super::waiting_documents::StopGraceDeadline;
use crate::config::CrawlBudgets;
use crate::control::StopUrgency;
use crate::error::EngineError;
use crate::summary::EndReason;

/// How long requests in flight may continue after the deadline. Waiting saves requests, since each
/// page that is given up must be requested again.
const GRACE: Duration = Duration::from_millis(500);

/// Decides when a run ends, and why.
///
/// Events, at any time and in any order: [`stop`](Self::stop), [`end`](Self::end),
/// [`fail`](Self::fail), [`pause`](Self::pause), [`resume`](Self::resume) and
/// [`set_budgets`](Self::set_budgets). The first end and the first failure are kept, and a failure
/// takes precedence over every end.
///
/// Each step of the loop begins with [`begin_step`](Self::begin_step) and
/// [`end_by_time`](Self::end_by_time), and sends requests only if
/// [`spent_budget`](Self::spent_budget) returns `None`. Once the run
/// [`is_ending`](Self::is_ending), no request is sent, and [`give_up`](Self::give_up) limits the
/// time of the requests in flight. After the last step, [`outcome`](Self::outcome) returns the end.
/// Emits no effects.
#[derive(Debug)]
pub(super) struct RunEndTracker {
    budgets: CrawlBudgets,
    started: Tick,
    paused_since: Option<Tick>,
    /// Total length of the pauses that have ended.
    paused: Duration,
    stop: StopUrgency,
    ended: Option<EndReason>,
    failure: Option<EngineError>,
    /// Whether requests in flight and unread pages were given up.
    is_given_up: bool,
}

/// How much was spent of each budget.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CrawlSpending {
    /// The number of pages of this round, plus the leased URLs that may count as pages.
    pub(super) pages: u64,
    /// Whether all workers together have spent the page budget; `None` if no other worker shares
    /// the crawl.
    pub(super) are_shared_pages_spent: Option<bool>,
    /// Bytes of bodies, over all runs of the round and all workers.
    pub(super) bytes: u64,
    /// Server response time, over all runs of the round.
    pub(super) server_time: Duration,
}

impl RunEndTracker {
    pub(super) fn new(budgets: &CrawlBudgets, now: Tick) -> RunEndTracker {
        RunEndTracker {
            budgets: budgets.clone(),
            started: now,
            paused_since: None,
            paused: Duration::ZERO,
            stop: StopUrgency::No,
            ended: None,
            failure: None,
            is_given_up: false,
        }
    }

    pub(super) fn set_budgets(&mut self, budgets: &CrawlBudgets) {
        self.budgets = budgets.clone();
    }

    /// Pauses the run. No effect if the run is paused already.
    pub(super) fn pause(&mut self, now: Tick) {
        self.paused_since.get_or_insert(now);
    }

    /// Resumes the run. No effect if the run is not paused.
    pub(super) fn resume(&mut self, now: Tick) {
        let since = self.paused_since.take();
        self.paused += since.map_or(Duration::ZERO, |since| now.since(since));
    }

    /// Returns whether the run is paused. A paused run sends no requests and does not end on its
    /// own.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// Returns the length of this run so far, pauses included.
    pub(super) fn elapsed(&self, now: Tick) -> Duration {
        now.since(self.started)
    }

    /// Returns how much of `--max-time` this run has used, without finished pauses.
    pub(super) fn active(&self, now: Tick) -> Duration {
        self.elapsed(now).saturating_sub(self.paused)
    }

    /// Returns when `--max-time` ends this run. Each finished pause postpones this deadline. `None`
    /// without `--max-time`.
    pub(super) fn deadline(&self) -> Option<Tick> {
        Some(self.started + self.budgets.max_time? + self.paused)
    }

    /// Ends the run if its time is over. Returns the deadline; `None` if the run has no time limit,
    /// or while it is paused.
    pub(super) fn end_by_time(&mut self, now: Tick) -> Option<Tick> {
        let deadline = self.deadline().filter(|_| !self.is_paused())?;
        if deadline <= now {
            self.end(EndReason::Budget("max-time"));
        }
        Some(deadline)
    }

    /// Returns the name of a budget that leaves no room for another page; `None` if there is room.
    pub(super) fn spent_budget(&self, spent: &CrawlSpending) -> Option<&'static str> {
        let budgets = &self.budgets;
        // In a shared crawl, the budget limits the pages of all workers together, so this worker's
        // pages don't decide.
        let are_pages_spent = spent
            .are_shared_pages_spent
            .unwrap_or_else(|| budgets.max_pages.is_some_and(|max| spent.pages >= max));
        if are_pages_spent {
            Some("max-pages")
        } else if budgets.max_bytes.is_some_and(|max| spent.bytes >= max) {
            Some("max-bytes")
        } else if budgets
            .max_server_time
            .is_some_and(|max| spent.server_time >= max)
        {
            Some("max-server-time")
        } else {
            None
        }
    }

    /// Stops the run. A later call can only make it stop sooner.
    pub(super) fn stop(&mut self, stop: StopUrgency) {
        self.stop = self.stop.max(stop);
    }

    /// Ends the run for a reason. No effect if the run has a reason to end already.
    pub(super) fn end(&mut self, ended: EndReason) {
        self.ended.get_or_insert(ended);
    }

    /// Records a failure of the disk, the stored state or a thread.
    pub(super) fn fail(&mut self, error: EngineError) {
        self.failure.get_or_insert(error);
    }

    /// Begins a step of the loop. Returns true if the run must end at once, without this step.
    pub(super) fn begin_step(&mut self) -> bool {
        let is_over = self.failure.is_some() || self.stop == StopUrgency::Now;
        if is_over || self.stop == StopUrgency::Drain {
            self.end(EndReason::Interrupted);
        }
        is_over
    }

    /// Returns whether the run ends once its requests in flight are committed.
    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether the run is ending, or a stop was requested since the last step.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_ending() || self.stop != StopUrgency::No
    }

    pub(super) fn is_stopped_at_once(&self) -> bool {
        self.stop == StopUrgency::Now
    }

    pub(super) fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns whether to give up requests in flight and unread pages of a run that is ending.
    /// [`StopGraceDeadline::Now`] is returned only once, when [`GRACE`] has passed since the deadline.
    pub(super) fn give_up(&mut self, now: Tick) -> StopGraceDeadline {
        let Some(deadline) = self.deadline().filter(|_| !self.is_given_up) else {
            return StopGraceDeadline::No;
        };
        let until = deadline + GRACE;
        if now < until {
            return StopGraceDeadline::At(until);
        }
        self.is_given_up = true;
        StopGraceDeadline::Now
    }

    /// Returns the end of the run. Call it only once, since it moves the failure out.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn outcome(&mut self) -> Result<EndReason, EngineError> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.ended.clone().unwrap_or(EndReason::Finished)),
        }
    }

    #[cfg(test)]
    pub(super) fn ended(&self) -> Option<&EndReason> {
        self.ended.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixtures::at;
    use super::super::waiting_documents::StopGraceDeadline;
    use super::{CrawlSpending, GRACE, RunEndTracker};
    use crate::config::CrawlBudgets;
    use crate::control::StopUrgency;
    use crate::error::EngineError;
    use crate::summary::EndReason;

    const SECOND: Duration = Duration::from_secs(1);

    /// Creates a run that starts at second 10.
    fn run(max_time: Option<Duration>) -> RunEndTracker {
        let budgets = CrawlBudgets {
            max_time,
            ..CrawlBudgets::default()
        };
        RunEndTracker::new(&budgets, at(10))
    }

    fn thread(what: &str) -> EngineError {
        EngineError::Thread {
            what: what.to_owned(),
        }
    }

    #[test]
    fn the_first_end_wins_and_a_failure_outweighs_it() {
        let mut end = run(None);
        assert_eq!(end.outcome().unwrap(), EndReason::Finished);
        end.end(EndReason::Budget("max-time"));
        end.end(EndReason::HandedOver);
        end.stop(StopUrgency::Drain);
        assert!(!end.begin_step());
        assert_eq!(end.outcome().unwrap(), EndReason::Budget("max-time"));
        end.fail(thread("first"));
        end.fail(thread("second"));
        assert!(end.is_broken() && end.begin_step());
        let error = end.outcome().unwrap_err();
        assert!(matches!(error, EngineError::Thread { what } if what == "first"));
    }

    #[test]
    fn a_stop_drains_the_run_or_ends_it_at_once() {
        for (stops, is_over, ended) in [
            (vec![], false, None),
            (
                vec![StopUrgency::Drain],
                false,
                Some(EndReason::Interrupted),
            ),
            (vec![StopUrgency::Now], true, Some(EndReason::Interrupted)),
            (
                vec![StopUrgency::Now, StopUrgency::Drain],
                true,
                Some(EndReason::Interrupted),
            ),
        ] {
            let mut end = run(None);
            stops.iter().for_each(|stop| end.stop(*stop));
            assert_eq!(end.is_stopping(), !stops.is_empty(), "{stops:?}");
            assert!(!end.is_ending());
            assert_eq!(end.begin_step(), is_over, "{stops:?}");
            assert_eq!(end.is_stopped_at_once(), is_over, "{stops:?}");
            assert_eq!(end.ended(), ended.as_ref(), "{stops:?}");
        }
    }

    #[test]
    fn requests_are_given_up_once_after_their_grace() {
        let mut end = run(None);
        assert_eq!(end.give_up(at(20)), StopGraceDeadline::No);
        let mut end = run(Some(100 * SECOND));
        let until = at(110) + GRACE;
        for now in [at(20), at(110)] {
            assert_eq!(end.give_up(now), StopGraceDeadline::At(until));
        }
        assert_eq!(end.give_up(until), StopGraceDeadline::Now);
        assert_eq!(end.give_up(until + GRACE), StopGraceDeadline::No);
    }

    #[test]
    fn a_pause_moves_the_deadline_and_repeated_commands_do_not_count() {
        let mut end = run(Some(100 * SECOND));
        let mut paused = Vec::new();
        for (second, pauses) in [
            (20, false),
            (30, true),
            (40, true),
            (50, false),
            (60, false),
            (70, true),
            (75, false),
        ] {
            match pauses {
                true => end.pause(at(second)),
                false => end.resume(at(second)),
            }
            assert_eq!(end.is_paused(), pauses, "{second}");
            let elapsed = end.elapsed(at(second));
            paused.push((elapsed - end.active(at(second))).as_secs());
            let deadline = at(110) + (elapsed - end.active(at(second)));
            assert_eq!(end.deadline(), Some(deadline), "{second}");
        }
        assert_eq!(paused, [0, 0, 0, 20, 20, 20, 25]);
    }

    #[test]
    fn the_time_is_over_at_the_deadline_unless_the_run_is_paused() {
        for (now, is_paused, deadline, is_over) in [
            (109, false, Some(at(110)), false),
            (110, false, Some(at(110)), true),
            (110, true, None, false),
        ] {
            let mut end = run(Some(100 * SECOND));
            if is_paused {
                end.pause(at(20));
            }
            assert_eq!(end.end_by_time(at(now)), deadline, "{now}");
            assert_eq!(end.is_ending(), is_over, "{now} {is_paused}");
        }
    }

    #[test]
    fn a_budget_is_spent_once_it_is_reached_and_pages_come_first() {
        let spent = CrawlSpending {
            pages: 7,
            are_shared_pages_spent: None,
            bytes: 6_000,
            server_time: 6 * SECOND,
        };
        let (all_spent, some_left) = (
            CrawlSpending {
                are_shared_pages_spent: Some(true),
                ..spent
            },
            CrawlSpending {
                are_shared_pages_spent: Some(false),
                ..spent
            },
        );
        for (spent, pages, bytes, seconds, expected) in [
            (spent, None, None, None, None),
            (spent, Some(7), Some(1), None, Some("max-pages")),
            (spent, Some(8), Some(6_000), Some(1), Some("max-bytes")),
            (spent, None, Some(6_001), Some(6), Some("max-server-time")),
            (spent, None, None, Some(7), None),
            (all_spent, Some(99), None, None, Some("max-pages")),
            (some_left, Some(1), None, None, None),
        ] {
            let budgets = CrawlBudgets {
                max_pages: pages,
                max_bytes: bytes,
                max_server_time: seconds.map(|seconds| seconds * SECOND),
                ..CrawlBudgets::default()
            };
            let mut end = run(None);
            end.set_budgets(&budgets);
            assert_eq!(end.spent_budget(&spent), expected, "{budgets:?}");
        }
    }
}
