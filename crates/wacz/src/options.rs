//! Options for packaging a crawl.

use std::path::PathBuf;

use crawl_archive::Timestamp;

/// Which round to package, and what the package states about its origin.
#[derive(Clone, Debug)]
pub struct WaczOptions {
    /// The round to package, from 1; `None` for the whole crawl.
    pub round: Option<u32>,
    /// WACZ files of earlier rounds of the same crawl. If the payload of a revisit is in one of
    /// these files, the revisit record in the package names this file.
    pub earlier: Vec<PathBuf>,
    /// The creation time that the package states.
    pub created: Timestamp,
    /// The name and version of the program that the package states, such as `crawl/0.1.0`.
    pub software: String,
}
