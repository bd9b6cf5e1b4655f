//! Checks the content of packages, and that other programs accept packages.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test that panics fails the test"
)]

#[path = "../../../archive/tests/archive/odd_sample_captures.rs"]
mod odd_captures;
#[path = "../../../archive/tests/archive/sample_captures.rs"]
mod sample;

mod external_tools;
mod killed_crawl;
mod single_round;
mod test_crawl;
mod whole_crawl;
