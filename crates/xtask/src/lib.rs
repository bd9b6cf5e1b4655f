//! The workspace's folders, its target folder and fetched packages.
//!
//! The part of `cargo xtask` that `crawl-trials` also uses.
#![expect(clippy::print_stderr, reason = "for programs for the command line")]

pub mod browser;
pub mod debian;
pub mod tools;
pub mod workspace;
