//! Reduces words to their stems.

use std::borrow::Cow;
use std::fmt;

/// A word on which the stemmers panic in tests.
#[cfg(test)]
pub(crate) const PANICKING_WORD: &str = "unstemmable";

/// The prefixes of an Arabic noun with an article, alone or after a conjunction or preposition, as
/// Lucene's `ArabicStemmer` removes them.
const ARABIC_ARTICLES: [&str; 6] = ["ال", "وال", "بال", "كال", "فال", "لل"];
/// Minimum letters of an Arabic word after its article.
const MIN_ARABIC_LETTERS: usize = 3;

/// Reduces words to their stems, by the rules of one language (Snowball).
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
        let stem = super::fold(&self.stem(word)?);
        (stem != word && !stem.is_empty()).then_some(stem)
    }

    /// Returns the stem of a word in lower case; `None` if the language has no rules or the word
    /// contains other characters than letters.
    pub(super) fn stem<'w>(&self, lower: &'w str) -> Option<Cow<'w, str>> {
        let is_plain = lower.chars().all(char::is_alphabetic);
        let rules = self.rules.filter(|_| is_plain)?;
        #[cfg(test)]
        assert_ne!(lower, PANICKING_WORD);
        if rules.algorithm() != frostem::Algorithm::Arabic {
            return Some(rules.stem(lower));
        }
        // Snowball's rules for words with and without an article lead to different stems.
        let word = super::fold(lower);
        let stem = rules.stem(without_arabic_article(&word)).into_owned();
        Some(Cow::Owned(stem))
    }
}

fn without_arabic_article(word: &str) -> &str {
    let mut bare = ARABIC_ARTICLES
        .iter()
        .filter_map(|article| word.strip_prefix(article));
    let bare = bare.find(|rest| rest.chars().count() >= MIN_ARABIC_LETTERS);
    bare.unwrap_or(word)
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

#[cfg(test)]
mod tests {
    use super::Stemmer;

    #[test]
    fn arabic_words_have_the_same_stem_with_and_without_an_article() {
        let arabic = Stemmer::of(Some("ar"));
        let stem = |word: &str| arabic.stem_of(word).unwrap_or_else(|| word.to_owned());
        for words in [
            "خدمات الخدمات والخدمات بالخدمات للخدمات",
            "معلومات المعلومات والمعلومات",
            "مدرسة المدرسة والمدرسة",
            "كتاب الكتاب بالكتاب",
            "شركات الشركات بالشركات",
            "بيت البيت",
        ] {
            let mut stems: Vec<_> = words.split(' ').map(stem).collect();
            stems.dedup();
            assert_eq!(stems.len(), 1, "{words}: {stems:?}");
        }
        assert_eq!(stem("ألم"), stem("الم"));
    }
}
