//! The light stemmer for Arabic, as Lucene's `ArabicStemmer`.
//!
//! Snowball's rules lead to different stems for a word with and without an article, and for some
//! singulars and plurals.

/// The articles, alone or after a conjunction or preposition.
///
/// Unlike Lucene, this list lacks a lone `و` ("and"), which is also the first letter of many words.
/// Without it, such a word and the word with an article would have different stems.
const PREFIXES: [&str; 6] = ["ال", "وال", "بال", "كال", "فال", "لل"];
/// The endings for plural, gender and possession, in the order of their removal.
const SUFFIXES: [&str; 10] = ["ها", "ان", "ات", "ون", "ين", "يه", "ية", "ه", "ة", "ي"];
/// Minimum letters of a word after a removal.
const MIN_LETTERS: usize = 2;

/// Returns the stem of a folded word.
pub(super) fn arabic_stem(word: &str) -> &str {
    let is_long = |rest: &&str| rest.chars().count() >= MIN_LETTERS;
    let mut without_prefix = PREFIXES
        .iter()
        .filter_map(|prefix| word.strip_prefix(prefix));
    let bare = without_prefix.find(is_long).unwrap_or(word);
    SUFFIXES.iter().fold(bare, |word, suffix| {
        word.strip_suffix(suffix).filter(is_long).unwrap_or(word)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Stemmer;

    #[test]
    fn forms_of_an_arabic_word_have_the_same_stem() {
        let arabic = Stemmer::of(Some("ar"));
        let stem = |word: &str| arabic.stem_of(word).unwrap_or_else(|| word.to_owned());
        for words in [
            "خدمات خدمة الخدمات والخدمات بالخدمات للخدمات",
            "معلومات معلومة المعلومات والمعلومات",
            "مدرسة المدرسة والمدرسة",
            "كتاب كتابي كتابها الكتاب بالكتاب",
            "شركات شركة الشركات بالشركات",
            "مكتبة مكتبات المكتبة المكتبات",
            "مهندس مهندسون المهندسين",
            "وزارة الوزارة",
            "لغة لغات اللغة",
            "بيت البيت",
            "فن الفن",
            "ألم الم",
        ] {
            let mut stems: Vec<_> = words.split(' ').map(stem).collect();
            stems.dedup();
            assert_eq!(stems.len(), 1, "{words}: {stems:?}");
        }
    }
}
