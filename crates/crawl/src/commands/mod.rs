//! Commands other than the crawl itself, each in its own file or folder.

#[cfg_attr(not(feature = "exports"), path = "archive_exports_disabled.rs")]
mod archive_exports;
#[cfg(feature = "tables")]
mod bundle_export;
pub(crate) mod check;
#[cfg(feature = "conformance")]
pub(crate) mod conformance;
pub(crate) mod control;
pub(crate) mod export;
pub(crate) mod extract;
mod fault_report;
pub(crate) mod forget;
#[cfg(feature = "shared-frontier")]
pub(crate) mod frontier;
#[cfg_attr(not(feature = "shared-frontier"), path = "gather_disabled.rs")]
pub(crate) mod gather;
pub(crate) mod identity;
#[cfg(feature = "search")]
pub(crate) mod index;
pub(crate) mod init;
pub(crate) mod inspect;
#[cfg(feature = "search")]
mod markdown_and_sitemap_exports;
pub(crate) mod plan;
pub(crate) mod read_document;
pub(crate) mod recheck;
pub(crate) mod replay;
pub(crate) mod report_explain_audit;
pub(crate) mod robots;
#[cfg(feature = "search")]
pub(crate) mod search;
#[cfg(feature = "search")]
mod search_index_exports;
#[cfg(feature = "tables")]
mod table_exports;
#[cfg(feature = "tables")]
pub(crate) mod verify;
