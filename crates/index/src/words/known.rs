//! The forms of words that a thread met before: few words of a page are new.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use xxhash_rust::xxh3::xxh3_64;

use super::fold::fold;
use super::parts::parts;
use super::stem::Stemmer;

/// Words whose forms a thread remembers; before the next line all are forgotten.
pub(super) const MAX_KNOWN_WORDS: usize = 32_768;

thread_local! {
    /// Those of the text that this thread read last. A text that is read meanwhile begins anew.
    static LAST: Cell<Option<Box<KnownWords>>> = const { Cell::new(None) };
}

/// The forms of a word as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forms<'w> {
    /// In lower case, without accents. Empty where nothing of it is left.
    pub(super) text: &'w str,
    /// The stem in the text's language, where that is another.
    pub(super) stem: Option<&'w str>,
}

/// The place of a word's forms, until words are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownWord(u32);

/// Words of one language and their forms. All letters stand in one text, so that nothing is
/// allocated for a word, and little of the memory is touched.
#[derive(Debug, Default)]
pub(super) struct KnownWords {
    stemmer: Stemmer,
    /// By the hash of the word as written.
    places: HashMap<u64, KnownWord, RandomState>,
    words: Vec<Places>,
    letters: String,
    /// The parts of all words that have several, as places in the word.
    parts: Vec<Range<u32>>,
}

/// The places of a word's forms in the letters.
#[derive(Clone, Debug)]
struct Places {
    written: Range<u32>,
    text: Range<u32>,
    /// Empty where there is no stem.
    stem: Range<u32>,
    parts: Range<u32>,
}

impl KnownWords {
    /// Those that this thread knows of the stemmer's language.
    pub(super) fn take(stemmer: Stemmer) -> Box<KnownWords> {
        let mut known = LAST.take().unwrap_or_default();
        if known.stemmer != stemmer {
            known.forget();
            known.stemmer = stemmer;
        }
        known
    }

    /// Leaves them to the next text that this thread reads.
    pub(super) fn give_back(self: Box<Self>) {
        // Fails only while the thread ends.
        let _ = LAST.try_with(|last| last.set(Some(self)));
    }

    /// Makes room: words that were met before are no longer to be asked for.
    pub(super) fn make_room(&mut self) {
        if self.words.len() >= MAX_KNOWN_WORDS {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.places.clear();
        self.words.clear();
        self.letters.clear();
        self.parts.clear();
    }

    pub(super) fn meet(&mut self, written: &str) -> KnownWord {
        let hash = xxh3_64(written.as_bytes());
        match self.places.get(&hash) {
            // Two words may have one hash: then the last of them is known.
            Some(&word) if self.written(word) == written.as_bytes() => word,
            _ => self.learn(hash, written),
        }
    }

    fn written(&self, word: KnownWord) -> &[u8] {
        let place = &self.words[word.0 as usize].written;
        &self.letters.as_bytes()[place.start as usize..place.end as usize]
    }

    fn learn(&mut self, hash: u64, written: &str) -> KnownWord {
        let lower = written.to_lowercase();
        let text = fold(&lower);
        let stem = self.stemmer.stem(&lower).map(|stem| fold(&stem));
        let stem = stem.filter(|stem| *stem != text && !stem.is_empty());
        let first_part = small(self.parts.len());
        let parts = parts(written);
        if parts.len() > 1 {
            let parts = parts.iter().map(|part| small(part.start)..small(part.end));
            self.parts.extend(parts);
        }
        let place = self.add(written);
        let places = Places {
            // Most words are written as they are looked up.
            text: match text == written {
                true => place.clone(),
                false => self.add(&text),
            },
            written: place,
            stem: self.add(stem.as_deref().unwrap_or_default()),
            parts: first_part..small(self.parts.len()),
        };
        let word = KnownWord(small(self.words.len()));
        self.words.push(places);
        self.places.insert(hash, word);
        word
    }

    fn add(&mut self, text: &str) -> Range<u32> {
        let start = small(self.letters.len());
        self.letters.push_str(text);
        start..small(self.letters.len())
    }

    fn letters(&self, place: &Range<u32>) -> &str {
        &self.letters[place.start as usize..place.end as usize]
    }

    pub(super) fn forms(&self, word: KnownWord) -> Forms<'_> {
        let places = &self.words[word.0 as usize];
        let has_stem = !places.stem.is_empty();
        Forms {
            text: self.letters(&places.text),
            stem: has_stem.then(|| self.letters(&places.stem)),
        }
    }

    /// Returns whether nothing is left of a word.
    pub(super) fn is_empty(&self, word: KnownWord) -> bool {
        self.words[word.0 as usize].text.is_empty()
    }

    /// The number of a word's parts, if it has several; none otherwise.
    pub(super) fn parts(&self, word: KnownWord) -> usize {
        self.words[word.0 as usize].parts.len()
    }

    /// The place of one of its parts in the word as written, in bytes.
    pub(super) fn part(&self, word: KnownWord, n: usize) -> Range<usize> {
        let first = self.words[word.0 as usize].parts.start as usize;
        let part = &self.parts[first + n];
        part.start as usize..part.end as usize
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }
}

/// A place in what some ten thousand short words take.
fn small(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crate::words::{Stemmer, words};

    #[test]
    fn what_one_text_taught_serves_the_next_of_its_language_alone() {
        let stem = |language| {
            let words = words("Running", &Stemmer::of(Some(language)));
            words[0].stem.clone()
        };
        // Again and again on one thread, and with another text begun meanwhile.
        for _ in 0..2 {
            assert_eq!(stem("en").as_deref(), Some("run"));
            assert_eq!(stem("xx"), None);
            let mut begun = crate::words::Words::new("Running Running", Stemmer::of(Some("en")));
            assert_eq!(begun.next().unwrap().stem.as_deref(), Some("run"));
            assert_eq!(stem("xx"), None);
            assert_eq!(begun.next().unwrap().stem.as_deref(), Some("run"));
        }
    }
}
