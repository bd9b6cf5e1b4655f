//! The files of a crawl except its archive, rows and index: the crawl directory, and its state.

pub(crate) mod crash_suspect_journal;
pub(crate) mod crawl_directory;
pub(crate) mod crawl_toml;
mod durable_files;
pub(crate) mod excluded_rows_of_last_run;
pub(crate) mod expire_robots_rules;
pub(crate) mod extracted_field_files;
pub(crate) mod file_swap;
pub(crate) mod frontier_move_counts;
pub(crate) mod move_from_shared_frontier;
pub(crate) mod move_to_shared_frontier;
mod parking_changes;
pub(crate) mod remove_unanswered_run;
pub(crate) mod replay_order_log;
pub(crate) mod settings_and_delays_log;
pub(crate) mod stopped_crawl_changes;
pub(crate) mod stored_parked_hosts;
mod worker_state_folder;
