//! Exchanges with well-behaved and broken servers on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests, which the lint does not see"
)]

mod allowed_addresses;
mod failures;
mod file_descriptor_shortage;
mod host_request_headers;
mod name_lookups;
mod proxy;
mod requests_and_responses;
mod scripted_name_server;
mod scripted_server;
mod tls;
