//! The files of a crawl except its archive, rows and index: the crawl directory, and its state.

pub(crate) mod at_rest;
pub(crate) mod crash_journal;
pub(crate) mod delay_log;
pub(crate) mod directory;
pub(crate) mod discard;
pub(crate) mod export;
pub(crate) mod extracts;
mod files;
pub(crate) mod import;
pub(crate) mod moved_crawl;
pub(crate) mod order_log;
pub(crate) mod parked_hosts;
mod shared_state;
pub(crate) mod swap;
