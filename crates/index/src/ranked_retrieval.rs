//! Finds the pages that match a query, best first. Leaves out pages that another result represents:
//! duplicates and older versions.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use tantivy::collector::{Collector, Count, SegmentCollector, TopDocs};
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, EnableScoring, Occur, Query as Lookup, RangeQuery};
use tantivy::{
    DocAddress, DocId, DocSet as _, Score, Searcher, SegmentOrdinal, SegmentReader, Term,
};

use crate::facets::{FacetCountMap, FacetCounts, FacetFilters, ProductVersionKey};
use crate::page_prior::hundredths;
use crate::query_plan::WEIGHTS;
use crate::schema::IndexFields;
use crate::scoring_statistics::ScoringStatistics;

/// An older version of a page is shown next to the newest one only if its score is at least this
/// many times as high.
const MIN_OLDER_LEAD: f32 = 2.0;

/// A retrieval of ranked pages: what to find, and how many results to return.
pub(crate) struct RankedRetrieval<'a> {
    pub(crate) searcher: &'a Searcher,
    pub(crate) statistics: &'a ScoringStatistics,
    pub(crate) fields: &'a IndexFields,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    /// The page pinned to the query. Left out of the range, because the caller shows it first.
    pub(crate) pinned: Option<DocAddress>,
    /// The current time in seconds since 1970 UTC. Expired pages are not shown.
    pub(crate) now: i64,
    pub(crate) filters: &'a FacetFilters,
    /// True if the query is about changes. In this case, change lists rank like other pages.
    pub(crate) is_about_changes: bool,
    /// True if the results show the newest version of a page instead of older ones.
    pub(crate) prefers_newest: bool,
    pub(crate) counts_facets: bool,
}

/// The index addresses and scores of the pages that match a query, with their total number and
/// facets; not yet read.
#[derive(Debug, Default)]
pub(crate) struct FoundPages {
    pub(crate) total: usize,
    /// True if `total` includes the pinned page.
    pub(crate) has_pinned: bool,
    /// The matching pages in the requested range, with their scores. A pinned page is not in this
    /// list, because the caller inserts it before all others. The range at offset 0 then has one
    /// page too many, which the caller drops.
    pub(crate) best: Vec<(Score, DocAddress)>,
    pub(crate) facets: Option<FacetCounts>,
}

impl RankedRetrieval<'_> {
    pub(crate) fn run(&self, lookup: Box<dyn Lookup>) -> tantivy::Result<FoundPages> {
        let lookup = self.in_time(self.filtered(lookup));
        if self.counts_facets || (self.prefers_newest && self.has_versions()) {
            return self.all(&*lookup);
        }
        // Request more pages than needed, because duplicates are dropped below. Duplicates are
        // marked in the index only at the end of a run.
        let max_candidates = (self.limit + self.offset).max(1) * 2;
        let is_about_changes = self.is_about_changes;
        let ranked =
            TopDocs::with_limit(max_candidates).tweak_score(move |segment: &SegmentReader| {
                let prior = PriorColumns::of(segment, is_about_changes);
                move |document: DocId, score: Score| prior.weighed(document, score)
            });
        let (total, ranked) = self.scored(&*lookup, &(Count, ranked))?;
        let (candidates, has_candidate) = (ranked.len(), self.contains_pinned(&ranked));
        let distinct = self.without_duplicates(ranked)?;
        let has_pinned = match has_candidate {
            true => self.contains_pinned(&distinct),
            false => self.matches_pinned(&*lookup)?,
        };
        Ok(FoundPages {
            total: total.saturating_sub(candidates - distinct.len()),
            has_pinned,
            best: self.requested_range(distinct),
            facets: None,
        })
    }

    /// Collects all matching pages, not only the best ones, because versions and facets depend on
    /// all of them.
    fn all(&self, lookup: &dyn Lookup) -> tantivy::Result<FoundPages> {
        let mut all = self.scored(lookup, &AllMatches(self.is_about_changes))?;
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let shown = match self.prefers_newest {
            true => self.newest(&all)?,
            false => all.clone(),
        };
        let shown = self.without_duplicates(shown)?;
        let facets = match self.counts_facets {
            true => {
                let counts = |pages| FacetCountMap::of(self.searcher, self.fields, pages);
                Some(FacetCounts::of(
                    &counts(&all)?,
                    &counts(&shown)?,
                    self.filters,
                )?)
            }
            false => None,
        };
        Ok(FoundPages {
            total: shown.len(),
            has_pinned: self.contains_pinned(&shown),
            best: self.requested_range(shown),
            facets,
        })
    }

    /// Runs a query with scores that don't depend on how the index was written: see
    /// [`ScoringStatistics`].
    fn scored<C: Collector>(
        &self,
        lookup: &dyn Lookup,
        collector: &C,
    ) -> tantivy::Result<C::Fruit> {
        let (searcher, statistics) = (self.searcher, self.statistics);
        searcher.search_with_statistics_provider(lookup, collector, statistics)
    }

    /// Returns the pages in the requested range. The caller inserts a pinned page before all
    /// others, so later pages move back by one.
    fn requested_range(&self, pages: Vec<(Score, DocAddress)>) -> Vec<(Score, DocAddress)> {
        let offset = match self.pinned {
            Some(_) => self.offset.saturating_sub(1),
            None => self.offset,
        };
        let pages = pages.into_iter().filter(|(_, at)| Some(*at) != self.pinned);
        pages.skip(offset).take(self.limit).collect()
    }

    fn contains_pinned(&self, pages: &[(Score, DocAddress)]) -> bool {
        pages.iter().any(|(_, at)| Some(*at) == self.pinned)
    }

    /// Returns true if a query matches the pinned page.
    fn matches_pinned(&self, lookup: &dyn Lookup) -> tantivy::Result<bool> {
        let Some(pinned) = self.pinned else {
            return Ok(false);
        };
        let segment = self.searcher.segment_reader(pinned.segment_ord);
        let scoring = EnableScoring::disabled_from_searcher(self.searcher);
        let mut matches = lookup.weight(scoring)?.scorer(segment, 1.0)?;
        Ok(matches.doc() <= pinned.doc_id && matches.seek(pinned.doc_id) == pinned.doc_id)
    }

    /// Removes pages that have the same text as an earlier page in the list. The index marks
    /// duplicates only at the end of a run.
    fn without_duplicates(
        &self,
        mut pages: Vec<(Score, DocAddress)>,
    ) -> tantivy::Result<Vec<(Score, DocAddress)>> {
        let hashes = self.columns("text_hash")?;
        let mut texts = HashSet::new();
        pages.retain(|(_, at)| texts.insert(hashes[at.segment_ord as usize].first(at.doc_id)));
        Ok(pages)
    }

    /// Returns the newest matching version of each page, and older versions whose score is much
    /// higher.
    fn newest(&self, pages: &[(Score, DocAddress)]) -> tantivy::Result<Vec<(Score, DocAddress)>> {
        let marks = self.columns("version_mark")?;
        let mark = |at: &DocAddress| {
            let mark = marks[at.segment_ord as usize].first(at.doc_id);
            mark.map(ProductVersionKey)
        };
        let mut newest: HashMap<u64, (u64, Score)> = HashMap::new();
        for (score, at) in pages {
            if let Some(mark) = mark(at) {
                let entry = newest
                    .entry(mark.shared())
                    .or_insert((mark.newer(), *score));
                if mark.newer() < entry.0 {
                    *entry = (mark.newer(), *score);
                }
            }
        }
        let is_shown = |(score, at): &&(Score, DocAddress)| {
            mark(at).is_none_or(|mark| {
                let (newer, lead) = newest[&mark.shared()];
                mark.newer() == newer || *score >= lead * MIN_OLDER_LEAD
            })
        };
        Ok(pages.iter().filter(is_shown).copied().collect())
    }

    fn columns(&self, name: &str) -> tantivy::Result<Vec<Column<u64>>> {
        let segments = self.searcher.segment_readers().iter();
        segments
            .map(|segment| segment.fast_fields().u64(name))
            .collect()
    }

    /// Returns true if the index contains several versions of any page.
    fn has_versions(&self) -> bool {
        self.searcher.segment_readers().iter().any(|segment| {
            let marks = segment.fast_fields().u64("version_mark");
            marks.is_ok_and(|marks| marks.values.num_vals() > 0)
        })
    }

    fn filtered(&self, lookup: Box<dyn Lookup>) -> Box<dyn Lookup> {
        if self.filters.is_empty() {
            return lookup;
        }
        let filters = self.filters.look_ups(self.fields).into_iter();
        // Filters select pages but don't affect scores.
        let filters = filters.map(|filter| {
            let filter = tantivy::query::ConstScoreQuery::new(filter, 0.0);
            (Occur::Must, Box::new(filter) as Box<dyn Lookup>)
        });
        let clauses = std::iter::once((Occur::Must, lookup)).chain(filters);
        Box::new(BooleanQuery::new(clauses.collect()))
    }

    /// Returns a query that matches the pages of `lookup`, except those that have expired.
    fn in_time(&self, lookup: Box<dyn Lookup>) -> Box<dyn Lookup> {
        let has_times = self.searcher.segment_readers().iter().any(|segment| {
            let times = segment.fast_fields().i64("until");
            times.is_ok_and(|times| times.values.num_vals() > 0)
        });
        if !has_times {
            return lookup;
        }
        let until = |at: i64| Term::from_field_i64(self.fields.until, at);
        let over = RangeQuery::new(Bound::Unbounded, Bound::Included(until(self.now)));
        Box::new(BooleanQuery::new(vec![
            (Occur::Must, lookup),
            (Occur::MustNot, Box::new(over)),
        ]))
    }
}

/// The columns from which a page's prior is computed: how likely it answers any query.
struct PriorColumns {
    linked: Option<Column<u64>>,
    worth: Option<Column<u64>>,
    is_about_changes: bool,
}

impl PriorColumns {
    fn of(segment: &SegmentReader, is_about_changes: bool) -> PriorColumns {
        PriorColumns {
            linked: segment.fast_fields().u64("linked").ok(),
            worth: segment.fast_fields().u64("worth").ok(),
            is_about_changes,
        }
    }

    /// Multiplies the score of a page by the page's prior.
    fn weighed(&self, document: DocId, score: Score) -> Score {
        let first = |column: &Option<Column<u64>>| column.as_ref()?.first(document);
        let (linked, worth) = (first(&self.linked), first(&self.worth));
        let worth = hundredths(worth.unwrap_or(100), self.is_about_changes);
        #[expect(clippy::cast_precision_loss, reason = "at most 32, and 100")]
        let (linked, worth) = (linked.unwrap_or(0) as f32, worth as f32);
        score * (1.0 + WEIGHTS.linked * linked) * worth / 100.0
    }
}

/// Collects all matching pages in any order, with their scores times their priors. The field is
/// [`RankedRetrieval::is_about_changes`].
struct AllMatches(bool);

struct SegmentMatches {
    segment: SegmentOrdinal,
    prior: PriorColumns,
    found: Vec<(Score, DocAddress)>,
}

impl Collector for AllMatches {
    type Fruit = Vec<(Score, DocAddress)>;
    type Child = SegmentMatches;

    fn for_segment(
        &self,
        segment: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<SegmentMatches> {
        Ok(SegmentMatches {
            segment,
            prior: PriorColumns::of(reader, self.0),
            found: Vec::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, found: Vec<Self::Fruit>) -> tantivy::Result<Self::Fruit> {
        Ok(found.concat())
    }
}

impl SegmentCollector for SegmentMatches {
    type Fruit = Vec<(Score, DocAddress)>;

    fn collect(&mut self, document: DocId, score: Score) {
        let score = self.prior.weighed(document, score);
        self.found
            .push((score, DocAddress::new(self.segment, document)));
    }

    fn harvest(self) -> Self::Fruit {
        self.found
    }
}
