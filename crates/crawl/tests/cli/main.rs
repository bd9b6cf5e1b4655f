//! The program as users see it: flags, files, messages and exit codes.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a helper that fails fails its test"
)]

mod archived_renderings;
mod audit;
mod broken_links_and_changes;
mod bundle_export;
mod check;
mod config;
mod conformance;
mod control;
mod crawl_replay;
mod damaged_crawl_files;
mod docs_tutorials;
mod document_filters;
mod error_messages_and_hints;
mod explain;
mod export;
mod extract;
mod flags_set_config_keys;
mod forget;
mod gather;
mod harness;
mod help;
mod host_credentials;
mod identity;
mod init;
mod inspect;
mod invalid_command_lines;
mod log;
mod logins;
mod markdown_and_sitemap_exports;
mod mcp;
mod metrics;
mod mirror_export;
mod non_html_document_indexing;
mod open_files_and_certificates;
mod plan;
mod planted_page_faults;
mod recheck;
mod recrawl;
mod reload;
mod repeated_rounds;
mod replay_order;
mod report_and_explain;
mod research_study_example;
mod robots;
mod sample;
mod search;
mod seed_settings;
mod seeds;
mod stored_config;
mod tables_in_research_tools;
mod third_party_replay_tools;
mod two_crawls_same_host;
mod unreachable_seeds;
mod unresponsive_frontier;
mod unsafe_directory_entries;
mod untrusted_crawl_directories;
mod verify;
mod whole_crawl;
