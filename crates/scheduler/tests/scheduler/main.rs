//! The scheduler in virtual time: single rules, drawn worlds, restarts, speed.

#![allow(
    clippy::unwrap_used,
    reason = "what is unwrapped here is the test's own doing"
)]

mod asks;
mod durable;
mod fair;
mod gates;
mod limits;
mod overrides;
mod property;
mod robots;
mod rules;
mod speed;
mod stage;
mod steer;
#[allow(dead_code, reason = "large worlds use what small ones do not")]
#[path = "../world/mod.rs"]
mod world;
