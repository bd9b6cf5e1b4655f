//! Pages of a search index, and the entries that add and remove them.
//!
//! A crawl writes an [`IndexLogEntry`] for each page that it reads to a log, and `crawl-index`
//! follows this log. The types have a crate of their own, so that a crawler built without a search
//! index doesn't need the search engine. A [`BytesInTransitLimit`] limits the memory of entries
//! that wait to be written.

mod bytes_in_transit_limit;
mod index_log_entry;
mod indexed_page;

pub use bytes_in_transit_limit::{BytesInTransitLimit, BytesInTransitPermit};
pub use index_log_entry::IndexLogEntry;
pub use indexed_page::{Heading, IndexedPage, OutgoingLink, url_key};
