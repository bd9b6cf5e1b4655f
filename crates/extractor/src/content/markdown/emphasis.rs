//! Writes emphasis: as Markdown delimiters if Markdown recognizes them, and otherwise as HTML
//! elements.
//!
//! Markdown doesn't recognize asterisks between a letter and punctuation, as in `これは**「重要」**です`
//! (CommonMark 6.2, flanking delimiter runs). HTML elements are recognized everywhere.

use std::ops::Range;

/// A kind of emphasis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emphasis {
    Italic,
    Bold,
    Struck,
}

impl Emphasis {
    /// Returns the delimiter before and after the text.
    pub(super) fn delimiter(self) -> &'static str {
        match self {
            Emphasis::Italic => "*",
            Emphasis::Bold => "**",
            Emphasis::Struck => "~~",
        }
    }

    fn element(self) -> &'static str {
        match self {
            Emphasis::Italic => "em",
            Emphasis::Bold => "strong",
            Emphasis::Struck => "del",
        }
    }
}

/// Emphasized text in Markdown, with the byte offsets of its delimiters.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmphasizedText {
    pub(super) emphasis: Emphasis,
    /// The offset of the opening delimiter.
    pub(super) start: usize,
    /// The offset of the closing delimiter.
    pub(super) end: usize,
}

/// A delimiter in Markdown.
struct EmphasisDelimiter {
    /// The index of the emphasized text.
    text: usize,
    is_opening: bool,
    emphasis: Emphasis,
    /// The byte offsets of the delimiter.
    at: Range<usize>,
}

/// Returns `markdown` with HTML elements instead of the delimiters that Markdown would misread.
/// `texts` must not contain a text within another text with the same kind of emphasis.
pub(super) fn with_readable_emphasis(markdown: &str, texts: &[EmphasizedText]) -> String {
    let delimiters = delimiters(texts);
    let runs: Vec<&[EmphasisDelimiter]> = delimiters
        .chunk_by(|one, next| {
            let is_same =
                one.emphasis.delimiter().as_bytes()[0] == next.emphasis.delimiter().as_bytes()[0];
            one.at.end == next.at.start && is_same
        })
        .collect();
    let mut needs_element = vec![false; texts.len()];
    for run in &runs {
        if !is_readable(markdown, run) {
            run.iter().for_each(|one| needs_element[one.text] = true);
        }
    }
    // If one delimiter of a run becomes an element, the other delimiters of the run have different
    // characters around them, so they become elements too. This can affect the run at the other end
    // of a text, so repeat until nothing changes. Few repetitions are needed, because runs share a
    // text only if texts nest.
    let mut is_changed = true;
    while std::mem::take(&mut is_changed) {
        for run in &runs {
            let elements = run.iter().filter(|one| needs_element[one.text]).count();
            if elements > 0 && elements < run.len() {
                run.iter().for_each(|one| needs_element[one.text] = true);
                is_changed = true;
            }
        }
    }
    let mut out = String::with_capacity(markdown.len());
    let mut written = 0;
    for delimiter in delimiters.iter().filter(|one| needs_element[one.text]) {
        out.push_str(&markdown[written..delimiter.at.start]);
        out.push_str(if delimiter.is_opening { "<" } else { "</" });
        out.push_str(delimiter.emphasis.element());
        out.push('>');
        written = delimiter.at.end;
    }
    out.push_str(&markdown[written..]);
    out
}

/// Returns the delimiters of `texts` in the order of their offsets.
fn delimiters(texts: &[EmphasizedText]) -> Vec<EmphasisDelimiter> {
    let of_text = |(index, text): (usize, &EmphasizedText)| {
        [(text.start, true), (text.end, false)].map(|(start, is_opening)| EmphasisDelimiter {
            text: index,
            is_opening,
            emphasis: text.emphasis,
            at: start..start + text.emphasis.delimiter().len(),
        })
    };
    let mut delimiters: Vec<EmphasisDelimiter> =
        texts.iter().enumerate().flat_map(of_text).collect();
    delimiters.sort_by_key(|delimiter| delimiter.at.start);
    delimiters
}

/// Returns whether Markdown reads a run of delimiters as intended: either all opening or all
/// closing.
fn is_readable(markdown: &str, run: &[EmphasisDelimiter]) -> bool {
    let ([first, ..], [.., last]) = (run, run) else {
        return true;
    };
    let before = markdown[..first.at.start].chars().next_back();
    let after = markdown[last.at.end..].chars().next();
    // A single tilde of the text isn't escaped, and would become part of the run.
    if first.emphasis == Emphasis::Struck && [before, after].contains(&Some('~')) {
        return false;
    }
    let is_all = |is_opening| run.iter().all(|one| one.is_opening == is_opening);
    // An opening run has to be left-flanking, and a closing run right-flanking.
    (is_all(true) && is_flanking(before, after)) || (is_all(false) && is_flanking(after, before))
}

/// Returns whether a run is flanking: `inner` is the character on the side of the emphasized text,
/// `outer` the one on the other side. Returns false if this depends on the version of CommonMark.
fn is_flanking(outer: Option<char>, inner: Option<char>) -> bool {
    let is_separate = outer.is_none_or(|c| c.is_whitespace() || is_punctuation(c));
    inner.is_some_and(|c| is_letter(c) || (is_separate && !c.is_whitespace()))
}

/// Returns whether `c` is a letter or a number, but not a symbol. (The circled Latin letters are
/// both letters and symbols.)
fn is_letter(c: char) -> bool {
    let is_circled = matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f189}');
    c.is_alphanumeric() && !is_circled
}

/// Returns whether `c` is one of the common punctuation characters.
fn is_punctuation(c: char) -> bool {
    let is_general = matches!(c, '«' | '»' | '¡' | '¿' | '\u{2010}'..='\u{2027}');
    // East Asian commas, full stops, brackets and dots, and the fullwidth forms of ASCII
    // punctuation.
    let is_east_asian = matches!(c, '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '・'
        | '！' | '（' | '）' | '，' | '．' | '／' | '：' | '；' | '？');
    c.is_ascii_punctuation() || is_general || is_east_asian
}
