//! Tests of the index through its public API.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests, which the lint does not see"
)]

mod bad_input;
mod facets;
mod judging;
mod queries;
mod searching;
mod support;
mod writing;
