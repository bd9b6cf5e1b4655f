//! Writes the words of one block as Markdown, with emphasis and links.

use super::emphasis::{Emphasis, EmphasizedText, with_readable_emphasis};
use crate::content::heading_controls::is_sign;
use crate::html::element_name::{self, ElementName};

/// Maximum number of open inline elements.
const MAX_OPEN: usize = 64;

/// The style of words within a block.
#[derive(Clone, Debug, PartialEq, Eq)]
enum InlineStyle {
    Emphasized(Emphasis),
    Code,
    /// A link, with its target.
    Link(String),
}

/// Writes the words of a block. The opening mark of an element is written together with the
/// element's first word. So an element without words leaves no marks, and white space stays outside
/// the marks.
#[derive(Debug, Default)]
pub(super) struct InlineMarkdownWriter {
    out: String,
    /// The names and styles of the open elements.
    open: Vec<(ElementName, InlineStyle)>,
    /// The offsets in `out` of the opening marks that are already written, for the outermost
    /// elements of `open`.
    written: Vec<usize>,
    /// The emphasized texts in `out` whose elements have ended.
    emphasized: Vec<EmphasizedText>,
    /// Whether there is white space before the next word.
    space: bool,
}

impl InlineMarkdownWriter {
    /// Returns whether nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Begins an element. `link` is the target of an `a`.
    pub(super) fn start(&mut self, tag: ElementName, link: Option<String>) {
        let style = match tag {
            element_name::EM | element_name::I => InlineStyle::Emphasized(Emphasis::Italic),
            element_name::STRONG | element_name::B => InlineStyle::Emphasized(Emphasis::Bold),
            element_name::DEL | element_name::S | element_name::STRIKE => {
                InlineStyle::Emphasized(Emphasis::Struck)
            }
            element_name::CODE | element_name::KBD | element_name::SAMP | element_name::TT => {
                InlineStyle::Code
            }
            element_name::A => {
                // Links don't nest, so a new link ends the open one.
                self.end(element_name::A);
                match link {
                    Some(target) => InlineStyle::Link(target),
                    None => return,
                }
            }
            _ => return,
        };
        if self.open.len() < MAX_OPEN {
            self.open.push((tag, style));
        }
    }

    /// Ends the innermost open element named `tag`.
    pub(super) fn end(&mut self, tag: ElementName) {
        let Some(at) = self.open.iter().rposition(|(open, _)| *open == tag) else {
            return;
        };
        // Also close the elements within the one that ends. The next word reopens these elements.
        self.close_to(at);
        self.open.remove(at);
    }

    /// Adds text. Runs of white space become one space.
    pub(super) fn text(&mut self, text: &str) {
        for (at, word) in text.split(char::is_whitespace).enumerate() {
            self.space |= at > 0;
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    /// Adds an image.
    pub(super) fn image(&mut self, alt: &str, target: &str) {
        self.begin_word();
        self.out.push_str("![");
        for (at, word) in alt.split_whitespace().enumerate() {
            if at > 0 {
                self.out.push(' ');
            }
            escape(word, &mut self.out);
        }
        self.out.push_str("](");
        push_target(target, &mut self.out);
        self.out.push(')');
    }

    /// Adds a line break.
    pub(super) fn line_break(&mut self) {
        let in_code = self
            .open
            .iter()
            .any(|(_, style)| *style == InlineStyle::Code);
        if self.out.is_empty() || in_code {
            self.space = true;
            return;
        }
        self.out.push_str("\\\n");
        self.space = false;
    }

    /// Ends the block, and returns its Markdown. Elements that are still open continue in the next
    /// block.
    pub(super) fn take(&mut self) -> String {
        self.close_to(0);
        self.space = false;
        let emphasized = std::mem::take(&mut self.emphasized);
        let mut out = with_readable_emphasis(&std::mem::take(&mut self.out), &emphasized);
        let trimmed = out.trim_end_matches(|c: char| c.is_whitespace() || c == '¶' || c == '🔗');
        let mut end = trimmed.len();
        while out[..end].ends_with("\\\n") {
            end -= 2;
        }
        // Drop a line break at the end of the block. A backslash at the end of a block would be
        // shown as such.
        if out[end..].starts_with('\n') && out[..end].ends_with('\\') {
            end -= 1;
        }
        out.truncate(end);
        out.truncate(out.trim_end().len());
        out
    }

    fn word(&mut self, word: &str) {
        self.begin_word();
        match self
            .open
            .iter()
            .any(|(_, style)| *style == InlineStyle::Code)
        {
            true => self.out.push_str(word),
            false => escape(word, &mut self.out),
        }
    }

    /// Writes the space before the next word, and the opening marks that are not written yet.
    fn begin_word(&mut self) {
        if self.space && !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
            self.out.push(' ');
        }
        self.space = false;
        // Write no marks within code, because Markdown would show them as text.
        let in_code = |(_, style): &(ElementName, InlineStyle)| *style == InlineStyle::Code;
        let end = self.open.iter().position(in_code);
        let end = end.map_or(self.open.len(), |code| code + 1);
        while self.written.len() < end {
            let at = self.written.len();
            self.written.push(self.out.len());
            self.out.push_str(match &self.open[at].1 {
                InlineStyle::Emphasized(_) if self.is_repeated(at) => "",
                InlineStyle::Emphasized(emphasis) => emphasis.delimiter(),
                InlineStyle::Link(_) => "[",
                // Code gets its backticks when it ends, because their number depends on the text.
                InlineStyle::Code => "",
            });
        }
    }

    /// Returns whether the open element with the index `at` is within another element of the same
    /// style. If so, it is written without marks.
    fn is_repeated(&self, at: usize) -> bool {
        let (_, style) = &self.open[at];
        self.open[..at].iter().any(|(_, outer)| outer == style)
    }

    /// Writes the closing marks of all but the first `keep` elements whose opening marks were
    /// written.
    fn close_to(&mut self, keep: usize) {
        while self.written.len() > keep {
            let Some(start) = self.written.pop() else {
                return;
            };
            let at = self.written.len();
            match &self.open[at].1 {
                InlineStyle::Emphasized(_) if self.is_repeated(at) => {}
                InlineStyle::Emphasized(emphasis) => {
                    self.emphasized.push(EmphasizedText {
                        emphasis: *emphasis,
                        start,
                        end: self.out.len(),
                    });
                    self.out.push_str(emphasis.delimiter());
                }
                InlineStyle::Code => {
                    let code = self.out.split_off(start);
                    self.out.push_str(&code_span(&code));
                }
                // Drop a link whose text is only the permalink sign of a heading.
                InlineStyle::Link(_) if is_sign(&self.out[start + 1..].replace('\\', "")) => {
                    self.out.truncate(start);
                    while self.emphasized.pop_if(|text| text.start >= start).is_some() {}
                }
                InlineStyle::Link(target) => {
                    self.out.push_str("](");
                    push_target(target, &mut self.out);
                    self.out.push(')');
                }
            }
        }
    }
}

/// Returns `code` as a code span, with delimiters longer than any run of backticks in the code
/// (CommonMark 6.1).
fn code_span(code: &str) -> String {
    let marks = "`".repeat(longest_run(code, '`') + 1);
    let space = match code.starts_with('`') || code.ends_with('`') {
        true => " ",
        false => "",
    };
    format!("{marks}{space}{code}{space}{marks}")
}

/// Returns the length of the longest run of the character `c` in `text`.
pub(super) fn longest_run(text: &str, c: char) -> usize {
    let runs = text.split(|other| other != c);
    runs.map(|run| run.chars().count()).max().unwrap_or(0)
}

/// Writes the target of a link (CommonMark 6.3).
fn push_target(target: &str, out: &mut String) {
    let needs_angles = |c: char| matches!(c, ' ' | '(' | ')');
    let has_angles = target.contains(needs_angles) || target.is_empty();
    if has_angles {
        out.push('<');
    }
    for c in target.chars() {
        match c {
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            // Encode the backslash. At the end of the target, it would escape the closing bracket.
            '\\' => out.push_str("%5C"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    if has_angles {
        out.push('>');
    }
}

/// Escapes plain text for Markdown (CommonMark 2.4), so that it is displayed as it is.
///
/// Runs of white space and control characters become one space, so the text stays on one line.
///
/// ```
/// use crawl_extractor::escape_markdown;
///
/// assert_eq!(escape_markdown("1. a [b](c)\n*d*"), r"1\. a \[b\](c) \*d\*");
/// ```
#[must_use]
pub fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        escape(word, &mut out);
    }
    out
}

/// Writes a word with its special characters escaped (CommonMark 2.4).
fn escape(word: &str, out: &mut String) {
    let mut before = out.chars().next_back();
    // Block marks, such as `#`, have to be escaped only at the start of a line.
    let is_line_start = before.is_none_or(|c| c == '\n');
    let mut chars = word.chars().peekable();
    let mut first = true;
    while let Some(c) = chars.next() {
        let after = chars.peek().copied();
        let is_mark = match c {
            '\\' | '`' | '*' | '[' | ']' | '|' => true,
            // An underscore within a word needs no escaping.
            '_' => {
                !(before.is_some_and(char::is_alphanumeric)
                    && after.is_some_and(char::is_alphanumeric))
            }
            '<' => after.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            '&' => after.is_some_and(|c| c.is_ascii_alphabetic() || c == '#'),
            '~' => after == Some('~') || before == Some('~'),
            '#' | '>' | '+' | '-' | '=' => is_line_start && first,
            '.' | ')' => is_line_start && !first && starts_with_number(word, c),
            _ => false,
        };
        if is_mark {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
        first = false;
    }
}

/// Returns whether a word is a list marker: digits, then the character `end`.
fn starts_with_number(word: &str, end: char) -> bool {
    let digits = word.trim_end_matches(end);
    digits.len() + 1 == word.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
