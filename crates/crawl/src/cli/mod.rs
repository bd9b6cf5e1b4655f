//! The command line: its definition, preprocessing and errors.

pub(crate) mod args;
#[cfg_attr(not(feature = "shell"), path = "completions_and_manual_disabled.rs")]
pub(crate) mod completions_and_manual;
pub(crate) mod conformance;
#[cfg(test)]
mod documented_commands_test;
mod flags_of_other_tools;
pub(crate) mod gather;
pub(crate) mod identity;
pub(crate) mod preprocess;
pub(crate) mod report;
pub(crate) mod search_filter;
pub(crate) mod short_help;
pub(crate) mod usage_error;
