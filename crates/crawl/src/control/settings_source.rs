//! The settings of the job, as far as they can be read again while it runs.

use std::fmt::Debug;

use crawl_engine::Rules;

use crate::error::CommandError;
use crate::settings::{Checked, Settings};

/// A job whose settings can be read again.
pub(crate) trait SettingsSource: Debug + Send + Sync {
    /// Reads them again, and changes nothing. It waits for the disk.
    ///
    /// # Errors
    /// All that is wrong with them.
    fn read_again(&self) -> Result<NewSettings, CommandError>;

    /// These are in force from now on, in later rounds too.
    fn take(&self, new: NewSettings);
}

/// Settings that were read again.
#[derive(Clone, Debug)]
pub(crate) struct NewSettings {
    /// The rules for a crawl that runs; none where they are as they were.
    pub(crate) rules: Option<Rules>,
    /// Lines for the user: what is taken over, and what is not.
    pub(crate) told: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) checked: Checked,
}
