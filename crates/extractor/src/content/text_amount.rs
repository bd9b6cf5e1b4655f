//! Measures the amount of text.

/// Measures text in half words. A word counts as two half words. A character of a script without
/// spaces, such as Chinese, counts as one half word, because it has about as much information.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TextAmountCounter {
    in_word: bool,
}

impl TextAmountCounter {
    /// Returns the number of half words that the next character adds.
    #[inline]
    pub(super) fn add(&mut self, c: char) -> u32 {
        let is_letter = if c.is_ascii() {
            c.is_ascii_alphanumeric()
        } else {
            c.is_alphanumeric()
        };
        if !is_letter {
            // The letters after an apostrophe belong to the same word.
            self.in_word &= matches!(c, '\'' | '\u{2019}');
            return 0;
        }
        if !c.is_ascii() && is_unspaced(c) {
            self.in_word = false;
            return 1;
        }
        let is_first = !std::mem::replace(&mut self.in_word, true);
        if is_first { 2 } else { 0 }
    }

    /// Returns the number of half words that these ASCII characters add. Faster than calling
    /// [`TextAmountCounter::add`] for each character, with the same result.
    pub(super) fn add_ascii(&mut self, text: &[u8]) -> u32 {
        let mut words = 0;
        for byte in text {
            let is_letter = byte.is_ascii_alphanumeric();
            words += u32::from(is_letter && !self.in_word);
            self.in_word = is_letter || self.in_word && *byte == b'\'';
        }
        2 * words
    }
}

/// Returns whether `c` belongs to a script without spaces between words: Thai, Lao, Burmese, Khmer,
/// Chinese, Japanese, Yi.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{312f}'
        | '\u{3190}'..='\u{a4cf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(text: &str) -> u32 {
        let mut weigher = TextAmountCounter::default();
        text.chars().map(|c| weigher.add(c)).sum()
    }

    #[test]
    fn words_count_two_and_unspaced_characters_one() {
        assert_eq!(weigh(""), 0);
        assert_eq!(weigh("Two words."), 4);
        assert_eq!(weigh("don't l\u{2019}eau 3.5"), 8);
        assert_eq!(weigh("東京へ行く"), 5);
        assert_eq!(weigh("한국어 문장"), 4);
        assert_eq!(weigh("שלום עולם"), 4);
        assert_eq!(weigh("-- | ** ©"), 0);
    }
}
