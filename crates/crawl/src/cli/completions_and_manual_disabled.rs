//! Replaces completion scripts and the manual in a build without the feature `shell`.

use std::path::Path;

use clap::Command;

use crate::error::{CommandError, left_out};

/// The name of a shell, which this build accepts but can't use.
pub(crate) type Shell = String;

/// Returns an error, because this build has no completion scripts.
pub(crate) fn completions(_shell: Shell, _command: &Command) -> Result<u8, CommandError> {
    Err(left_out("crawl completions", "shell"))
}

/// Returns an error, because this build has no manual.
pub(crate) fn man(_all: Option<&Path>, _command: Command) -> Result<u8, CommandError> {
    Err(left_out("crawl man", "shell"))
}
