//! The command line: its definition, the words before clap reads them, and its errors.

pub(crate) mod args;
pub(crate) mod faults;
pub(crate) mod preprocess;
pub(crate) mod usage_error;
