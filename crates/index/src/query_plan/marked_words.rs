//! The words of a query that are marked in its results.

use std::collections::HashMap;
use std::ops::Range;

use regex::Regex;

use crate::tokens::STEM;
use crate::words::Word;

/// The term of a query that a word is marked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkedTerm {
    /// Its number.
    pub(crate) term: usize,
    /// True for a word that nearly every page has: it is marked only beside another term, as in
    /// `CREATE INDEX`.
    pub(crate) needs_another: bool,
}

impl MarkedTerm {
    /// A term that is marked wherever it stands.
    pub(super) fn of(term: usize) -> MarkedTerm {
        MarkedTerm {
            term,
            needs_another: false,
        }
    }
}

/// The words to mark in a result: each leads to the term of the query that it was found for.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedWords {
    words: HashMap<String, MarkedTerm>,
    /// Finds what one of them begins with, in ASCII of either case.
    beginnings: Option<Regex>,
}

impl MarkedWords {
    /// The term that a word of a page was found for.
    pub(crate) fn term(&self, word: &Word) -> Option<MarkedTerm> {
        let by_stem = || {
            let stem = word.stem.as_ref()?;
            self.words.get(&format!("{STEM}{stem}"))
        };
        self.words.get(&word.text).or_else(by_stem).copied()
    }

    /// The pieces of a text that may have one of them: words, and what stands between two spaces
    /// and is not plain ASCII.
    pub(crate) fn likely_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut likely = Vec::new();
        let Some(beginnings) = &self.beginnings else {
            likely.push(0..text.len());
            return likely;
        };
        let mut found = beginnings
            .find_iter(text)
            .map(|found| found.start())
            .peekable();
        let mut start = 0;
        for piece in text.split_inclusive([' ', '\n']) {
            let end = start + piece.len();
            while found.next_if(|at| *at < start).is_some() {}
            let is_likely = found.peek().is_some_and(|at| *at < end) || !piece.is_ascii();
            if is_likely {
                likely.push(start..end);
            }
            start = end;
        }
        likely
    }

    /// Prepares for quick looks.
    pub(super) fn sealed(mut self) -> MarkedWords {
        let beginning = |word: &String| {
            let word = word.trim_start_matches(STEM);
            // A stem may end in another letter than the word.
            let letters = word.chars().count();
            let most = if letters > 3 { letters - 1 } else { letters };
            regex::escape(&word.chars().take(most).collect::<String>())
        };
        let mut all: Vec<String> = self.words.keys().map(beginning).collect();
        all.sort_unstable();
        all.dedup();
        self.beginnings = Regex::new(&format!("(?i-u:{})", all.join("|"))).ok();
        self
    }

    pub(super) fn want(&mut self, word: &str, term: MarkedTerm) {
        self.words.entry(word.to_owned()).or_insert(term);
    }

    /// The number of the next term to be found.
    pub(super) fn next_term(&self) -> usize {
        self.words.len()
    }
}
