//! Exchanges with well-behaved and broken servers on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests, which the lint does not see"
)]

mod access;
mod addresses;
mod answers;
mod descriptors;
mod failures;
mod name_server;
mod names;
mod proxy;
mod support;
mod tls;
