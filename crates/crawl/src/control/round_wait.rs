//! State between two rounds: the last round's counts and the wait for the next one.

use crawl_engine::{ProgressSnapshot, RunSummary};
use crawl_weburl::HostKey;
use jiff::Timestamp;
use tokio::sync::watch;

/// State of a crawl that waits for its next round.
#[derive(Clone, Debug)]
pub(crate) struct RoundWaitState {
    /// When the next round begins.
    pub(crate) at: Timestamp,
    pub(crate) last: LastRoundCounts,
    /// How to wait for the next round.
    pub(crate) wait_mode: watch::Sender<RoundWaitMode>,
}

/// How to wait for the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundWaitMode {
    /// Wait until the scheduled time.
    UntilThen,
    /// Wait until a `resume` command.
    Paused,
    /// Begin the next round now.
    Now,
}

/// The counts of the last round, shown while the crawl waits for the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRoundCounts {
    pub(crate) progress: ProgressSnapshot,
    pub(crate) parked: Vec<HostKey>,
}

impl LastRoundCounts {
    /// Returns the counts of the round with this summary.
    pub(crate) fn of(summary: &RunSummary) -> LastRoundCounts {
        LastRoundCounts {
            progress: ProgressSnapshot {
                round: summary.round,
                pages: summary.pages,
                failed: summary.failed,
                excluded: summary.excluded.values().sum(),
                pending: summary.pending,
                bytes: summary.bytes,
                elapsed: summary.elapsed,
                ..ProgressSnapshot::default()
            },
            parked: summary.parked.clone(),
        }
    }
}
