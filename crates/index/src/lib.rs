//! The search index of a crawl: stores pages and returns ranked results.
//!
//! An [`IndexedPage`] is the index's record of a page. An [`IndexWriter`] adds pages to a directory
//! and removes them. An [`IndexSearcher`] answers queries over the directory, even while a writer
//! is active. [`judge`] decides which pages may be indexed.

mod ambiguous_minus;
mod bm25f;
mod canonical_urls;
mod commit_snapshot;
mod compound_candidates;
mod cross_page_facts;
mod cross_page_update;
mod erasing_copy;
mod error;
mod excerpt;
mod exclusion_workaround;
pub mod export;
mod facets;
mod file_check;
#[cfg(any(test, fuzzing))]
pub mod fuzz_checks;
mod index_document;
mod index_entry_applier;
mod index_searcher;
mod index_writer;
mod indexing_rules;
mod lexicon;
mod login_redirects;
mod page_prior;
mod page_tokenizer;
mod pending_entries_file;
mod product_versions;
mod query;
mod query_plan;
mod ranked_retrieval;
mod read_ahead_file;
mod results;
mod schema;
mod scoring_statistics;
pub mod search_box;
mod section_selection;
mod soft_404;
mod stored_page_reader;
mod summing_sorter;
mod synonyms_and_pins;
mod tantivy_directory;
mod text_fragment_link;
mod url_deletion_query;
pub mod words;

pub use crawl_index_entry::{Heading, IndexLogEntry, IndexedPage, OutgoingLink};
pub use cross_page_update::{CrossPageUpdateCounts, EntryVisitor, PendingEntrySource};
pub use erasing_copy::{PageEdit, copy_pages};
pub use error::{IndexError, QueryError};
pub use facets::{FacetCount, FacetCounts, FacetFilters};
pub use file_check::check_checksums;
pub use index_searcher::{IndexSearcher, MAX_RESULTS, SearchOptions};
pub use index_writer::{CommitOutcome, IndexWriter, note_in, remove};
pub use indexing_rules::{IndexingCandidate, LinkResolver, NotIndexedReason, judge};
pub use login_redirects::{AnswerLookUp, RecordedAnswer, lead_to_login};
pub use pending_entries_file::{PendingEntriesFile, visit_read_ahead};
pub use query::MAX_QUERY_BYTES;
pub use results::{Hit, IndexStats, MarkedTextPart, ResultSection, SearchResults};
pub use schema::FORMAT;
pub use synonyms_and_pins::SearchRules;
