//! The tokenization of HTML (HTML Standard 13.2.5), without copies of the text.
//!
//! The states of the standard are places in the code here: each construct is found by its end
//! and handed on as a slice of the page. What stands in comments and document types is nobody's
//! to see, and is passed over. The page is text whose line ends are line feeds already.

mod letters;
mod raw_text;
mod references;
mod scan;
mod tag;
mod xml_markup;

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

pub(super) use self::letters::LetterCount;
use self::raw_text::{end_of_script, end_of_text, is_end_tag};
use self::references::{Place, decode, without_nul};
use self::scan::{next_less_than, tag_name};
pub(crate) use self::tag::{AttributeList, Attributes, Tag};
use super::name::Name;
use super::tag_kinds::TagKinds;
use crate::document_kind::Syntax;

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
    /// XML text up to the end tag, with references, comments and CDATA sections.
    XmlText,
}

/// The end of a part of a page. The tokenizer has the tag, and the text that stands before it.
pub(super) enum Token {
    StartTag,
    EndTag,
    /// Nothing: the text alone, or none.
    Text,
    EndOfPage,
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
    #[inline]
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
    page: &'t str,
    syntax: Syntax,
    /// The byte that is read next.
    at: usize,
    mode: Mode,
    /// The name of the start tag whose end tag ends text without markup.
    open: Range<usize>,
    /// The text that came last.
    text: Range<usize>,
    text_kind: TextKind,
    /// The tag that came last.
    name: Name,
    /// The bytes of the page at which it begins, and at which its name ends.
    start: usize,
    name_end: usize,
    attributes: AttributeList,
    max_attributes: usize,
}

/// The kinds of markup but tags, told by the first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Markup {
    /// `<!`, which begins a comment, a document type or a CDATA section.
    Declaration,
    /// A comment that ends with the next `>`.
    BogusComment,
    /// `</>`, which is nothing.
    Nothing,
}

impl<'t> Tokenizer<'t> {
    /// A tokenizer that keeps `max_attributes` of each tag.
    pub(super) fn new(page: &'t str, syntax: Syntax, max_attributes: usize) -> Tokenizer<'t> {
        Tokenizer {
            page,
            syntax,
            at: 0,
            mode: Mode::Markup,
            open: 0..0,
            text: 0..0,
            text_kind: TextKind::Data,
            name: Name::of(b""),
            start: 0,
            name_end: 0,
            attributes: AttributeList::default(),
            max_attributes,
        }
    }

    /// Says how to go on behind the start tag that came last.
    #[inline]
    pub(super) fn set_mode(&mut self, mode: Mode) {
        if mode != Mode::Markup {
            self.mode = mode;
            self.open = self.start + 1..self.name_end;
        }
    }

    /// Reads on up to the end of the next tag, or of text before something else. `is_foreign`: a
    /// drawing or formula is open, which may hold CDATA sections.
    // What it finds need not go through memory where it is used at once.
    #[inline(always)]
    pub(super) fn next(&mut self, is_foreign: bool) -> Token {
        if self.mode != Mode::Markup && self.read_text_without_markup() {
            return Token::Text;
        }
        let bytes = self.page.as_bytes();
        let mut from = self.at;
        loop {
            let Some(at) = next_less_than(bytes, from) else {
                self.take_text(bytes.len(), TextKind::Data);
                return Token::EndOfPage;
            };
            let (token, name) = match bytes[at..] {
                [_, letter, ..] if letter.is_ascii_alphabetic() => (Token::StartTag, at + 1),
                [_, b'/', letter, ..] if letter.is_ascii_alphabetic() => (Token::EndTag, at + 2),
                _ if self.read_no_tag(at, is_foreign) => return Token::Text,
                _ => {
                    from = at + 1;
                    continue;
                }
            };
            self.take_text(at, TextKind::Data);
            return match self.read_tag(name) {
                true => token,
                false => Token::EndOfPage,
            };
        }
    }

    /// The text before what came last, if there is any.
    #[inline]
    pub(super) fn text(&self) -> Option<Text<'t>> {
        let Range { start, end } = self.text;
        (start < end).then_some(Text {
            page: self.page,
            from: start,
            to: end,
            kind: self.text_kind,
        })
    }

    /// Reads the markup at `at` that is no tag, or the text before it, if there is any. False where
    /// it is text itself.
    #[cold]
    fn read_no_tag(&mut self, at: usize, is_foreign: bool) -> bool {
        let bytes = self.page.as_bytes();
        let Some(markup) = markup(&bytes[at..]) else {
            return false;
        };
        let is_behind_text = at > self.at;
        self.take_text(at, TextKind::Data);
        if is_behind_text {
            return true;
        }
        match markup {
            Markup::Declaration | Markup::BogusComment
                if self.syntax == Syntax::Xml && !bytes[at..].starts_with(b"<![CDATA[") =>
            {
                self.at = xml_markup::end(bytes, at);
            }
            Markup::Declaration if is_foreign && bytes[at + 2..].starts_with(b"[CDATA[") => {
                self.read_cdata();
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
        true
    }

    /// Reads the text that is no markup before the next end tag, if there is any. Markup comes next.
    #[cold]
    fn read_text_without_markup(&mut self) -> bool {
        let bytes = self.page.as_bytes();
        let name = &bytes[self.open.clone()];
        let mode = std::mem::replace(&mut self.mode, Mode::Markup);
        let end = match mode {
            Mode::XmlText => return self.read_xml_text(),
            Mode::Markup | Mode::Plaintext => None,
            Mode::Rcdata | Mode::Rawtext => end_of_text(bytes, self.at, name),
            Mode::Script => end_of_script(bytes, self.at, name),
        };
        let kind = match mode {
            Mode::Rcdata => TextKind::Rcdata,
            _ => TextKind::Raw,
        };
        self.take_text(end.unwrap_or(bytes.len()), kind);
        !self.text.is_empty()
    }

    /// Reads one piece of XML text: a comment, a CDATA section, or plain text up to the next comment,
    /// CDATA section or end tag. Returns `false` at the end tag.
    #[cold]
    fn read_xml_text(&mut self) -> bool {
        let bytes = self.page.as_bytes();
        let name = &bytes[self.open.clone()];
        let is_stop = |at: &usize| {
            let rest = &bytes[*at..];
            rest.starts_with(b"<!--") || rest.starts_with(b"<![CDATA[") || is_end_tag(rest, name)
        };
        let mut tags = memchr_iter(b'<', &bytes[self.at..]).map(|at| self.at + at);
        let Some(stop) = tags.find(is_stop) else {
            self.take_text(bytes.len(), TextKind::Data);
            return true;
        };
        let is_end = bytes[stop + 1] == b'/';
        let is_at_stop = stop == self.at;
        self.take_text(stop, TextKind::Data);
        if !is_end {
            self.mode = Mode::XmlText;
            match bytes[stop + 2] {
                _ if !is_at_stop => {}
                b'[' => self.read_cdata(),
                _ => self.at = xml_markup::end(bytes, stop),
            }
        }
        !is_end || !is_at_stop
    }

    /// Reads the CDATA section that comes next.
    fn read_cdata(&mut self) {
        self.at += "<![CDATA[".len();
        let end = memmem::find(&self.page.as_bytes()[self.at..], b"]]>");
        self.take_text(
            end.map_or(self.page.len(), |end| self.at + end),
            TextKind::Cdata,
        );
        self.at += end.map_or(0, |_| "]]>".len());
    }

    /// Takes the text up to `end`.
    #[inline]
    fn take_text(&mut self, end: usize, kind: TextKind) {
        self.text = self.at..end;
        self.text_kind = kind;
        self.at = end;
    }

    /// The tag that came last.
    #[inline]
    pub(super) fn tag(&self) -> Tag<'_> {
        Tag {
            name: self.name,
            kinds: TagKinds::of(self.name),
            offset: self.start,
            end: self.at,
            page: self.page,
            self_closing: self.attributes.self_closing,
            was_cut: self.attributes.was_cut,
            attributes: Attributes::new(self.page, &self.attributes),
        }
    }

    /// The name of the tag that came last as written, with its prefix.
    pub(super) fn written_name(&self) -> &'t str {
        self.page[self.start..self.name_end].trim_start_matches(['<', '/'])
    }

    /// Reads the tag that comes next, whose name begins at `from`. One that the page's end cuts off
    /// is none.
    #[inline(always)]
    fn read_tag(&mut self, from: usize) -> bool {
        self.start = self.at;
        self.attributes.clear();
        let bytes = self.page.as_bytes();
        self.at = bytes.len();
        let Some((end, name)) = tag_name(bytes, from) else {
            return false;
        };
        self.at = match bytes[end] {
            // As most do.
            b'>' => end + 1,
            _ => match self.attributes.read(bytes, end, self.max_attributes) {
                Some(end) => end,
                None => return false,
            },
        };
        self.name = name;
        self.name_end = end;
        true
    }
}

/// The kind of markup that begins with a `<` and is no tag; none where that is text.
fn markup(bytes: &[u8]) -> Option<Markup> {
    match bytes {
        [_, b'/', b'>', ..] => Some(Markup::Nothing),
        [_, b'/', _, ..] | [_, b'?', ..] => Some(Markup::BogusComment),
        [_, b'!', ..] => Some(Markup::Declaration),
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
