//! Tests of the scheduler in virtual time: single rules, random worlds, restarts and speed.

#![allow(
    clippy::unwrap_used,
    reason = "what is unwrapped here is the test's own doing"
)]

mod address_and_site_limits;
mod fairness;
mod gaps_and_pauses;
mod host_snapshots;
mod operator_commands;
mod politeness_overrides;
mod random_worlds;
mod rate_limit_fields;
mod robots_before_pages;
mod robots_pace;
mod scheduler_harness;
mod speed_and_memory;
#[allow(dead_code, reason = "large worlds use what small ones do not")]
#[path = "../world/mod.rs"]
mod world;
