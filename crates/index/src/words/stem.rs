//! Reduces words to their stems.

use std::borrow::Cow;
use std::fmt;

use super::arabic_stem::arabic_stem;
use super::fold;

/// A word on which the stemmers panic in tests.
#[cfg(test)]
pub(crate) const PANICKING_WORD: &str = "unstemmable";

/// Reduces words to their stems, by the rules of one language (Snowball, except for Arabic).
#[derive(Clone, Copy, Default)]
pub struct Stemmer {
    rules: Option<frostem::Stemmer>,
}

impl Stemmer {
    /// Returns the stemmer of a language, given its ISO 639 code. `None` counts as English, the
    /// language of most pages that declare none. For a language without rules, words have no stems.
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

    /// Returns a stemmer that leaves all words unchanged.
    #[must_use]
    pub fn none() -> Stemmer {
        Stemmer { rules: None }
    }

    /// Returns the name of the Snowball algorithm. `None` if words have no stems.
    pub(crate) fn algorithm(&self) -> Option<&'static str> {
        self.rules.map(|rules| rules.algorithm().name())
    }

    /// Returns the stem of a folded word, also folded; `None` if the word is its own stem or has
    /// none.
    ///
    /// A stem may depend on accents. This function stems the word without accents, because queries
    /// often lack accents.
    #[must_use]
    pub fn stem_of(&self, word: &str) -> Option<String> {
        let stem = fold(&self.stem(word)?);
        (stem != word && !stem.is_empty()).then_some(stem)
    }

    /// Returns the stem of a word in lower case; `None` if the language has no rules or the word
    /// contains other characters than letters.
    pub(super) fn stem<'w>(&self, lower: &'w str) -> Option<Cow<'w, str>> {
        let is_plain = lower.chars().all(char::is_alphabetic);
        let rules = self.rules.filter(|_| is_plain)?;
        #[cfg(test)]
        assert_ne!(lower, PANICKING_WORD);
        Some(match rules.algorithm() {
            frostem::Algorithm::Arabic => Cow::Owned(arabic_stem(&fold(lower)).to_owned()),
            _ => rules.stem(lower),
        })
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
        let name = self.algorithm().unwrap_or("none");
        write!(f, "Stemmer({name})")
    }
}
