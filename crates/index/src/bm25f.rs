//! Scores pages with BM25F: for each word of the query, the word's occurrences in all fields of the
//! page are added up.
//!
//! In BM25F (Robertson, Zaragoza and Taylor 2004), the occurrences of a word in each field are
//! adjusted for the field's weight and length. Their sum over all fields then saturates. So a word
//! in a title outweighs many occurrences in the text, but no single field outweighs the rest of the
//! query, as it could if each field had a score of its own.
//!
//! Plain BM25 of title and text is added to the score, for the sake of short pages that contain a
//! rare word a few times. Without it, matches in the titles of other pages would outweigh these
//! pages. The score also rises if the query's words are near each other in the page, in one passage
//! or one heading.

use std::sync::Arc;

use serde::Serialize;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::Postings as _;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

/// Maximum pages of a segment whose words are compared for nearness.
/// Beyond the limit: ranked without proximity.
const MAX_PAGES_COMPARED: usize = 200;

/// The weight factor of a field for a word that most pages have in that field. Small, but not zero,
/// so that pages with the word are still found.
pub(crate) const SHARED: f32 = 0.001;
/// A word counts as shared in a field if more than one in this many pages have it there. For
/// example, the site's name is shared if it is in the titles of more than half of all pages.
const SHARED_TITLES: u64 = 2;
/// A site with fewer pages than this has neither shared words (in most titles or headings) nor
/// common words (on many pages).
pub(crate) const MIN_SITE: u64 = 20;
/// The minimum weight of a form that counts as an occurrence of a name (such as `user_agent`) when
/// the score is raised for words near each other. Longer words and corrections have less weight, so
/// they don't count.
const LEAST_NAME_WEIGHT: f32 = 0.75;

/// Returns true if most of `pages` pages have a word in a field, so that the word doesn't
/// distinguish pages there.
pub(crate) fn is_shared(with_word: u64, pages: u64) -> bool {
    pages >= MIN_SITE && with_word > pages / SHARED_TITLES
}

/// A tantivy query that looks up all words of a user's query together and scores pages with BM25F.
#[derive(Clone, Debug)]
pub(crate) struct Bm25fQuery(pub(crate) Arc<Bm25fQueryDefinition>);

/// The words to look up and the parameters of the score.
#[derive(Debug)]
pub(crate) struct Bm25fQueryDefinition {
    pub(crate) words: Vec<ScoredQueryWord>,
    pub(crate) places: Vec<WeightedField>,
    /// The minimum number of the query's distinctive words that a page must have.
    pub(crate) least: usize,
    /// The exponent of the penalty for missing words. The score is multiplied by
    /// `share.powf(whole)`. Here, `share` is the total rarity of the words that the page has,
    /// divided by the total rarity of all words.
    pub(crate) whole: f32,
    /// The number of distinctive words (words that are not common) in the query. If a page has
    /// fewer of these words, its score is multiplied by `partial`.
    pub(crate) distinctive: usize,
    pub(crate) partial: f32,
    /// The number of occurrences of a word that yields half of the maximum score.
    pub(crate) saturation: f32,
    /// How much plain BM25 of title and text adds to the score.
    pub(crate) text_alone: PlainBm25Parameters,
    /// How much the score rises if the query's words are near each other in the main text.
    pub(crate) passage: ProximityBoost,
    /// How much the score rises if the query's words are near each other in the title, in one
    /// heading or in the description.
    pub(crate) heading: ProximityBoost,
    /// A page with fewer than `least` words still matches if its words are rare: their rarities
    /// must have at least this share of the sum over all words.
    pub(crate) least_part: f32,
    pub(crate) title: Field,
    pub(crate) body: Field,
    /// The fields of the title, the headings and the description.
    pub(crate) headings: Vec<Field>,
}

/// The parameters of plain BM25 of title and text.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PlainBm25Parameters {
    /// The maximum that plain BM25 adds, relative to the maximum score of BM25F.
    pub(crate) weight: f32,
    /// The `k1` of BM25.
    pub(crate) saturation: f32,
    /// The `b` of BM25.
    pub(crate) length: f32,
}

/// How much the score rises if the query's words are near each other in a page.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ProximityBoost {
    /// The greatest rise of the score, as a share of the score. The score rises by this much if all
    /// words of the query are near each other.
    pub(crate) gain: f32,
    /// The exponent applied to the share of the query's words that are near each other. Each word
    /// counts by its rarity.
    pub(crate) power: f32,
    /// The maximum distance between the first and the last of the words that count as near each
    /// other, in words.
    pub(crate) words: u32,
}

/// A word of the query.
#[derive(Clone, Debug)]
pub(crate) struct ScoredQueryWord {
    /// The forms of the word with their weights. In each page, only the form with the greatest
    /// weighted count is used.
    pub(crate) forms: Vec<(String, f32)>,
    /// Groups of forms whose occurrences are added up and count as one form.
    pub(crate) inflections: Vec<SameStemTerms>,
    /// The inverse document frequency, as in BM25.
    pub(crate) idf: f32,
    /// The weight of the word according to its rarity: a power of `idf`.
    pub(crate) rarity: f32,
    /// True if the word counts towards the number of words that a page must have.
    pub(crate) is_distinctive: bool,
    /// True for a name of several parts, such as `user_agent`. If a heading contains the name, the
    /// score rises as if the parts had been typed as separate words.
    pub(crate) is_name: bool,
    /// The fields where most pages have the word, such as titles that end in the site's name.
    /// Occurrences in these fields hardly count.
    pub(crate) shared_in: Vec<Field>,
}

/// The terms for all words with the same stem, and the weight of their added-up count.
pub(crate) type SameStemTerms = (Vec<String>, f32);

/// A field to search, with its weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightedField {
    pub(crate) field: Field,
    pub(crate) weight: f32,
    /// How much the length of the field reduces the score, from 0 (not at all) to 1 (fully).
    pub(crate) length: f32,
}

impl Query for Bm25fQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let terms = Arc::clone(&self.0);
        let mean_length = |place: &WeightedField| match scoring {
            EnableScoring::Enabled {
                statistics_provider,
                ..
            } => mean_length(place.field, statistics_provider),
            // Without scoring, matching pages are only counted, so the length doesn't matter.
            EnableScoring::Disabled { .. } => Ok(1.0),
        };
        let mean_lengths = terms.places.iter().map(mean_length);
        Ok(Box::new(Bm25fWeight {
            mean_lengths: mean_lengths.collect::<tantivy::Result<_>>()?,
            terms,
        }))
    }
}

/// Returns the mean length of a field over all pages, in words. At least 1.
fn mean_length(field: Field, statistics: &dyn Bm25StatisticsProvider) -> tantivy::Result<f32> {
    let words = statistics.total_num_tokens(field)?;
    let pages = statistics.total_num_docs()?.max(1);
    #[expect(clippy::cast_precision_loss, reason = "an average, roughly")]
    let mean = words as f32 / pages as f32;
    Ok(mean.max(1.0))
}

/// A [`Bm25fQuery`] prepared for one index.
struct Bm25fWeight {
    terms: Arc<Bm25fQueryDefinition>,
    /// The mean length of each field in `terms.places`, in words.
    mean_lengths: Vec<f32>,
}

impl Weight for Bm25fWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut ranked = self.ranked(segment)?;
        ranked.iter_mut().for_each(|(_, score)| *score *= boost);
        Ok(Box::new(Bm25fScorer { ranked, at: 0 }))
    }

    fn explain(&self, _segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument(format!(
            "document {doc} is scored as a whole"
        )))
    }
}

/// A value for each page of a segment, such as the weighted count of a word. Unlike a plain vector,
/// it can be emptied without visiting all pages.
struct PageAccumulators<T> {
    of: Vec<T>,
    /// The pages whose value in `of` may differ from the default, possibly with repetitions.
    pages: Vec<DocId>,
}

/// The result for one page: its score, the total rarity of the query's words on it, and the number
/// of the query's distinctive words on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PageScore {
    score: f32,
    rarity: f32,
    distinctive: usize,
}

impl Bm25fWeight {
    /// Returns the page lengths of a segment for each field in `terms.places`.
    fn lengths(&self, segment: &SegmentReader) -> tantivy::Result<Vec<Lengths>> {
        let places = self.terms.places.iter().zip(&self.mean_lengths);
        let lengths = places.map(|(place, mean)| {
            Ok(Lengths {
                of: segment.get_fieldnorms_reader(place.field)?,
                mean: *mean,
            })
        });
        lengths.collect()
    }

    /// Returns the matching pages of a segment with their scores, in ascending order of document
    /// number.
    fn ranked(&self, segment: &SegmentReader) -> tantivy::Result<Vec<(DocId, Score)>> {
        let terms = &self.terms;
        let pages = segment.max_doc();
        let mut tallies: PageAccumulators<PageScore> = PageAccumulators::new(pages);
        let mut word_counts: PageAccumulators<f32> = PageAccumulators::new(pages);
        let mut field_counts: PageAccumulators<f32> = PageAccumulators::new(pages);
        let mut text_counts: PageAccumulators<f32> = PageAccumulators::new(pages);
        let mut sums: PageAccumulators<f32> = PageAccumulators::new(pages);
        let all: f32 = terms.words.iter().map(|word| word.rarity).sum();
        let all_idf: f32 = terms.words.iter().map(|word| word.idf).sum();
        let alone = terms.text_alone;
        let lengths = self.lengths(segment)?;
        let text = terms
            .places
            .iter()
            .position(|place| place.field == terms.body);
        let text = text.and_then(|text| lengths.get(text));
        for word in &terms.words {
            for (place, lengths) in terms.places.iter().zip(&lengths) {
                count_in(word, place.field, segment, &mut field_counts, &mut sums)?;
                let is_shared = word.shared_in.contains(&place.field);
                let weight = place.weight * if is_shared { SHARED } else { 1.0 };
                let is_text = !is_shared && [terms.title, terms.body].contains(&place.field);
                field_counts.drain(|page, often| {
                    let much = often / lengths.norm(page, place.length);
                    *word_counts.at(page) += much * weight;
                    if is_text {
                        *text_counts.at(page) += often;
                    }
                });
            }
            let max_bonus = alone.weight * all * word.idf / all_idf.max(f32::MIN_POSITIVE);
            text_counts.drain(|page, often| {
                let much = often / text.map_or(1.0, |text| text.norm(page, alone.length));
                tallies.at(page).score += max_bonus * much / (alone.saturation + much);
            });
            word_counts.drain(|page, much| {
                let tally = tallies.at(page);
                tally.score += word.rarity * much / (terms.saturation + much);
                tally.rarity += word.rarity;
                tally.distinctive += usize::from(word.is_distinctive);
            });
        }
        let mut ranked = Vec::new();
        tallies.drain(|page, tally| {
            let part = if all > 0.0 { tally.rarity / all } else { 1.0 };
            let matches = tally.distinctive >= terms.least || part >= terms.least_part;
            // Skip deleted pages, because they would count against `MAX_PAGES_COMPARED`.
            if matches && !segment.is_deleted(page) {
                let is_partial = tally.distinctive < terms.distinctive;
                let factor = if is_partial { terms.partial } else { 1.0 };
                ranked.push((page, tally.score * part.powf(terms.whole) * factor));
            }
        });
        let has_many = terms.words.len() > 1;
        if has_many || terms.words.iter().any(|word| word.is_name) {
            let last = ranked.len().min(MAX_PAGES_COMPARED);
            if last < ranked.len() {
                ranked.select_nth_unstable_by(last, |a, b| b.1.total_cmp(&a.1));
            }
            let compared = &mut ranked[..last];
            compared.sort_unstable_by_key(|(page, _)| *page);
            if has_many {
                self.add_nearness(segment, &[terms.body], terms.passage, compared)?;
            }
            self.add_nearness(segment, &terms.headings, terms.heading, compared)?;
        }
        ranked.sort_unstable_by_key(|(page, _)| *page);
        Ok(ranked)
    }

    /// Raises the scores of pages in which the query's words are near each other in one of the
    /// fields `places`. `pages` must be in ascending order.
    fn add_nearness(
        &self,
        segment: &SegmentReader,
        places: &[Field],
        nearness: ProximityBoost,
        pages: &mut [(DocId, Score)],
    ) -> tantivy::Result<()> {
        let terms = &self.terms;
        let all: f32 = terms.words.iter().map(|word| word.rarity).sum();
        let mut best = vec![0.0_f32; pages.len()];
        for place in places {
            let mut positions = self.positions_in(segment, *place, pages)?;
            for (best, positions) in best.iter_mut().zip(&mut positions) {
                *best = best.max(best_passage(positions, &terms.words, nearness.words));
            }
        }
        for ((_, score), best) in pages.iter_mut().zip(best) {
            let part = best / all.max(f32::MIN_POSITIVE);
            *score *= 1.0 + nearness.gain * part.powf(nearness.power);
        }
        Ok(())
    }

    /// Returns the positions of the query's words in each page, as pairs of a position and the
    /// index of the word in the query.
    fn positions_in(
        &self,
        segment: &SegmentReader,
        place: Field,
        pages: &[(DocId, Score)],
    ) -> tantivy::Result<Vec<Vec<(u32, usize)>>> {
        let index = segment.inverted_index(place)?;
        let mut positions_by_page: Vec<Vec<(u32, usize)>> = vec![Vec::new(); pages.len()];
        let mut positions = Vec::new();
        let with = IndexRecordOption::WithFreqsAndPositions;
        for (n, word) in self.terms.words.iter().enumerate() {
            if word.shared_in.contains(&place) {
                continue;
            }
            for (form, weight) in &word.forms {
                // Only count the name itself here, not longer words or corrections.
                if word.is_name && *weight < LEAST_NAME_WEIGHT {
                    continue;
                }
                let term = Term::from_field_text(place, form);
                let Some(mut postings) = index.read_postings(&term, with)? else {
                    continue;
                };
                for ((page, _), positions_by_page) in pages.iter().zip(&mut positions_by_page) {
                    if postings.doc() < *page {
                        postings.seek(*page);
                    }
                    if postings.doc() == *page {
                        postings.positions(&mut positions);
                        // Positions are not stored for short fields, such as the description, so
                        // all words there count as near.
                        if positions.is_empty() {
                            positions.push(0);
                        }
                        positions_by_page.extend(positions.iter().map(|at| (*at, n)));
                    }
                }
            }
        }
        Ok(positions_by_page)
    }
}

/// Returns the greatest total rarity of distinct words that are within `passage` words of each
/// other. Sorts `positions`.
fn best_passage(positions: &mut [(u32, usize)], words: &[ScoredQueryWord], passage: u32) -> f32 {
    positions.sort_unstable();
    let mut counts = vec![0_u32; words.len()];
    let (mut has, mut best, mut first) = (0.0, 0.0_f32, 0);
    for last in 0..positions.len() {
        let (at, word) = positions[last];
        counts[word] += 1;
        if counts[word] == 1 {
            has += words[word].rarity;
        }
        while positions[first].0 + passage < at {
            let word = positions[first].1;
            counts[word] -= 1;
            if counts[word] == 0 {
                has -= words[word].rarity;
            }
            first += 1;
        }
        best = best.max(has);
    }
    best
}

/// Counts a word in one field, and stores each page's weighted count in `counts`. If the word has
/// several forms, the greatest weighted count is stored. Inflections count as one form. `sums` is a
/// reusable buffer and must be empty.
fn count_in(
    word: &ScoredQueryWord,
    place: Field,
    segment: &SegmentReader,
    counts: &mut PageAccumulators<f32>,
    sums: &mut PageAccumulators<f32>,
) -> tantivy::Result<()> {
    let index = segment.inverted_index(place)?;
    let each_page = |form: &str, count: &mut dyn FnMut(DocId, f32)| -> tantivy::Result<()> {
        let term = Term::from_field_text(place, form);
        let Some(mut postings) = index.read_postings(&term, IndexRecordOption::WithFreqs)? else {
            return Ok(());
        };
        let mut page = postings.doc();
        while page != TERMINATED {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            count(page, postings.term_freq() as f32);
            page = postings.advance();
        }
        Ok(())
    };
    for (form, weight) in &word.forms {
        let is_other =
            |(inflections, of_sum): &SameStemTerms| weight > of_sum || !inflections.contains(form);
        if word.inflections.iter().all(is_other) {
            each_page(form, &mut |page, often| {
                let count = counts.at(page);
                *count = count.max(often * weight);
            })?;
        }
    }
    for (inflections, weight) in &word.inflections {
        for form in inflections {
            each_page(form, &mut |page, often| *sums.at(page) += often)?;
        }
        sums.drain(|page, often| {
            let count = counts.at(page);
            *count = count.max(often * weight);
        });
    }
    Ok(())
}

/// The lengths of a field in the pages of a segment, in words.
struct Lengths {
    of: FieldNormReader,
    /// The mean length over all pages of the index.
    mean: f32,
}

impl Lengths {
    /// Returns the divisor that corrects a word's count in a page for the length of the field.
    /// `part` is how much the length matters, from 0 to 1.
    fn norm(&self, page: DocId, part: f32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let length = self.of.fieldnorm(page) as f32 / self.mean;
        1.0 - part + part * length
    }
}

impl<T: Clone + Default + PartialEq> PageAccumulators<T> {
    fn new(pages: DocId) -> PageAccumulators<T> {
        PageAccumulators {
            of: vec![T::default(); pages as usize],
            pages: Vec::new(),
        }
    }

    /// Returns a mutable reference to the value of a page.
    fn at(&mut self, page: DocId) -> &mut T {
        let has = &mut self.of[page as usize];
        if *has == T::default() {
            self.pages.push(page);
        }
        has
    }

    /// Passes each value that is not the default to `take`, and resets all values to the default.
    fn drain(&mut self, mut take: impl FnMut(DocId, T)) {
        for page in self.pages.drain(..) {
            let has = std::mem::take(&mut self.of[page as usize]);
            if has != T::default() {
                take(page, has);
            }
        }
    }
}

/// Pages with their scores, ordered by page number.
struct Bm25fScorer {
    ranked: Vec<(DocId, Score)>,
    at: usize,
}

impl DocSet for Bm25fScorer {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.ranked.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|(page, _)| *page < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.ranked
            .get(self.at)
            .map_or(TERMINATED, |(page, _)| *page)
    }

    fn size_hint(&self) -> u32 {
        u32::try_from(self.ranked.len() - self.at.min(self.ranked.len())).unwrap_or(u32::MAX)
    }
}

impl Scorer for Bm25fScorer {
    fn score(&mut self) -> Score {
        self.ranked.get(self.at).map_or(0.0, |(_, score)| *score)
    }
}
