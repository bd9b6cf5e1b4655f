//! Caches the forms of words for each thread, because most words of a page have occurred before.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use xxhash_rust::xxh3::xxh3_64;

use super::identifier_parts::parts;
use super::stem::Stemmer;
use super::word_folding::fold;

/// Maximum number of words in the cache of a thread. A full cache is emptied before the next line
/// of text is split.
pub(super) const MAX_KNOWN_WORDS: usize = 32_768;

thread_local! {
    /// The cache that was last used on this thread. While a text is being split, it owns the cache,
    /// so a second text on the same thread starts with an empty one.
    static LAST: Cell<Option<Box<WordCache>>> = const { Cell::new(None) };
}

/// The forms of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedTextAndStem<'w> {
    /// The word in lower case, without accents. Empty if no letter remains.
    pub(super) text: &'w str,
    /// The stem in the text's language, if it differs from `text`.
    pub(super) stem: Option<&'w str>,
}

/// A handle for the forms of a cached word. Becomes invalid when the cache is emptied.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedWordHandle(u32);

/// The cached forms of words of one language. One string holds all of them, which avoids an
/// allocation for each word and makes better use of the processor's cache.
#[derive(Debug, Default)]
pub(super) struct WordCache {
    stemmer: Stemmer,
    /// Words by the hash of their written form.
    places: HashMap<u64, CachedWordHandle, RandomState>,
    words: Vec<CachedWordRanges>,
    letters: String,
    /// The parts of all words that have several parts, each as a range in its word.
    parts: Vec<Range<u32>>,
}

/// The ranges of a word's forms in `letters`, and of its parts in `WordCache::parts`.
#[derive(Clone, Debug)]
struct CachedWordRanges {
    written: Range<u32>,
    text: Range<u32>,
    /// Empty if the word has no stem.
    stem: Range<u32>,
    parts: Range<u32>,
}

impl WordCache {
    /// Takes this thread's cache for the stemmer's language.
    pub(super) fn take(stemmer: Stemmer) -> Box<WordCache> {
        let mut words = LAST.take().unwrap_or_default();
        if words.stemmer != stemmer {
            words.forget();
            words.stemmer = stemmer;
        }
        words
    }

    /// Stores the cache for the next text on this thread.
    pub(super) fn give_back(self: Box<Self>) {
        // Fails only if the thread is ending, and then the cache isn't needed.
        let _ = LAST.try_with(|last| last.set(Some(self)));
    }

    /// Empties the cache if it has `MAX_KNOWN_WORDS` words. All handles become invalid.
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

    pub(super) fn intern(&mut self, written: &str) -> CachedWordHandle {
        let hash = xxh3_64(written.as_bytes());
        match self.places.get(&hash) {
            // If two words have the same hash, only the later one stays cached.
            Some(&word) if self.written(word) == written.as_bytes() => word,
            _ => self.learn(hash, written),
        }
    }

    fn written(&self, word: CachedWordHandle) -> &[u8] {
        let place = &self.words[word.0 as usize].written;
        &self.letters.as_bytes()[place.start as usize..place.end as usize]
    }

    fn learn(&mut self, hash: u64, written: &str) -> CachedWordHandle {
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
        let places = CachedWordRanges {
            // Most words are written in their folded form. Store it only once.
            text: match text == written {
                true => place.clone(),
                false => self.add(&text),
            },
            written: place,
            stem: self.add(stem.as_deref().unwrap_or_default()),
            parts: first_part..small(self.parts.len()),
        };
        let word = CachedWordHandle(small(self.words.len()));
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

    pub(super) fn forms(&self, word: CachedWordHandle) -> CachedTextAndStem<'_> {
        let places = &self.words[word.0 as usize];
        let has_stem = !places.stem.is_empty();
        CachedTextAndStem {
            text: self.letters(&places.text),
            stem: has_stem.then(|| self.letters(&places.stem)),
        }
    }

    /// Returns whether a word has no letters left after folding.
    pub(super) fn is_empty(&self, word: CachedWordHandle) -> bool {
        self.words[word.0 as usize].text.is_empty()
    }

    /// Returns the number of a word's parts, or 0 if it has fewer than two.
    pub(super) fn parts(&self, word: CachedWordHandle) -> usize {
        self.words[word.0 as usize].parts.len()
    }

    /// Returns the byte range of the `n`th part within the word as written.
    pub(super) fn part(&self, word: CachedWordHandle, n: usize) -> Range<usize> {
        let first = self.words[word.0 as usize].parts.start as usize;
        let part = &self.parts[first + n];
        part.start as usize..part.end as usize
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }
}

/// Converts an offset to 32 bits. All offsets fit, because the cache has a limited number of short
/// words.
fn small(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crate::words::{Stemmer, words};

    #[test]
    fn the_cache_serves_only_texts_of_its_language() {
        let stem = |language| {
            let words = words("Running", &Stemmer::of(Some(language)));
            words[0].stem.clone()
        };
        // Repeat the test on the same thread, while another text is being read.
        for _ in 0..2 {
            assert_eq!(stem("en").as_deref(), Some("run"));
            assert_eq!(stem("xx"), None);
            let mut begun =
                crate::words::WordIterator::new("Running Running", Stemmer::of(Some("en")));
            assert_eq!(begun.next().unwrap().stem.as_deref(), Some("run"));
            assert_eq!(stem("xx"), None);
            assert_eq!(begun.next().unwrap().stem.as_deref(), Some("run"));
        }
    }
}
