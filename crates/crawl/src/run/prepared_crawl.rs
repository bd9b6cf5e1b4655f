//! A job: checked settings, and the engine configuration for each round.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crawl_engine::Config;
use crawl_records::stored_settings;

use super::engine_config::{engine_config, rules};
use super::process_limits::FetchConnectionLimits;
use crate::control::{ReloadedSettings, SettingsReloader};
use crate::error::CommandError;
use crate::settings::{CheckedSettings, InitialSettingsLayers, Settings, mark_of, shared_crawl};
use crate::terminal::{ConfigTrustStatus, Terminal};
use crate::values::DurationSetting;

/// Which command can continue the crawl in a job's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContinuationCommand {
    /// `crawl --output DIR` continues the crawl.
    OfCrawl,
    /// `crawl check --output DIR` continues the crawl.
    OfCheck,
    /// The directory is removed when the program ends.
    Temporary,
}

/// A crawl that is ready to start, with its output directory, its checked settings, and the files
/// and flags to reload them from.
#[derive(Debug)]
pub(crate) struct PreparedCrawl {
    /// The settings at the start. `in_force` has the current ones.
    pub(super) settings: Settings,
    /// The current settings. Politeness, exclusions and budgets may have been reloaded.
    in_force: Mutex<InForce>,
    sources: InitialSettingsLayers,
    /// The crawl's directory.
    output: PathBuf,
    /// The connections that the crawl may use, limited by the available file descriptors.
    pub(super) connections: FetchConnectionLimits,
    pub(super) terminal: Terminal,
    directory: ContinuationCommand,
}

/// The settings in force now, after any reload.
#[derive(Clone, Debug)]
struct InForce {
    settings: Settings,
    checked: CheckedSettings,
    /// The text of crawl.toml passed to the last run.
    config_text: String,
}

impl PreparedCrawl {
    pub(super) fn new(
        settings: Settings,
        checked: CheckedSettings,
        sources: InitialSettingsLayers,
        connections: FetchConnectionLimits,
        terminal: Terminal,
        directory: ContinuationCommand,
    ) -> PreparedCrawl {
        PreparedCrawl {
            output: checked.output.clone(),
            in_force: Mutex::new(InForce {
                settings: settings.clone(),
                checked,
                config_text: String::new(),
            }),
            settings,
            sources,
            connections,
            terminal,
            directory,
        }
    }

    /// Returns the engine configuration for a run that begins now.
    pub(crate) fn config(&self) -> Config {
        let mut now = self.in_force();
        let mut config = engine_config(&now.settings, &now.checked);
        config.shared = shared_crawl(&now.settings, &now.checked.seeds);
        now.config_text.clone_from(&config.config_text);
        config.politeness.concurrency = self.connections.concurrency;
        config.fetch.max_kept_connections = self.connections.kept;
        config
    }

    /// Returns the crawl's directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.output
    }

    /// Returns whether `crawl check` runs the crawl.
    pub(super) fn is_check(&self) -> bool {
        self.directory != ContinuationCommand::OfCrawl
    }

    /// Returns the command that continues the crawl.
    pub(super) fn command(&self) -> &'static str {
        match self.is_check() {
            false => "crawl",
            true => "crawl check",
        }
    }

    /// Returns whether the crawl.toml in the directory has a mark. The mark lets the next start
    /// recognise the file as this user's own.
    pub(crate) fn has_mark(&self) -> ConfigTrustStatus {
        if self.directory == ContinuationCommand::Temporary {
            return ConfigTrustStatus::Temporary;
        }
        match mark_of(&stored_settings(self.dir())) {
            Some(_) => ConfigTrustStatus::Yes,
            None => ConfigTrustStatus::No,
        }
    }

    /// Returns the interval between the starts of two rounds. `None` if there is only one round.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.settings.recrawl.every.0.map(DurationSetting::get)
    }

    /// Returns the address to serve metrics on.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.settings.display.metrics.0
    }

    /// Returns whether failed pages make the run fail.
    pub(crate) fn fails_on_error(&self) -> bool {
        self.settings.display.fail_on_error.is_on()
    }

    /// Returns whether the run fails if a host is partial, blocked or empty.
    pub(crate) fn fails_on_partial(&self) -> bool {
        self.settings.display.fail_on_partial.is_on()
    }

    /// Locks the current settings. Ignores a poisoned lock, because the settings are only replaced
    /// as a whole.
    fn in_force(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SettingsReloader for PreparedCrawl {
    fn read_again(&self) -> Result<ReloadedSettings, CommandError> {
        if !self.sources.has_files() {
            let problem = "can't reload settings: the crawl was started without --config";
            return Err(CommandError::usage(problem).hint(format!(
                "`crawl control {0} delay` sets a delay; to change other settings, stop the crawl \
                 and start it with `--config FILE`",
                self.output.display()
            )));
        }
        let now = self.in_force().clone();
        let read = self.sources.read_again(&now.settings, &now.checked)?;
        let applied = match read.taken.is_empty() {
            true => {
                "settings reloaded: politeness, exclusions and budgets are unchanged".to_owned()
            }
            false => format!("settings reloaded: {}", read.taken.join(", ")),
        };
        let later = (!read.later.is_empty())
            .then(|| format!("effective at the next start: {}", read.later.join(", ")));
        Ok(ReloadedSettings {
            rules: (!read.taken.is_empty())
                .then(|| rules(&read.settings, &read.checked, &now.config_text)),
            notes: std::iter::once(applied).chain(later).collect(),
            settings: read.settings,
            checked: read.checked,
        })
    }

    fn take(&self, new: ReloadedSettings) {
        {
            let mut now = self.in_force();
            (now.settings, now.checked) = (new.settings, new.checked);
            if let Some(rules) = new.rules {
                now.config_text = rules.config_text;
            }
        }
        for line in &new.notes {
            self.terminal.say(line);
        }
        tracing::info!(told = new.notes.join("; "), "settings were read again");
    }
}
