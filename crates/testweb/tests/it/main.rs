//! The web as seen by a client that speaks raw TCP.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod hosts;
mod raw_http_client;
mod replies;
mod truth;
