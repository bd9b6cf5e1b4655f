//! The forms of words that a thread met before: few words of a page are new.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use super::fold::fold;
use super::parts::parts;
use super::stem::Stemmer;

/// Words whose forms a thread remembers; before the next line all are forgotten.
pub(super) const MAX_KNOWN_WORDS: usize = 16_384;

thread_local! {
    /// Those of the text that this thread read last. A text that is read meanwhile begins anew.
    static LAST: Cell<Option<Box<KnownWords>>> = const { Cell::new(None) };
}

/// The forms of a word as written.
#[derive(Debug)]
pub(super) struct Forms {
    /// In lower case, without accents. Empty where nothing of it is left.
    pub(super) text: String,
    /// The stem in the text's language, where that is another.
    pub(super) stem: Option<String>,
    /// Its parts, where it has several.
    pub(super) parts: Box<[Range<usize>]>,
}

/// The place of a word's forms, until words are forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownWord(usize);

/// Words of one language and their forms.
#[derive(Debug, Default)]
pub(super) struct KnownWords {
    stemmer: Stemmer,
    places: HashMap<Box<str>, usize, RandomState>,
    forms: Vec<Forms>,
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
        if self.forms.len() >= MAX_KNOWN_WORDS {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.places.clear();
        self.forms.clear();
    }

    pub(super) fn meet(&mut self, written: &str) -> KnownWord {
        if let Some(place) = self.places.get(written) {
            return KnownWord(*place);
        }
        let lower = written.to_lowercase();
        let text = fold(&lower);
        let stem = self.stemmer.stem(&lower).map(|stem| fold(&stem));
        let stem = stem.filter(|stem| *stem != text && !stem.is_empty());
        let parts = match parts(written) {
            parts if parts.len() > 1 => parts.into(),
            _ => Box::default(),
        };
        let place = self.forms.len();
        self.forms.push(Forms { text, stem, parts });
        self.places.insert(written.into(), place);
        KnownWord(place)
    }

    pub(super) fn forms(&self, word: KnownWord) -> &Forms {
        &self.forms[word.0]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.forms.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::words::{Stemmer, words};

    #[test]
    fn ours_what_one_text_taught_serves_the_next_of_its_language_alone() {
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
