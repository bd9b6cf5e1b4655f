//! The tokenization of HTML (HTML Standard 13.2.5), without copies of the text.
//!
//! The states of the standard are places in the code here: each construct is found by its end
//! and handed on as a slice of the page. What stands in comments and document types is nobody's
//! to see, and is passed over. The page is text whose line ends are line feeds already.

mod raw_text;
mod references;
mod scan;
mod tag;

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use self::raw_text::{end_of_script, end_of_text};
use self::references::{Place, decode, without_nul};
pub(super) use self::scan::{WIDTH, first_bits, letters_of_sixteen};
use self::scan::{next_less_than, tag_name_end};
use self::tag::TagEnding;
pub(crate) use self::tag::{Attribute, Attributes, Tag};
use super::name::Name;
use super::tag_kinds::TagKinds;

/// The way in which the text behind a tag is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Markup,
    /// Text with character references: `title`, `textarea`.
    Rcdata,
    /// Text alone: `style` and such.
    Rawtext,
    Script,
    /// Text to the very end.
    Plaintext,
}

/// A part of a page. The tokenizer has the tag.
pub(super) enum Token<'t> {
    StartTag,
    EndTag,
    Text(Text<'t>),
}

/// Text between two tags as it is written, or a part of it: comments and such part it too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'t> {
    /// The page that it is a part of.
    pub(crate) page: &'t str,
    from: usize,
    to: usize,
    kind: TextKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// It has references, and no NUL of it is kept.
    Data,
    /// It has references.
    Rcdata,
    Raw,
    /// No NUL of it is kept.
    Cdata,
}

impl<'t> Text<'t> {
    /// The text that is decoded already.
    #[cfg(any(test, fuzzing))]
    pub(super) fn decoded(text: &'t str) -> Text<'t> {
        Text {
            page: text,
            from: 0,
            to: text.len(),
            kind: TextKind::Raw,
        }
    }

    /// Its bytes of the page.
    pub(crate) fn place(&self) -> Range<usize> {
        self.from..self.to
    }

    /// Gives the text in parts, its references decoded.
    pub(crate) fn parts(&self, part: impl FnMut(&str)) {
        let raw = &self.page[self.place()];
        match self.kind {
            TextKind::Data => decode(raw, Place::Text, "", part),
            TextKind::Rcdata => decode(raw, Place::Text, "\u{fffd}", part),
            TextKind::Raw => without_nul(raw, "\u{fffd}", part),
            TextKind::Cdata => without_nul(raw, "", part),
        }
    }
}

/// A tokenizer at work on a page.
pub(super) struct Tokenizer<'t> {
    text: &'t str,
    /// The byte that is read next.
    at: usize,
    mode: Mode,
    /// The name of the last start tag, whose end tag ends text without markup.
    open: &'t [u8],
    /// The tag that came last.
    name: Name,
    start: usize,
    ending: TagEnding,
    attributes: Vec<Attribute<'t>>,
    max_attributes: usize,
}

/// The kinds of markup, told by the first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Markup {
    StartTag,
    EndTag,
    /// `<!`, which begins a comment, a document type or a CDATA section.
    Declaration,
    /// A comment that ends with the next `>`.
    BogusComment,
    /// `</>`, which is nothing.
    Nothing,
}

impl<'t> Tokenizer<'t> {
    /// A tokenizer that keeps `max_attributes` of each tag.
    pub(super) fn new(text: &'t str, max_attributes: usize) -> Tokenizer<'t> {
        Tokenizer {
            text,
            at: 0,
            mode: Mode::Markup,
            open: &[],
            name: Name::of(b""),
            start: 0,
            ending: TagEnding::default(),
            attributes: Vec::new(),
            max_attributes,
        }
    }

    /// Says how to go on behind the start tag that came last.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// The next token; none at the end of the page. `is_foreign`: a drawing or formula is open,
    /// which may hold CDATA sections.
    pub(super) fn next(&mut self, is_foreign: bool) -> Option<Token<'t>> {
        if self.mode != Mode::Markup
            && let Some(text) = self.text_without_markup()
        {
            return Some(Token::Text(text));
        }
        let bytes = self.text.as_bytes();
        let mut from = self.at;
        loop {
            // Behind a text it is known where the next markup begins.
            let at = match bytes.get(from) {
                Some(b'<') => from,
                _ => match next_less_than(bytes, from) {
                    Some(found) => found,
                    None => return self.text_to(bytes.len(), TextKind::Data).map(Token::Text),
                },
            };
            let Some(markup) = markup(&bytes[at..]) else {
                from = at + 1;
                continue;
            };
            if at > self.at {
                return self.text_to(at, TextKind::Data).map(Token::Text);
            }
            match markup {
                Markup::StartTag => return self.read_tag(1).then_some(Token::StartTag),
                Markup::EndTag => return self.read_tag(2).then_some(Token::EndTag),
                Markup::Declaration if is_foreign && bytes[at + 2..].starts_with(b"[CDATA[") => {
                    if let Some(text) = self.cdata() {
                        return Some(Token::Text(text));
                    }
                }
                Markup::Declaration if bytes[at + 2..].starts_with(b"--") => {
                    self.at = end_of_comment(bytes, at + 4);
                }
                Markup::Declaration | Markup::BogusComment => {
                    let end = memchr(b'>', &bytes[at + 2..]);
                    self.at = end.map_or(bytes.len(), |end| at + 2 + end + 1);
                }
                Markup::Nothing => self.at += "</>".len(),
            }
            from = self.at;
        }
    }

    /// The text that is no markup before the next end tag. Markup comes next.
    fn text_without_markup(&mut self) -> Option<Text<'t>> {
        let (bytes, name) = (self.text.as_bytes(), self.open);
        let mode = std::mem::replace(&mut self.mode, Mode::Markup);
        let end = match mode {
            Mode::Markup | Mode::Plaintext => None,
            Mode::Rcdata | Mode::Rawtext => end_of_text(bytes, self.at, name),
            Mode::Script => end_of_script(bytes, self.at, name),
        };
        let kind = match mode {
            Mode::Rcdata => TextKind::Rcdata,
            _ => TextKind::Raw,
        };
        self.text_to(end.unwrap_or(bytes.len()), kind)
    }

    /// The content of the CDATA section that comes next.
    fn cdata(&mut self) -> Option<Text<'t>> {
        self.at += "<![CDATA[".len();
        let end = memmem::find(&self.text.as_bytes()[self.at..], b"]]>");
        let text = self.text_to(
            end.map_or(self.text.len(), |end| self.at + end),
            TextKind::Cdata,
        );
        self.at += end.map_or(0, |_| "]]>".len());
        text
    }

    /// The text up to `end`, if there is any.
    fn text_to(&mut self, end: usize, kind: TextKind) -> Option<Text<'t>> {
        let from = std::mem::replace(&mut self.at, end);
        (from < end).then_some(Text {
            page: self.text,
            from,
            to: end,
            kind,
        })
    }

    /// The tag that came last.
    #[inline]
    pub(super) fn tag(&self) -> Tag<'_> {
        Tag {
            name: self.name,
            kinds: TagKinds::of(self.name),
            offset: self.start,
            source: &self.text[self.start..self.at],
            self_closing: self.ending.self_closing,
            was_cut: self.ending.was_cut,
            attributes: Attributes::new(&self.attributes),
        }
    }

    /// Reads the tag that comes next, with `mark` bytes before its name. One that the page's end
    /// cuts off is none.
    fn read_tag(&mut self, mark: usize) -> bool {
        self.start = self.at;
        self.attributes.clear();
        let bytes = self.text.as_bytes();
        let name = self.at + mark;
        self.at = bytes.len();
        let Some(end) = tag_name_end(bytes, name) else {
            return false;
        };
        let ending = match bytes[end] {
            // As most do.
            b'>' => TagEnding::at(end + 1),
            _ => {
                let (max, attributes) = (self.max_attributes, &mut self.attributes);
                match tag::attributes(self.text, end, max, attributes) {
                    Some(ending) => ending,
                    None => return false,
                }
            }
        };
        self.at = ending.at;
        self.ending = ending;
        self.name = Name::at(bytes, name, end);
        if mark == 1 {
            self.open = &bytes[name..end];
        }
        true
    }
}

/// The kind of markup that begins with a `<`; none where that is text.
fn markup(bytes: &[u8]) -> Option<Markup> {
    match bytes {
        [_, b'/', letter, ..] if letter.is_ascii_alphabetic() => Some(Markup::EndTag),
        [_, b'/', b'>', ..] => Some(Markup::Nothing),
        [_, b'/', _, ..] | [_, b'?', ..] => Some(Markup::BogusComment),
        [_, b'!', ..] => Some(Markup::Declaration),
        [_, letter, ..] if letter.is_ascii_alphabetic() => Some(Markup::StartTag),
        _ => None,
    }
}

/// The byte behind the comment whose content begins at `from`.
fn end_of_comment(bytes: &[u8], from: usize) -> usize {
    let content = &bytes[from..];
    let end = memchr_iter(b'>', content).find(|end| {
        let before = &content[..*end];
        before.ends_with(b"--") || before.ends_with(b"--!") || matches!(before, b"" | b"-")
    });
    end.map_or(bytes.len(), |end| from + end + 1)
}
