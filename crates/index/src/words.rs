//! The words of a text, alike for pages and for queries.
//!
//! Boundaries are those of UAX 29 with dictionaries for scripts that are written without
//! spaces. What it keeps together and people also type apart (`os.path`, `user_agent`,
//! `ThreadPool`) is a word, and so are its parts. Chinese and Japanese text is cut into pairs
//! of characters: each pair is a word, so that no dictionary has to know what is looked for.

mod ascii;
mod fold;
mod parts;
mod stem;

use std::collections::HashMap;
use std::ops::Range;

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;

use fold::fold;
use parts::parts;
pub use stem::Stemmer;

/// Octets of the longest word that is taken: longer ones are data, such as encoded images.
const WORD_OCTETS_MOST: usize = 96;
/// Words that the end of a block puts between two words, so that no phrase crosses it.
const BLOCK_GAP: usize = 4;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its characters in lower case, without accents.
    pub text: String,
    /// Its stem in the text's language, where that is another.
    pub stem: Option<String>,
    /// Where it stands in the text, in octets.
    pub range: Range<usize>,
    /// Which word of the text it is, counted from 0. Parts of a word count on from the word's
    /// own position; where a block of text ends some are left out.
    pub position: usize,
    /// What it is to the words around it.
    pub kind: Kind,
}

/// What a word is to those around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stands by itself.
    Plain,
    /// A part of the longer word that comes before it.
    Part,
    /// A character of a script that is written without spaces.
    Character,
    /// Two neighbours of that kind; it stands where the first of them does.
    Pair,
}

/// The words of `text`, in order, each before its parts. Linear in `text`.
#[must_use]
pub fn words(text: &str, stemmer: &Stemmer) -> Vec<Word> {
    let mut splitter = Splitter {
        text,
        stemmer,
        words: Vec::with_capacity(text.len() / 6),
        position: 0,
        known: HashMap::new(),
    };
    let mut start = 0;
    // A line ends what stands in it, so that each can be cut in the way that serves it.
    for line in text.split_inclusive('\n') {
        match line.is_ascii() {
            true => ascii::each(line, |range| {
                splitter.word(start + range.start..start + range.end);
            }),
            false => splitter.line(start, line),
        }
        splitter.position += BLOCK_GAP * usize::from(line.ends_with('\n'));
        start += line.len();
    }
    splitter.words
}

/// Whether a character belongs to a script whose text is cut into pairs.
pub(crate) fn is_paired(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

struct Splitter<'t> {
    text: &'t str,
    stemmer: &'t Stemmer,
    words: Vec<Word>,
    position: usize,
    /// Words that came before, folded and stemmed: few are new in a long text.
    known: HashMap<&'t str, (String, Option<String>)>,
}

impl<'t> Splitter<'t> {
    /// Cuts a line by UAX 29; it begins at `start`.
    fn line(&mut self, start: usize, line: &str) {
        let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
        let mut begin = start;
        let mut ideographs: Option<Range<usize>> = None;
        for end in segmenter.segment_str(line) {
            let range = begin..start + end;
            begin = start + end;
            let piece = &self.text[range.clone()];
            // The segmenter's own word for it leaves out what ends with a mark (Devanagari, Tamil).
            if !piece.contains(char::is_alphanumeric) {
                continue;
            }
            if !piece.chars().all(is_paired) {
                self.ideographs(ideographs.take());
                self.word(range);
                continue;
            }
            match &mut ideographs {
                Some(run) if run.end == range.start => run.end = range.end,
                other => self.ideographs(other.replace(range)),
            }
        }
        self.ideographs(ideographs.take());
    }

    fn word(&mut self, range: Range<usize>) {
        let at = self.position;
        let range = with_signs(self.text, range);
        let written = &self.text[range.clone()];
        if written.len() > WORD_OCTETS_MOST {
            self.position += 1;
            return;
        }
        let pieces = parts(written);
        self.push(range.clone(), at, Kind::Plain);
        if pieces.len() > 1 {
            for (n, part) in pieces.iter().enumerate() {
                let part = range.start + part.start..range.start + part.end;
                self.push(part, at + n, Kind::Part);
            }
        }
        self.position = at + pieces.len().max(1);
    }

    fn push(&mut self, range: Range<usize>, position: usize, kind: Kind) {
        let written: &'t str = &self.text[range.clone()];
        let stemmer = self.stemmer;
        let (text, stem) = self.known.entry(written).or_insert_with(|| {
            let lower = written.to_lowercase();
            let text = fold(&lower);
            let stem = stemmer.stem(&lower).map(|stem| fold(&stem));
            let stem = stem.filter(|stem| *stem != text && !stem.is_empty());
            (text, stem)
        });
        if text.is_empty() {
            return;
        }
        let (text, stem) = (text.clone(), stem.clone());
        self.words.push(Word {
            text,
            stem,
            range,
            position,
            kind,
        });
    }

    /// Each character of a run, and each pair of neighbours.
    fn ideographs(&mut self, run: Option<Range<usize>>) {
        let Some(run) = run else { return };
        let text = &self.text[run.clone()];
        let mut before: Option<usize> = None;
        for (at, c) in text.char_indices() {
            let single = run.start + at..run.start + at + c.len_utf8();
            if let Some(before) = before {
                self.character(before..single.end, self.position - 1, Kind::Pair);
            }
            before = Some(single.start);
            self.character(single, self.position, Kind::Character);
            self.position += 1;
        }
    }

    fn character(&mut self, range: Range<usize>, position: usize, kind: Kind) {
        self.words.push(Word {
            text: fold(&self.text[range.clone()]),
            stem: None,
            range,
            position,
            kind,
        });
    }
}

/// Takes in what UAX 29 leaves out of names such as `C++`, `C#` and `F#`.
fn with_signs(text: &str, range: Range<usize>) -> Range<usize> {
    let rest = &text[range.end..];
    if range.len() > 2 || !text[range.clone()].bytes().all(|b| b.is_ascii_alphabetic()) {
        return range;
    }
    let signs = ["++", "#"].iter().find(|signs| rest.starts_with(**signs));
    let more = signs.filter(|signs| {
        let after = rest[signs.len()..].chars().next();
        after.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '+' | '#'))
    });
    range.start..range.end + more.map_or(0, |signs| signs.len())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Kind, Stemmer, words};

    fn check(language: &str, text: &str, expected: Expect) {
        let words = words(text, &Stemmer::of(Some(language)));
        let shown: Vec<_> = words
            .iter()
            .map(|word| {
                let stem = word.stem.as_ref().map(|stem| format!("~{stem}"));
                let part = match word.kind {
                    Kind::Part | Kind::Pair => "'",
                    Kind::Plain | Kind::Character => "",
                };
                format!(
                    "{}{part}{}{}",
                    word.position,
                    word.text,
                    stem.unwrap_or_default()
                )
            })
            .collect();
        expected.assert_eq(&shown.join(" "));
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        check(
            "en",
            "Running the Cafés\nNaïve",
            expect!["0running~run 1the 2cafes~cafe 7naive~naiv"],
        );
        check(
            "de",
            "Häuser, Straße",
            expect!["0hauser~haus 1strasse~strass"],
        );
        check("fr", "l'index", expect!["0l'index 0'l 1'index"]);
    }

    #[test]
    fn names_are_words_and_so_are_their_parts() {
        check(
            "en",
            "os.path.join user_agent ThreadPool HTTPServer x86_64",
            expect![[
                r#"0os.path.join 0'os 1'path 2'join 3user_agent 3'user 4'agent 5threadpool 5'thread 6'pool 7httpserver 7'http 8'server 9x86_64 9'x86 10'64"#
            ]],
        );
        check("en", "C++ and C#, a+b", expect!["0c++ 1and 2c# 3a 4b"]);
    }

    #[test]
    fn scripts_without_spaces_are_cut() {
        check(
            "ja",
            "東京都 café",
            expect!["0東 0'東京 1京 1'京都 2都 3cafe"],
        );
        check("th", "ภาษาไทย", expect!["0ภาษา 1ไทย"]);
        check("ko", "한국어 검색", expect!["0한국어 1검색"]);
        check("xx", "नमस्ते दुनिया", expect!["0नमस्ते 1दुनिया"]);
        check("xx", "தமிழ் மொழி", expect!["0தமிழ் 1மொழி"]);
        check("xx", "cafe\u{301} au", expect!["0cafe 1au"]);
    }

    #[test]
    fn what_is_no_word_is_left_out() {
        check("en", "", expect![""]);
        check("en", "-- ... \u{0} \u{202e} 💡", expect![""]);
        let long = "x".repeat(1000);
        check("en", &format!("a {long} b"), expect!["0a 2b"]);
    }
}
