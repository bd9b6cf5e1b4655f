//! Stems of words.

use std::borrow::Cow;
use std::fmt;

/// Takes words to their stems, by the rules of one language (Snowball).
#[derive(Clone, Copy, Default)]
pub struct Stemmer {
    rules: Option<frostem::Stemmer>,
}

impl Stemmer {
    /// That of a language by its code (ISO 639). One that is not known is taken for English,
    /// which most pages are that name none; one that has no rules leaves words as they are.
    #[must_use]
    pub fn of(language: Option<&str>) -> Stemmer {
        let name = match language.unwrap_or("en") {
            "nb" | "nn" | "nob" | "nno" => "no",
            name => name,
        };
        Stemmer {
            rules: frostem::Stemmer::try_from_name(name).ok(),
        }
    }

    /// One that leaves all words as they are.
    #[must_use]
    pub fn none() -> Stemmer {
        Stemmer { rules: None }
    }

    /// The stem of a word that is folded already, folded; none where it is the word itself.
    ///
    /// Accents that the word was written with may change its stem; those of a query often lack.
    #[must_use]
    pub fn stem_of(&self, word: &str) -> Option<String> {
        let stem = super::fold(&self.stem(word)?);
        (stem != word && !stem.is_empty()).then_some(stem)
    }

    /// The stem of a word in lower case; none where the language has no rules or the word is
    /// no plain word.
    pub(super) fn stem<'w>(&self, lower: &'w str) -> Option<Cow<'w, str>> {
        let is_plain = lower.chars().all(char::is_alphabetic);
        let rules = self.rules.filter(|_| is_plain)?;
        Some(rules.stem(lower))
    }
}

impl PartialEq for Stemmer {
    fn eq(&self, other: &Stemmer) -> bool {
        let rules = |stemmer: &Stemmer| stemmer.rules.map(frostem::Stemmer::algorithm);
        rules(self) == rules(other)
    }
}

impl Eq for Stemmer {}

impl fmt::Debug for Stemmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.rules.map_or("none", |rules| rules.algorithm().name());
        write!(f, "Stemmer({name})")
    }
}
