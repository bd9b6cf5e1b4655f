//! A folder for a run whose records are read once and then go.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crawl_engine::{Budgets, Config, Controls, Stop, Summary};
use tokio::sync::watch;

use super::connection_limit::connections;
use super::engine_config::engine_config;
use super::signals;
use crate::clock;
use crate::control::ControlHandler;
use crate::error::CommandError;
use crate::error::engine::of_engine;
use crate::settings::{Checked, Settings};
use crate::terminal::Terminal;

/// The longest gap that is kept behind the last request.
const MAX_REST: Duration = Duration::from_secs(10);

/// A folder of this run alone, which goes with it.
pub(super) struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Makes the folder of a run for this purpose, in that of the system for such.
    pub(super) fn make(purpose: &str) -> Result<OwnFolder, CommandError> {
        let now = clock::now().as_nanosecond();
        let name = format!("crawl-{purpose}-{}-{now}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Whatever stands there is somebody else's.
        let made = DirBuilder::new().mode(0o700).create(&path);
        let failed = |why: io::Error| {
            CommandError::disk(format!("can't make the folder {}: {why}", path.display()))
                .hint("TMPDIR names the place for such folders")
        };
        made.map_err(failed)?;
        Ok(OwnFolder(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The configuration of a run in the folder, which keeps no page.
    pub(super) fn config(&self, settings: &Settings, checked: &Checked) -> Config {
        let connections = connections(settings.politeness.concurrency);
        let mut config = engine_config(settings, checked);
        config.politeness.concurrency = connections.concurrency;
        if !connections.may_be_kept {
            config.fetch.keep_alive = Duration::ZERO;
        }
        Config {
            output: self.path().to_owned(),
            // Of pages, of which there are none.
            budgets: Budgets::default(),
            recrawl: false,
            warc: false,
            links: false,
            index: false,
            ..config
        }
    }

    /// Runs the engine in the folder, until it or the user ends it.
    pub(super) async fn run(
        &self,
        config: Config,
        terminal: Terminal,
    ) -> Result<(Summary, Rest), CommandError> {
        let (stop, stopped) = watch::channel(Stop::No);
        let handler = Arc::new(ControlHandler::new(self.path().to_owned()));
        signals::listen(stop, terminal, handler)?;
        let rest = Rest(stopped.clone());
        let controls = Controls {
            stop: stopped,
            ..Controls::unattended()
        };
        let summary = crawl_engine::run(config, controls).await;
        let summary = summary.map_err(|error| of_engine(&error, self.path()))?;
        Ok((summary, rest))
    }
}

/// The gap behind the last request of a run, which a crawl that begins right behind it is to find
/// kept.
pub(super) struct Rest(watch::Receiver<Stop>);

impl Rest {
    /// Keeps the gap, until the user ends it.
    pub(super) async fn keep(mut self, gap: Duration) {
        tokio::select! {
            () = tokio::time::sleep(gap.min(MAX_REST)) => {}
            _ = self.0.changed() => {}
        }
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What can't be removed is the system's to clear: nobody can be told any more.
        let _ = fs::remove_dir_all(&self.0);
    }
}
