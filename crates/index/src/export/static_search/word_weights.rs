//! Computes the weight of a word on a page from the fields that contain it (BM25F), with the
//! weights of the index, and stores it in one byte.

use crate::query_plan::WEIGHTS;

pub(super) const TITLE: usize = 0;
pub(super) const HEADINGS: [usize; 3] = [1, 2, 3];
/// The index of the field for the start of the main text.
pub(super) const LEAD: usize = 4;
pub(super) const BODY: usize = 5;
/// The index of the field for the text outside the main text.
pub(super) const BESIDE: usize = 6;
pub(super) const DESCRIPTION: usize = 7;
pub(super) const KEYWORDS: usize = 8;
pub(super) const ANCHORS: usize = 9;
pub(super) const PATH: usize = 10;

/// For each field: its weight, and how much the length of the field reduces it.
const FIELD_WEIGHTS: [(f32, f32); FIELDS] = [
    WEIGHTS.title,
    WEIGHTS.headings[0],
    WEIGHTS.headings[1],
    WEIGHTS.headings[2],
    WEIGHTS.lead,
    WEIGHTS.body,
    WEIGHTS.beside,
    WEIGHTS.description,
    WEIGHTS.keywords,
    WEIGHTS.anchors,
    WEIGHTS.path,
];
pub(super) const FIELDS: usize = 11;
/// The fields whose pages are counted to get the frequency of a word. If none of them has the word,
/// `SECONDARY` is counted.
const COUNTED: [usize; 7] = [
    TITLE,
    HEADINGS[0],
    HEADINGS[1],
    HEADINGS[2],
    BODY,
    ANCHORS,
    PATH,
];
const SECONDARY: [usize; 3] = [DESCRIPTION, KEYWORDS, BESIDE];

/// For each field, the number of occurrences of a word on one page.
pub(super) type FieldOccurrenceCounts = [u16; FIELDS];
/// The length of each field of a page, in words.
pub(super) type FieldLengths = [u32; FIELDS];

/// Returns the fields that have a word and count for its frequency, as bits.
pub(super) fn counted_fields(counts: &FieldOccurrenceCounts) -> u16 {
    let fields = COUNTED.into_iter().chain(SECONDARY);
    let fields = fields.filter(|field| counts[*field] > 0);
    fields.map(|field| 1 << field).sum()
}

/// Returns whether only the text outside the main text has a word.
pub(super) fn is_only_beside(counts: &FieldOccurrenceCounts) -> bool {
    (0..FIELDS).all(|field| (counts[field] > 0) == (field == BESIDE))
}

/// Returns the number of pages that have a word in the same field, for the field with the most such
/// pages, as the index counts them. `pages` has the [`counted_fields`] of each page.
pub(super) fn frequency(pages: impl Iterator<Item = u16>) -> u32 {
    let mut counts = [0; FIELDS];
    for fields in pages {
        for (field, count) in counts.iter_mut().enumerate() {
            *count += u32::from(fields >> field & 1);
        }
    }
    let max_of = |fields: &[usize]| fields.iter().map(|field| counts[*field]).max();
    let max_counted = max_of(&COUNTED).filter(|pages| *pages > 0);
    max_counted.or_else(|| max_of(&SECONDARY)).unwrap_or(0)
}

/// The mean lengths of the fields over all pages.
#[derive(Debug)]
pub(super) struct MeanFieldLengths([f32; FIELDS]);

impl MeanFieldLengths {
    pub(super) fn of<'l>(
        pages: impl ExactSizeIterator<Item = &'l FieldLengths>,
    ) -> MeanFieldLengths {
        let count = pages.len().max(1) as f64;
        let mut sums = [0_u64; FIELDS];
        for lengths in pages {
            for (sum, length) in sums.iter_mut().zip(lengths) {
                *sum += u64::from(*length);
            }
        }
        MeanFieldLengths(sums.map(|sum| (sum as f64 / count).max(1.0) as f32))
    }

    /// Returns the weight of a word on a page. `factors` are multiplied with the weights of the
    /// fields.
    pub(super) fn weight(
        &self,
        counts: &FieldOccurrenceCounts,
        lengths: &FieldLengths,
        factors: &[f32; FIELDS],
    ) -> f32 {
        let of_field = |field: usize| {
            let (weight, part) = FIELD_WEIGHTS[field];
            let often = f32::from(counts[field]) / self.norm(field, lengths, part);
            weight * factors[field] * often
        };
        (0..FIELDS).map(of_field).sum()
    }

    /// Returns the number of occurrences of a word in title and text, divided by the relative
    /// length of the text. Plain BM25 is computed from this number.
    pub(super) fn text(
        &self,
        counts: &FieldOccurrenceCounts,
        lengths: &FieldLengths,
        factors: &[f32; FIELDS],
    ) -> f32 {
        let is_in_title = factors[TITLE] >= 1.0;
        let title = if is_in_title { counts[TITLE] } else { 0 };
        let often = f32::from(title) + f32::from(counts[BODY]);
        often / self.norm(BODY, lengths, WEIGHTS.text_alone.length)
    }

    fn norm(&self, field: usize, lengths: &FieldLengths, part: f32) -> f32 {
        1.0 - part + part * lengths[field] as f32 / self.0[field]
    }
}

/// The number of byte values from one weight to its double.
const STEPS: f32 = 16.0;
/// The weight that is encoded as the byte `STEPS`.
const FIRST_STEP: f32 = 0.02;

/// Encodes a weight in one byte. `search.js` decodes the byte `n` as `FIRST_STEP * (2^(n / STEPS) -
/// 1)`.
pub(super) fn byte(weight: f32) -> u8 {
    let steps = STEPS * (1.0 + weight.max(0.0) / FIRST_STEP).log2();
    // The greatest byte also encodes all greater weights.
    steps.round().clamp(1.0, 255.0) as u8
}

/// The number of byte values that encode the part of plain BM25. With fewer, the word files are
/// smaller, but more pages with nearly equal scores change places.
const TEXT_STEPS: f32 = 64.0;

/// Encodes an adjusted number of occurrences in title and text, saturated as in BM25. `search.js`
/// decodes the byte `n` to the number of occurrences that BM25 saturates to `n / TEXT_STEPS`.
pub(super) fn text_byte(often: f32) -> u8 {
    let saturated = often / (WEIGHTS.text_alone.saturation + often);
    (TEXT_STEPS * saturated)
        .round()
        .clamp(0.0, TEXT_STEPS - 1.0) as u8
}

#[cfg(test)]
mod tests {
    use super::{
        ANCHORS, BESIDE, BODY, DESCRIPTION, FIELDS, FIRST_STEP, KEYWORDS, LEAD, MeanFieldLengths,
        STEPS, TITLE, byte, counted_fields, frequency, text_byte,
    };

    #[test]
    fn bytes_are_near_to_weights() {
        let weight = |byte: u8| FIRST_STEP * ((f32::from(byte) / STEPS).exp2() - 1.0);
        for n in 1..2000 {
            let exact = n as f32 / 20.0;
            let near = weight(byte(exact));
            assert!((near / exact - 1.0).abs() < 0.05, "{exact} {near}");
        }
        assert_eq!(byte(0.0), 1);
        assert_eq!(byte(f32::MAX), 255);
        assert_eq!(byte(f32::NAN), 1);
        assert_eq!(
            [0.0, 1.2, f32::MAX, f32::NAN].map(text_byte),
            [0, 32, 63, 0]
        );
    }

    #[test]
    fn the_field_with_the_most_pages_decides_how_frequent_a_word_is() {
        let page = |fields: &[usize]| {
            let mut counts = [0; FIELDS];
            for field in fields {
                counts[*field] = 2;
            }
            counted_fields(&counts)
        };
        let pages = |pages: &[&[usize]]| frequency(pages.iter().map(|fields| page(fields)));
        assert_eq!(
            pages(&[&[TITLE], &[TITLE, BODY], &[BODY], &[BODY, LEAD]]),
            3
        );
        // These fields count only if no other field has the word.
        for field in [DESCRIPTION, KEYWORDS, BESIDE] {
            assert_eq!(pages(&[&[field], &[field, TITLE]]), 1, "{field}");
            assert_eq!(pages(&[&[field], &[field]]), 2, "{field}");
        }
        assert_eq!(pages(&[]), 0);
    }

    #[test]
    fn a_word_of_a_short_field_weighs_more() {
        let (short, long) = ([2; FIELDS], [12; FIELDS]);
        let means = MeanFieldLengths::of([&short, &long].into_iter());
        for field in [TITLE, BODY, ANCHORS] {
            let mut counts = [0; FIELDS];
            counts[field] = 1;
            let weight = |lengths| means.weight(&counts, lengths, &[1.0; FIELDS]);
            assert!(weight(&short) > weight(&long), "{field}");
        }
    }
}
