//! The program as users see it: flags, files, messages and exit codes.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a helper that fails fails its test"
)]

mod access;
mod audit;
mod broken;
mod bundle;
mod check;
mod config;
mod conformance;
mod connections;
mod control;
mod damage;
mod documents;
mod entries;
mod every;
mod explain;
mod export;
mod extract;
mod flags;
mod foreign;
mod forget;
mod gather;
mod getting_started;
mod harness;
mod help;
mod hints;
mod identity;
mod init;
mod inspect;
mod job;
mod log;
mod logins;
mod mcp;
mod metrics;
mod mirror;
mod plan;
mod planted_faults;
mod policy_replay;
mod recheck;
mod records;
mod recrawl;
mod refusals;
mod reload;
mod remembered;
mod replay;
mod replay_order;
mod replay_rendered;
mod robots;
mod sample;
mod search;
mod seed_terms;
mod seeds;
mod site_files;
mod study;
mod tables;
mod two_crawls;
mod unreached;
mod unresponsive_frontier;
mod verify;
mod wanted;
