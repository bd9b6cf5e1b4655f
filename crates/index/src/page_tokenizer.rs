//! Tokenizes the text of a page for tantivy, one word at a time from the borrowed text.
//!
//! All text fields use the tokenizer name `raw`, whose tokenizer this module replaces. A text that
//! starts with a [`MARK`] and a language is split into words; any other text is a single term.
//! Words are returned one at a time, so a list of all words of a page is never in memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::words::{Stemmer, WordIterator};

/// The tokenizer name in the schema. This is the name of one of tantivy's own tokenizers, which
/// this module replaces.
pub(crate) const TOKENIZER: &str = "raw";
/// The character before and after the language at the start of a text to split. No other text
/// starts with it.
const MARK: char = '\u{2}';
/// The prefix of a stem, which distinguishes it from any word that a user can type. A word and its
/// stem have the same position.
pub(crate) const STEM: char = '\u{1}';

/// Marks `text` for [`LanguagePrefixTokenizer`], so that it is split into words of a language.
pub(crate) fn of_language(language: Option<&str>, text: &str) -> String {
    format!("{MARK}{}{MARK}{text}", language.unwrap_or(""))
}

/// Number of words after which to check again whether to stop. Splitting this many words takes a
/// few hundred microseconds.
const WORDS_BETWEEN_CHECKS: u32 = 4_096;

/// Ends tokenization early when a run is out of time. Otherwise, a page of several megabytes would
/// delay the end of the run by seconds.
#[derive(Clone)]
pub(crate) struct TokenizerDeadline {
    is_due: Arc<dyn Fn() -> bool + Send + Sync>,
    /// True if tokenizing a page was cut short. In this case the page must not be committed.
    has_cut: Arc<AtomicBool>,
}

impl TokenizerDeadline {
    pub(crate) fn when(is_due: Arc<dyn Fn() -> bool + Send + Sync>) -> TokenizerDeadline {
        TokenizerDeadline {
            is_due,
            has_cut: Arc::default(),
        }
    }

    pub(crate) fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::Acquire)
    }

    fn cuts(&self) -> bool {
        let cuts = (self.is_due)();
        if cuts {
            self.has_cut.store(true, Ordering::Release);
        }
        cuts
    }
}

impl fmt::Debug for TokenizerDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenizerDeadline").finish_non_exhaustive()
    }
}

/// Splits texts that begin with a [`MARK`] into words. Any other text is a single token.
#[derive(Clone, Debug)]
pub(crate) struct LanguagePrefixTokenizer {
    pub(crate) stop: TokenizerDeadline,
}

impl Tokenizer for LanguagePrefixTokenizer {
    type TokenStream<'t> = PageTokenStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> PageTokenStream<'t> {
        let marked = text.strip_prefix(MARK);
        let source = match marked.and_then(|text| text.split_once(MARK)) {
            Some((language, text)) => {
                let language = Some(language).filter(|language| !language.is_empty());
                TokenSource::Words(Box::new(WordIterator::new(text, Stemmer::of(language))))
            }
            None => TokenSource::Whole(text),
        };
        PageTokenStream {
            source,
            stop: &self.stop,
            words: 0,
            stem: String::new(),
            token: Token::default(),
        }
    }
}

enum TokenSource<'t> {
    Words(Box<WordIterator<'t>>),
    Whole(&'t str),
    End,
}

/// The tokens of one text.
pub(crate) struct PageTokenStream<'t> {
    source: TokenSource<'t>,
    stop: &'t TokenizerDeadline,
    /// Number of words of this text so far.
    words: u32,
    /// The stem of the last word, with the prefix [`STEM`], if the stem is the next token;
    /// otherwise empty.
    stem: String,
    token: Token,
}

impl PageTokenStream<'_> {
    /// Advances to the next word, and returns whether there is one.
    fn next_word(&mut self) -> bool {
        let TokenSource::Words(words) = &mut self.source else {
            return false;
        };
        if self.words.is_multiple_of(WORDS_BETWEEN_CHECKS) && self.stop.cuts() {
            return false;
        }
        self.words = self.words.wrapping_add(1);
        let Some(word) = words.next_borrowed() else {
            return false;
        };
        if let Some(stem) = word.stem {
            self.stem.push(STEM);
            self.stem.push_str(stem);
        }
        word.text.clone_into(&mut self.token.text);
        self.token.position = word.position;
        (self.token.offset_from, self.token.offset_to) = (word.range.start, word.range.end);
        true
    }
}

impl TokenStream for PageTokenStream<'_> {
    fn advance(&mut self) -> bool {
        if !self.stem.is_empty() {
            std::mem::swap(&mut self.token.text, &mut self.stem);
            self.stem.clear();
            return true;
        }
        match self.source {
            TokenSource::Words(_) => {
                let has_word = self.next_word();
                if !has_word {
                    self.source = TokenSource::End;
                }
                has_word
            }
            TokenSource::Whole(text) => {
                self.source = TokenSource::End;
                text.clone_into(&mut self.token.text);
                self.token.position = 0;
                (self.token.offset_from, self.token.offset_to) = (0, text.len());
                true
            }
            TokenSource::End => false,
        }
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use tantivy::tokenizer::{TokenStream as _, Tokenizer as _};

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{LanguagePrefixTokenizer, TokenizerDeadline, WORDS_BETWEEN_CHECKS, of_language};

    fn tokens(text: &str) -> Vec<(usize, String)> {
        tokens_until(text, &TokenizerDeadline::when(Arc::new(|| false)))
    }

    fn tokens_until(text: &str, stop: &TokenizerDeadline) -> Vec<(usize, String)> {
        let mut tokens = Vec::new();
        let mut tokenizer = LanguagePrefixTokenizer { stop: stop.clone() };
        let mut stream = tokenizer.token_stream(text);
        stream.process(&mut |token| tokens.push((token.position, token.text.clone())));
        tokens
    }

    #[test]
    fn a_text_of_a_language_is_cut_and_a_term_is_not() {
        let expected = [(0, "running"), (0, "\u{1}run"), (1, "water")];
        let expected = expected.map(|(position, text)| (position, text.to_owned()));
        assert_eq!(tokens(&of_language(Some("en"), "Running water")), expected);
        assert_eq!(tokens(&of_language(None, "Running water")), expected);
        let term = "http://a.example/Running water".to_owned();
        assert_eq!(tokens(&term), [(0, term)]);
    }

    #[test]
    fn a_long_text_is_cut_off_when_time_is_over() {
        let text = of_language(None, &"water ".repeat(100_000));
        let calls = AtomicUsize::new(0);
        let stop =
            TokenizerDeadline::when(Arc::new(move || calls.fetch_add(1, Ordering::Relaxed) >= 3));
        assert_eq!(
            tokens_until(&text, &stop).len(),
            3 * WORDS_BETWEEN_CHECKS as usize
        );
        assert!(stop.has_cut());
        let stop = TokenizerDeadline::when(Arc::new(|| false));
        assert_eq!(tokens_until(&text, &stop).len(), 100_000);
        assert!(!stop.has_cut());
    }
}
