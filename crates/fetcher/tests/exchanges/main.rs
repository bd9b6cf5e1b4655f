//! Exchanges with servers on loopback, good ones and bad ones.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests, which the lint does not see"
)]

mod addresses;
mod answers;
mod failures;
mod proxy;
mod support;
mod tls;
