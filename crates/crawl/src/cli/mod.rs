//! Command-line definitions, preprocessing and usage errors.

pub(crate) mod args;
pub(crate) mod gather;
pub(crate) mod preprocess;
pub(crate) mod report;
pub(crate) mod search_filter;
pub(crate) mod usage_error;
