//! The options of a package.

use std::path::PathBuf;

use crawl_archive::Timestamp;

/// Which rounds to package, and what the package states about itself.
#[derive(Clone, Debug)]
pub struct WaczOptions {
    /// The round to package, from 1; `None` for the whole crawl.
    pub round: Option<u32>,
    /// WACZ files of earlier rounds of the same crawl. Revisits refer to these files by name for
    /// payloads that this package lacks.
    pub earlier: Vec<PathBuf>,
    /// The creation time of the package.
    pub created: Timestamp,
    /// The program and its version: `crawl/0.1.0`.
    pub software: String,
}
