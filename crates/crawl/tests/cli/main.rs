//! The program as users see it: flags, files, messages and exit codes.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a helper that fails fails its test"
)]

mod access;
mod archived_renderings;
mod audit;
mod broken;
mod bundle;
mod check;
mod config;
mod conformance;
mod connections;
mod control;
mod crawl_replay;
mod damage;
mod documents;
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
mod invalid_command_lines;
mod log;
mod logins;
mod mcp;
mod metrics;
mod mirror;
mod plan;
mod planted_page_faults;
mod recheck;
mod recrawl;
mod reload;
mod repeated_rounds;
mod replay_order;
mod replay_tools;
mod report_and_explain;
mod robots;
mod sample;
mod search;
mod seed_settings;
mod seeds;
mod site_files;
mod stored_config;
mod study;
mod tables;
mod two_crawls;
mod unreached;
mod unresponsive_frontier;
mod unsafe_entries;
mod verify;
mod wanted;
mod whole_crawl;
