//! Ruby: small readings over characters (HTML Standard 4.5.10).
//!
//! The base text goes on as if there were no readings, so that it makes whole words: 東京, not
//! 東とう京きょう. The readings follow where the block ends.

use super::text_amount::is_unspaced;
use crate::html::name::{self, Name};

/// A `ruby` element that is open.
#[derive(Debug)]
pub(super) struct Ruby {
    part: RubyPart,
    /// The `ruby` elements open, with those within it.
    open: u32,
    /// The last character of its base text.
    last: Option<char>,
    readings: String,
}

/// The part of a ruby that text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RubyPart {
    Base,
    Reading,
    /// A parenthesis for browsers without ruby.
    Parenthesis,
}

impl Ruby {
    pub(super) fn new() -> Ruby {
        Ruby {
            part: RubyPart::Base,
            open: 1,
            last: None,
            readings: String::new(),
        }
    }

    pub(super) fn part(&self) -> RubyPart {
        self.part
    }

    /// Takes a start tag within the ruby. End tags of its parts may be left out.
    pub(super) fn start(&mut self, tag: Name) {
        self.part = match tag {
            name::RT | name::RTC => RubyPart::Reading,
            name::RP => RubyPart::Parenthesis,
            name::RB => RubyPart::Base,
            name::RUBY => {
                self.open = self.open.saturating_add(1);
                return;
            }
            _ => return,
        };
    }

    /// Takes an end tag within the ruby. Returns whether it ends the ruby.
    pub(super) fn end(&mut self, tag: Name) -> bool {
        match tag {
            name::RT | name::RTC | name::RP => self.part = RubyPart::Base,
            name::RUBY => {
                self.open -= 1;
                self.part = RubyPart::Base;
            }
            _ => {}
        }
        self.open == 0
    }

    /// Returns base text without the white space between characters of a script that has none.
    pub(super) fn base_text(&self, text: &str) -> String {
        let mut joined = String::with_capacity(text.len());
        let mut last = self.last;
        let mut has_space = false;
        for c in text.chars() {
            if c.is_whitespace() {
                has_space = true;
                continue;
            }
            if has_space && !(is_unspaced(c) && last.is_none_or(is_unspaced)) {
                joined.push(' ');
            }
            has_space = false;
            joined.push(c);
            last = Some(c);
        }
        if has_space && !last.is_some_and(is_unspaced) {
            joined.push(' ');
        }
        joined
    }

    /// Takes text of the base, as [`Ruby::base_text`] returned it.
    pub(super) fn took_base(&mut self, text: &str) {
        self.last = text.trim_end().chars().next_back().or(self.last);
    }

    /// Takes text of a reading, up to `max` bytes of all. Those of one word join if their script
    /// has no spaces.
    pub(super) fn read(&mut self, text: &str, max: usize) {
        for word in text.split_whitespace() {
            if self.readings.len() + word.len() >= max {
                return;
            }
            let before = self.readings.chars().next_back();
            let joins = before.is_none_or(is_unspaced) && word.starts_with(is_unspaced);
            if before.is_some() && !joins {
                self.readings.push(' ');
            }
            self.readings.push_str(word);
        }
    }

    /// The readings so far.
    pub(super) fn readings(&self) -> &str {
        &self.readings
    }

    /// The readings of the whole ruby.
    pub(super) fn into_readings(self) -> String {
        self.readings
    }
}
