//! The attributes of a tag.

use html5ever::Attribute;
use html5ever::tokenizer::Tag;

/// Attributes of one tag, up to a limit; names are in lower case, none stands twice.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    all: &'a [Attribute],
}

impl<'a> Attributes<'a> {
    pub(super) fn of(tag: &'a Tag, limit: usize) -> Attributes<'a> {
        Attributes {
            all: &tag.attrs[..tag.attrs.len().min(limit)],
        }
    }

    pub(super) fn get(self, name: &str) -> Option<&'a str> {
        self.pairs()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Names and values in the order of the tag.
    pub(super) fn pairs(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all
            .iter()
            .map(|attribute| (&*attribute.name.local, &*attribute.value))
    }

    /// Whether the value of `name` is `word`, in any letter case.
    pub(super) fn says(self, name: &str, word: &str) -> bool {
        self.get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case(word))
    }
}
