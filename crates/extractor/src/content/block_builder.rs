//! Text as it comes, put together to blocks.

use super::limits::{ContentLimits, ContentOddityKind, Oddities};
use super::model::BlockKind;
use super::text_amount::Weigher;

/// A heading that is longer was never closed: it is running text.
const MAX_HEADING_BYTES: usize = 1_000;
/// A block with more of it in links is a block of links. In percent.
pub(super) const MAX_LINKS: u32 = 60;

/// A block as it stands in the text, and how much of it is what.
#[derive(Debug)]
pub(super) struct RawBlock {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: BlockKind,
    /// The region it stands in.
    pub(super) region: u32,
    /// Half words, see [`Weigher`].
    pub(super) weight: u32,
    /// Those of them within links.
    pub(super) link_weight: u32,
    pub(super) id: Option<Box<str>>,
}

/// A position in the current block's text, with the weights of the text before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) text: usize,
    weight: u32,
    link_weight: u32,
}

/// A range of a heading's text that is no part of the heading.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) from: Place,
    pub(super) to: Place,
    /// True if it is a link whose text is only a sign.
    pub(super) is_sign: bool,
}

/// The text of a page and its blocks.
pub(super) struct Flow {
    pub(super) text: String,
    pub(super) blocks: Vec<RawBlock>,
    limits: (usize, usize),
    start: usize,
    weigher: Weigher,
    weight: u32,
    link_weight: u32,
    /// White space stands before the next character.
    space: bool,
}

impl Flow {
    pub(super) fn new(limits: &ContentLimits) -> Flow {
        Flow {
            text: String::new(),
            blocks: Vec::new(),
            limits: (limits.text_bytes, limits.blocks),
            start: 0,
            weigher: Weigher::default(),
            weight: 0,
            link_weight: 0,
            space: false,
        }
    }

    /// Returns whether the block at hand has no text.
    pub(super) fn is_empty(&self) -> bool {
        self.text.len() == self.start
    }

    /// The current end of the text.
    pub(super) fn place(&self) -> Place {
        Place {
            text: self.text.len(),
            weight: self.weight,
            link_weight: self.link_weight,
        }
    }

    /// Returns whether the current block has letters or digits outside of `marks`.
    pub(super) fn has_letters_beside(&self, marks: &[Mark]) -> bool {
        let mut from = self.start;
        let ends = marks.iter().map(|mark| (mark.from.text, mark.to.text));
        ends.chain([(self.text.len(), 0)]).any(|(end, next)| {
            let part = &self.text[from..end];
            from = next;
            part.contains(char::is_alphanumeric)
        })
    }

    /// Removes `marks` from the current block. Where that leaves two spaces, one goes too.
    pub(super) fn take_out(&mut self, marks: &[Mark]) {
        for mark in marks.iter().rev() {
            let (from, mut to) = (mark.from.text, mark.to.text);
            let is_apart = from == self.start || self.text[..from].ends_with(' ');
            if is_apart && self.text[to..].starts_with(' ') {
                to += 1;
            }
            self.text.replace_range(from..to, "");
            let weight = mark.to.weight.saturating_sub(mark.from.weight);
            let link_weight = mark.to.link_weight.saturating_sub(mark.from.link_weight);
            self.weight = self.weight.saturating_sub(weight);
            self.link_weight = self.link_weight.saturating_sub(link_weight);
        }
    }

    /// Adds text to the block at hand. `exact`: white space is kept.
    pub(super) fn push(
        &mut self,
        text: &str,
        in_link: bool,
        exact: bool,
        offset: usize,
        oddities: &mut Oddities,
    ) {
        let before = self.weight;
        let mut rest = text;
        // What comes behind the limit would be cut off again.
        while self.text.len() <= self.limits.0 {
            let room = (self.limits.0 - self.text.len()).saturating_add(1);
            let word = visible_ascii(&rest.as_bytes()[..room.min(rest.len())]);
            if word > 0 {
                self.push_word(&rest[..word]);
                rest = &rest[word..];
                continue;
            }
            let Some(c) = rest.chars().next() else { break };
            rest = &rest[c.len_utf8()..];
            if c.is_whitespace() && !exact {
                self.space = true;
            } else if !is_dropped(c) {
                self.push_char(c);
            }
        }
        if in_link {
            self.link_weight += self.weight - before;
        }
        // A little room is kept for the ends of blocks.
        if self.text.len() > self.limits.0 {
            let end = self.text.floor_char_boundary(self.limits.0).max(self.start);
            self.text.truncate(end);
            oddities.note(ContentOddityKind::TextFull, offset);
        }
    }

    /// The text that follows does not join what came before.
    pub(super) fn separate(&mut self) {
        self.space = true;
    }

    /// Ends the block at hand; whether there was one.
    pub(super) fn end_block(
        &mut self,
        kind: BlockKind,
        region: u32,
        id: &mut Option<Box<str>>,
        oddities: &mut Oddities,
        offset: usize,
    ) -> bool {
        self.space = false;
        self.weigher = Weigher::default();
        let (weight, link_weight) = (self.weight, self.link_weight);
        (self.weight, self.link_weight) = (0, 0);
        self.trim();
        if self.is_empty() {
            return false;
        }
        let (start, end) = (self.start, self.text.len());
        self.text.push('\n');
        self.start = self.text.len();
        if self.blocks.len() >= self.limits.1 {
            oddities.note(ContentOddityKind::BlocksFull, offset);
            if let Some(last) = self.blocks.last_mut() {
                last.end = end;
                last.weight = last.weight.saturating_add(weight);
                last.link_weight = last.link_weight.saturating_add(link_weight);
            }
            return true;
        }
        let kind = match kind {
            BlockKind::Heading { .. } if end - start > MAX_HEADING_BYTES => BlockKind::Paragraph,
            kind => kind,
        };
        self.blocks.push(RawBlock {
            start,
            end,
            kind,
            region,
            weight,
            link_weight,
            id: id.take(),
        });
        true
    }

    /// The whole text without the last line's end.
    pub(super) fn into_parts(mut self) -> (String, Vec<RawBlock>) {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        (self.text, self.blocks)
    }

    fn push_char(&mut self, c: char) {
        self.push_space();
        self.text.push(c);
        self.weight = self.weight.saturating_add(self.weigher.add(c));
    }

    /// Adds text of which each character is visible, and of ASCII.
    fn push_word(&mut self, word: &str) {
        self.push_space();
        self.text.push_str(word);
        let weight = self.weigher.add_ascii(word.as_bytes());
        self.weight = self.weight.saturating_add(weight);
    }

    /// Adds the space that stands before the next character.
    fn push_space(&mut self) {
        if self.space && !self.is_empty() {
            self.text.push(' ');
            self.weigher = Weigher::default();
        }
        self.space = false;
    }

    /// Takes white space and the marks of headings' links from the ends of the block.
    fn trim(&mut self) {
        let block = &self.text[self.start..];
        let is_mark = |c: char| c.is_whitespace() || matches!(c, '¶' | '🔗');
        let kept = block.trim_end_matches(is_mark);
        self.text.truncate(self.start + kept.len());
        // Exact text may begin with empty lines.
        let block = &self.text[self.start..];
        let empty = block.len() - block.trim_start_matches(['\n', '\r']).len();
        if empty > 0 {
            self.text.replace_range(self.start..self.start + empty, "");
        }
    }
}

/// The number of bytes at the begin of a text that are visible characters of ASCII.
fn visible_ascii(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii_graphic());
    end.unwrap_or(text.len())
}

/// Characters that nobody sees and that no word is made of: NUL and other controls, soft
/// hyphens, zero-width spaces, word joiners, byte order marks. Joiners (U+200C, U+200D) are
/// letters' business in Persian, Hindi and others, and stay.
pub(super) fn is_dropped(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
        || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Flow;
    use crate::content::limits::{ContentLimits, Oddities};

    proptest! {
        #[test]
        fn a_text_is_what_its_characters_are_one_at_a_time(
            text in "([a-z0-9.'-]{1,9}|[ \n\t]{1,2}|é|東|\u{ad}|\u{200b}|\u{7}){0,40}",
            text_bytes in 0_usize..60,
            exact in any::<bool>(),
        ) {
            let of = |parts: &[&str], text_bytes: usize| {
                let limits = ContentLimits { text_bytes, ..ContentLimits::default() };
                let (mut flow, mut oddities) = (Flow::new(&limits), Oddities::default());
                for part in parts {
                    flow.push(part, true, exact, 0, &mut oddities);
                }
                (flow.text, flow.weight, flow.link_weight, flow.space)
            };
            let parts = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
            let whole = of(&[&text], 1000);
            prop_assert_eq!(&whole, &of(&parts.collect::<Vec<_>>(), 1000));
            let cut = &whole.0[..whole.0.floor_char_boundary(text_bytes)];
            prop_assert_eq!(of(&[&text], text_bytes).0, cut);
        }
    }
}
