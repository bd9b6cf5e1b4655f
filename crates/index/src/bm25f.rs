//! The score of a page: for each word of the query what all places together have of it.
//!
//! This is BM25F (Robertson, Zaragoza and Taylor 2004): how often a word stands in each place,
//! by the place's weight and length, is added up first, and then counts the less the more of it
//! there is. So a word in a title outweighs many in the text, and no rare place outweighs the
//! rest of the query, as it does where each place has a score of its own.
//!
//! To that title and text add what plain BM25 finds in them: there the few occurrences of a rare
//! word in a short page count, which a title's weight outweighs. A page gains that has the words of
//! the query near each other, in one passage or in one heading.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::Postings as _;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

/// Pages of a segment whose words are looked at for how near they stand to each other.
const MAX_PAGES_COMPARED: usize = 200;

/// The part of a place's weight that is left to a word that most pages have there: enough for a
/// page to be found.
pub(crate) const SHARED: f32 = 0.001;
/// A word that occurs in more than one in this many titles is part of the site's name.
const SHARED_TITLES: u64 = 2;
/// With fewer pages than this, no word counts as shared or common.
pub(crate) const MIN_SITE: u64 = 20;
/// The lowest weight of a form that counts as the name itself near other words.
const LEAST_NAME_WEIGHT: f32 = 0.75;

/// Returns whether most of `pages` pages have a word in a field, so that it says nothing there.
pub(crate) fn is_shared(with_word: u64, pages: u64) -> bool {
    pages >= MIN_SITE && with_word > pages / SHARED_TITLES
}

/// Looks all words of a query up at once.
#[derive(Clone, Debug)]
pub(crate) struct Bm25fQuery(pub(crate) Arc<ScoredTerms>);

/// The terms that are looked up.
#[derive(Debug)]
pub(crate) struct ScoredTerms {
    pub(crate) words: Vec<ScoredWord>,
    pub(crate) places: Vec<FieldWeight>,
    /// Telling words that a page must have at least.
    pub(crate) least: usize,
    /// The cost to a page of lacking words: its score is multiplied by this power of the part
    /// that it has.
    pub(crate) whole: f32,
    /// Telling words of the query. A page with fewer has its score multiplied by `partial`.
    pub(crate) telling: usize,
    pub(crate) partial: f32,
    /// The amount of a word that counts half of what any amount can: more counts for little.
    pub(crate) saturation: f32,
    /// The part that plain BM25 of title and text adds.
    pub(crate) text_alone: TextAlone,
    /// The gain of a page that has all words of the query in one passage of the text.
    pub(crate) passage: Nearness,
    /// The gain of one that has them in its title, in a heading or in its description.
    pub(crate) heading: Nearness,
    /// A page fits all the same that has so much of the words' rarity.
    pub(crate) least_part: f32,
    pub(crate) title: Field,
    pub(crate) body: Field,
    /// The title, headings and the description.
    pub(crate) headings: Vec<Field>,
}

/// Plain BM25 of title and text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextAlone {
    /// The most that it adds, against the most that all places together come to.
    pub(crate) weight: f32,
    /// The `k1` of BM25.
    pub(crate) saturation: f32,
    /// The `b` of BM25.
    pub(crate) length: f32,
}

/// The gain of a page by words that stand near each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearness {
    /// The gain where all words of the query do.
    pub(crate) gain: f32,
    /// The weight of a part of them, against all of them: its power.
    pub(crate) power: f32,
    /// Words that stand so near have this many positions between them at most.
    pub(crate) words: u32,
}

/// A word of the query.
#[derive(Clone, Debug)]
pub(crate) struct ScoredWord {
    /// Its forms, and how much each weighs. Of a page the form counts that it has most of.
    pub(crate) forms: Vec<(String, f32)>,
    /// The logarithm of the pages for each that has it, as BM25 has it.
    pub(crate) idf: f32,
    /// The weight of it by its rareness: a power of that.
    pub(crate) rarity: f32,
    /// True if it counts towards what a page must have.
    pub(crate) is_telling: bool,
    /// True for a name of several parts (`user_agent`): a heading with it gains as one with the
    /// parts typed apart.
    pub(crate) is_name: bool,
    /// The fields in which most pages have the word, such as titles that end in the site's name.
    /// Occurrences there hardly count.
    pub(crate) shared_in: Vec<Field>,
}

/// The places in which words are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldWeight {
    pub(crate) field: Field,
    pub(crate) weight: f32,
    /// The part that the length of the place takes away: 0 is nothing, 1 is all.
    pub(crate) length: f32,
}

impl Query for Bm25fQuery {
    fn weight(&self, _scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for Bm25fQuery {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut ranked = self.ranked(segment)?;
        ranked.iter_mut().for_each(|(_, score)| *score *= boost);
        Ok(Box::new(Ranked { ranked, at: 0 }))
    }

    fn explain(&self, _segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        Err(TantivyError::InvalidArgument(format!(
            "document {doc} is scored as a whole"
        )))
    }
}

/// The occurrences of the query, or of one word of it, in the pages of a segment.
struct Sheet<T> {
    of: Vec<T>,
    /// Pages that have something.
    pages: Vec<DocId>,
}

/// The occurrences of the query in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Has {
    score: f32,
    rarity: f32,
    telling: usize,
}

impl Bm25fQuery {
    /// The pages of a segment that have enough of the query, in their order, with their scores.
    fn ranked(&self, segment: &SegmentReader) -> tantivy::Result<Vec<(DocId, Score)>> {
        let asked = &self.0;
        let pages = segment.max_doc();
        let mut sheet: Sheet<Has> = Sheet::new(pages);
        let mut word_sheet: Sheet<f32> = Sheet::new(pages);
        let mut place_sheet: Sheet<f32> = Sheet::new(pages);
        let mut text_sheet: Sheet<f32> = Sheet::new(pages);
        let all: f32 = asked.words.iter().map(|word| word.rarity).sum();
        let all_idf: f32 = asked.words.iter().map(|word| word.idf).sum();
        let alone = asked.text_alone;
        let lengths_of_text = Lengths::of(segment, asked.body)?;
        for word in &asked.words {
            for place in &asked.places {
                count_in(word, place.field, segment, &mut place_sheet)?;
                let lengths = Lengths::of(segment, place.field)?;
                let is_shared = word.shared_in.contains(&place.field);
                let weight = place.weight * if is_shared { SHARED } else { 1.0 };
                let is_text = !is_shared && [asked.title, asked.body].contains(&place.field);
                place_sheet.drain(|page, often| {
                    let much = often / lengths.norm(page, place.length);
                    *word_sheet.at(page) += much * weight;
                    if is_text {
                        *text_sheet.at(page) += often;
                    }
                });
            }
            let most = alone.weight * all * word.idf / all_idf.max(f32::MIN_POSITIVE);
            text_sheet.drain(|page, often| {
                let much = often / lengths_of_text.norm(page, alone.length);
                sheet.at(page).score += most * much / (alone.saturation + much);
            });
            word_sheet.drain(|page, much| {
                let has = sheet.at(page);
                has.score += word.rarity * much / (asked.saturation + much);
                has.rarity += word.rarity;
                has.telling += usize::from(word.is_telling);
            });
        }
        let mut ranked = Vec::new();
        sheet.drain(|page, has| {
            let part = if all > 0.0 { has.rarity / all } else { 1.0 };
            if has.telling >= asked.least || part >= asked.least_part {
                let is_partial = has.telling < asked.telling;
                let factor = if is_partial { asked.partial } else { 1.0 };
                ranked.push((page, has.score * part.powf(asked.whole) * factor));
            }
        });
        let has_many = asked.words.len() > 1;
        if has_many || asked.words.iter().any(|word| word.is_name) {
            let last = ranked.len().min(MAX_PAGES_COMPARED);
            if last < ranked.len() {
                ranked.select_nth_unstable_by(last, |a, b| b.1.total_cmp(&a.1));
            }
            let compared = &mut ranked[..last];
            compared.sort_unstable_by_key(|(page, _)| *page);
            if has_many {
                self.add_nearness(segment, &[asked.body], asked.passage, compared)?;
            }
            self.add_nearness(segment, &asked.headings, asked.heading, compared)?;
        }
        ranked.sort_unstable_by_key(|(page, _)| *page);
        Ok(ranked)
    }

    /// Raises pages, in their order, that have words of the query near each other in one of these
    /// places.
    fn add_nearness(
        &self,
        segment: &SegmentReader,
        places: &[Field],
        nearness: Nearness,
        pages: &mut [(DocId, Score)],
    ) -> tantivy::Result<()> {
        let asked = &self.0;
        let all: f32 = asked.words.iter().map(|word| word.rarity).sum();
        let mut best = vec![0.0_f32; pages.len()];
        for place in places {
            let mut found = self.positions_in(segment, *place, pages)?;
            for (best, found) in best.iter_mut().zip(&mut found) {
                *best = best.max(best_passage(found, &asked.words, nearness.words));
            }
        }
        for ((_, score), best) in pages.iter_mut().zip(best) {
            let part = best / all.max(f32::MIN_POSITIVE);
            *score *= 1.0 + nearness.gain * part.powf(nearness.power);
        }
        Ok(())
    }

    /// The positions at which each of some pages has words of the query, with the words' numbers.
    fn positions_in(
        &self,
        segment: &SegmentReader,
        place: Field,
        pages: &[(DocId, Score)],
    ) -> tantivy::Result<Vec<Vec<(u32, usize)>>> {
        let index = segment.inverted_index(place)?;
        let mut found: Vec<Vec<(u32, usize)>> = vec![Vec::new(); pages.len()];
        let mut positions = Vec::new();
        let with = IndexRecordOption::WithFreqsAndPositions;
        for (n, word) in self.0.words.iter().enumerate() {
            if word.shared_in.contains(&place) {
                continue;
            }
            for (form, weight) in &word.forms {
                // A longer word or a guess in a heading is not the name.
                if word.is_name && *weight < LEAST_NAME_WEIGHT {
                    continue;
                }
                let term = Term::from_field_text(place, form);
                let Some(mut postings) = index.read_postings(&term, with)? else {
                    continue;
                };
                for ((page, _), found) in pages.iter().zip(&mut found) {
                    if postings.doc() < *page {
                        postings.seek(*page);
                    }
                    if postings.doc() == *page {
                        postings.positions(&mut positions);
                        // The description is indexed without positions: it is short.
                        if positions.is_empty() {
                            positions.push(0);
                        }
                        found.extend(positions.iter().map(|at| (*at, n)));
                    }
                }
            }
        }
        Ok(found)
    }
}

/// The value of the best passage of a page: the sum of its words' rarities.
fn best_passage(found: &mut [(u32, usize)], words: &[ScoredWord], passage: u32) -> f32 {
    found.sort_unstable();
    let mut counts = vec![0_u32; words.len()];
    let (mut has, mut best, mut first) = (0.0, 0.0_f32, 0);
    for last in 0..found.len() {
        let (at, word) = found[last];
        counts[word] += 1;
        if counts[word] == 1 {
            has += words[word].rarity;
        }
        while found[first].0 + passage < at {
            let word = found[first].1;
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

/// How often each page has a word in one place, by the form of it that it has most of.
fn count_in(
    word: &ScoredWord,
    place: Field,
    segment: &SegmentReader,
    sheet: &mut Sheet<f32>,
) -> tantivy::Result<()> {
    let index = segment.inverted_index(place)?;
    for (form, weight) in &word.forms {
        let term = Term::from_field_text(place, form);
        let Some(mut found) = index.read_postings(&term, IndexRecordOption::WithFreqs)? else {
            continue;
        };
        let mut page = found.doc();
        while page != TERMINATED {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let often = found.term_freq() as f32 * weight;
            let most = sheet.at(page);
            *most = most.max(often);
            page = found.advance();
        }
    }
    Ok(())
}

/// The lengths of one place, in words.
struct Lengths {
    of: FieldNormReader,
    usual: f32,
}

impl Lengths {
    fn of(segment: &SegmentReader, place: Field) -> tantivy::Result<Lengths> {
        let words = segment.inverted_index(place)?.total_num_tokens();
        #[expect(clippy::cast_precision_loss, reason = "an average, roughly")]
        let usual = words as f32 / segment.max_doc().max(1) as f32;
        Ok(Lengths {
            of: segment.get_fieldnorms_reader(place)?,
            usual: usual.max(1.0),
        })
    }

    /// The divisor of a count in a page, where this part of the length counts.
    fn norm(&self, page: DocId, part: f32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let length = self.of.fieldnorm(page) as f32 / self.usual;
        1.0 - part + part * length
    }
}

impl<T: Clone + Default + PartialEq> Sheet<T> {
    fn new(pages: DocId) -> Sheet<T> {
        Sheet {
            of: vec![T::default(); pages as usize],
            pages: Vec::new(),
        }
    }

    /// The occurrences in a page, to be added to.
    fn at(&mut self, page: DocId) -> &mut T {
        let has = &mut self.of[page as usize];
        if *has == T::default() {
            self.pages.push(page);
        }
        has
    }

    /// Takes out what each page has.
    fn drain(&mut self, mut take: impl FnMut(DocId, T)) {
        for page in self.pages.drain(..) {
            let has = std::mem::take(&mut self.of[page as usize]);
            if has != T::default() {
                take(page, has);
            }
        }
    }
}

/// Pages with their scores, one after the other.
struct Ranked {
    ranked: Vec<(DocId, Score)>,
    at: usize,
}

impl DocSet for Ranked {
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

impl Scorer for Ranked {
    fn score(&mut self) -> Score {
        self.ranked.get(self.at).map_or(0.0, |(_, score)| *score)
    }
}
