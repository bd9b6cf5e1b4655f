//! Tags and their attributes.

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memchr2;

use super::character_references::{CharacterReferenceContext, decode};
use super::delimiter_search::{after_spaces, attribute_name_end, bare_value_end, quoted_value_end};
use crate::html::element_name::ElementName;
use crate::html::tag_kinds::TagKinds;

/// A start tag or an end tag.
#[derive(Clone, Copy)]
pub(crate) struct Tag<'a> {
    pub(crate) name: ElementName,
    /// The kinds of tag that the name implies.
    pub(crate) kinds: TagKinds,
    /// Offset of the beginning of the tag in the page.
    pub(crate) offset: usize,
    /// Offset of the end of the tag in the page.
    pub(crate) end: usize,
    /// The page that contains the tag.
    pub(crate) page: &'a str,
    pub(crate) self_closing: bool,
    /// Whether the tag has more attributes than the tokenizer keeps.
    pub(crate) was_cut: bool,
    pub(crate) attributes: TagAttributes<'a>,
}

impl<'a> Tag<'a> {
    /// Returns the tag with its name replaced by `name`.
    pub(crate) fn renamed(self, name: ElementName) -> Tag<'a> {
        let kinds = TagKinds::of(name);
        Tag {
            name,
            kinds,
            ..self
        }
    }

    /// Returns the tag as written, from `<` to `>`.
    pub(crate) fn source(&self) -> &'a str {
        &self.page[self.offset..self.end]
    }

    /// Returns the first `limit` attributes, and whether the tag has more.
    #[inline]
    pub(crate) fn attributes_up_to(&self, limit: usize) -> (TagAttributes<'a>, bool) {
        let all = self.attributes;
        let count = all.count.min(limit);
        let is_cut = self.was_cut || all.count > limit;
        (TagAttributes { count, ..all }, is_cut)
    }
}

/// The attributes of a tag. Names are case-insensitive. If a name occurs more than once, its first
/// attribute counts.
#[derive(Clone, Copy)]
pub(crate) struct TagAttributes<'a> {
    page: &'a str,
    list: &'a AttributeOffsetList,
    /// Number of attributes in this view, which are the first ones of `list`.
    count: usize,
}

impl<'a> TagAttributes<'a> {
    /// Returns the attributes of a tag of `page`.
    #[inline]
    pub(crate) fn new(page: &'a str, list: &'a AttributeOffsetList) -> TagAttributes<'a> {
        let count = list.spans.len();
        TagAttributes { page, list, count }
    }

    /// Returns the value of the attribute `name`, which must be in lower case.
    // Inlined so that the bit of a constant name is computed at compile time.
    #[inline(always)]
    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        match self.may_have(name) {
            true => self.first(name).map(Attribute::value),
            false => None,
        }
    }

    /// Returns false if there is certainly no attribute with this name. This is certain if no
    /// attribute has the bit of the name (see [`bit_of`]).
    #[inline(always)]
    pub(crate) fn may_have(self, name: &str) -> bool {
        self.list.names & bit_of(name.as_bytes()) != 0
    }

    /// Returns all attributes in order, including repeated names.
    pub(crate) fn iter(self) -> impl Iterator<Item = Attribute<'a>> {
        (0..self.count).map(move |place| Attribute { all: self, place })
    }

    /// Returns whether an attribute is the first with its name. Later attributes with the same name
    /// are ignored. A NUL in a name counts as U+FFFD (HTML Standard 13.2.5.33).
    pub(crate) fn is_first(self, attribute: Attribute<'_>) -> bool {
        let name = attribute.name();
        if name.contains(['\0', '\u{fffd}']) {
            let read = |name: &str| name.to_ascii_lowercase().replace('\0', "\u{fffd}");
            let name = read(name);
            let mut earlier = self.iter().take(attribute.place);
            return !earlier.any(|one| read(one.name()) == name);
        }
        let first = self.first(name);
        first.is_some_and(|first| first.place == attribute.place)
    }

    /// Returns whether the value of `name` is `word`, ignoring case.
    pub(crate) fn has_value(self, name: &str, word: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case(word))
    }

    /// Returns the first attribute with the name `name`, which must be in lower case.
    pub(crate) fn first(self, name: &str) -> Option<Attribute<'a>> {
        let mut spans = self.list.spans[..self.count].iter();
        let place = spans.position(|span| span.is(self.page, name))?;
        Some(Attribute { all: self, place })
    }
}

/// An attribute of a tag.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'a> {
    all: TagAttributes<'a>,
    place: usize,
}

impl<'a> Attribute<'a> {
    #[inline]
    fn span(self) -> &'a AttributeSpan {
        &self.all.list.spans[self.place]
    }

    /// Returns the name as written.
    pub(crate) fn name(self) -> &'a str {
        let span = self.span();
        &self.all.page[span.name..span.name_end]
    }

    /// Returns whether the attribute is named `name`, ignoring case.
    #[inline]
    pub(crate) fn is(self, name: &str) -> bool {
        self.span().is(self.all.page, name)
    }

    /// Returns the value with its references decoded. Empty if there is no value.
    #[inline]
    pub(crate) fn value(self) -> &'a str {
        let span = self.span();
        let raw = &self.all.page[span.value..span.value_end];
        match span.is_encoded {
            true => self.decoded(raw),
            false => raw,
        }
    }

    /// Returns the range of the value in the page, without quotation marks.
    pub(crate) fn value_range(self) -> Range<usize> {
        self.span().value..self.span().value_end
    }

    /// Returns whether the value is in quotation marks.
    pub(crate) fn is_quoted(self) -> bool {
        let (bytes, Range { start, end }) = (self.all.page.as_bytes(), self.value_range());
        let quote = bytes[..start]
            .last()
            .filter(|byte| matches!(byte, b'"' | b'\''));
        quote.is_some() && bytes.get(end) == quote
    }

    /// Returns the range of the attribute in the page, from its name to the end of its value,
    /// including the quotation marks.
    pub(crate) fn range(self) -> Range<usize> {
        let AttributeSpan {
            name,
            name_end,
            value,
            value_end,
            ..
        } = *self.span();
        let has_value = self.all.page[name_end..value].contains('=');
        match has_value {
            true => name..value_end + usize::from(self.is_quoted()),
            false => name..name_end,
        }
    }

    #[cold]
    fn decoded(self, raw: &str) -> &'a str {
        self.all.list.decoded[self.place].get_or_init(|| {
            let mut value = String::with_capacity(raw.len());
            decode(raw, CharacterReferenceContext::Value, "\u{fffd}", |part| {
                value.push_str(part);
            });
            value.into_boxed_str()
        })
    }
}

/// The attributes of the current tag, as offsets in the page. The list is reused for the next tag.
#[derive(Default)]
pub(crate) struct AttributeOffsetList {
    spans: Vec<AttributeSpan>,
    /// The bits of all attributes' names: see [`bit_of`].
    names: u64,
    /// The decoded values, at the same indices as in `spans`. Only a value that contains a
    /// reference or a NUL is decoded, when it is first read. The list ends with the last attribute
    /// that has such a value.
    decoded: Vec<OnceCell<Box<str>>>,
    /// Whether the tag ends with `/>`.
    pub(super) self_closing: bool,
    /// Whether the tag has more attributes than this list keeps.
    pub(super) was_cut: bool,
}

/// The offsets of an attribute's name and value in the page.
struct AttributeSpan {
    name: usize,
    name_end: usize,
    value: usize,
    value_end: usize,
    /// Whether the value as written contains a reference or a NUL.
    is_encoded: bool,
}

impl AttributeSpan {
    /// Returns whether the attribute is named `name`, ignoring case.
    #[inline]
    fn is(&self, page: &str, name: &str) -> bool {
        // Compare the lengths first, because that is cheap and rules out most names.
        self.name_end - self.name == name.len()
            && page.as_bytes()[self.name..self.name_end].eq_ignore_ascii_case(name.as_bytes())
    }
}

impl AttributeOffsetList {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.names = 0;
        self.self_closing = false;
        self.was_cut = false;
        if !self.decoded.is_empty() {
            self.decoded.clear();
        }
    }

    /// Reads the attributes after a tag's name, and keeps the first `max`. Returns the offset after
    /// the tag. `None` if the page ends within the tag.
    pub(super) fn read(&mut self, bytes: &[u8], from: usize, max: usize) -> Option<usize> {
        let mut at = from;
        loop {
            at = after_spaces(bytes, at)?;
            match bytes[at] {
                b'>' => return Some(at + 1),
                b'/' => {
                    at += 1;
                    self.self_closing = bytes.get(at) == Some(&b'>');
                }
                _ => {
                    let name = at;
                    // A name may begin with `=`, so search from the second byte.
                    let name_end = attribute_name_end(bytes, name + 1)?;
                    let value = match bytes[name_end..] {
                        // A value in double quotes is the most frequent case.
                        [b'=', b'"', ..] => quoted::<b'"'>(bytes, name_end + 2)?,
                        _ => value_after(bytes, name_end)?,
                    };
                    at = value.end;
                    if self.spans.len() < max {
                        let span = AttributeSpan {
                            name,
                            name_end,
                            value: value.from,
                            value_end: value.to,
                            is_encoded: value.is_encoded,
                        };
                        self.push(bytes, span);
                    } else {
                        self.was_cut = true;
                    }
                }
            }
        }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8], span: AttributeSpan) {
        self.names |= bit_of(&bytes[span.name..span.name_end]);
        if span.is_encoded {
            self.decoded
                .resize_with(self.spans.len() + 1, OnceCell::new);
        }
        self.spans.push(span);
    }

    /// Adds an attribute whose name and value are already decoded. Both are appended to `page`, so
    /// that the list can refer to them.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn push_decoded(&mut self, page: &mut String, name: &str, written: &str) {
        let from = page.len();
        *page += name;
        let value = page.len();
        *page += written;
        let span = AttributeSpan {
            name: from,
            name_end: value,
            value,
            value_end: page.len(),
            is_encoded: false,
        };
        self.push(page.as_bytes(), span);
    }
}

/// Returns a number with one of its 64 bits set. The bit depends on the length and the first letter
/// of the name, ignoring case.
#[inline]
fn bit_of(name: &[u8]) -> u64 {
    let first = name.first().map_or(0, |first| first & 0x1f);
    1 << ((usize::from(first) + 11 * name.len()) % 64)
}

/// The offsets of an attribute's value in the page.
#[derive(Clone, Copy)]
struct ValueSpan {
    from: usize,
    to: usize,
    /// Offset after the value, and after its closing quotation mark if it has one.
    end: usize,
    is_encoded: bool,
}

/// Returns the value of the attribute whose name ends at `from`; empty if there is no value. `None`
/// if the page ends first.
#[inline(never)]
fn value_after(bytes: &[u8], from: usize) -> Option<ValueSpan> {
    let at = after_spaces(bytes, from)?;
    if bytes[at] != b'=' {
        return Some(ValueSpan {
            from: at,
            to: at,
            end: at,
            is_encoded: false,
        });
    }
    let at = after_spaces(bytes, at + 1)?;
    match bytes[at] {
        b'"' => quoted::<b'"'>(bytes, at + 1),
        b'\'' => quoted::<b'\''>(bytes, at + 1),
        _ => {
            let to = bare_value_end(bytes, at)?;
            Some(ValueSpan {
                from: at,
                to,
                end: to,
                is_encoded: memchr2(b'&', 0, &bytes[at..to]).is_some(),
            })
        }
    }
}

/// Returns the quoted value that begins at `from`, right after its opening quotation mark. `None`
/// if the page ends within the value.
#[inline(always)]
fn quoted<const QUOTE: u8>(bytes: &[u8], from: usize) -> Option<ValueSpan> {
    let (to, is_encoded) = quoted_value_end::<QUOTE>(bytes, from)?;
    Some(ValueSpan {
        from,
        to,
        end: to + 1,
        is_encoded,
    })
}
