//! A watch over tags that go on for long.
//!
//! The tokenizer compares each attribute of a tag with all those before it, so a tag of
//! many attributes would take time quadratic in their number. The guard follows the
//! states of a tag (HTML Standard 13.2.5.6 to 13.2.5.40) and says where its attributes
//! become too many. It runs only over the part of a tag that is left open where the
//! tokenizer stopped, so it costs next to nothing on real pages.

use crate::text::is_space;

/// Follows one tag from its `<`.
#[derive(Debug)]
pub(super) struct TagGuard {
    state: State,
    attributes: usize,
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the `<`.
    Start,
    /// No tag, or one that has ended: nothing to watch.
    Off,
    Open,
    EndOpen,
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
    AfterQuoted,
}

/// The result of [`TagGuard::watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing that needs a hand.
    Fine,
    /// One attribute too many begins at this byte.
    TooMany(usize),
}

impl TagGuard {
    /// A guard that stands before what may be a tag.
    pub(super) fn new(limit: usize) -> TagGuard {
        TagGuard {
            state: State::Start,
            attributes: 0,
            limit,
        }
    }

    /// Begins anew, before what may be another tag.
    pub(super) fn restart(&mut self) {
        self.state = State::Start;
        self.attributes = 0;
    }

    /// Follows `text`, the next part of the tag, to its end.
    pub(super) fn follow(&mut self, text: &[u8]) {
        for &byte in text {
            if self.state == State::Off {
                return;
            }
            self.step(byte);
        }
    }

    /// Follows `text` up to the attribute that is one too many.
    pub(super) fn watch(&mut self, text: &[u8]) -> Seen {
        for (at, &byte) in text.iter().enumerate() {
            if self.state == State::Off {
                break;
            }
            let before = self.attributes;
            self.step(byte);
            if self.attributes > before && self.attributes > self.limit {
                return Seen::TooMany(at);
            }
        }
        Seen::Fine
    }

    /// Where the tag ends in `text`: the byte that is its `>`.
    pub(super) fn end_of_tag(&mut self, text: &[u8]) -> Option<usize> {
        text.iter().position(|&byte| {
            self.step(byte);
            self.state == State::Off
        })
    }

    fn step(&mut self, byte: u8) {
        self.state = match self.state {
            State::Off => State::Off,
            State::Start if byte == b'<' => State::Open,
            State::Open if byte == b'/' => State::EndOpen,
            State::Open | State::EndOpen if byte.is_ascii_alphabetic() => State::TagName,
            State::Start | State::Open | State::EndOpen => State::Off,
            State::Quoted(quote) if byte == quote => State::AfterQuoted,
            State::Quoted(quote) => State::Quoted(quote),
            State::BeforeValue if is_space(byte) => State::BeforeValue,
            State::BeforeValue if matches!(byte, b'"' | b'\'') => State::Quoted(byte),
            _ if byte == b'>' => State::Off,
            State::BeforeValue | State::Unquoted if !is_space(byte) => State::Unquoted,
            State::Name | State::AfterName if byte == b'=' => State::BeforeValue,
            State::Name if is_space(byte) => State::AfterName,
            _ if is_space(byte) => self.after_space(),
            State::TagName | State::Name if byte != b'/' => self.state,
            _ if byte == b'/' => State::BeforeName,
            _ => {
                self.attributes += 1;
                State::Name
            }
        };
    }

    /// White space does not end the wait for a `=` after a name.
    fn after_space(&self) -> State {
        if self.state == State::AfterName {
            State::AfterName
        } else {
            State::BeforeName
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes_of(tag: &str) -> usize {
        let mut guard = TagGuard::new(usize::MAX);
        guard.follow(tag.as_bytes());
        guard.attributes
    }

    #[test]
    fn attributes_are_counted_as_the_standard_reads_them() {
        assert_eq!(attributes_of("<a>"), 0);
        assert_eq!(attributes_of("<a b c=d e='f g' h = \"i>j\" k>l m n"), 5);
        assert_eq!(attributes_of("<a/b/c=/d/e f"), 3);
        assert_eq!(attributes_of("<a b=''c=\"\"d"), 3);
        assert_eq!(attributes_of("<a =b =c"), 1);
        assert_eq!(attributes_of("<a b==c =d"), 2);
        assert_eq!(attributes_of("</a b"), 1);
        assert_eq!(attributes_of("<!-- b c"), 0);
        assert_eq!(attributes_of("text b c"), 0);
    }

    #[test]
    fn the_attribute_too_many_is_found_across_parts() {
        let mut guard = TagGuard::new(2);
        guard.follow(b"<a b");
        assert_eq!(guard.watch(b" c d=> e"), Seen::TooMany(3));
        assert_eq!(guard.end_of_tag(b"='>' f"), None);
        assert_eq!(guard.end_of_tag(b" g>"), Some(2));
    }
}
