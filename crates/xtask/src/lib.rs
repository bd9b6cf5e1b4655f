//! The workspace's folders, its target folder and fetched packages.
//!
//! `crawl-trials` uses this library too. The rest of `cargo xtask` is in the program.
#![expect(clippy::print_stderr, reason = "for programs for the command line")]

pub mod browser_tests;
pub mod debian_packages;
pub mod pinned_tools;
pub mod workspace;
