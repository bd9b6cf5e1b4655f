//! The search index of a crawl: the entries of pages, the log that the index follows, and building
//! an index from the archive. Without the feature `search` a crawl has no index.

pub(crate) mod archived_page_entry;
pub(crate) mod entry_creation;
pub(crate) mod followed_indexing_log;
#[cfg(all(test, feature = "search"))]
mod interstitial_tests;

#[cfg(feature = "search")]
pub(crate) mod indexing_log;
#[cfg_attr(not(feature = "search"), path = "log_follower_disabled.rs")]
pub(crate) mod log_follower;
#[cfg(feature = "search")]
pub(crate) mod rebuild;
#[cfg(feature = "search")]
pub(crate) mod redirect_and_interstitial_answers;

/// The folder of the index in the crawl directory.
pub(crate) const INDEX_FOLDER: &str = "index";
/// The folder of the old index during its replacement by a new one.
pub(crate) const OLD_FOLDER: &str = "index.old";
/// The folder of an index that is being built.
pub(crate) const NEW_FOLDER: &str = "index.new";
/// The file name of the indexing log (the log that the index follows), in the folder `state`.
pub(crate) const LOG: &str = "indexing.jsonl";
