//! Tests of the scheduler in virtual time: single rules, random worlds, restarts and speed.

#![allow(
    clippy::unwrap_used,
    reason = "what is unwrapped here is the test's own doing"
)]

mod fair;
mod gaps_and_pauses;
mod gates;
mod operator_commands;
mod overrides;
mod property;
mod rate_limit_fields;
mod robots;
mod robots_pace;
mod snapshots;
mod speed;
mod stage;
#[allow(dead_code, reason = "large worlds use what small ones do not")]
#[path = "../world/mod.rs"]
mod world;
