//! Boundaries of words in plain ASCII, as UAX 29 has them.

use std::ops::Range;

/// Calls `word` with the place of each word of a line. Linear, and without a table.
pub(super) fn each(line: &str, mut word: impl FnMut(Range<usize>)) {
    let octets = line.as_bytes();
    let mut at = 0;
    while at < octets.len() {
        if !is_within(octets[at]) {
            at += 1;
            continue;
        }
        let end = end_of(octets, at);
        // Underscores alone are no word.
        if octets[at..end].iter().any(u8::is_ascii_alphanumeric) {
            word(at..end);
        }
        at = end;
    }
}

/// Where the word ends that begins at `at`.
fn end_of(octets: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&next) = octets.get(end) {
        if is_within(next) {
            end += 1;
            continue;
        }
        let (before, after) = (
            octets[end - 1],
            octets.get(end + 1).copied().unwrap_or(b' '),
        );
        // WB6, WB7: letters; WB11, WB12: digits.
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

fn is_within(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'_'
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
