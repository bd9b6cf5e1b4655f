//! Tokenizes HTML (HTML Standard 13.2.5) without copying the text.
//!
//! The tokenizer is not a state machine like that of the standard. It searches for the end of each
//! construct, and returns the construct as a slice of the page. Comments and document types are
//! skipped, because no consumer needs them. Line ends of the page are already normalised to line
//! feeds.

mod character_references;
mod delimiter_search;
mod non_space_character_counter;
mod raw_text;
mod tag;
mod xml_markup;

use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use self::character_references::{CharacterReferenceContext, decode, without_nul};
use self::delimiter_search::{next_less_than, tag_name};
pub(super) use self::non_space_character_counter::NonSpaceCharacterCounter;
use self::raw_text::{end_of_script, end_of_text, is_end_tag};
pub(crate) use self::tag::{Attribute, AttributeOffsetList, Tag, TagAttributes};
use super::element_name::ElementName;
use super::tag_kinds::TagKinds;
use crate::document_kind::MarkupSyntax;

/// How the text after a tag is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenizerTextState {
    Markup,
    /// Text with character references: `title`, `textarea`.
    Rcdata,
    /// Plain text: `style` and the like.
    Rawtext,
    Script,
    /// Plain text up to the end of the page.
    Plaintext,
    /// XML text up to the end tag, with references, comments and CDATA sections.
    XmlText,
}

/// The kind of token that [`Tokenizer::next`] read. [`Tokenizer::text`] returns the text before the
/// token, and [`Tokenizer::tag`] returns the tag.
pub(super) enum HtmlTokenKind {
    StartTag,
    EndTag,
    /// Text that is not followed by a tag, but for example by a comment. The text may be empty.
    Text,
    EndOfPage,
}

/// Text between two tags, as written. Other markup between the tags, such as a comment, splits the
/// text into several values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextBetweenTags<'t> {
    /// The page that contains the text.
    pub(crate) page: &'t str,
    from: usize,
    to: usize,
    kind: TextKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// Ordinary text: character references are decoded, and NULs are dropped.
    Data,
    /// Text of `title` or `textarea`: character references are decoded.
    Rcdata,
    Raw,
    /// The content of a CDATA section: NULs are dropped.
    Cdata,
}

impl<'t> TextBetweenTags<'t> {
    /// Wraps text that is already decoded.
    #[cfg(any(test, fuzzing))]
    pub(super) fn decoded(text: &'t str) -> TextBetweenTags<'t> {
        TextBetweenTags {
            page: text,
            from: 0,
            to: text.len(),
            kind: TextKind::Raw,
        }
    }

    /// Returns the range of the text in the page.
    #[inline]
    pub(crate) fn place(&self) -> Range<usize> {
        self.from..self.to
    }

    /// Returns whether `&` is an ordinary character in the text, rather than the start of a
    /// character reference.
    pub(crate) fn is_raw(&self) -> bool {
        matches!(self.kind, TextKind::Raw | TextKind::Cdata)
    }

    /// Passes the text in parts, with its references decoded, to `part`.
    pub(crate) fn parts(&self, part: impl FnMut(&str)) {
        let raw = &self.page[self.place()];
        match self.kind {
            TextKind::Data => decode(raw, CharacterReferenceContext::Text, "", part),
            TextKind::Rcdata => decode(raw, CharacterReferenceContext::Text, "\u{fffd}", part),
            TextKind::Raw => without_nul(raw, "\u{fffd}", part),
            TextKind::Cdata => without_nul(raw, "", part),
        }
    }
}

/// A tokenizer for one page.
pub(super) struct Tokenizer<'t> {
    page: &'t str,
    syntax: MarkupSyntax,
    /// Offset of the next byte to read.
    at: usize,
    mode: TokenizerTextState,
    /// The range of the name of the open element (`script`, `title` ..), if its content has no
    /// markup. Only the end tag with this name ends the content.
    open: Range<usize>,
    /// The range of the last text.
    text: Range<usize>,
    text_kind: TextKind,
    /// The name of the last tag.
    name: ElementName,
    /// Offsets of the beginning of the last tag, and of the end of its name.
    start: usize,
    name_end: usize,
    attributes: AttributeOffsetList,
    max_attributes: usize,
}

/// The kinds of markup other than tags, by their first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NonTagMarkup {
    /// `<!`, which begins a comment, a document type or a CDATA section.
    Declaration,
    /// A comment that ends at the next `>`.
    BogusComment,
    /// `</>`, which is dropped.
    Nothing,
}

impl<'t> Tokenizer<'t> {
    /// Creates a tokenizer that keeps `max_attributes` attributes of each tag.
    pub(super) fn new(page: &'t str, syntax: MarkupSyntax, max_attributes: usize) -> Tokenizer<'t> {
        Tokenizer {
            page,
            syntax,
            at: 0,
            mode: TokenizerTextState::Markup,
            open: 0..0,
            text: 0..0,
            text_kind: TextKind::Data,
            name: ElementName::of(b""),
            start: 0,
            name_end: 0,
            attributes: AttributeOffsetList::default(),
            max_attributes,
        }
    }

    /// Sets how the text after the last start tag is read.
    #[inline]
    pub(super) fn set_mode(&mut self, mode: TokenizerTextState) {
        if mode != TokenizerTextState::Markup {
            self.mode = mode;
            self.open = self.start + 1..self.name_end;
        }
    }

    /// Reads the text before the next tag, and the tag. If other markup, such as a comment, comes
    /// first, reads only the text before that markup. `is_foreign` is true in drawings and
    /// formulas, which may contain CDATA sections.
    // Inlined so that the result stays in registers.
    #[inline(always)]
    pub(super) fn next(&mut self, is_foreign: bool) -> HtmlTokenKind {
        if self.mode != TokenizerTextState::Markup && self.read_text_without_markup() {
            return HtmlTokenKind::Text;
        }
        let bytes = self.page.as_bytes();
        let mut from = self.at;
        loop {
            let Some(at) = next_less_than(bytes, from) else {
                self.take_text(bytes.len(), TextKind::Data);
                return HtmlTokenKind::EndOfPage;
            };
            let (token, name) = match bytes[at..] {
                [_, letter, ..] if letter.is_ascii_alphabetic() => {
                    (HtmlTokenKind::StartTag, at + 1)
                }
                [_, b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                    (HtmlTokenKind::EndTag, at + 2)
                }
                _ if self.read_no_tag(at, is_foreign) => return HtmlTokenKind::Text,
                _ => {
                    from = at + 1;
                    continue;
                }
            };
            self.take_text(at, TextKind::Data);
            return match self.read_tag(name) {
                true => token,
                false => HtmlTokenKind::EndOfPage,
            };
        }
    }

    /// Returns the text before the last tag. `None` if it is empty.
    #[inline]
    pub(super) fn text(&self) -> Option<TextBetweenTags<'t>> {
        let Range { start, end } = self.text;
        (start < end).then_some(TextBetweenTags {
            page: self.page,
            from: start,
            to: end,
            kind: self.text_kind,
        })
    }

    /// Handles a `<` at `at` that doesn't begin a tag. If it begins other markup, reads the text
    /// before that markup. If there is no text before it, skips the markup. Returns false if the
    /// `<` itself is text.
    #[cold]
    fn read_no_tag(&mut self, at: usize, is_foreign: bool) -> bool {
        let bytes = self.page.as_bytes();
        let Some(markup) = markup(&bytes[at..]) else {
            return false;
        };
        let is_after_text = at > self.at;
        self.take_text(at, TextKind::Data);
        if is_after_text {
            return true;
        }
        match markup {
            NonTagMarkup::Declaration | NonTagMarkup::BogusComment
                if self.syntax == MarkupSyntax::Xml && !bytes[at..].starts_with(b"<![CDATA[") =>
            {
                self.at = xml_markup::end(bytes, at);
            }
            NonTagMarkup::Declaration if is_foreign && bytes[at + 2..].starts_with(b"[CDATA[") => {
                self.read_cdata();
            }
            NonTagMarkup::Declaration if bytes[at + 2..].starts_with(b"--") => {
                self.at = end_of_comment(bytes, at + 4);
            }
            NonTagMarkup::Declaration | NonTagMarkup::BogusComment => {
                let end = memchr(b'>', &bytes[at + 2..]);
                self.at = end.map_or(bytes.len(), |end| at + 2 + end + 1);
            }
            NonTagMarkup::Nothing => self.at += "</>".len(),
        }
        true
    }

    /// Reads the content of an element such as `script` or `title`, whose content is text without
    /// markup, up to its end tag. Returns whether there is any text.
    #[cold]
    fn read_text_without_markup(&mut self) -> bool {
        let bytes = self.page.as_bytes();
        let name = &bytes[self.open.clone()];
        let mode = std::mem::replace(&mut self.mode, TokenizerTextState::Markup);
        let end = match mode {
            TokenizerTextState::XmlText => return self.read_xml_text(),
            TokenizerTextState::Markup | TokenizerTextState::Plaintext => None,
            TokenizerTextState::Rcdata | TokenizerTextState::Rawtext => {
                end_of_text(bytes, self.at, name)
            }
            TokenizerTextState::Script => end_of_script(bytes, self.at, name),
        };
        let kind = match mode {
            TokenizerTextState::Rcdata => TextKind::Rcdata,
            _ => TextKind::Raw,
        };
        self.take_text(end.unwrap_or(bytes.len()), kind);
        !self.text.is_empty()
    }

    /// Reads one piece of XML text: a comment, a CDATA section, or plain text that ends before the
    /// next comment, CDATA section or end tag. Returns `false` at the end tag.
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
            self.mode = TokenizerTextState::XmlText;
            match bytes[stop + 2] {
                _ if !is_at_stop => {}
                b'[' => self.read_cdata(),
                _ => self.at = xml_markup::end(bytes, stop),
            }
        }
        !is_end || !is_at_stop
    }

    /// Reads the next CDATA section.
    fn read_cdata(&mut self) {
        self.at += "<![CDATA[".len();
        let end = memmem::find(&self.page.as_bytes()[self.at..], b"]]>");
        self.take_text(
            end.map_or(self.page.len(), |end| self.at + end),
            TextKind::Cdata,
        );
        self.at += end.map_or(0, |_| "]]>".len());
    }

    /// Sets `text` to the bytes from the current position to `end`, and advances to `end`.
    #[inline]
    fn take_text(&mut self, end: usize, kind: TextKind) {
        self.text = self.at..end;
        self.text_kind = kind;
        self.at = end;
    }

    /// Returns the last tag.
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
            attributes: TagAttributes::new(self.page, &self.attributes),
        }
    }

    /// Returns the name of the last tag as written, with its prefix.
    pub(super) fn written_name(&self) -> &'t str {
        self.page[self.start..self.name_end].trim_start_matches(['<', '/'])
    }

    /// Reads the next tag, whose name begins at `from`. If the page ends within the tag, drops the
    /// tag and returns false.
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
            // Most tags have no attributes.
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

/// Returns the kind of markup that `bytes` begins with: a `<` that begins no tag. `None` if the `<`
/// is text.
fn markup(bytes: &[u8]) -> Option<NonTagMarkup> {
    match bytes {
        [_, b'/', b'>', ..] => Some(NonTagMarkup::Nothing),
        [_, b'/', _, ..] | [_, b'?', ..] => Some(NonTagMarkup::BogusComment),
        [_, b'!', ..] => Some(NonTagMarkup::Declaration),
        _ => None,
    }
}

/// Returns the offset after the comment whose content begins at `from`.
fn end_of_comment(bytes: &[u8], from: usize) -> usize {
    let content = &bytes[from..];
    let end = memchr_iter(b'>', content).find(|end| {
        let before = &content[..*end];
        before.ends_with(b"--") || before.ends_with(b"--!") || matches!(before, b"" | b"-")
    });
    end.map_or(bytes.len(), |end| from + end + 1)
}
