//! Tests of the index through its public API.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests, which the lint does not see"
)]

mod bad_input;
mod facets;
mod indexing_rules;
mod queries;
mod searching;
mod support;
mod writing;
