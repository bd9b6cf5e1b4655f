//! The pages of an index in the forms that other searches read.
//!
//! Each form is a sink: it is told of pages one at a time, as
//! [`SearchIndex::each_page`](crate::SearchIndex::each_page) gives them, and is then finished.
//! [`Opensearch`] and [`Meilisearch`] write lines of JSON; a [`Bundle`] is a folder that holds
//! a whole search, for any server of files.

mod bundle;
mod date;
mod error;
mod meilisearch;
mod opensearch;
mod page_id;
mod page_record;
#[cfg(test)]
mod samples;
mod whole_file;

pub use bundle::{Bundle, BundleReport};
pub use error::ExportError;
pub use meilisearch::{Meilisearch, meilisearch_settings};
pub use opensearch::{Opensearch, opensearch_mapping};
pub use whole_file::NewFile;

use crate::indexed_page::IndexedPage;

/// The size of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Pages that were written.
    pub pages: u64,
    /// Records that they became.
    pub records: u64,
    /// Pages that were left out, since others have the same text or their time is over.
    pub left_out: u64,
}

/// Returns whether a page belongs into an export that is made at `now`, in seconds since 1970 UTC.
fn is_shown(page: &IndexedPage, now: i64) -> bool {
    page.same_as.is_none() && page.until.is_none_or(|until| until > now)
}
