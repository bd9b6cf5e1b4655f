//! A timeout that can be paused.

use std::time::Duration;

use tokio::time::Instant;

/// A timeout that can be paused.
#[derive(Debug)]
pub(crate) struct PausableTimeout {
    rest: Duration,
    /// When the timeout was started or last resumed. `None` while paused.
    since: Option<Instant>,
}

impl PausableTimeout {
    pub(crate) fn start(rest: Duration) -> PausableTimeout {
        PausableTimeout {
            rest,
            since: Some(Instant::now()),
        }
    }

    /// Returns the instant at which the timeout expires. `None` while paused.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Some(self.since? + self.rest)
    }

    pub(crate) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.rest = self.rest.saturating_sub(since.elapsed());
        }
    }

    pub(crate) fn resume(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }
}
