//! The job: settings that were checked, and the engine's configuration for each round.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crawl_engine::Config;
use crawl_records::stored_settings;

use super::connection_limit::Connections;
use super::engine_config::engine_config;
use crate::settings::{Checked, Settings, mark_of};
use crate::terminal::{HasMark, Terminal};
use crate::values::Span;

/// A job that can be begun: settings that were checked.
pub(crate) struct Job {
    pub(super) settings: Settings,
    pub(super) checked: Checked,
    /// As many as descriptors are left for.
    pub(super) connections: Connections,
    pub(super) terminal: Terminal,
}

impl Job {
    /// The engine's configuration for a run that begins now.
    pub(crate) fn config(&self) -> Config {
        let mut config = engine_config(&self.settings, &self.checked);
        config.politeness.concurrency = self.connections.concurrency;
        if !self.connections.may_be_kept {
            config.fetch.keep_alive = Duration::ZERO;
        }
        config
    }

    /// The crawl's directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.checked.output
    }

    /// Returns whether the next start takes the crawl.toml in the directory as this user's own.
    pub(crate) fn has_mark(&self) -> HasMark {
        match mark_of(&stored_settings(self.dir())) {
            Some(_) => HasMark::Yes,
            None => HasMark::No,
        }
    }

    /// The time from the beginning of a round to that of the next.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.settings.recrawl.every.0.map(Span::get)
    }

    /// The address at which the numbers of the crawl are told.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.settings.display.metrics.0
    }

    /// Returns whether pages that failed make the run one that failed.
    pub(crate) fn fails_on_error(&self) -> bool {
        self.settings.display.fail_on_error.is_on()
    }

    /// Returns whether a host that is partial or blocked makes the run one that failed.
    pub(crate) fn fails_on_partial(&self) -> bool {
        self.settings.display.fail_on_partial.is_on()
    }
}
