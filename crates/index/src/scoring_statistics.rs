//! Counts words and pages for scoring.
//!
//! tantivy counts a deleted page until its segment is merged, and the pass at the end of a crawl
//! writes most pages a second time. With such counts, scores would depend on how the index was
//! written, and the static search, which contains each page once, would rank differently. So this
//! module counts only the pages that a search can find.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tantivy::fieldnorm::FieldNormReader;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, Searcher, SegmentReader, TERMINATED, Term};

use crate::schema::{IndexFields, KIND_PAGE};

/// The statistics of an index as of one commit.
pub(crate) struct ScoringStatistics {
    searcher: Searcher,
    /// The number of pages that a search can find.
    pages: u64,
    /// The total length of each field requested so far, in words.
    lengths: Mutex<HashMap<Field, u64>>,
}

impl ScoringStatistics {
    pub(crate) fn new(
        searcher: Searcher,
        fields: &IndexFields,
    ) -> tantivy::Result<ScoringStatistics> {
        let mut statistics = ScoringStatistics {
            searcher,
            pages: 0,
            lengths: Mutex::default(),
        };
        let found = Term::from_field_text(fields.kind, KIND_PAGE);
        statistics.pages = statistics.pages_with(&found)?;
        Ok(statistics)
    }

    /// Returns the number of pages that a search can find.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of pages with a term.
    pub(crate) fn pages_with(&self, term: &Term) -> tantivy::Result<u64> {
        let mut pages = 0;
        for segment in self.searcher.segment_readers() {
            pages += u64::from(pages_of(segment, term)?);
        }
        Ok(pages)
    }

    /// Returns an upper bound of the number of pages with a term, faster than the exact number.
    pub(crate) fn max_pages_with(&self, term: &Term) -> tantivy::Result<u64> {
        self.searcher.doc_freq(term)
    }
}

impl Bm25StatisticsProvider for ScoringStatistics {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lengths.get(&field) {
            return Ok(*known);
        }
        let mut length = 0;
        for segment in self.searcher.segment_readers() {
            length += length_of(segment, field)?;
        }
        lengths.insert(field, length);
        Ok(length)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.pages)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.pages_with(term)
    }
}

/// Returns the number of pages of a segment with a term.
fn pages_of(segment: &SegmentReader, term: &Term) -> tantivy::Result<u32> {
    let index = segment.inverted_index(term.field())?;
    let Some(info) = index.get_term_info(term)? else {
        return Ok(0);
    };
    let Some(alive) = segment.alive_bitset() else {
        return Ok(info.doc_freq);
    };
    let mut postings = index.read_postings_from_terminfo(&info, IndexRecordOption::Basic)?;
    let (mut pages, mut page) = (0, postings.doc());
    while page != TERMINATED {
        pages += u32::from(alive.is_alive(page));
        page = postings.advance();
    }
    Ok(pages)
}

/// Returns the total length of a field in the live pages of a segment, in words. Adds up the
/// rounded lengths of the pages, because the segment's exact total includes deleted pages.
fn length_of(segment: &SegmentReader, field: Field) -> tantivy::Result<u64> {
    let lengths = segment.get_fieldnorms_reader(field)?;
    let mut counts = [0_u64; 256];
    let mut count = |page| counts[usize::from(lengths.fieldnorm_id(page))] += 1;
    match segment.alive_bitset() {
        Some(alive) => alive.iter_alive().for_each(&mut count),
        None => (0..segment.max_doc()).for_each(&mut count),
    }
    let of_length =
        |(id, count): (u8, u64)| u64::from(FieldNormReader::id_to_fieldnorm(id)) * count;
    Ok((0..=u8::MAX).zip(counts).map(of_length).sum())
}
