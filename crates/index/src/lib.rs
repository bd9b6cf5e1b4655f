//! The search index of a crawl: pages in, ranked results out.
//!
//! A [`Page`] is what the index holds of a page that may be indexed. An [`IndexWriter`] takes
//! pages in and out of a directory, and a [`SearchIndex`] answers queries over it, also while
//! one writes. Which pages may be indexed is said by [`judge`].

mod answer;
mod check;
mod directory;
mod document;
mod entry;
mod error;
mod excerpt;
mod excluded;
pub mod export;
mod fused;
mod gate;
mod judge;
mod lexicon;
mod page;
mod plan;
mod query;
mod reconcile;
mod schema;
mod search;
mod snapshot;
mod tokens;
pub mod words;
mod worth;
mod writer;

pub use answer::{Answer, Hit, Part, Section, Stats};
pub use entry::Entry;
pub use error::{IndexError, QueryError};
pub use gate::{ByteGate, BytePass};
pub use judge::{Came, NotIndexed, judge};
pub use page::{Anchor, Heading, Page};
pub use query::QUERY_BYTES_MOST;
pub use reconcile::Reconciled;
pub use schema::FORMAT;
pub use search::{RESULTS_MOST, SearchIndex, SearchOptions};
pub use writer::{IndexWriter, note_in, remove};
