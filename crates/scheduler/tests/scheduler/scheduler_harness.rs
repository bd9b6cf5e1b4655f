//! A scheduler with a manual clock, to test single rules.

use std::time::Duration;

use crawl_scheduler::{
    HostWait, OutcomeKind, PaceFromRobots, Permit, Politeness, PollOutcome, RequestOutcome,
    RequestPurpose, RobotsState, Scheduler, SpentPermit, Tick,
};
use crawl_weburl::Origin;

pub(crate) use crate::world::START;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// How long each answer takes.
pub(crate) const ANSWER: Duration = Duration::from_millis(100);

pub(crate) struct Stage {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Tick,
}

pub(crate) fn origin(text: &str) -> Origin {
    Origin::parse(text).unwrap()
}

pub(crate) fn asked_to_wait(seconds: Option<u64>) -> OutcomeKind {
    OutcomeKind::AskedToWait {
        retry_after: seconds.map(Duration::from_secs),
    }
}

impl Stage {
    pub(crate) fn new(politeness: Politeness) -> Stage {
        Stage {
            scheduler: Scheduler::new(politeness, 1),
            now: START,
        }
    }

    /// Opens an origin with this many URLs, whose robots.txt is known for a year.
    pub(crate) fn open(&mut self, text: &str, urls: u64) -> Origin {
        self.open_with(text, urls, None)
    }

    pub(crate) fn open_with(
        &mut self,
        text: &str,
        urls: u64,
        crawl_delay: Option<Duration>,
    ) -> Origin {
        let pace = PaceFromRobots {
            crawl_delay,
            ..PaceFromRobots::default()
        };
        self.open_with_pace(text, urls, pace)
    }

    pub(crate) fn open_with_pace(&mut self, text: &str, urls: u64, pace: PaceFromRobots) -> Origin {
        let origin = origin(text);
        let until = self.now + 365 * 24 * 3600 * SECOND;
        let state = RobotsState::InForce { pace, until };
        self.scheduler.set_robots(self.now, &origin, state);
        self.scheduler.set_pending(self.now, &origin, urls);
        origin
    }

    /// Returns the permit that is due now.
    pub(crate) fn issue(&mut self) -> Permit {
        match self.scheduler.poll(self.now) {
            PollOutcome::Issue(permit) => permit,
            other => panic!("no permit at {}: {other:?}", self.now),
        }
    }

    /// Sleeps until a permit is due. Returns the permit and the wait.
    pub(crate) fn wait(&mut self) -> (Permit, Duration) {
        let begin = self.now;
        loop {
            match self.scheduler.poll(self.now) {
                PollOutcome::Issue(permit) => return (permit, self.now.since(begin)),
                PollOutcome::SleepUntil(at) => {
                    assert!(at > self.now, "asked to sleep until the past");
                    self.now = at;
                }
                PollOutcome::Idle => panic!("idle at {}", self.now),
            }
        }
    }

    pub(crate) fn assert_closed(&mut self) {
        let poll = self.scheduler.poll(self.now);
        assert!(!matches!(poll, PollOutcome::Issue(_)), "{poll:?}");
    }

    pub(crate) fn end(&mut self, spent: SpentPermit, kind: OutcomeKind) -> HostWait {
        let signal = RequestOutcome {
            end: self.now,
            response_time: ANSWER,
            address: None,
            kind,
            rate_limit: None,
            url: None,
        };
        self.scheduler.done(self.now, spent, signal)
    }

    /// Waits for the next permit and ends its request after [`ANSWER`]. Returns the wait, and the
    /// result of `done`.
    pub(crate) fn exchange(&mut self, kind: OutcomeKind) -> (Duration, HostWait) {
        let (permit, waited) = self.wait();
        let spent = permit.spend();
        self.now = self.now + ANSWER;
        (waited, self.end(spent, kind))
    }
}

pub(crate) fn origin_of(purpose: &RequestPurpose) -> &Origin {
    match purpose {
        RequestPurpose::Page { origin }
        | RequestPurpose::Robots { origin }
        | RequestPurpose::Hop { of: origin } => origin,
    }
}
