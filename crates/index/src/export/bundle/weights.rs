//! Computes the weight of a word on a page from the fields that contain it (BM25F), and stores it
//! in one byte.

/// The weight of words in a field of a page, and the usual length of the field in words. In a
/// longer field, words have less weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    weight: f32,
    usual: f32,
}

pub(super) const TITLE: Field = field(5.0, 6.0);
pub(super) const HEADINGS: [Field; 3] = [field(4.0, 6.0), field(3.0, 40.0), field(2.5, 80.0)];
pub(super) const DESCRIPTION: Field = field(1.5, 20.0);
pub(super) const KEYWORDS: Field = field(1.5, 10.0);
pub(super) const ANCHORS: Field = field(6.0, 12.0);
pub(super) const PATH: Field = field(4.0, 3.0);
/// The field for the start of the main text.
pub(super) const LEAD: Field = field(1.5, 60.0);

/// The weight of a word outside the main text. It isn't added to the weight from other fields, such
/// as the path.
pub(super) const BESIDE: f32 = 0.1;

/// How much the length of a field lowers the weight of its words, from 0 to 1.
const BY_LENGTH: f32 = 0.6;
/// How much the length of the main text lowers the weight of its words, from 0 to 1.
const BODY_BY_LENGTH: f32 = 0.75;
/// How much the weight rises each time the number of pages that link to a page doubles.
const LINKED: f32 = 0.03;

const fn field(weight: f32, usual: f32) -> Field {
    Field { weight, usual }
}

impl Field {
    /// Returns the weight of one occurrence of a word in a field of `words` words.
    pub(super) fn each(self, words: usize) -> f32 {
        self.weight / length_norm(BY_LENGTH, words as f32, self.usual)
    }
}

/// Returns the weight of one occurrence of a word in a main text of `words` words. `mean` is the
/// mean length of main texts.
pub(super) fn in_body(words: u32, mean: f32) -> f32 {
    1.0 / length_norm(BODY_BY_LENGTH, words as f32, mean)
}

/// Returns the factor for all weights of a page to which `linked_from` pages link.
pub(super) fn by_links(linked_from: u32) -> f32 {
    1.0 + LINKED * (1.0 + linked_from as f32).log2()
}

fn length_norm(part: f32, words: f32, usual: f32) -> f32 {
    1.0 - part + part * words / usual.max(1.0)
}

/// The number of steps from one weight to its double.
const STEPS: f32 = 24.0;
/// The weight that is encoded as `STEPS`.
const FIRST_STEP: f32 = 0.125;

/// Encodes a weight in one byte. `search.js` decodes the byte `n` as `FIRST_STEP * (2^(n / STEPS) -
/// 1)`.
pub(super) fn byte(weight: f32) -> u8 {
    let steps = STEPS * (1.0 + weight.max(0.0) / FIRST_STEP).log2();
    // Weights that are too large become 255.
    steps.round().clamp(1.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::{FIRST_STEP, STEPS, TITLE, byte};

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
    }

    #[test]
    fn a_word_of_a_short_title_weighs_more() {
        assert!(TITLE.each(2) > TITLE.each(12));
    }
}
