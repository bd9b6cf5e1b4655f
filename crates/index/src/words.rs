//! Splits text into words, in the same way for pages and queries.
//!
//! Word boundaries follow UAX 29, with dictionaries for scripts without spaces. A word that people
//! also type in parts (`os.path`, `user_agent`, `ThreadPool`) yields the whole word and its parts.
//! Chinese and Japanese text is split into pairs of characters, each of which counts as a word, so
//! lookups don't depend on a dictionary. A kana and its sound mark are one character. Separate
//! operators (`!=`, `|>`) are words too.

mod arabic_stem;
mod ascii_word_boundaries;
mod identifier_parts;
mod joined_segments;
mod stem;
mod word_cache;
mod word_folding;

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;
use joined_segments::are_joined;
pub(crate) use joined_segments::is_hebrew_letter;

#[cfg(test)]
pub(crate) use stem::PANICKING_WORD;
pub use stem::Stemmer;
use word_cache::{CachedWordHandle, WordCache};
use word_folding::fold;

/// Maximum bytes of a word. Longer ones are data, such as encoded images.
/// Beyond the limit: not a word.
const MAX_WORD_BYTES: usize = 96;
/// Maximum bytes of text to split into words at a time.
const MAX_PIECE_BYTES: usize = 8 << 10;
/// Minimum bytes of an operator that counts as a word. A single symbol is punctuation.
const MIN_OPERATOR_BYTES: usize = 2;
/// Maximum bytes of an operator that counts as a word. A longer row of symbols is decoration.
const MAX_OPERATOR_BYTES: usize = 4;
/// Number of positions to skip at the end of a line, so that no phrase matches across lines.
const BLOCK_GAP: usize = 4;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word in lower case, without accents.
    pub text: String,
    /// The word's stem in the text's language, if it differs from `text`.
    pub stem: Option<String>,
    /// The byte range of the word in the text.
    pub range: Range<usize>,
    /// The number of the word in the text, from 0. The first part of a word has the word's own
    /// number. Some numbers are skipped at the end of a line.
    pub position: usize,
    /// The relation to neighbouring words.
    pub kind: WordRelation,
}

/// The relation of a word to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordRelation {
    /// An independent word.
    Plain,
    /// A part of the preceding, longer word.
    Part,
    /// A character of a script without spaces, such as Chinese.
    Character,
    /// Two adjacent `Character`s, at the position of the first one.
    Pair,
}

/// Returns the words of `text` in order, each followed by its parts. Takes time linear in the
/// length of `text`.
#[must_use]
pub fn words(text: &str, stemmer: &Stemmer) -> Vec<Word> {
    WordIterator::new(text, *stemmer).collect()
}

/// Iterates over the words of a borrowed text, which is split piece by piece. Uses memory for at
/// most `MAX_PIECE_BYTES` of text and `word_cache::MAX_KNOWN_WORDS` words, however long the text
/// is.
#[derive(Debug)]
pub struct WordIterator<'t> {
    text: &'t str,
    /// The byte offset at which the text that is not split yet begins.
    next: usize,
    /// Words of the last piece that have not been returned yet.
    ready: VecDeque<SegmentedWord>,
    position: usize,
    /// The byte offset of the end of the last word. Operators are searched between it and the next
    /// word.
    symbols_from: usize,
    /// The cache of word forms, taken from this thread.
    known: Box<WordCache>,
    /// The range of the last character seen, if its script is written without spaces. The next
    /// piece may start with a character that pairs with it.
    last_character: Option<Range<usize>>,
    /// A buffer for the text of the last returned character or pair of characters.
    characters: String,
}

/// A word of the text before its forms are looked up.
#[derive(Clone, Debug)]
struct SegmentedWord {
    form: SegmentedForm,
    range: Range<usize>,
    position: usize,
    kind: WordRelation,
}

#[derive(Clone, Copy, Debug)]
enum SegmentedForm {
    Known(CachedWordHandle),
    /// A character or a pair of characters. The forms of such words are not cached, because there
    /// are too many different pairs.
    Characters,
}

/// A [`Word`] whose forms are borrowed from the cache.
#[derive(Clone, Debug)]
pub(crate) struct BorrowedWord<'w> {
    pub(crate) text: &'w str,
    pub(crate) stem: Option<&'w str>,
    pub(crate) range: Range<usize>,
    pub(crate) position: usize,
    pub(crate) kind: WordRelation,
}

impl<'t> WordIterator<'t> {
    /// Begins to split `text`. The stems of words follow the stemmer's language.
    #[must_use]
    pub fn new(text: &'t str, stemmer: Stemmer) -> WordIterator<'t> {
        WordIterator {
            text,
            next: 0,
            ready: VecDeque::new(),
            position: 0,
            symbols_from: 0,
            known: WordCache::take(stemmer),
            last_character: None,
            characters: String::new(),
        }
    }

    /// Splits more text until a word is ready. Returns false at the end of the text. Skips the rest
    /// of a line on which a stemmer panics, so that the other words of the page are still found.
    pub(crate) fn make_ready(&mut self) -> bool {
        while self.ready.is_empty() && self.next < self.text.len() {
            // All words have been returned, so the cached forms are no longer in use.
            self.known.make_room();
            let start = self.next;
            let piece = piece_of(&self.text[start..]);
            // Advance first, so that a piece whose processing panics is not processed again.
            self.next += piece.len();
            let _ = catch_unwind(AssertUnwindSafe(|| self.piece(start, piece)));
        }
        !self.ready.is_empty()
    }

    /// Returns the next word. It borrows its forms from the iterator.
    pub(crate) fn next_borrowed(&mut self) -> Option<BorrowedWord<'_>> {
        self.make_ready();
        let word = self.ready.pop_front()?;
        let (text, stem) = match word.form {
            SegmentedForm::Known(word) => {
                let forms = self.known.forms(word);
                (forms.text, forms.stem)
            }
            SegmentedForm::Characters => {
                self.characters = fold(&self.text[word.range.clone()]);
                (self.characters.as_str(), None)
            }
        };
        Some(BorrowedWord {
            text,
            stem,
            range: word.range,
            position: word.position,
            kind: word.kind,
        })
    }
}

impl Iterator for WordIterator<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        let word = self.next_borrowed()?;
        Some(Word {
            text: word.text.to_owned(),
            stem: word.stem.map(str::to_owned),
            range: word.range,
            position: word.position,
            kind: word.kind,
        })
    }
}

impl Drop for WordIterator<'_> {
    fn drop(&mut self) {
        std::mem::take(&mut self.known).give_back();
    }
}

/// Returns the first line of `text`. A line longer than `MAX_PIECE_BYTES` is cut after a space,
/// because no word contains a space. Without a space, it is cut at any character that is not a
/// sound mark.
fn piece_of(text: &str) -> &str {
    let mut limit = text.floor_char_boundary(MAX_PIECE_BYTES);
    if text[limit..].starts_with(is_sound_mark) {
        limit = text.floor_char_boundary(limit - 1);
    }
    let within = &text[..limit];
    match within.find('\n') {
        Some(end) => &text[..=end],
        None if limit == text.len() => text,
        None => &text[..within.rfind(' ').map_or(limit, |space| space + 1)],
    }
}

/// Returns whether a character belongs to a script whose text is split into pairs.
pub(crate) fn is_paired(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// Returns whether a character marks the preceding kana as voiced or half-voiced. Composed text has
/// one character for both, such as `バ`. In half-width katakana and in decomposed text, the mark is
/// separate.
fn is_sound_mark(c: char) -> bool {
    matches!(c, '\u{3099}' | '\u{309A}' | '\u{FF9E}' | '\u{FF9F}')
}

impl<'t> WordIterator<'t> {
    /// Splits a piece of text. `start` is the piece's offset in the whole text.
    fn piece(&mut self, start: usize, piece: &'t str) {
        match piece.is_ascii() {
            true => ascii_word_boundaries::each(piece, |range| {
                self.word(start + range.start..start + range.end);
            }),
            false => self.line(start, piece),
        }
        self.symbols_before(start + piece.len());
        // A phrase must not match across the end of a line.
        self.position += BLOCK_GAP * usize::from(piece.ends_with('\n'));
    }

    /// Splits a piece that is at most one line, by UAX 29. `start` is the piece's offset in the
    /// whole text.
    fn line(&mut self, start: usize, line: &str) {
        let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
        let mut begin = start;
        let mut ideographs: Option<Range<usize>> = None;
        for end in segmenter.segment_str(line) {
            let range = begin..start + end;
            if are_joined(&self.text[range.clone()], &line[end..]) {
                continue;
            }
            begin = start + end;
            let piece = &self.text[range.clone()];
            // The segmenter's own test for words misses words that end with a mark (Devanagari,
            // Tamil), so don't use it.
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
        let range = with_signs(self.text, range);
        self.symbols_before(range.start);
        self.symbols_from = range.end;
        let at = self.position;
        let written = &self.text[range.clone()];
        if written.len() > MAX_WORD_BYTES {
            self.position += 1;
            return;
        }
        let word = self.known.intern(written);
        self.push(word, range.clone(), at, WordRelation::Plain);
        let parts = self.known.parts(word);
        for n in 0..parts {
            let part = self.known.part(word, n);
            let part = range.start + part.start..range.start + part.end;
            let part_word = self.known.intern(&self.text[part.clone()]);
            self.push(part_word, part, at + n, WordRelation::Part);
        }
        self.position = at + parts.max(1);
    }

    fn push(
        &mut self,
        word: CachedWordHandle,
        range: Range<usize>,
        position: usize,
        kind: WordRelation,
    ) {
        if !self.known.is_empty(word) {
            self.ready.push_back(SegmentedWord {
                form: SegmentedForm::Known(word),
                range,
                position,
                kind,
            });
        }
    }

    /// Adds the operators between the last word and `end`. They get the position of the following
    /// word, so that a phrase can match with or without them.
    fn symbols_before(&mut self, end: usize) {
        let start = std::mem::replace(&mut self.symbols_from, end);
        for range in operators(self.text, start..end) {
            let word = self.known.intern(&self.text[range.clone()]);
            self.push(word, range, self.position, WordRelation::Plain);
        }
    }

    /// Adds each character of a run of text that is written without spaces, such as Chinese, and
    /// each pair of adjacent characters.
    fn ideographs(&mut self, run: Option<Range<usize>>) {
        let Some(run) = run else { return };
        self.symbols_before(run.start);
        self.symbols_from = run.end;
        let text = &self.text[run.clone()];
        let last = self.last_character.take();
        let last = last.filter(|last| last.end == run.start);
        let mut before = last.map(|last| last.start);
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at + c.len_utf8()..];
            let end = text.len() - rest.trim_start_matches(is_sound_mark).len();
            let single = run.start + at..run.start + end;
            if let Some(before) = before {
                self.character(before..single.end, self.position - 1, WordRelation::Pair);
            }
            before = Some(single.start);
            self.last_character = Some(single.clone());
            self.character(single, self.position, WordRelation::Character);
            self.position += 1;
            at = end;
        }
    }

    fn character(&mut self, range: Range<usize>, position: usize, kind: WordRelation) {
        self.ready.push_back(SegmentedWord {
            form: SegmentedForm::Characters,
            range,
            position,
            kind,
        });
    }
}

/// Extends a word by the signs in names such as `C++`, `C#` and `F#`, which UAX 29 excludes.
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

/// Returns the operators in a part of `text`, such as `!=` and `|>`: two to four symbols in a row
/// that touch no letter or digit, and are neither dashes nor dots.
fn operators(text: &str, within: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let is_within_word = |c: char| c.is_alphanumeric() || c == '_';
    let bytes = text.as_bytes();
    let mut at = within.start;
    std::iter::from_fn(move || {
        while at + MIN_OPERATOR_BYTES <= within.end {
            let symbols = bytes[at..within.end].iter();
            let length = symbols.take_while(|byte| is_symbol(**byte)).count();
            let range = at..at + length;
            at = range.end + 1;
            let row = &bytes[range.clone()];
            let is_punctuation = [b'-', b'.'].map(|dot| row.iter().all(|byte| *byte == dot));
            if (MIN_OPERATOR_BYTES..=MAX_OPERATOR_BYTES).contains(&length)
                && is_punctuation == [false; 2]
                && !text[..range.start].ends_with(is_within_word)
                && !text[range.end..].starts_with(is_within_word)
            {
                return Some(range);
            }
        }
        None
    })
}

fn is_symbol(byte: u8) -> bool {
    br"!#$%&*+-./:<=>?@\^|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::word_cache::MAX_KNOWN_WORDS;
    use super::{MAX_PIECE_BYTES, Stemmer, WordIterator, WordRelation, words};

    fn check(language: &str, text: &str, expected: Expect) {
        let words = words(text, &Stemmer::of(Some(language)));
        let shown: Vec<_> = words
            .iter()
            .map(|word| {
                let stem = word.stem.as_ref().map(|stem| format!("~{stem}"));
                let part = match word.kind {
                    WordRelation::Part | WordRelation::Pair => "'",
                    WordRelation::Plain | WordRelation::Character => "",
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
    fn formulas_and_hebrew_abbreviations_are_words() {
        check("en", "CO₂, C₆H₁₂O₆", expect!["0co2 1c6h12o6"]);
        check("en", "10 km² m³ µm²x", expect!["010 1km2 2m3 3μm2 4x"]);
        // After a longer word, a raised digit refers to a footnote.
        check(
            "en",
            "lamps² ¹⁴C x₁₂",
            expect!["0lamps~lamp 12 21 34 4c 5x12"],
        );
        check("he", "צה\"ל דו״ח ארה”ב", expect![[r#"0צה"ל 1דו"ח 2ארה"ב"#]]);
        check("en", "19\" rack \"a\"b", expect!["019 1rack 2a 3b"]);
    }

    #[test]
    fn operators_are_words_where_they_touch_no_other() {
        check(
            "en",
            "x != y (??)\n|> z é => 中 && a -- ... ->",
            expect!["0x 1!= 1y 2?? 6|> 6z 7e 8=> 8中 9&& 9a 10->"],
        );
        check(
            "en",
            "i<=3 --flag http://a x - y ----- \"==\"",
            expect!["0i 13 2flag 3http 4a 5x 6y 7=="],
        );
    }

    #[test]
    fn scripts_without_spaces_are_cut() {
        check(
            "ja",
            "東京都 café",
            expect!["0東 0'東京 1京 1'京都 2都 3cafe"],
        );
        // A kana and its sound mark are one character, in all compatible forms.
        for written in ["バナペ", "ﾊﾞﾅﾍﾟ", "ハ\u{3099}ナヘ\u{309A}"] {
            check("ja", written, expect!["0バ 0'バナ 1ナ 1'ナペ 2ペ"]);
        }
        check("th", "ภาษาไทย", expect!["0ภาษา 1ไทย"]);
        check("ko", "한국어 검색", expect!["0한국어 1검색"]);
        check("xx", "नमस्ते दुनिया", expect!["0नमस्ते 1दुनिया"]);
        check("xx", "தமிழ் மொழி", expect!["0தமிழ் 1மொழி"]);
        check("xx", "cafe\u{301} au", expect!["0cafe 1au"]);
    }

    #[test]
    fn a_long_line_is_cut_like_short_ones() {
        let none = Stemmer::none();
        // Characters are neighbours across the boundaries of pieces.
        let chinese = "\u{6C34}".repeat(MAX_PIECE_BYTES);
        let (mut characters, mut pairs) = (0, 0);
        for word in WordIterator::new(&chinese, none) {
            let (count, expected) = match word.kind {
                WordRelation::Pair => (&mut pairs, 2),
                _ => (&mut characters, 1),
            };
            assert_eq!(
                (word.position, word.text.chars().count()),
                (*count, expected)
            );
            *count += 1;
        }
        assert_eq!((characters, pairs), (MAX_PIECE_BYTES, MAX_PIECE_BYTES - 1));
        // A sound mark stays with its kana, wherever a piece would end between them.
        for before in ["", "a ", "aa "] {
            let katakana = before.to_owned() + &"ﾊﾞ".repeat(MAX_PIECE_BYTES);
            let words = WordIterator::new(&katakana, none).skip(usize::from(!before.is_empty()));
            let mut singles = words.filter(|word| word.kind == WordRelation::Character);
            assert!(singles.all(|word| word.text == "バ" && word.range.len() == 6));
        }
        // A word is not split at the boundary of a piece.
        for text in ["wassermelone ", "\u{e4}pfel "].map(|word| word.repeat(MAX_PIECE_BYTES)) {
            let mut numbered_words = WordIterator::new(&text, none).enumerate();
            assert!(numbered_words.all(|(n, word)| word.position == n && word.text.len() > 4));
        }
    }

    #[test]
    fn words_of_a_long_text_wait_by_the_piece() {
        let text: String = (0..2 * MAX_KNOWN_WORDS).map(|n| format!("w{n} ")).collect();
        let mut words = WordIterator::new(&text, Stemmer::of(Some("en")));
        while words.next().is_some() {
            assert!(words.ready.len() < MAX_PIECE_BYTES / 2);
            assert!(words.known.len() <= MAX_KNOWN_WORDS + MAX_PIECE_BYTES);
        }
    }

    #[test]
    fn non_words_are_skipped() {
        check("en", "", expect![""]);
        check("en", "-- ... \u{0} \u{202e} 💡", expect![""]);
        let long = "x".repeat(1000);
        check("en", &format!("a {long} b"), expect!["0a 2b"]);
    }
}
