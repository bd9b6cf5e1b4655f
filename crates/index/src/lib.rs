//! The search index of a crawl: stores pages and returns ranked results.
//!
//! An [`IndexedPage`] is the index's record of a page. An [`IndexWriter`] adds pages to a directory
//! and removes them. A [`SearchIndex`] answers queries over the directory, even while a writer is
//! active. [`judge`] decides which pages may be indexed.

mod bm25f;
mod canonicals;
mod commit_snapshot;
mod cross_page_facts;
mod document;
mod entry_writer;
mod error;
mod excerpt;
mod exclude_query;
pub mod export;
mod facets;
mod file_check;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod indexing_rules;
mod lexicon;
mod page_prior;
mod page_search;
mod page_versions;
mod pending_entries_file;
mod query;
mod query_plan;
mod read_ahead;
mod reconcile;
mod result_sections;
mod results;
mod schema;
mod scoring_statistics;
mod search;
pub mod search_box;
mod search_rules;
mod soft_404;
mod stored_page;
mod summing_sort;
mod tantivy_directory;
mod text_fragment_link;
mod tokens;
mod typed_minus;
pub mod words;
mod writer;

pub use canonicals::RedirectLookUp;
pub use crawl_index_entry::{Heading, IndexEntry, IndexedPage, OutgoingLink};
pub use error::{IndexError, QueryError};
pub use facets::{FacetCount, FacetFilters, Facets};
pub use indexing_rules::{FetchedDocument, NotIndexed, ResolveLink, judge};
pub use pending_entries_file::PendingEntriesFile;
pub use query::MAX_QUERY_BYTES;
pub use reconcile::{EntryVisitor, PendingEntries, ReconcileReport};
pub use results::{HighlightSpan, Hit, IndexStats, ResultSection, SearchResults};
pub use schema::FORMAT;
pub use search::{MAX_RESULTS, SearchIndex, SearchOptions};
pub use search_rules::SearchRules;
pub use writer::{CommitOutcome, IndexWriter, note_in, remove};
