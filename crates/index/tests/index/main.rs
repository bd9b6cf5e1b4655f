//! Tests of the index through its public API.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests, which the lint does not see"
)]

mod facets;
mod indexing_rules;
mod invalid_indexes_and_queries;
mod searching;
mod support;
mod unusual_queries;
mod writing;
