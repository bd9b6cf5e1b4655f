//! Tags and their attributes.

use std::cell::OnceCell;

use memchr::{memchr, memchr2};

use super::references::{Place, decode};
use super::scan::{attribute_name_end, bare_value_end, behind_spaces, quote_or_encoded};
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
    /// All of it as it stands in the page, from `<` to `>`.
    pub(crate) source: &'a str,
    pub(crate) self_closing: bool,
    /// It has more attributes than are kept.
    pub(crate) was_cut: bool,
    pub(crate) attributes: Attributes<'a>,
}

impl<'a> Tag<'a> {
    /// `limit` of its attributes at most, and whether it has more.
    #[inline]
    pub(crate) fn attributes_up_to(&self, limit: usize) -> (Attributes<'a>, bool) {
        let all = self.attributes.all;
        match all.get(..limit) {
            Some(first) => (Attributes { all: first }, self.was_cut || all.len() > limit),
            None => (self.attributes, self.was_cut),
        }
    }
}

/// The attributes of a tag. Of those of one name the first counts; letter case is nothing.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a> {
    all: &'a [Attribute<'a>],
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(all: &'a [Attribute<'a>]) -> Attributes<'a> {
        Attributes { all }
    }

    /// The value of the attribute `name`, which is in lower case.
    pub(crate) fn get(self, name: &str) -> Option<&'a str> {
        let found = self.all.iter().find(|attribute| attribute.is(name));
        found.map(Attribute::value)
    }

    /// All of them in the order of the tag, with those that do not count.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a Attribute<'a>> {
        self.all.iter()
    }

    /// Returns whether `attribute`, which is one of these, is the first of its name, and so counts.
    pub(crate) fn is_first(self, attribute: &Attribute<'_>) -> bool {
        let first = self.all.iter().find(|one| one.is(attribute.name));
        first.is_some_and(|first| std::ptr::eq(first, attribute))
    }

    /// Returns whether the value of `name` is `word`, in any letter case.
    pub(crate) fn says(self, name: &str, word: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case(word))
    }
}

/// An attribute of a tag.
pub(crate) struct Attribute<'t> {
    /// The name as written.
    name: &'t str,
    /// The value as written.
    raw: &'t str,
    /// True if the value as written holds a reference or a NUL.
    is_encoded: bool,
    /// The value where it differs from what is written, once it was asked for.
    decoded: OnceCell<Box<str>>,
}

impl<'t> Attribute<'t> {
    fn new(name: &'t str, raw: &'t str, is_encoded: bool) -> Attribute<'t> {
        Attribute {
            name,
            raw,
            is_encoded,
            decoded: OnceCell::new(),
        }
    }

    /// The attribute of a name and a value that are decoded.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn decoded(name: &'t str, value: &'t str) -> Attribute<'t> {
        Attribute::new(name, value, false)
    }

    /// The name as written.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn name(&self) -> &'t str {
        self.name
    }

    /// Returns whether that is its name, in any letter case.
    #[inline]
    pub(crate) fn is(&self, name: &str) -> bool {
        // Most are told apart by their length or first letter, for which nothing is called.
        let first = |name: &str| name.as_bytes().first().map(|byte| byte | 0x20);
        self.name.len() == name.len()
            && first(self.name) == first(name)
            && self.name.eq_ignore_ascii_case(name)
    }

    /// The value, its references decoded; empty where there is none.
    #[inline]
    pub(crate) fn value(&self) -> &str {
        if !self.is_encoded {
            return self.raw;
        }
        self.decoded.get_or_init(|| {
            let mut value = String::with_capacity(self.raw.len());
            decode(self.raw, Place::Value, "\u{fffd}", |part| {
                value.push_str(part);
            });
            value.into_boxed_str()
        })
    }
}

/// The end of a tag.
#[derive(Clone, Copy, Default)]
pub(super) struct TagEnding {
    /// The byte behind its `>`.
    pub(super) at: usize,
    pub(super) self_closing: bool,
    pub(super) was_cut: bool,
}

impl TagEnding {
    /// The end of a tag without attributes.
    #[inline]
    pub(super) fn at(at: usize) -> TagEnding {
        TagEnding {
            at,
            self_closing: false,
            was_cut: false,
        }
    }
}

/// Reads the attributes of a tag from behind its name, `max` of them into `attributes`; none
/// where the page ends before the tag does.
pub(super) fn attributes<'t>(
    text: &'t str,
    from: usize,
    max: usize,
    attributes: &mut Vec<Attribute<'t>>,
) -> Option<TagEnding> {
    let bytes = text.as_bytes();
    let mut end = TagEnding::at(from);
    loop {
        end.at = behind_spaces(bytes, end.at)?;
        match bytes[end.at] {
            b'>' => {
                end.at += 1;
                return Some(end);
            }
            b'/' => {
                end.at += 1;
                end.self_closing = bytes.get(end.at) == Some(&b'>');
            }
            _ => {
                let name = end.at;
                // A name may begin with a `=`.
                end.at = attribute_name_end(bytes, name + 1)?;
                let name = &text[name..end.at];
                let mut value = Value::default();
                end.at = behind_spaces(bytes, end.at)?;
                if bytes[end.at] == b'=' {
                    value = value_at(bytes, behind_spaces(bytes, end.at + 1)?)?;
                    end.at = value.behind;
                }
                if attributes.len() < max {
                    let raw = &text[value.from..value.to];
                    attributes.push(Attribute::new(name, raw, value.is_encoded));
                } else {
                    end.was_cut = true;
                }
            }
        }
    }
}

/// The place of an attribute's value.
#[derive(Clone, Copy, Default)]
struct Value {
    from: usize,
    to: usize,
    /// The byte behind it, and behind its quotation mark.
    behind: usize,
    is_encoded: bool,
}

/// The value that begins at `from`, with a quotation mark or without.
#[inline]
fn value_at(bytes: &[u8], from: usize) -> Option<Value> {
    let quote = bytes[from];
    if !matches!(quote, b'"' | b'\'') {
        let to = bare_value_end(bytes, from)?;
        return Some(Value {
            from,
            to,
            behind: to,
            is_encoded: memchr2(b'&', 0, &bytes[from..to]).is_some(),
        });
    }
    let from = from + 1;
    let mut to = quote_or_encoded(bytes, from, quote)?;
    let is_encoded = bytes[to] != quote;
    if is_encoded {
        to += memchr(quote, &bytes[to..])?;
    }
    Some(Value {
        from,
        to,
        behind: to + 1,
        is_encoded,
    })
}
