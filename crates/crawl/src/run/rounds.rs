//! The rounds of a crawl: a single one, or with `--every` one after another until the crawl is
//! stopped.

use std::sync::Arc;
use std::time::Duration;

use crawl_engine::{
    Config, ControlChannels, EndReason, EngineError, FreeSpaceMeter, ProgressSnapshot,
    RunConnectivity, RunSummary, StopUrgency, discard_unanswered, last_round,
};
use crawl_records::{CrawlReport, write_report_and_digests};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::prepared_crawl::PreparedCrawl;
use super::signals;
use super::temporary_folder::{MAX_REST, PoliteExitDelay};
use crate::clock;
use crate::control::{
    ControlHandler, ControlServer, LastRoundCounts, RoundWaitMode, RoundWaitState, SettingsReloader,
};
use crate::error::engine::of_crawl;
use crate::error::records::of_records;
use crate::error::{CommandError, FINISHED, INTERRUPTED, NEGATIVE_RESULT};
use crate::metrics::MetricsServer;
use crate::terminal::{closing, exit_code, lasting, nothing_reached, show};

/// How often to recompute the remaining wait for the next round from the system clock. A single
/// long sleep would be wrong if the clock is set or the machine is suspended.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A finished round.
struct EndedRound {
    summary: RunSummary,
    /// The report of the crawl after the round. `None` if the directory was discarded, since no
    /// server answered.
    report: Option<CrawlReport>,
}

/// The parts of a crawl that outlast a round: the job, the command handler, the stop signal, the
/// control server and the metrics server.
struct RoundRunner<'a> {
    job: &'a PreparedCrawl,
    handler: Arc<ControlHandler>,
    /// Whether and how to stop. `RoundRunner` never marks a value of this receiver as seen, so a
    /// clone also reports a change that happened before the clone was made.
    stopped: watch::Receiver<StopUrgency>,
    server: Option<ControlServer>,
    metrics: Option<MetricsServer>,
}

/// Crawls and reports the outcome. Returns the exit code, or the error that prevented or ended the
/// crawl.
pub(crate) async fn run(job: &Arc<PreparedCrawl>) -> Result<u8, CommandError> {
    let (stop, stopped) = watch::channel(StopUrgency::No);
    let settings = Arc::clone(job) as Arc<dyn SettingsReloader>;
    let handler = ControlHandler::new(job.dir().to_owned()).reading_again(settings);
    let handler = Arc::new(handler);
    signals::listen(stop, job.terminal.clone(), Arc::clone(&handler))?;
    let metrics = match job.metrics_address() {
        Some(address) => Some(MetricsServer::start(address).await?),
        None => None,
    };
    if let Some(metrics) = &metrics {
        job.terminal.say(&format!("metrics at {}", metrics.url()));
    }
    let mut rounds = RoundRunner {
        job,
        handler,
        stopped,
        server: None,
        metrics,
    };
    let Some(every) = job.every() else {
        return match rounds.round(RoundStart::NextRound).await? {
            Ok(ended) => rounds.closed(&ended),
            Err(error) => Err(of_crawl(&error, job.dir())),
        };
    };
    let mut has_waited = false;
    if let Some((since, last)) = rounds.last()? {
        has_waited = true;
        rounds.server = ControlServer::start(job.dir(), Arc::clone(&rounds.handler));
        let at = later(since, every);
        if !rounds.wait(at, every, RoundStart::NextRound, last).await {
            return Ok(FINISHED);
        }
    }
    rounds.go_on(every, has_waited).await
}

impl RoundRunner<'_> {
    /// Runs rounds until the crawl is stopped or a round fails. Each round starts `every` after the
    /// start of the previous one. `has_waited` is true if this process has already waited for its
    /// first round.
    async fn go_on(&mut self, every: Duration, has_waited: bool) -> Result<u8, CommandError> {
        let mut last = LastRoundCounts::default();
        let mut began = clock::now();
        let mut start = RoundStart::NextRound;
        for number in 0_u64.. {
            let mut again = None;
            match self.round(start).await? {
                Ok(ended) => {
                    let code = self.closed(&ended)?;
                    if self.is_stopped() {
                        return Ok(code);
                    }
                    again = next_try(&ended.summary);
                    last = LastRoundCounts::of(&ended.summary);
                }
                // Skip this round: another process has locked the directory.
                Err(error @ EngineError::OutputInUse { .. }) if number > 0 || has_waited => {
                    tracing::warn!(why = %error, "this round is left out");
                }
                Err(error) => return Err(of_crawl(&error, self.job.dir())),
            }
            let next = later(began, every);
            // Resume the same round if an unreachable host may be retried before the next round.
            let again = again.filter(|again| *again < next);
            start = match again {
                Some(_) => RoundStart::ResumeRound,
                None => RoundStart::NextRound,
            };
            let at = again.unwrap_or(next);
            if !self.wait(at, every, start, last.clone()).await {
                break;
            }
            if start == RoundStart::NextRound {
                began = clock::now();
            }
        }
        Ok(FINISHED)
    }

    /// Runs one round of the engine.
    async fn round(
        &mut self,
        start: RoundStart,
    ) -> Result<Result<EndedRound, EngineError>, CommandError> {
        let terminal = &self.job.terminal;
        let (progress, seen) = watch::channel(ProgressSnapshot::default());
        let (commander, commands) = crawl_engine::commands();
        let shown = tokio::spawn(show(terminal.clone(), seen.clone()));
        // Read the settings before the handler may send commands to the run. No reload is lost: an
        // earlier one is part of these settings, and a later one is sent to the run as a command.
        let config = self.job.config();
        self.handler.open(commander, seen.clone());
        if let Some(metrics) = &self.metrics {
            metrics.follow(seen.clone());
        }
        let served = self.server.is_none().then(|| self.serve(seen));
        let controls = ControlChannels {
            stop: self.stopped.clone(),
            progress,
            commands,
            pages: None,
            free_space: FreeSpaceMeter::of_file_system(),
        };
        let config = Config {
            recrawl: config.recrawl && start == RoundStart::NextRound,
            ..config
        };
        let ended = crawl_engine::run(config, controls).await;
        // Wait for the progress task, which ends because the run dropped its sender. Ignore a panic
        // in the task: the crawl itself has ended normally.
        let _ = shown.await;
        if let Some(served) = served {
            self.server = served.await.ok().flatten();
        }
        terminal.clear();
        let summary = match ended {
            Ok(summary) => summary,
            Err(error) => return Ok(Err(error)),
        };
        if self.discards(&summary).await {
            let report = None;
            return Ok(Ok(EndedRound { summary, report }));
        }
        let report = write_report_and_digests(self.job.dir()).map_err(of_records)?;
        let report = Some(report);
        Ok(Ok(EndedRound { summary, report }))
    }

    /// Removes the directory of a crawl that got no answer from any server, and returns whether it
    /// was removed. The directory stays in each of these cases:
    ///
    /// - The crawl will run further rounds.
    /// - A delay is longer than [`MAX_REST`], so this process can't wait for it to pass.
    /// - The user stopped the run immediately.
    /// - `crawl check` still has to report from the directory.
    async fn discards(&mut self, summary: &RunSummary) -> bool {
        let delay = self.job.settings.longest_delay();
        let is_needed = self.job.every().is_some() || self.job.is_check() || delay > MAX_REST;
        let is_stopped_at_once = *self.stopped.borrow() == StopUrgency::Now;
        if is_needed || is_stopped_at_once || summary.reach == RunConnectivity::Answered {
            return false;
        }
        // Remove the control socket before its directory.
        self.server = None;
        if !discard_unanswered(summary) {
            return false;
        }
        // A new crawl would learn from the directory when the last request was sent. Since the
        // directory is now removed, this process must wait for the delay itself.
        PoliteExitDelay::new(self.stopped.clone()).keep(delay).await;
        true
    }

    /// Starts the control server as soon as the crawl has locked its directory.
    fn serve(
        &self,
        mut opened: watch::Receiver<ProgressSnapshot>,
    ) -> JoinHandle<Option<ControlServer>> {
        let (dir, handler) = (self.job.dir().to_owned(), Arc::clone(&self.handler));
        tokio::spawn(async move {
            opened.changed().await.ok()?;
            ControlServer::start(&dir, handler)
        })
    }

    /// Reports the outcome of a round and returns its exit code.
    fn closed(&self, ended: &EndedRound) -> Result<u8, CommandError> {
        let EndedRound { summary, report } = ended;
        let terminal = &self.job.terminal;
        let Some(report) = report else {
            terminal.insist(&nothing_reached(summary));
            return Ok(match &summary.ended {
                EndReason::Interrupted => INTERRUPTED,
                _ => NEGATIVE_RESULT,
            });
        };
        let code = match exit_code(summary, self.job.fails_on_error()) {
            FINISHED if self.job.fails_on_partial() && !report.is_whole() => NEGATIVE_RESULT,
            code => code,
        };
        let text = closing(summary, report, self.job.command(), self.job.has_mark());
        match code {
            NEGATIVE_RESULT => terminal.insist(text.trim_end()),
            _ => terminal.say(text.trim_end()),
        }
        Ok(code)
    }

    /// Waits until the time `at`, at most for `most`, or until a command starts the round. While
    /// the crawl is paused, only a command ends the wait. Returns false if the crawl is stopped.
    async fn wait(
        &mut self,
        at: Timestamp,
        most: Duration,
        start: RoundStart,
        last: LastRoundCounts,
    ) -> bool {
        let at = within(at, most, clock::now());
        let wait_mode = watch::Sender::new(RoundWaitMode::UntilThen);
        self.handler.rest(RoundWaitState {
            at,
            last,
            wait_mode: wait_mode.clone(),
        });
        if let Some(metrics) = &self.metrics {
            metrics.rest();
        }
        let event = match start {
            RoundStart::NextRound => "the next round starts",
            RoundStart::ResumeRound => "the round continues",
        };
        let remaining = left_until(at);
        if remaining.is_zero() {
            self.job.terminal.say(&format!("{event} now"));
        } else {
            let remaining = lasting(remaining);
            self.job
                .terminal
                .say(&format!("{event} at {at:.0}, in {remaining}"));
            tracing::info!(%at, "waiting for the next round");
        }
        let mut stopped = self.stopped.clone();
        tokio::select! {
            () = come(at, most, wait_mode.subscribe()) => !self.is_stopped(),
            // The task that listens for signals owns the sender, so `wait_for` doesn't fail.
            _ = stopped.wait_for(|stop| *stop != StopUrgency::No) => false,
        }
    }

    /// Returns when the last round of an earlier process began, with its number and its parked
    /// hosts. `None` if there was no round, or if the last one isn't over.
    fn last(&self) -> Result<Option<(Timestamp, LastRoundCounts)>, CommandError> {
        let last = last_round(self.job.dir());
        let last = last.map_err(|error| of_crawl(&error, self.job.dir()))?;
        let Some(last) = last.filter(|last| last.is_over) else {
            return Ok(None);
        };
        let began = Timestamp::from_second(last.began.into()).unwrap_or(Timestamp::UNIX_EPOCH);
        let last_counts = LastRoundCounts {
            progress: ProgressSnapshot {
                round: last.number,
                ..ProgressSnapshot::default()
            },
            parked: last.parked,
        };
        Ok(Some((began, last_counts)))
    }

    fn is_stopped(&self) -> bool {
        *self.stopped.borrow() != StopUrgency::No
    }
}

/// Whether a run may start the next round, or only resumes the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundStart {
    /// Start the next round, or continue the last one if it is not over.
    NextRound,
    /// Resume the last round.
    ResumeRound,
}

/// Returns when the first unreachable host may be retried. `None` if no host is to be retried.
fn next_try(summary: &RunSummary) -> Option<Timestamp> {
    let EndReason::NoFetchableHost(hosts) = &summary.ended else {
        return None;
    };
    let first = hosts.iter().filter_map(|host| host.next_try).min()?;
    Timestamp::from_microsecond(i64::try_from(first.as_micros()).ok()?).ok()
}

fn later(began: Timestamp, every: Duration) -> Timestamp {
    began.saturating_add(every).unwrap_or(Timestamp::MAX)
}

/// Returns the time `at`, but at most `most` from now. A later `at` is wrong: the clock was ahead
/// when `at` was recorded.
fn within(at: Timestamp, most: Duration, now: Timestamp) -> Timestamp {
    at.min(later(now, most))
}

/// Waits until the time `at`, or until a command starts the next round. While the crawl is paused,
/// only a command ends the wait. If the clock is set back, the remaining wait is at most `most`.
async fn come(mut at: Timestamp, most: Duration, mut wait_mode: watch::Receiver<RoundWaitMode>) {
    loop {
        at = within(at, most, clock::now());
        let mode = *wait_mode.borrow_and_update();
        let remaining = left_until(at);
        match mode {
            RoundWaitMode::Now => return,
            RoundWaitMode::UntilThen if remaining.is_zero() => return,
            RoundWaitMode::UntilThen => {
                let _ =
                    tokio::time::timeout(remaining.min(CLOCK_CHECK_INTERVAL), wait_mode.changed())
                        .await;
            }
            // Only a command to the control handler can end the pause. The handler owns the sender
            // until the next round, so waiting for the command can't fail.
            RoundWaitMode::Paused => {
                let _ = wait_mode.changed().await;
            }
        }
    }
}

fn left_until(at: Timestamp) -> Duration {
    let remaining = at.duration_since(clock::now());
    Duration::try_from(remaining).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_clock_makes_a_wait_longer_than_every() {
        // Clock times in seconds since 1970. The test combines every time as the start of the last
        // round with every time as the current time.
        let clocks = [
            0,
            1,
            59,
            86_400,
            1_795_000_000,
            1_921_000_000,
            4_294_967_295,
        ];
        let clocks = clocks.map(|at| Timestamp::from_second(at).unwrap());
        for every in [1, 3600, 86_400, 40_000_000].map(Duration::from_secs) {
            for began in clocks {
                for now in clocks {
                    let at = within(later(began, every), every, now);
                    assert!(at <= later(now, every), "{began} {now} {every:?}");
                    if began <= now {
                        assert_eq!(at, later(began, every));
                    }
                }
            }
        }
    }
}
