//! The search index of a crawl: what it is told of each page, the log that it follows, and how it
//! is built anew.

pub(crate) mod entry;
pub(crate) mod follower;
#[cfg(test)]
mod interstitial_tests;
pub(crate) mod log;
pub(crate) mod rebuild;
mod redirects;
