//! Finds the terms that end in a stem: possible compounds.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use regex::Regex;
use tantivy::Searcher;
use tantivy::schema::Field;

use crate::page_tokenizer::STEM;

/// Minimum number of letters of a word for which compounds are looked up.
pub(crate) const MIN_COMPOUND_END: usize = 5;

/// Maximum number of words to read per segment and field. The same maximum applies to stems.
const MAX_LOOKED_THROUGH: usize = 200_000;
/// Maximum bytes of all candidates of an index.
/// Beyond the limit: not found by their ends.
const MAX_BYTES: usize = 8 << 20;
/// Maximum letters of an ending, as in `Ferienwohnungen`.
const MAX_ENDING: usize = 4;
/// Minimum bytes of the first part of a compound.
pub(crate) const MIN_COMPOUND_START: usize = 2;

/// The words and stems of an index that are long enough to be compounds. tantivy's dictionaries
/// can't be searched by the end of a term, and nearly every search looks for compounds. So the
/// first search reads all terms, and later ones reuse them.
#[derive(Debug, Default)]
pub(crate) struct PossibleCompoundTerms {
    /// For each term, segment and field, a line with the term, a space and its number of pages.
    lines: OnceLock<String>,
}

impl PossibleCompoundTerms {
    /// Returns the longer terms in `fields` that end in any of `stems` or in a form of it, each with
    /// its number of pages in one segment and field. The term of a stem has the prefix [`STEM`].
    /// `is_form` returns whether a word has a stem.
    pub(crate) fn ending_in(
        &self,
        stems: &[&str],
        is_form: &dyn Fn(&str, &str) -> bool,
        searcher: &Searcher,
        fields: &[Field],
    ) -> tantivy::Result<Vec<(u64, String)>> {
        let lines = match self.lines.get() {
            Some(lines) => lines,
            None => {
                let lines = read(searcher, fields)?;
                self.lines.get_or_init(|| lines)
            }
        };
        Ok(matches(lines, stems, is_form))
    }
}

fn matches(
    lines: &str,
    stems: &[&str],
    is_form: &dyn Fn(&str, &str) -> bool,
) -> Vec<(u64, String)> {
    let ends: Vec<String> = stems.iter().map(|stem| regex::escape(stem)).collect();
    let Ok(ends) = Regex::new(&format!("(?:{})[a-z]{{0,{MAX_ENDING}}} ", ends.join("|"))) else {
        return Vec::new();
    };
    let candidates = ends.find_iter(lines).filter_map(|end| {
        let start = lines[..end.end()].rfind('\n').map_or(0, |at| at + 1);
        let (term, rest) = lines[start..].split_once(' ')?;
        let (pages, _) = rest.split_once('\n')?;
        let longer = term.trim_start_matches(STEM);
        let is_stem = longer.len() < term.len();
        let is_second_part = |stem: &&str| {
            longer.rfind(stem).is_some_and(|at| {
                let end = &longer[at..];
                at >= MIN_COMPOUND_START && (end == *stem || !is_stem && is_form(end, stem))
            })
        };
        let is_compound = stems.iter().any(is_second_part);
        Some((pages.parse().ok()?, term.to_owned())).filter(|_| is_compound)
    });
    candidates.collect()
}

/// Reads the terms from the dictionaries of an index.
fn read(searcher: &Searcher, fields: &[Field]) -> tantivy::Result<String> {
    let mut lines = String::new();
    for field in fields {
        for segment in searcher.segment_readers() {
            let index = segment.inverted_index(*field)?;
            // Skip terms that start otherwise. In languages that write compounds as one word, words
            // consist of ASCII letters after folding.
            for initials in [STEM..=STEM, 'a'..='z'] {
                let from = initials.start().to_string();
                let mut terms = index.terms().range().ge(&from).into_stream()?;
                let mut remaining = MAX_LOOKED_THROUGH;
                while remaining > 0 && lines.len() < MAX_BYTES && terms.advance() {
                    remaining -= 1;
                    if !starts_with(terms.key(), &initials) {
                        break;
                    }
                    if let Some(term) = candidate(terms.key()) {
                        let pages = terms.value().doc_freq.to_string();
                        for part in [term, " ", &pages, "\n"] {
                            lines.push_str(part);
                        }
                    }
                }
            }
        }
    }
    lines.shrink_to_fit();
    Ok(lines)
}

fn starts_with(term: &[u8], initials: &RangeInclusive<char>) -> bool {
    let first = term.first();
    first.is_some_and(|first| initials.contains(&char::from(*first)))
}

/// Returns a term as text if it consists of enough letters for a compound.
fn candidate(term: &[u8]) -> Option<&str> {
    let term = std::str::from_utf8(term).ok()?;
    let word = term.trim_start_matches(STEM);
    let is_compound = word.len() >= MIN_COMPOUND_START + MIN_COMPOUND_END
        && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_compound.then_some(term)
}

#[cfg(test)]
mod tests {
    use super::{candidate, matches};

    #[test]
    fn candidates_are_found_by_their_ends() {
        let lines = "\u{1}rathausparkplatz 2\nbahnhofsvorplatz 3\nbahnhofsvorplatz 1\nvorplatz 4\n";
        let found = |stems: &[&str]| {
            let is_form = |word: &str, stem: &str| word.strip_suffix("en") == Some(stem);
            let terms = matches(lines, stems, &is_form);
            let terms = terms.iter().map(|(pages, term)| format!("{pages} {term}"));
            terms.collect::<Vec<_>>().join(", ")
        };
        let all = "2 \u{1}rathausparkplatz, 3 bahnhofsvorplatz, 1 bahnhofsvorplatz, 4 vorplatz";
        assert_eq!(found(&["platz"]), all);
        assert_eq!(found(&["vorplatz", "platz"]), all);
        assert_eq!(
            found(&["vorplatz"]),
            "3 bahnhofsvorplatz, 1 bahnhofsvorplatz"
        );
        assert_eq!(found(&["vor", "pla"]), "");
        let lines = "ferienwohnungen 2\nferienwohnungsbau 1\nwohnungen 3\n\u{1}altwohnungen 1\n";
        let found = matches(lines, &["wohnung"], &|word, _| word == "wohnungen");
        assert_eq!(found, [(2, "ferienwohnungen".to_owned())]);
    }

    #[test]
    fn candidates_are_long_words_of_letters() {
        assert_eq!(candidate(b"\x01parkplatz"), Some("\u{1}parkplatz"));
        assert_eq!(candidate(b"anplatz"), Some("anplatz"));
        for term in [
            "aplatz",
            "\u{1}aplatz",
            "os.parkplatz",
            "park2platz",
            "паркплац",
        ] {
            assert_eq!(candidate(term.as_bytes()), None, "{term}");
        }
    }
}
