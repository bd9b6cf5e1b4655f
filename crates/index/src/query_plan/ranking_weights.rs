//! The weights that decide the ranking of pages.

use serde::Serialize;

use crate::bm25f::{PlainBm25Parameters, ProximityBoost, WeightedField};
use crate::schema::TextFields;

/// The weights that decide the ranking of pages. Each searched field, such as `title`, has two
/// numbers: its weight, and how much the length of the field reduces it, from 0 to 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RankingWeights {
    pub(crate) title: (f32, f32),
    pub(crate) headings: [(f32, f32); 3],
    pub(crate) lead: (f32, f32),
    pub(crate) body: (f32, f32),
    pub(crate) beside: (f32, f32),
    pub(crate) description: (f32, f32),
    pub(crate) keywords: (f32, f32),
    pub(crate) anchors: (f32, f32),
    pub(crate) path: (f32, f32),
    /// See [`Bm25fQueryDefinition`](crate::bm25f::Bm25fQueryDefinition) for `saturation`, `whole`,
    /// `text_alone`, `passage` and `heading`.
    pub(crate) saturation: f32,
    pub(crate) whole: f32,
    /// The factor for the score of a page with only one word of a two-word query. The factor is so
    /// small that pages with both words come first.
    pub(crate) one_of_pair: f32,
    pub(crate) text_alone: PlainBm25Parameters,
    pub(crate) passage: ProximityBoost,
    pub(crate) heading: ProximityBoost,
    /// The exponent applied to BM25's inverse document frequency. It is less than 1, because rare
    /// words of a question often matter little: only the questioner uses them.
    pub(crate) rarity_power: f32,
    /// The factor applied to the number of pages with a word before its inverse document frequency
    /// is computed. With 1.3, a word on three quarters of all pages counts almost nothing.
    pub(crate) frequency: f32,
    /// A page that lacks most words of a longer query still matches if its words are rare: their
    /// rarities must have at least this share of the sum over all words.
    pub(crate) least_part: f32,
    /// The weight of a word with the same stem, relative to the typed word.
    pub(crate) stem: f32,
    /// The weight of a synonym from the site owner's rules.
    pub(crate) synonym: f32,
    /// The weight of a longer word that starts with the typed word, if no page has the typed word
    /// itself or `word*` was typed.
    pub(crate) beginning: f32,
    /// The weight of a longer word that starts with the query's last word, if pages also have the
    /// last word itself.
    pub(crate) longer: f32,
    /// The weight of a compound that ends in the typed word.
    pub(crate) compound: f32,
    /// The weight of a correction of the typed word.
    pub(crate) correction: f32,
    /// The weights of two adjacent words of the query that are adjacent in a page: in the text, and
    /// in titles and headings.
    pub(crate) neighbours: (f32, f32),
    /// The weight of a name typed without spaces (`std::vec::Vec`) whose words a page contains in
    /// sequence.
    pub(crate) name: f32,
    /// In queries that score each field separately: the share of the other fields' scores that is
    /// added to the score of the best field.
    pub(crate) others: f32,
    /// How much the score rises each time the number of pages that link to a page doubles.
    pub(crate) linked: f32,
}

/// The weights in use. They were found by trying random changes, keeping those that improved the
/// results of the queries marked `tune` in `cargo xtask bench search`, and rounding. Other queries
/// were not considered. `longer`, `name`, `compound`, `beside` and `synonym` were set by hand,
/// which changed the results of these queries by less than 0.01.
pub(crate) const WEIGHTS: RankingWeights = RankingWeights {
    title: (11.0, 0.5),
    headings: [(9.0, 0.7), (1.5, 0.2), (0.5, 0.1)],
    lead: (6.0, 0.5),
    body: (0.53, 0.3),
    beside: (0.1, 0.2),
    description: (5.0, 0.5),
    keywords: (1.5, 0.5),
    anchors: (1.0, 0.1),
    path: (2.5, 0.15),
    saturation: 9.0,
    whole: 0.25,
    one_of_pair: 0.001,
    text_alone: PlainBm25Parameters {
        weight: 0.27,
        saturation: 1.2,
        length: 0.75,
    },
    passage: ProximityBoost {
        gain: 0.45,
        power: 1.3,
        words: 65,
    },
    heading: ProximityBoost {
        gain: 1.5,
        power: 4.0,
        words: 5,
    },
    rarity_power: 0.3,
    frequency: 1.3,
    least_part: 0.3,
    stem: 0.85,
    synonym: 0.9,
    beginning: 0.7,
    longer: 0.3,
    compound: 0.4,
    correction: 0.8,
    neighbours: (0.08, 0.08),
    name: 2.0,
    others: 0.3,
    linked: 0.016,
};

/// Returns the fields to search for words, with their weights.
pub(super) fn weighted_fields(texts: &TextFields) -> Vec<WeightedField> {
    let of = |field, (weight, length)| WeightedField {
        field,
        weight,
        length,
    };
    vec![
        of(texts.title, WEIGHTS.title),
        of(texts.headings[0], WEIGHTS.headings[0]),
        of(texts.headings[1], WEIGHTS.headings[1]),
        of(texts.headings[2], WEIGHTS.headings[2]),
        of(texts.lead, WEIGHTS.lead),
        of(texts.body, WEIGHTS.body),
        of(texts.beside, WEIGHTS.beside),
        of(texts.description, WEIGHTS.description),
        of(texts.keywords, WEIGHTS.keywords),
        of(texts.anchors, WEIGHTS.anchors),
        of(texts.path, WEIGHTS.path),
    ]
}
