//! Tags and their attributes.

use std::cell::OnceCell;

use memchr::memchr2;

use super::references::{Place, decode};
use super::scan::{attribute_name_end, bare_value_end, behind_spaces, quoted_value_end};
use crate::html::name::Name;
use crate::html::tag_kinds::TagKinds;

/// A start tag or an end tag.
#[derive(Clone, Copy)]
pub(crate) struct Tag<'a> {
    pub(crate) name: Name,
    /// The kinds of its name.
    pub(crate) kinds: TagKinds,
    /// The byte of the page at which it begins.
    pub(crate) offset: usize,
    /// The byte of the page behind it.
    pub(crate) end: usize,
    /// The page.
    pub(crate) page: &'a str,
    pub(crate) self_closing: bool,
    /// It has more attributes than are kept.
    pub(crate) was_cut: bool,
    pub(crate) attributes: Attributes<'a>,
}

impl<'a> Tag<'a> {
    /// The same tag as one of elements of another name.
    pub(crate) fn renamed(self, name: Name) -> Tag<'a> {
        let kinds = TagKinds::of(name);
        Tag {
            name,
            kinds,
            ..self
        }
    }

    /// All of it as it stands in the page, from `<` to `>`.
    pub(crate) fn source(&self) -> &'a str {
        &self.page[self.offset..self.end]
    }

    /// `limit` of its attributes at most, and whether it has more.
    #[inline]
    pub(crate) fn attributes_up_to(&self, limit: usize) -> (Attributes<'a>, bool) {
        let all = self.attributes;
        let count = all.count.min(limit);
        let is_cut = self.was_cut || all.count > limit;
        (Attributes { count, ..all }, is_cut)
    }
}

/// The attributes of a tag. Of those of one name the first counts; letter case is nothing.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    page: &'a str,
    list: &'a AttributeList,
    /// Those of the list that these are, the first ones.
    count: usize,
}

impl<'a> Attributes<'a> {
    /// Those of a tag of `page`.
    #[inline]
    pub(crate) fn new(page: &'a str, list: &'a AttributeList) -> Attributes<'a> {
        let count = list.spans.len();
        Attributes { page, list, count }
    }

    /// The value of the attribute `name`, which is in lower case.
    // The bit of the name is then a constant.
    #[inline(always)]
    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        match self.may_have(name) {
            true => self.first(name).map(Attribute::value),
            false => None,
        }
    }

    /// Returns whether there may be one of that name: most that are not there are told by a bit.
    #[inline(always)]
    pub(crate) fn may_have(self, name: &str) -> bool {
        self.list.names & bit_of(name.as_bytes()) != 0
    }

    /// All of them in the order of the tag, with those that do not count.
    pub(crate) fn iter(self) -> impl Iterator<Item = Attribute<'a>> {
        (0..self.count).map(move |place| Attribute { all: self, place })
    }

    /// Returns whether `attribute`, which is one of these, is the first of its name, and so counts.
    pub(crate) fn is_first(self, attribute: Attribute<'_>) -> bool {
        let first = self.first(attribute.name());
        first.is_some_and(|first| first.place == attribute.place)
    }

    /// Returns whether the value of `name` is `word`, in any letter case.
    pub(crate) fn says(self, name: &str, word: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case(word))
    }

    fn first(self, name: &str) -> Option<Attribute<'a>> {
        let mut spans = self.list.spans[..self.count].iter();
        let place = spans.position(|span| span.is(self.page, name))?;
        Some(Attribute { all: self, place })
    }
}

/// An attribute of a tag.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'a> {
    all: Attributes<'a>,
    place: usize,
}

impl<'a> Attribute<'a> {
    #[inline]
    fn span(self) -> &'a Span {
        &self.all.list.spans[self.place]
    }

    /// The name as written.
    pub(crate) fn name(self) -> &'a str {
        let span = self.span();
        &self.all.page[span.name..span.name_end]
    }

    /// Returns whether that is its name, in any letter case.
    #[inline]
    pub(crate) fn is(self, name: &str) -> bool {
        self.span().is(self.all.page, name)
    }

    /// The value, its references decoded; empty where there is none.
    #[inline]
    pub(crate) fn value(self) -> &'a str {
        let span = self.span();
        let raw = &self.all.page[span.value..span.value_end];
        match span.is_encoded {
            true => self.decoded(raw),
            false => raw,
        }
    }

    #[cold]
    fn decoded(self, raw: &str) -> &'a str {
        self.all.list.decoded[self.place].get_or_init(|| {
            let mut value = String::with_capacity(raw.len());
            decode(raw, Place::Value, "\u{fffd}", |part| value.push_str(part));
            value.into_boxed_str()
        })
    }
}

/// The attributes of the tag that is read, by their places in the page. It is used again for the
/// next one.
#[derive(Default)]
pub(crate) struct AttributeList {
    spans: Vec<Span>,
    /// The bits of their names.
    names: u64,
    /// The values that differ from what is written, once they were asked for: as many as there are
    /// attributes up to the last such one.
    decoded: Vec<OnceCell<Box<str>>>,
    /// True if the tag ends with `/>`.
    pub(super) self_closing: bool,
    /// True if the tag has more than are kept.
    pub(super) was_cut: bool,
}

/// The places of an attribute's parts.
struct Span {
    name: usize,
    name_end: usize,
    value: usize,
    value_end: usize,
    /// True if the value as written holds a reference or a NUL.
    is_encoded: bool,
}

impl Span {
    /// Returns whether that is the name, in any letter case.
    #[inline]
    fn is(&self, page: &str, name: &str) -> bool {
        // Most are told apart by their length, for which nothing is called.
        self.name_end - self.name == name.len()
            && page.as_bytes()[self.name..self.name_end].eq_ignore_ascii_case(name.as_bytes())
    }
}

impl AttributeList {
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

    /// Reads the attributes of a tag from behind its name, and takes the first `max` of them. Gives
    /// the byte behind the tag; none where the page ends before it does.
    pub(super) fn read(&mut self, bytes: &[u8], from: usize, max: usize) -> Option<usize> {
        let mut at = from;
        loop {
            at = behind_spaces(bytes, at)?;
            match bytes[at] {
                b'>' => return Some(at + 1),
                b'/' => {
                    at += 1;
                    self.self_closing = bytes.get(at) == Some(&b'>');
                }
                _ => {
                    let name = at;
                    // A name may begin with a `=`.
                    let name_end = attribute_name_end(bytes, name + 1)?;
                    let value = match bytes[name_end..] {
                        // As most are.
                        [b'=', b'"', ..] => quoted::<b'"'>(bytes, name_end + 2)?,
                        _ => value_behind(bytes, name_end)?,
                    };
                    at = value.behind;
                    if self.spans.len() < max {
                        let span = Span {
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
    fn push(&mut self, bytes: &[u8], span: Span) {
        self.names |= bit_of(&bytes[span.name..span.name_end]);
        if span.is_encoded {
            self.decoded
                .resize_with(self.spans.len() + 1, OnceCell::new);
        }
        self.spans.push(span);
    }

    /// Adds an attribute whose name and value are decoded; both are written to the end of `page`.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn push_decoded(&mut self, page: &mut String, name: &str, written: &str) {
        let from = page.len();
        *page += name;
        let value = page.len();
        *page += written;
        let span = Span {
            name: from,
            name_end: value,
            value,
            value_end: page.len(),
            is_encoded: false,
        };
        self.push(page.as_bytes(), span);
    }
}

/// The bit that a name has: by its length and its first letter in any case.
#[inline]
fn bit_of(name: &[u8]) -> u64 {
    let first = name.first().map_or(0, |first| first & 0x1f);
    1 << ((usize::from(first) + 11 * name.len()) % 64)
}

/// The place of an attribute's value.
#[derive(Clone, Copy)]
struct Value {
    from: usize,
    to: usize,
    /// The byte behind it, and behind its quotation mark.
    behind: usize,
    is_encoded: bool,
}

/// The value of the attribute whose name ends at `from`; one that has none is empty.
#[inline(never)]
fn value_behind(bytes: &[u8], from: usize) -> Option<Value> {
    let at = behind_spaces(bytes, from)?;
    if bytes[at] != b'=' {
        return Some(Value {
            from: at,
            to: at,
            behind: at,
            is_encoded: false,
        });
    }
    let at = behind_spaces(bytes, at + 1)?;
    match bytes[at] {
        b'"' => quoted::<b'"'>(bytes, at + 1),
        b'\'' => quoted::<b'\''>(bytes, at + 1),
        _ => {
            let to = bare_value_end(bytes, at)?;
            Some(Value {
                from: at,
                to,
                behind: to,
                is_encoded: memchr2(b'&', 0, &bytes[at..to]).is_some(),
            })
        }
    }
}

/// The value whose first byte stands at `from`, behind a quotation mark.
#[inline(always)]
fn quoted<const QUOTE: u8>(bytes: &[u8], from: usize) -> Option<Value> {
    let (to, is_encoded) = quoted_value_end::<QUOTE>(bytes, from)?;
    Some(Value {
        from,
        to,
        behind: to + 1,
        is_encoded,
    })
}
