//! The options of a package.

use std::path::PathBuf;

use crawl_archive::Timestamp;

/// The rounds that are packaged, and the statements of the package about itself.
#[derive(Clone, Debug)]
pub struct WaczOptions {
    /// One round of the crawl, from 1; none: all of it.
    pub round: Option<u32>,
    /// WACZ files of earlier rounds of the same crawl, in whose names revisits point to payloads
    /// that are not in this one.
    pub earlier: Vec<PathBuf>,
    /// The time at which the package is made.
    pub created: Timestamp,
    /// Program and version: `crawl/0.1.0`.
    pub software: String,
}
