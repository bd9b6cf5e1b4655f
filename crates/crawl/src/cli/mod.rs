//! The command line: its definition, preprocessing and errors.

pub(crate) mod args;
pub(crate) mod completion;
pub(crate) mod conformance;
#[cfg(test)]
mod documented_commands;
pub(crate) mod gather;
pub(crate) mod identity;
pub(crate) mod overview;
pub(crate) mod preprocess;
pub(crate) mod report;
pub(crate) mod search_filter;
pub(crate) mod usage_error;
