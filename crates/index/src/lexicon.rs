//! Looks up words in an index, and finds similar words for a word that the index lacks.

use std::collections::HashSet;

use tantivy::Searcher;
use tantivy::Term;
use tantivy::collector::Count;
use tantivy::query::{BooleanQuery, FuzzyTermQuery, Query};
use tantivy::schema::Field;

use crate::bm25f::is_shared;
use crate::compound_candidates::{MIN_COMPOUND_END, PossibleCompoundTerms};
use crate::page_tokenizer::STEM;
use crate::schema::IndexFields;
use crate::scoring_statistics::ScoringStatistics;
use crate::words::Stemmer;

/// Maximum words for a prefix.
/// Beyond the limit: those on the most pages are used.
const MAX_BEGINNINGS: usize = 48;
/// Maximum number of words per segment and field that are read to find the words with a prefix.
const MAX_LOOKED_THROUGH: usize = 20_000;
/// A word with at least this many letters may be corrected by two changes even if these change its
/// [`skeleton`].
const MIN_LETTERS_OF_LONG_WORD: usize = 8;
/// Maximum corrections of an unknown word.
const MAX_CORRECTIONS: usize = 3;
/// Maximum number of compounds whose pages are checked for a language that writes compounds.
const MAX_CHECKED_COMPOUNDS: usize = 4 * MAX_BEGINNINGS;
/// Languages that write compounds as one word.
const COMPOUNDING: [&str; 9] = ["da", "de", "fi", "is", "nb", "nl", "nn", "no", "sv"];
/// Letters that may join the two parts of a compound.
const LINKS: [&str; 6] = ["", "s", "es", "n", "en", "er"];

/// Returns whether a language writes compounds as one word.
pub(crate) fn writes_compounds(language: &str) -> bool {
    COMPOUNDING.contains(&language)
}

/// The words of all pages that a searcher can find.
pub(crate) struct Lexicon<'s> {
    searcher: &'s Searcher,
    statistics: &'s ScoringStatistics,
    compound_candidates: &'s PossibleCompoundTerms,
    /// The fields in which words are searched, the main text first.
    fields: [Field; 7],
    /// The fields of the description, the keywords and the text outside the main text. Searched
    /// only for words that none of `fields` has.
    secondary_fields: [Field; 3],
    /// The languages of the pages that write compounds as one word.
    compounding: Vec<CompoundingLanguage>,
    /// True if pages have other languages too.
    has_other_languages: bool,
}

/// A language that writes compounds as one word.
struct CompoundingLanguage {
    /// The index term that all pages in this language have.
    pages: Term,
    stemmer: Stemmer,
}

impl<'s> Lexicon<'s> {
    /// Creates the lexicon of an index. `languages` are the languages of its pages.
    pub(crate) fn new<'l>(
        (searcher, statistics): (&'s Searcher, &'s ScoringStatistics),
        compound_candidates: &'s PossibleCompoundTerms,
        fields: &IndexFields,
        languages: impl Iterator<Item = &'l str>,
    ) -> Lexicon<'s> {
        let texts = &fields.texts;
        let (compounding, other): (Vec<_>, Vec<_>) =
            languages.partition(|name| writes_compounds(name));
        let compounding = compounding.into_iter().map(|name| CompoundingLanguage {
            pages: Term::from_field_text(fields.language, name),
            stemmer: Stemmer::of(Some(name)),
        });
        Lexicon {
            searcher,
            statistics,
            compound_candidates,
            secondary_fields: [texts.description, texts.keywords, texts.beside],
            compounding: compounding.collect(),
            has_other_languages: !other.is_empty(),
            fields: [
                texts.body,
                texts.title,
                texts.headings[0],
                texts.headings[1],
                texts.headings[2],
                texts.anchors,
                texts.path,
            ],
        }
    }

    /// Returns the number of pages that have a word in the same field, for the field with the most
    /// such pages. The description, the keywords and the text outside the main text count only if
    /// no other field has the word.
    pub(crate) fn pages_with(&self, word: &str) -> tantivy::Result<u64> {
        match self.pages_with_in(&self.fields, word)? {
            0 => self.pages_with_in(&self.secondary_fields, word),
            pages => Ok(pages),
        }
    }

    /// Returns the number of pages that have a word in the same field, for the field of `fields`
    /// with the most such pages.
    fn pages_with_in(&self, fields: &[Field], word: &str) -> tantivy::Result<u64> {
        let mut pages = 0;
        for field in fields {
            let term = Term::from_field_text(*field, word);
            if self.statistics.max_pages_with(&term)? > pages {
                pages = pages.max(self.statistics.pages_with(&term)?);
            }
        }
        Ok(pages)
    }

    /// Returns the fields in which most pages have the word, considering only titles and
    /// first-level headings. `pages` is the number of all pages.
    pub(crate) fn shared_in(&self, word: &str, pages: u64) -> tantivy::Result<Vec<Field>> {
        let [_, title, first_heading, ..] = self.fields;
        let mut shared = Vec::new();
        for field in [title, first_heading] {
            let term = Term::from_field_text(field, word);
            if is_shared(self.statistics.pages_with(&term)?, pages) {
                shared.push(field);
            }
        }
        Ok(shared)
    }

    /// Returns true if at least one page matches a query.
    pub(crate) fn has(&self, lookup: &dyn Query) -> tantivy::Result<bool> {
        Ok(self.searcher.search(lookup, &Count)? > 0)
    }

    /// Returns other words that start with `beginning`. Words on the most pages come first. The
    /// description, the keywords and the text outside the main text count only if no other field
    /// has such words.
    pub(crate) fn beginning_with(&self, beginning: &str) -> tantivy::Result<Vec<String>> {
        let mut words = self.beginning_with_in(&self.fields, beginning)?;
        if words.is_empty() {
            words = self.beginning_with_in(&self.secondary_fields, beginning)?;
        }
        Ok(words)
    }

    /// Returns other words that start with `beginning` and are in any of `fields`. Words on the
    /// most pages come first.
    fn beginning_with_in(&self, fields: &[Field], beginning: &str) -> tantivy::Result<Vec<String>> {
        let mut candidates: Vec<(u64, String)> = Vec::new();
        for field in fields {
            for segment in self.searcher.segment_readers() {
                let index = segment.inverted_index(*field)?;
                let mut words = index.terms().range().ge(beginning).into_stream()?;
                let mut remaining = MAX_LOOKED_THROUGH;
                while words.advance() && remaining > 0 {
                    remaining -= 1;
                    let Ok(word) = std::str::from_utf8(words.key()) else {
                        continue;
                    };
                    if !word.starts_with(beginning) {
                        break;
                    }
                    if word != beginning {
                        candidates.push((u64::from(words.value().doc_freq), word.to_owned()));
                    }
                }
            }
        }
        Ok(heaviest(candidates, MAX_BEGINNINGS))
    }

    /// Returns the compounds that end in a form of a word, such as `Krankenversicherungen` for
    /// `Versicherung` in German. `stems` are the stems of the word and of its synonyms. Compounds
    /// on the most pages come first. Empty if no language of the pages writes compounds as one
    /// word.
    ///
    /// A compound is returned as its stem with the prefix [`STEM`], which matches all its forms. It
    /// is returned as the word itself if it is its own stem, or if its stem doesn't end in a given
    /// stem.
    pub(crate) fn compounds_of(&self, word: &str, stems: &[&str]) -> tantivy::Result<Vec<String>> {
        // The stem of a word of the minimum length may lack its last letter: `Tort` of `Torte`.
        let lacks_letter = word.chars().count() >= MIN_COMPOUND_END;
        let min_letters = MIN_COMPOUND_END - usize::from(lacks_letter);
        let mut stems: Vec<&str> = stems.to_vec();
        stems.retain(|stem| stem.chars().count() >= min_letters);
        if self.compounding.is_empty() || stems.is_empty() {
            return Ok(Vec::new());
        }
        let languages = &self.compounding;
        let is_form = |word: &str, stem: &str| {
            let mut stems = languages
                .iter()
                .map(|language| language.stemmer.stem_of(word));
            stems.any(|found| found.is_some_and(|found| found == stem))
        };
        let mut candidates = self.compound_candidates.ending_in(
            &stems,
            &is_form,
            self.searcher,
            &self.compound_fields(),
        )?;
        let compound_stems = candidates.iter().map(|(_, term)| term);
        let compound_stems = compound_stems.filter(|term| term.starts_with(STEM));
        let compound_stems: HashSet<String> = compound_stems.cloned().collect();
        let is_found_by_stem = |word: &str| {
            let languages = self.compounding.iter();
            let mut stems = languages.filter_map(|language| language.stemmer.stem_of(word));
            stems.any(|stem| compound_stems.contains(&format!("{STEM}{stem}")))
        };
        candidates.retain(|(_, term)| term.starts_with(STEM) || !is_found_by_stem(term));
        let mut compounds = heaviest(candidates, MAX_CHECKED_COMPOUNDS);
        if self.has_other_languages {
            let mut checked = Vec::new();
            for word in compounds {
                if checked.len() < MAX_BEGINNINGS && self.is_on_compounding_page(&word)? {
                    checked.push(word);
                }
            }
            compounds = checked;
        }
        compounds.truncate(MAX_BEGINNINGS);
        Ok(compounds)
    }

    /// Returns the fields in which compounds are looked up.
    fn compound_fields(&self) -> [Field; 3] {
        let [body, title, first_heading, ..] = self.fields;
        [body, title, first_heading]
    }

    /// Returns true if a page in a language that writes compounds as one word has a term in its
    /// main text, title or first-level heading. In an English page, `background` is not a compound
    /// of `ground`.
    fn is_on_compounding_page(&self, word: &str) -> tantivy::Result<bool> {
        let fields = self.compound_fields();
        let words = fields.map(|field| Term::from_field_text(field, word));
        let languages = self
            .compounding
            .iter()
            .map(|language| language.pages.clone());
        let any_of = |terms: Vec<Term>| {
            Box::new(BooleanQuery::new_multiterms_query(terms)) as Box<dyn Query>
        };
        let both = vec![any_of(words.to_vec()), any_of(languages.collect())];
        self.has(&BooleanQuery::intersection(both))
    }

    /// Returns corrections of a word that no page has, the likeliest first. Only those with the
    /// fewest changes are returned; a change adds, removes or replaces a letter or swaps two. If
    /// two changes are needed, corrections with the same [`skeleton`] come first. After these come
    /// those with the same first letter, then those on the most pages. A word of six or seven
    /// letters has so many neighbours at two changes that only those with the same skeleton count:
    /// `bycicle` becomes `bicycle`.
    pub(crate) fn corrections_of(&self, word: &str) -> tantivy::Result<Vec<String>> {
        let letters = word.chars().count();
        let max_changes = match letters {
            0..=3 => return Ok(Vec::new()),
            4..=5 => 1,
            _ => 2,
        };
        let skeleton_of_word = skeleton(word);
        for changes in 1..=max_changes {
            let mut candidates = Vec::new();
            for field in self.fields.iter().chain(&self.secondary_fields) {
                let term = Term::from_field_text(*field, word);
                let near = FuzzyTermQuery::new(term, changes, true);
                for segment in self.searcher.segment_readers() {
                    let index = segment.inverted_index(*field)?;
                    let mut words = index.terms().search(near.automaton()?).into_stream()?;
                    while words.advance() {
                        let Ok(near) = std::str::from_utf8(words.key()) else {
                            continue;
                        };
                        if near == word || near.starts_with(STEM) {
                            continue;
                        }
                        let has_same_skeleton = changes == 2 && skeleton(near) == skeleton_of_word;
                        if changes == 2 && letters < MIN_LETTERS_OF_LONG_WORD && !has_same_skeleton
                        {
                            continue;
                        }
                        let likely = u64::from(words.value().doc_freq);
                        // Prefer words with the same first letter, because people rarely mistype
                        // the first letter.
                        let has_same_first = near.chars().next() == word.chars().next();
                        let shift = match (has_same_skeleton, has_same_first) {
                            (true, _) => 32,
                            (false, true) => 8,
                            (false, false) => 0,
                        };
                        candidates.push((likely << shift, near.to_owned()));
                    }
                }
            }
            let mut corrections = Vec::new();
            for near in heaviest(candidates, usize::MAX) {
                // Skip words that only deleted pages have.
                if self.pages_with(&near)? > 0 {
                    corrections.push(near);
                }
                if corrections.len() == MAX_CORRECTIONS {
                    break;
                }
            }
            if !corrections.is_empty() {
                return Ok(corrections);
            }
        }
        Ok(Vec::new())
    }

    /// Splits a word that no page has into two known words. The word may be a compound, or a space
    /// may be missing.
    pub(crate) fn halves_of(&self, word: &str) -> tantivy::Result<Option<(String, String)>> {
        let links = if self.compounding.is_empty() {
            &LINKS[..1]
        } else {
            &LINKS[..]
        };
        let mut best: Option<(u64, &str, &str)> = None;
        for (at, _) in word.char_indices().skip(2) {
            let (first, second) = word.split_at(at);
            if second.chars().count() < 2 {
                break;
            }
            let with_second = self.pages_with(second)?;
            let best_pages = best.map_or(0, |(pages, _, _)| pages);
            if with_second <= best_pages {
                continue;
            }
            for link in links {
                let Some(first) = first.strip_suffix(link) else {
                    continue;
                };
                if link.is_empty() || first.chars().count() >= 3 {
                    let pages = self.pages_with(first)?.min(with_second);
                    if pages > best.map_or(0, |(pages, _, _)| pages) {
                        best = Some((pages, first, second));
                    }
                }
            }
        }
        Ok(best.map(|(_, first, second)| (first.to_owned(), second.to_owned())))
    }
}

/// Returns the part of a word that most misspellings leave unchanged: its first letter and its
/// consonants, each double letter once. Misspellings often double a letter, miss a double one, or
/// confuse vowels.
fn skeleton(word: &str) -> String {
    let mut skeleton = String::with_capacity(word.len());
    let mut last = None;
    for letter in word.chars() {
        let is_vowel = matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
        if last != Some(letter) && (last.is_none() || !is_vowel) {
            skeleton.push(letter);
        }
        last = Some(letter);
    }
    skeleton
}

/// Adds up the weights (numbers of pages) of each word over all segments and fields. Returns at
/// most `limit` words, the heaviest first.
fn heaviest(mut candidates: Vec<(u64, String)>, limit: usize) -> Vec<String> {
    candidates.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    candidates.dedup_by(|later, first| {
        let same = later.1 == first.1;
        if same {
            first.0 += later.0;
        }
        same
    });
    candidates.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    candidates.truncate(limit);
    candidates.into_iter().map(|(_, word)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::skeleton;

    #[test]
    fn common_misspellings_have_the_skeleton_of_the_word() {
        for (misspelt, word) in [
            ("bycicle", "bicycle"),
            ("gramer", "grammar"),
            ("comitee", "committee"),
            ("seperate", "separate"),
            ("definately", "definitely"),
            ("milenium", "millennium"),
        ] {
            assert_eq!(skeleton(misspelt), skeleton(word), "{word}");
        }
        assert_ne!(skeleton("bottle"), skeleton("battery"));
        assert_ne!(skeleton("apple"), skeleton("ripple"));
    }
}
