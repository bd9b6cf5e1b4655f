//! The words of a query to mark in its results.

use std::collections::HashMap;
use std::ops::Range;

use regex::Regex;

use crate::page_tokenizer::STEM;
use crate::words::Word;

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
    /// Matches the beginnings of the words, ignoring ASCII case.
    beginnings: Option<Regex>,
}

impl MarkedWords {
    /// Returns the query term that a word of a page matches.
    pub(crate) fn term(&self, word: &Word) -> Option<MatchedTerm> {
        let by_stem = || {
            let stem = word.stem.as_ref()?;
            self.words.get(&format!("{STEM}{stem}"))
        };
        self.words.get(&word.text).or_else(by_stem).copied()
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
        let mut starts = beginnings.find_iter(text).map(|hit| hit.start()).peekable();
        let mut start = 0;
        for piece in text.split_inclusive([' ', '\n']) {
            let end = start + piece.len();
            while starts.next_if(|at| *at < start).is_some() {}
            let is_likely = starts.peek().is_some_and(|at| *at < end) || !piece.is_ascii();
            if is_likely {
                likely.push(start..end);
            }
            start = end;
        }
        likely
    }

    /// Compiles the pattern for [`MarkedWords::likely_in`].
    pub(super) fn sealed(mut self) -> MarkedWords {
        let beginning = |word: &String| {
            let word = word.trim_start_matches(STEM);
            // Leave out the last letter of a stem, because the word may have another letter there.
            let letters = word.chars().count();
            let compared_letters = if letters > 3 { letters - 1 } else { letters };
            regex::escape(&word.chars().take(compared_letters).collect::<String>())
        };
        let mut all: Vec<String> = self.words.keys().map(beginning).collect();
        all.sort_unstable();
        all.dedup();
        self.beginnings = Regex::new(&format!("(?i-u:{})", all.join("|"))).ok();
        self
    }

    pub(super) fn want(&mut self, word: &str, term: MatchedTerm) {
        self.words.entry(word.to_owned()).or_insert(term);
    }

    /// Returns a term number that is not in use yet.
    pub(super) fn next_term(&self) -> usize {
        self.words.len()
    }
}
