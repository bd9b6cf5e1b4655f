//! Converts the state of a crawl to the snapshot that the control socket sends.

use std::time::Duration;

use crawl_engine::{CrawlPhase, LiveCrawlState, ProgressSnapshot};
use crawl_scheduler::{HostWorkload as Work, Tick};
use jiff::Timestamp;

use super::protocol::{CrawlStateSnapshot, HostQueueReport, SettledPage};
use super::round_wait::{RoundWaitMode, RoundWaitState};

/// Returns the state of a running crawl.
pub(super) fn of_live(live: &LiveCrawlState) -> CrawlStateSnapshot {
    let latest = live.latest.iter().map(|page| SettledPage {
        url: page.url.to_string(),
        status: page.status,
        at: moment(page.at),
    });
    CrawlStateSnapshot {
        latest: latest.collect(),
        hosts: live
            .hosts
            .iter()
            .map(|work| of_work(work, live.at))
            .collect(),
        parked: live.parked.iter().map(ToString::to_string).collect(),
        ..of_progress(&live.progress)
    }
}

/// Returns the state of a crawl that waits for its next round.
pub(super) fn of_rest(rest: &RoundWaitState) -> CrawlStateSnapshot {
    CrawlStateSnapshot {
        phase: CrawlPhase::Waiting,
        paused: *rest.wait_mode.borrow() == RoundWaitMode::Paused,
        next_round: Some(format!("{:.3}", rest.at)),
        parked: rest.last.parked.iter().map(ToString::to_string).collect(),
        ..of_progress(&rest.last.progress)
    }
}

/// Returns the part of a crawl's state that its progress report contains.
pub(super) fn of_progress(progress: &ProgressSnapshot) -> CrawlStateSnapshot {
    CrawlStateSnapshot {
        phase: progress.phase,
        paused: progress.is_paused,
        round: progress.round,
        pages: progress.pages,
        failed: progress.failed,
        barred: progress.excluded,
        waiting: progress.pending,
        in_flight: progress.in_flight,
        bytes: progress.bytes,
        pages_per_second: progress.pages_per_second,
        elapsed_ms: millis(progress.elapsed),
        next_round: None,
        latest: Vec::new(),
        hosts: Vec::new(),
        parked: Vec::new(),
    }
}

fn of_work(work: &Work, now: Tick) -> HostQueueReport {
    HostQueueReport {
        host: work.host.to_string(),
        waiting: work.waiting,
        next_in_ms: work.next_at.map(|at| millis(at.since(now))),
        gap_ms: millis(work.gap),
        parked: work.is_parked,
    }
}

/// Formats a time with milliseconds, as in row files.
fn moment(at: Tick) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let at = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    format!("{at:.3}")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
