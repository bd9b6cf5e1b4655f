//! Ruby: small readings (pronunciations) above characters (HTML Standard 4.5.10).
//!
//! Base texts are joined into whole words (東京, not 東とう京きょう). Readings move to the end of the
//! block.

use super::text_amount::is_unspaced;
use crate::html::element_name::{self, ElementName};

/// An open `ruby` element.
#[derive(Debug)]
pub(super) struct OpenRubyElement {
    part: RubyPart,
    /// The number of open `ruby` elements, nested ones included.
    open: u32,
    /// The last character of the base text so far, ignoring white space. Before the first base
    /// text, the last character before the ruby in the same block.
    last: Option<char>,
    gap: TrailingSpace,
    readings: String,
    /// Whether the next text of a reading begins a new word.
    is_apart: bool,
}

/// White space at the end of the base text so far. This state is kept because a text may come in
/// pieces, for example before and after a comment. The result must not depend on the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrailingSpace {
    No,
    /// A space was added.
    Added,
    /// White space was read. A space is added later if the characters around it need one.
    Pending,
}

/// The part of a ruby that the current text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RubyPart {
    Base,
    Reading,
    /// A parenthesis, which only browsers without ruby show.
    Parenthesis,
}

impl OpenRubyElement {
    /// Starts a ruby after a text that ends with `before`, apart from white space.
    pub(super) fn new(before: Option<char>) -> OpenRubyElement {
        OpenRubyElement {
            part: RubyPart::Base,
            open: 1,
            last: before,
            gap: TrailingSpace::No,
            readings: String::new(),
            is_apart: false,
        }
    }

    pub(super) fn part(&self) -> RubyPart {
        self.part
    }

    /// Records a start tag within the ruby. The tag may end the previous part, because the end tags
    /// of parts are optional.
    pub(super) fn start(&mut self, tag: ElementName) {
        self.part = match tag {
            element_name::RT | element_name::RTC => {
                self.is_apart = true;
                RubyPart::Reading
            }
            element_name::RP => RubyPart::Parenthesis,
            element_name::RB => RubyPart::Base,
            element_name::RUBY => {
                self.open = self.open.saturating_add(1);
                return;
            }
            _ => return,
        };
    }

    /// Records an end tag within the ruby. Returns whether it ends the ruby.
    pub(super) fn end(&mut self, tag: ElementName) -> bool {
        match tag {
            element_name::RT | element_name::RTC | element_name::RP => self.part = RubyPart::Base,
            element_name::RUBY => {
                self.open -= 1;
                self.part = RubyPart::Base;
            }
            _ => {}
        }
        self.open == 0
    }

    /// Returns `text` as base text, without the white space between characters of scripts that
    /// don't use spaces. Doesn't change the ruby.
    pub(super) fn base_text(&self, text: &str) -> String {
        self.joined(text).0
    }

    /// Records a piece of base text. Returns it as [`OpenRubyElement::base_text`] does.
    pub(super) fn add_base(&mut self, text: &str) -> String {
        let (joined, last, gap) = self.joined(text);
        (self.last, self.gap) = (last, gap);
        joined
    }

    /// Returns base text as in [`OpenRubyElement::base_text`], its last character, and the white
    /// space at its end.
    fn joined(&self, text: &str) -> (String, Option<char>, TrailingSpace) {
        let mut joined = String::with_capacity(text.len());
        let (mut last, mut gap) = (self.last, self.gap);
        for c in text.chars() {
            if c.is_whitespace() {
                if gap == TrailingSpace::No {
                    gap = TrailingSpace::Pending;
                }
                continue;
            }
            if gap == TrailingSpace::Pending && !(is_unspaced(c) && last.is_none_or(is_unspaced)) {
                joined.push(' ');
            }
            gap = TrailingSpace::No;
            joined.push(c);
            last = Some(c);
        }
        if gap == TrailingSpace::Pending && last.is_some_and(|last| !is_unspaced(last)) {
            joined.push(' ');
            gap = TrailingSpace::Added;
        }
        (joined, last, gap)
    }

    /// Makes the next text of a reading begin a new word.
    pub(super) fn separate(&mut self) {
        self.is_apart = true;
    }

    /// Adds text of a reading, as long as all readings of this ruby together have less than `max`
    /// bytes. No space is added between words of a script without spaces, or between two pieces of
    /// one word (for example before and after a comment).
    pub(super) fn read(&mut self, text: &str, max: usize) {
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            self.is_apart |= index > 0;
            if word.is_empty() {
                continue;
            }
            if self.readings.len() + word.len() >= max {
                return;
            }
            let before = self.readings.chars().next_back();
            let joins = before.is_none_or(is_unspaced) && word.starts_with(is_unspaced);
            if self.is_apart && before.is_some() && !joins {
                self.readings.push(' ');
            }
            self.is_apart = false;
            self.readings.push_str(word);
        }
    }

    /// Returns the readings so far.
    pub(super) fn readings(&self) -> &str {
        &self.readings
    }

    /// Returns the readings of the whole ruby.
    pub(super) fn into_readings(self) -> String {
        self.readings
    }
}
