//! Settings of a crawl that can be reloaded while it runs.

use std::fmt::Debug;

use crawl_engine::AdjustableRules;

use crate::error::CommandError;
use crate::settings::{CheckedSettings, Settings};

/// Reads the settings of a running crawl again.
pub(crate) trait SettingsReloader: Debug + Send + Sync {
    /// Reads the settings again, without applying them. Blocks on the disk.
    ///
    /// # Errors
    /// Every problem in the settings.
    fn read_again(&self) -> Result<ReloadedSettings, CommandError>;

    /// Replaces the current settings with `new`, for later rounds too.
    fn take(&self, new: ReloadedSettings);
}

/// Settings that were read again but not yet applied, and the changes that they make.
#[derive(Clone, Debug)]
pub(crate) struct ReloadedSettings {
    /// New rules for a running crawl. `None` if they are unchanged.
    pub(crate) rules: Option<AdjustableRules>,
    /// Notes to the user about which changes are applied and which are not.
    pub(crate) notes: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) checked: CheckedSettings,
}
