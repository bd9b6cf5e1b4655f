//! The web as a client sees it that speaks raw TCP.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod client;
mod hosts;
mod replies;
mod truth;
