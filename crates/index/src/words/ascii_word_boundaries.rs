//! Finds word boundaries in plain ASCII text, as UAX 29 defines them. Faster than the general
//! algorithm.

use std::ops::Range;

/// Calls `word` with the byte range of each word in a line. Takes linear time.
pub(super) fn each(line: &str, mut word: impl FnMut(Range<usize>)) {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_within(bytes[at]) {
            at += 1;
            continue;
        }
        let end = end_of(bytes, at);
        // Underscores alone are not a word.
        if bytes[at..end].iter().any(u8::is_ascii_alphanumeric) {
            word(at..end);
        }
        at = end;
    }
}

/// Returns the end of the word that starts at `at`.
fn end_of(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&next) = bytes.get(end) {
        if is_within(next) {
            end += 1;
            continue;
        }
        let (before, after) = (bytes[end - 1], bytes.get(end + 1).copied().unwrap_or(b' '));
        // Rules WB6 and WB7 join letters, and rules WB11 and WB12 join digits.
        let letters = before.is_ascii_alphabetic() && after.is_ascii_alphabetic();
        let digits = before.is_ascii_digit() && after.is_ascii_digit();
        let joins = letters && matches!(next, b'.' | b'\'' | b':')
            || digits && matches!(next, b'.' | b'\'' | b',' | b';');
        if !joins {
            break;
        }
        end += 2;
    }
    end
}

/// For each byte: true for ASCII letters, digits and the underscore.
const WITHIN: [bool; 256] = {
    let mut within = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        within[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    within
};

fn is_within(byte: u8) -> bool {
    WITHIN[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use icu_segmenter::WordSegmenter;
    use icu_segmenter::options::WordBreakInvariantOptions;
    use proptest::prelude::*;

    use super::each;

    fn by_uax_29(line: &str) -> Vec<&str> {
        let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
        let mut start = 0;
        let mut words = Vec::new();
        for (end, kind) in segmenter.segment_str(line).iter_with_word_type() {
            let piece = &line[start..end];
            if kind.is_word_like() && piece.contains(char::is_alphanumeric) {
                words.push(piece);
            }
            start = end;
        }
        words
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn boundaries_are_those_of_uax_29(line in "([a-cA-C0-2]|[_.:,;'\" \\-]|[ -~]){0,24}") {
            let mut words = Vec::new();
            each(&line, |range| words.push(&line[range]));
            prop_assert_eq!(words, by_uax_29(&line));
        }
    }
}
