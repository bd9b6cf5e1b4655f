//! One file or folder for each command beside the crawl itself.

#[cfg(feature = "tables")]
mod bundle;
pub(crate) mod control;
pub(crate) mod export;
pub(crate) mod forget;
#[cfg(feature = "shared-frontier")]
pub(crate) mod frontier;
pub(crate) mod gather;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod plan;
pub(crate) mod read_document;
pub(crate) mod recheck;
pub(crate) mod records;
pub(crate) mod replay;
pub(crate) mod robots;
pub(crate) mod search;
mod site_files;
#[cfg(feature = "tables")]
mod tables;
#[cfg(feature = "tables")]
pub(crate) mod verify;
mod wacz;
