//! The time between two rounds: what is known of the last, and whether the next is waited for.

use crawl_engine::{Progress, Summary};
use crawl_weburl::HostKey;
use jiff::Timestamp;
use tokio::sync::watch;

/// The wait for the next round.
#[derive(Clone, Debug)]
pub(crate) struct BetweenRounds {
    /// When it begins.
    pub(crate) at: Timestamp,
    /// The end of the last one.
    pub(crate) last: LastRound,
    /// The end of the wait for it.
    pub(crate) wait_mode: watch::Sender<WaitMode>,
}

/// The end of the wait for the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// Until its time comes.
    UntilThen,
    /// Until somebody resumes.
    Paused,
    /// No longer.
    Now,
}

/// The counts of the last round, as they are shown while the next is waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRound {
    pub(crate) progress: Progress,
    pub(crate) parked: Vec<HostKey>,
}

impl LastRound {
    /// The round that ended so.
    pub(crate) fn of(summary: &Summary) -> LastRound {
        LastRound {
            progress: Progress {
                round: summary.round,
                pages: summary.pages,
                failed: summary.failed,
                excluded: summary.excluded.values().sum(),
                pending: summary.pending,
                bytes: summary.bytes,
                elapsed: summary.elapsed,
                ..Progress::default()
            },
            parked: summary.parked.clone(),
        }
    }
}
