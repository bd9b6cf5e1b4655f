//! The end of a run: why it ends, and when requests that would hold it up are given up.

use std::time::Duration;

use crawl_scheduler::Tick;

use super::waiting_documents::GiveUp;
use crate::control::Stop;
use crate::error::EngineError;
use crate::summary::Ended;

/// The time that requests in flight have once the time of a run is over: each page that is given up
/// costs its server a second request.
const GRACE: Duration = Duration::from_millis(500);

/// Holds why a run ends.
///
/// Events, at any time and in any order: [`stop`](Self::stop), [`end`](Self::end) and
/// [`fail`](Self::fail). Of several ends and of several failures the first one counts; a failure
/// outweighs each end.
///
/// Each step of the loop begins with [`begin_step`](Self::begin_step). While the run
/// [`is_ending`](Self::is_ending), no request is sent, and [`give_up`](Self::give_up)
/// limits the time of those in flight. After the last step, [`outcome`](Self::outcome) returns the end.
#[derive(Debug, Default)]
pub(super) struct RunEnd {
    stop: Stop,
    ended: Option<Ended>,
    failure: Option<EngineError>,
    /// True once requests in flight and unread pages were given up.
    is_given_up: bool,
}

impl RunEnd {
    /// The run is to stop. A later request can only make it stop sooner.
    pub(super) fn stop(&mut self, stop: Stop) {
        self.stop = self.stop.max(stop);
    }

    /// The run has a reason to end.
    pub(super) fn end(&mut self, ended: Ended) {
        self.ended.get_or_insert(ended);
    }

    /// The disk, the state or a thread failed.
    pub(super) fn fail(&mut self, error: EngineError) {
        self.failure.get_or_insert(error);
    }

    /// Begins a step of the loop. Returns true if there must be none: the run is over at once.
    pub(super) fn begin_step(&mut self) -> bool {
        let is_over = self.failure.is_some() || self.stop == Stop::Now;
        if is_over || self.stop == Stop::Drain {
            self.end(Ended::Interrupted);
        }
        is_over
    }

    /// Returns whether the run ends once its requests in flight are committed.
    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether the run is ending, or was asked to stop since its last step.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_ending() || self.stop != Stop::No
    }

    /// Returns whether the run was asked to end without saving.
    pub(super) fn is_stopped_at_once(&self) -> bool {
        self.stop == Stop::Now
    }

    /// Returns whether something failed.
    pub(super) fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns whether to give up requests in flight and unread pages of a run that is ending: some
    /// time after its `deadline`, once.
    pub(super) fn give_up(&mut self, now: Tick, deadline: Option<Tick>) -> GiveUp {
        let Some(deadline) = deadline.filter(|_| !self.is_given_up) else {
            return GiveUp::No;
        };
        let until = deadline + GRACE;
        if now < until {
            return GiveUp::At(until);
        }
        self.is_given_up = true;
        GiveUp::Now
    }

    /// Returns the end of the run, which may be asked once.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn outcome(&mut self) -> Result<Ended, EngineError> {
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.ended.clone().unwrap_or(Ended::Finished)),
        }
    }

    /// Returns the reason to end, if there is one yet.
    #[cfg(test)]
    pub(super) fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_itself::at;
    use super::super::waiting_documents::GiveUp;
    use super::{GRACE, RunEnd};
    use crate::control::Stop;
    use crate::error::EngineError;
    use crate::summary::Ended;

    fn thread(what: &str) -> EngineError {
        let what = what.to_owned();
        EngineError::Thread { what }
    }

    #[test]
    fn ours_the_first_end_counts_and_a_failure_more() {
        let mut end = RunEnd::default();
        assert_eq!(end.outcome().unwrap(), Ended::Finished);
        end.end(Ended::Budget("max-time"));
        end.end(Ended::HandedOver);
        end.stop(Stop::Drain);
        assert!(!end.begin_step());
        assert_eq!(end.outcome().unwrap(), Ended::Budget("max-time"));
        end.fail(thread("first"));
        end.fail(thread("second"));
        assert!(end.is_broken() && end.begin_step());
        let error = end.outcome().unwrap_err();
        assert!(matches!(error, EngineError::Thread { what } if what == "first"));
    }

    #[test]
    fn ours_a_stop_drains_the_run_or_ends_it_at_once() {
        for (stops, is_over, ended) in [
            (vec![], false, None),
            (vec![Stop::Drain], false, Some(Ended::Interrupted)),
            (vec![Stop::Now], true, Some(Ended::Interrupted)),
            (vec![Stop::Now, Stop::Drain], true, Some(Ended::Interrupted)),
        ] {
            let mut end = RunEnd::default();
            stops.iter().for_each(|stop| end.stop(*stop));
            assert_eq!(end.is_stopping(), !stops.is_empty(), "{stops:?}");
            assert!(!end.is_ending());
            assert_eq!(end.begin_step(), is_over, "{stops:?}");
            assert_eq!(end.is_stopped_at_once(), is_over, "{stops:?}");
            assert_eq!(end.ended(), ended.as_ref(), "{stops:?}");
        }
    }

    #[test]
    fn ours_requests_are_given_up_once_and_not_before_their_grace_is_over() {
        let mut end = RunEnd::default();
        assert_eq!(end.give_up(at(20), None), GiveUp::No);
        let until = at(110) + GRACE;
        for now in [at(20), at(110)] {
            assert_eq!(end.give_up(now, Some(at(110))), GiveUp::At(until));
        }
        assert_eq!(end.give_up(until, Some(at(110))), GiveUp::Now);
        assert_eq!(end.give_up(until + GRACE, Some(at(110))), GiveUp::No);
    }
}
