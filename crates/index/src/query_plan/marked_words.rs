//! The words of a query to mark in its results.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use crate::page_tokenizer::STEM;
use crate::words::BorrowedWord;

/// The query term that a word of a result matches, and how to mark the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatchedTerm {
    /// The number of the query term.
    pub(crate) term: usize,
    /// True for a word that very many pages have. It is marked only next to another term. For
    /// example, `CREATE` is marked in `CREATE INDEX`, but not alone.
    pub(crate) needs_another: bool,
}

impl MatchedTerm {
    /// Creates a match that is always marked.
    pub(super) fn of(term: usize) -> MatchedTerm {
        MatchedTerm {
            term,
            needs_another: false,
        }
    }
}

/// The words to mark in a result, each with the query term that it matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedWords {
    words: HashMap<String, MatchedTerm>,
    /// The stems of words to mark.
    stems: HashMap<String, MatchedTerm>,
    /// Matches the beginnings of the words, ignoring ASCII case.
    beginnings: Option<AhoCorasick>,
}

impl MarkedWords {
    /// Returns the query term that a word of a page matches.
    pub(crate) fn term(&self, word: &BorrowedWord<'_>) -> Option<MatchedTerm> {
        let by_stem = || self.stems.get(word.stem?);
        self.words.get(word.text).or_else(by_stem).copied()
    }

    /// Returns the pieces of a text that may contain one of the words, as byte ranges. Pieces end
    /// after spaces and line breaks. A piece is returned if a match of `beginnings` starts in it,
    /// or if it is not plain ASCII.
    pub(crate) fn likely_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut likely = Vec::new();
        let Some(beginnings) = &self.beginnings else {
            likely.push(0..text.len());
            return likely;
        };
        let bytes = text.as_bytes();
        let is_separator = |byte: &u8| matches!(byte, b' ' | b'\n');
        let word_from = |from: usize| {
            let hit = beginnings.find(Input::new(text).range(from..));
            hit.map(|hit| hit.start())
        };
        let (mut word, mut other) = (word_from(0), non_ascii_from(bytes, 0));
        let mut end = 0;
        loop {
            if word.is_some_and(|at| at < end) {
                word = word_from(end);
            }
            if other.is_some_and(|at| at < end) {
                other = non_ascii_from(bytes, end);
            }
            let Some(at) = word.into_iter().chain(other).min() else {
                return likely;
            };
            let before = bytes[end..at].iter().rposition(is_separator);
            let start = before.map_or(end, |before| end + before + 1);
            let after = bytes[at..].iter().position(is_separator);
            end = after.map_or(bytes.len(), |after| at + after + 1);
            likely.push(start..end);
        }
    }

    /// Compiles the pattern for [`MarkedWords::likely_in`].
    pub(super) fn sealed(mut self) -> MarkedWords {
        let beginning = |word: &String| {
            // Leave out the last letter of a stem, because the word may have another letter there.
            let letters = word.chars().count();
            let compared_letters = if letters > 3 { letters - 1 } else { letters };
            word.chars().take(compared_letters).collect::<String>()
        };
        let all = self.words.keys().chain(self.stems.keys()).map(beginning);
        self.beginnings = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostFirst)
            .build(all)
            .ok();
        self
    }

    /// Adds a word or, after the prefix [`STEM`], a stem.
    pub(super) fn want(&mut self, word: &str, term: MatchedTerm) {
        let (words, word) = match word.strip_prefix(STEM) {
            Some(stem) => (&mut self.stems, stem),
            None => (&mut self.words, word),
        };
        words.entry(word.to_owned()).or_insert(term);
    }

    /// Returns a term number that is not in use yet.
    pub(super) fn next_term(&self) -> usize {
        self.words.len() + self.stems.len()
    }
}

/// Returns the place of the first byte from `from` on that is not ASCII.
fn non_ascii_from(bytes: &[u8], from: usize) -> Option<usize> {
    const CHUNK: usize = 64;
    // `is_ascii` checks several bytes of a chunk at once.
    let chunks = bytes[from..].chunks(CHUNK);
    let ascii = chunks.take_while(|chunk| chunk.is_ascii()).count();
    let from = (from + ascii * CHUNK).min(bytes.len());
    let place = bytes[from..].iter().position(|byte| !byte.is_ascii());
    place.map(|place| from + place)
}

#[cfg(test)]
mod tests {
    use super::{MarkedWords, MatchedTerm, non_ascii_from};

    fn likely(words: &[&str], text: &str) -> Vec<String> {
        let mut wanted = MarkedWords::default();
        for (term, word) in words.iter().enumerate() {
            wanted.want(word, MatchedTerm::of(term));
        }
        let pieces = wanted.sealed().likely_in(text);
        pieces
            .into_iter()
            .map(|piece| text[piece].to_owned())
            .collect()
    }

    #[test]
    fn pieces_with_beginnings_and_other_letters_are_likely() {
        let text = "Mail a mailbox,\nno e-MAIL? tea-chest with th\u{e9} and mai";
        let expected = ["Mail ", "mailbox,\n", "e-MAIL? ", "th\u{e9} ", "mai"];
        assert_eq!(likely(&["mail"], text), expected);
        assert_eq!(likely(&["the"], text), ["th\u{e9} "]);
        assert_eq!(likely(&["chest", "tea"], text)[0], "tea-chest ");
        assert!(likely(&["mail"], "").is_empty());
        assert_eq!(likely(&[], "a b"), Vec::<String>::new());
    }

    #[test]
    fn the_next_byte_beyond_ascii_is_found_in_any_chunk() {
        for at in [0, 1, 63, 64, 65, 127, 128, 200] {
            let mut bytes = [b'a'; 201];
            bytes[at] = 0xC3;
            for from in 0..=at {
                assert_eq!(non_ascii_from(&bytes, from), Some(at));
            }
            assert_eq!(non_ascii_from(&bytes, at + 1), None);
        }
    }
}
