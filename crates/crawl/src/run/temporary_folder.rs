//! A temporary crawl folder for a run whose records are read once and then discarded.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crawl_engine::{Config, ControlChannels, CrawlBudgets, RunSummary, StopUrgency};
use tokio::sync::watch;

use super::engine_config::engine_config;
use super::process_limits::connections;
use super::signals;
use crate::clock;
use crate::control::ControlHandler;
use crate::error::CommandError;
use crate::error::engine::of_engine;
use crate::settings::{CheckedSettings, Settings};
use crate::terminal::Terminal;

/// Maximum time for which a process waits after its last request, so that the next process doesn't
/// send a request too soon.
pub(super) const MAX_REST: Duration = Duration::from_secs(10);

/// A private temporary folder for one run. Dropping it removes the folder.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates the folder in the system's temporary directory. `purpose`, such as `plan`, is part
    /// of its name.
    pub(crate) fn make(purpose: &str) -> Result<TemporaryFolder, CommandError> {
        let now = clock::now().as_nanosecond();
        let name = format!("crawl-{purpose}-{}-{now}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Fails if the path exists already, because it then belongs to another process.
        let made = DirBuilder::new().mode(0o700).create(&path);
        let failed = |why: io::Error| {
            CommandError::disk(format!("can't create the folder {}: {why}", path.display()))
                .hint("set TMPDIR to a folder that you may write to")
        };
        made.map_err(failed)?;
        Ok(TemporaryFolder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the configuration of a run that writes to this folder and stores no pages.
    pub(super) fn config(&self, settings: &Settings, checked: &CheckedSettings) -> Config {
        let connections = connections(settings);
        let mut config = engine_config(settings, checked);
        config.politeness.concurrency = connections.concurrency;
        config.fetch.max_kept_connections = connections.kept;
        Config {
            output: self.path().to_owned(),
            // No budgets are needed, because they limit pages and this run fetches none.
            budgets: CrawlBudgets::default(),
            recrawl: false,
            warc: None,
            links: false,
            index: false,
            ..config
        }
    }

    /// Runs the engine in this folder until it finishes or the user stops it.
    pub(super) async fn run(
        &self,
        config: Config,
        terminal: Terminal,
    ) -> Result<(RunSummary, PoliteExitDelay), CommandError> {
        let (stop, stopped) = watch::channel(StopUrgency::No);
        let handler = Arc::new(ControlHandler::new(self.path().to_owned()));
        signals::listen(stop, terminal, handler)?;
        let rest = PoliteExitDelay(stopped.clone());
        let controls = ControlChannels {
            stop: stopped,
            ..ControlChannels::unattended()
        };
        let summary = crawl_engine::run(config, controls).await;
        let summary = summary.map_err(|error| of_engine(&error, self.path()))?;
        Ok((summary, rest))
    }
}

/// A wait before the program exits, so that a crawl started right afterwards doesn't send a request
/// to the same host too soon.
pub(super) struct PoliteExitDelay(watch::Receiver<StopUrgency>);

impl PoliteExitDelay {
    /// Prepares the wait. `stopped` receives the user's requests to stop.
    pub(super) fn new(stopped: watch::Receiver<StopUrgency>) -> PoliteExitDelay {
        PoliteExitDelay(stopped)
    }

    /// Waits for `gap`, but at most for `MAX_REST`, or until the user stops the program. If the run
    /// is already draining, only a further signal ends the wait. Doesn't wait if the user stopped
    /// the run immediately instead of draining it.
    pub(super) async fn keep(mut self, gap: Duration) {
        if *self.0.borrow_and_update() == StopUrgency::Now {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(gap.min(MAX_REST)) => {}
            _ = self.0.changed() => {}
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Ignore errors, because the system clears its temporary files eventually.
        let _ = fs::remove_dir_all(&self.0);
    }
}
