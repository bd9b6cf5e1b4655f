//! Which words an index knows, and which are near to one that it does not.

use tantivy::Searcher;
use tantivy::Term;
use tantivy::collector::Count;
use tantivy::query::{FuzzyTermQuery, Query};
use tantivy::schema::Field;

use crate::bm25f::is_shared;
use crate::schema::Texts;
use crate::tokens::STEM;

/// Words that a beginning stands for, at most: those that most pages have.
const MAX_BEGINNINGS: usize = 48;
/// Words that are looked through for them.
const MAX_LOOKED_THROUGH: usize = 20_000;
/// Words that may be meant by one that is not known.
const MAX_MEANT: usize = 3;
/// Words of a segment that are looked through for compounds.
const MAX_LOOKED_THROUGH_FOR_COMPOUNDS: usize = 200_000;
/// Letters of a word, at least, that compounds are looked for which end in it.
pub(crate) const MIN_COMPOUND_END: usize = 5;
/// Languages that write compounds as one word.
const COMPOUNDING: [&str; 8] = ["da", "de", "fi", "is", "nb", "nl", "nn", "sv"];
/// Letters that join the first part of a compound to the second.
const LINKS: [&str; 6] = ["", "s", "es", "n", "en", "er"];

/// Returns whether a language writes compounds as one word.
pub(crate) fn writes_compounds(language: &str) -> bool {
    COMPOUNDING.contains(&language)
}

/// The words of the pages that a searcher sees.
pub(crate) struct Lexicon<'s> {
    searcher: &'s Searcher,
    /// Those that words are found in; the text itself comes first.
    fields: [Field; 7],
    /// That of words which are asked for only where the others do not have them.
    beside: Field,
    /// True where a language of the pages writes compounds as one word.
    has_compounds: bool,
}

impl<'s> Lexicon<'s> {
    /// The words of an index whose pages are in these languages.
    pub(crate) fn new<'l>(
        searcher: &'s Searcher,
        texts: &Texts,
        mut languages: impl Iterator<Item = &'l str>,
    ) -> Lexicon<'s> {
        Lexicon {
            searcher,
            beside: texts.beside,
            has_compounds: languages.any(writes_compounds),
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

    /// The number of pages that have the word in one place: that where most have it.
    pub(crate) fn pages_with(&self, word: &str) -> tantivy::Result<u64> {
        let mut most = 0;
        for field in self.fields {
            let term = Term::from_field_text(field, word);
            most = most.max(self.searcher.doc_freq(&term)?);
        }
        if most == 0 {
            most = self
                .searcher
                .doc_freq(&Term::from_field_text(self.beside, word))?;
        }
        Ok(most)
    }

    /// Returns the fields, of title and first headings, where most of all `pages` have a word.
    pub(crate) fn shared_in(&self, word: &str, pages: u64) -> tantivy::Result<Vec<Field>> {
        let [_, title, first_heading, ..] = self.fields;
        let mut shared = Vec::new();
        for field in [title, first_heading] {
            let term = Term::from_field_text(field, word);
            if is_shared(self.searcher.doc_freq(&term)?, pages) {
                shared.push(field);
            }
        }
        Ok(shared)
    }

    /// Returns whether a page fits a look-up.
    pub(crate) fn has(&self, lookup: &dyn Query) -> tantivy::Result<bool> {
        Ok(self.searcher.search(lookup, &Count)? > 0)
    }

    /// The words that begin with `beginning`, itself left out, those of most pages first.
    pub(crate) fn beginning_with(&self, beginning: &str) -> tantivy::Result<Vec<String>> {
        let mut found: Vec<(u64, String)> = Vec::new();
        for field in self.fields.iter().chain([&self.beside]) {
            if *field == self.beside && !found.is_empty() {
                break;
            }
            for segment in self.searcher.segment_readers() {
                let index = segment.inverted_index(*field)?;
                let mut words = index.terms().range().ge(beginning).into_stream()?;
                let mut left = MAX_LOOKED_THROUGH;
                while words.advance() && left > 0 {
                    left -= 1;
                    let Ok(word) = std::str::from_utf8(words.key()) else {
                        continue;
                    };
                    if !word.starts_with(beginning) {
                        break;
                    }
                    if word != beginning {
                        found.push((u64::from(words.value().doc_freq), word.to_owned()));
                    }
                }
            }
        }
        Ok(heaviest(found, MAX_BEGINNINGS))
    }

    /// The stems of longer words that end in one of these stems, those of most pages first: in
    /// German `Krankenversicherung` for `Versicherung`. None in languages that write them apart.
    pub(crate) fn compounds_of(&self, stems: &[&str]) -> tantivy::Result<Vec<String>> {
        let mut stems: Vec<&str> = stems.to_vec();
        stems.retain(|stem| stem.chars().count() >= MIN_COMPOUND_END);
        let mut found: Vec<(u64, String)> = Vec::new();
        if !self.has_compounds || stems.is_empty() {
            return Ok(Vec::new());
        }
        let [body, title, first_heading, ..] = self.fields;
        for field in [body, title, first_heading] {
            for segment in self.searcher.segment_readers() {
                let index = segment.inverted_index(field)?;
                let from = STEM.to_string();
                let mut words = index.terms().range().ge(&from).into_stream()?;
                let mut left = MAX_LOOKED_THROUGH_FOR_COMPOUNDS;
                while words.advance() && left > 0 {
                    left -= 1;
                    let Ok(word) = std::str::from_utf8(words.key()) else {
                        continue;
                    };
                    let Some(longer) = word.strip_prefix(STEM) else {
                        break;
                    };
                    let ends =
                        |stem: &&str| longer.len() > stem.len() + 1 && longer.ends_with(stem);
                    if stems.iter().any(ends) {
                        found.push((u64::from(words.value().doc_freq), word.to_owned()));
                    }
                }
            }
        }
        Ok(heaviest(found, MAX_BEGINNINGS))
    }

    /// The words that may be meant by one that no page has, likeliest first: those that are few
    /// changes away (a letter more, fewer or other, or two swapped), then those of most pages.
    pub(crate) fn meant_by(&self, word: &str) -> tantivy::Result<Vec<String>> {
        let letters = word.chars().count();
        let most = match letters {
            0..=3 => return Ok(Vec::new()),
            4..=7 => 1,
            _ => 2,
        };
        for changes in 1..=most {
            let mut found = Vec::new();
            for field in self.fields.iter().chain([&self.beside]) {
                let term = Term::from_field_text(*field, word);
                let near = FuzzyTermQuery::new(term, changes, true);
                for segment in self.searcher.segment_readers() {
                    let index = segment.inverted_index(*field)?;
                    let mut words = index.terms().search(near.automaton()?).into_stream()?;
                    while words.advance() {
                        let Ok(near) = std::str::from_utf8(words.key()) else {
                            continue;
                        };
                        if !near.starts_with(STEM) {
                            let likely = u64::from(words.value().doc_freq);
                            // Few people err in the first letter.
                            let same = near.chars().next() == word.chars().next();
                            found.push((if same { likely << 8 } else { likely }, near.to_owned()));
                        }
                    }
                }
            }
            if !found.is_empty() {
                return Ok(heaviest(found, MAX_MEANT));
            }
        }
        Ok(Vec::new())
    }

    /// The split of a word that no page has, and in which a space is missing or which is a
    /// compound: its two halves, both of them words.
    pub(crate) fn halves_of(&self, word: &str) -> tantivy::Result<Option<(String, String)>> {
        let links = if self.has_compounds {
            &LINKS[..]
        } else {
            &LINKS[..1]
        };
        let mut best: Option<(u64, &str, &str)> = None;
        for (at, _) in word.char_indices().skip(2) {
            let (first, second) = word.split_at(at);
            if second.chars().count() < 2 {
                break;
            }
            let with_second = self.pages_with(second)?;
            let known = best.map_or(0, |(pages, _, _)| pages);
            if with_second <= known {
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

/// The words that weigh most, heaviest first, each with what it weighs in all segments and fields.
fn heaviest(mut found: Vec<(u64, String)>, most: usize) -> Vec<String> {
    found.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    found.dedup_by(|later, first| {
        let same = later.1 == first.1;
        if same {
            first.0 += later.0;
        }
        same
    });
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(most);
    found.into_iter().map(|(_, word)| word).collect()
}
