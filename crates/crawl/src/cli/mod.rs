//! The command line: its definition, preprocessing and errors.

pub(crate) mod args;
pub(crate) mod conformance;
#[cfg(test)]
mod documented_commands_test;
mod flags_of_other_tools;
pub(crate) mod gather;
pub(crate) mod identity;
pub(crate) mod preprocess;
pub(crate) mod report;
pub(crate) mod search_filter;
#[cfg_attr(not(feature = "shell"), path = "shell_left_out.rs")]
pub(crate) mod shell;
pub(crate) mod short_help;
pub(crate) mod usage_error;
