//! Pages of a search index, and the entries that add and remove them.
//!
//! A crawl makes an [`IndexEntry`] of each page that it reads, and keeps it in a log; `crawl-index`
//! follows the log. The types have a crate of their own so that a crawler built without a search
//! index doesn't need the search engine. A [`ByteGate`] bounds the bytes of entries that wait.

mod byte_gate;
mod index_entry;
mod indexed_page;

pub use byte_gate::{ByteGate, BytePass};
pub use index_entry::IndexEntry;
pub use indexed_page::{Anchor, Heading, IndexedPage, url_key};
