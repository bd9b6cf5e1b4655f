//! Assembles text into blocks.

use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};
use super::page_content::BlockKind;
use super::text_amount::TextAmountCounter;

/// Maximum bytes of a heading. A longer one probably lacks its end tag, and is treated as running
/// text.
const MAX_HEADING_BYTES: usize = 1_000;
/// If more than this percentage of a block's text is in links, it is a block of links.
pub(super) const MAX_LINKS: u32 = 60;

/// A finished block: its range in the page's text, and the weight of its words. Its role on the
/// page is not known yet.
#[derive(Debug)]
pub(super) struct UnclassifiedBlock {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: BlockKind,
    /// The region that contains the block.
    pub(super) region: u32,
    /// Weight of the block's words, in half words (see [`TextAmountCounter`]).
    pub(super) weight: u32,
    /// The weight of the words within links, which is a part of `weight`.
    pub(super) link_weight: u32,
    pub(super) id: Option<Box<str>>,
}

/// A position in the text of the current block, with the weight of the words before the position.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPositionWithWeights {
    pub(super) text: usize,
    weight: u32,
    link_weight: u32,
}

/// A control in the text of a heading, such as a permalink, an edit link or a button: its range,
/// which is removed from the heading.
#[derive(Debug)]
pub(super) struct HeadingControl {
    pub(super) from: TextPositionWithWeights,
    pub(super) to: TextPositionWithWeights,
    /// Whether this is a link whose text is only a sign, such as `#` or `¶`.
    pub(super) is_sign: bool,
}

/// Splits the text of a page into blocks, and holds the text and the finished blocks.
pub(super) struct BlockBuilder {
    pub(super) text: String,
    pub(super) blocks: Vec<UnclassifiedBlock>,
    limits: (usize, usize),
    start: usize,
    weigher: TextAmountCounter,
    weight: u32,
    link_weight: u32,
    /// Whether there is white space before the next character.
    space: bool,
}

impl BlockBuilder {
    pub(super) fn new(limits: &ContentLimits) -> BlockBuilder {
        BlockBuilder {
            text: String::new(),
            blocks: Vec::new(),
            limits: (limits.text_bytes, limits.blocks),
            start: 0,
            weigher: TextAmountCounter::default(),
            weight: 0,
            link_weight: 0,
            space: false,
        }
    }

    /// Returns whether the current block has no text.
    pub(super) fn is_empty(&self) -> bool {
        self.text.len() == self.start
    }

    /// Returns the last character of the current block that is not white space.
    pub(super) fn last_char(&self) -> Option<char> {
        self.text[self.start..].trim_end().chars().next_back()
    }

    /// Returns the position at the end of the text read so far.
    pub(super) fn place(&self) -> TextPositionWithWeights {
        TextPositionWithWeights {
            text: self.text.len(),
            weight: self.weight,
            link_weight: self.link_weight,
        }
    }

    /// Returns whether the current block has letters or digits outside `controls` (such as
    /// permalinks).
    pub(super) fn has_letters_outside(&self, controls: &[HeadingControl]) -> bool {
        let mut from = self.start;
        let ends = controls
            .iter()
            .map(|control| (control.from.text, control.to.text));
        ends.chain([(self.text.len(), 0)]).any(|(end, next)| {
            let part = &self.text[from..end];
            from = next;
            part.contains(char::is_alphanumeric)
        })
    }

    /// Removes `controls` (such as permalinks) from the current block. If a removal leaves
    /// two spaces in a row, removes one of them.
    pub(super) fn remove_controls(&mut self, controls: &[HeadingControl]) {
        for control in controls.iter().rev() {
            let (from, mut to) = (control.from.text, control.to.text);
            let is_apart = from == self.start || self.text[..from].ends_with(' ');
            if is_apart && self.text[to..].starts_with(' ') {
                to += 1;
            }
            self.text.replace_range(from..to, "");
            let weight = control.to.weight.saturating_sub(control.from.weight);
            let link_weight = control
                .to
                .link_weight
                .saturating_sub(control.from.link_weight);
            self.weight = self.weight.saturating_sub(weight);
            self.link_weight = self.link_weight.saturating_sub(link_weight);
        }
    }

    /// Adds text to the current block. If `exact` is true, keeps white space as it is. Otherwise,
    /// replaces runs of white space with one space.
    pub(super) fn push(
        &mut self,
        text: &str,
        in_link: bool,
        exact: bool,
        offset: usize,
        oddities: &mut ContentOddityList,
    ) {
        let before = self.weight;
        let mut rest = text;
        // Stop only after the limit is exceeded. The text is then cut at the limit, further below.
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
        // Cut the text at the limit. Only the line end after a block may exceed it.
        if self.text.len() > self.limits.0 {
            let end = self.text.floor_char_boundary(self.limits.0).max(self.start);
            self.text.truncate(end);
            oddities.note(ContentOddityKind::TextFull, offset);
        }
    }

    /// Separates the next text from the text so far, as if there were white space between them.
    pub(super) fn separate(&mut self) {
        self.space = true;
    }

    /// Ends the current block. Returns whether it has text.
    pub(super) fn end_block(
        &mut self,
        kind: BlockKind,
        region: u32,
        id: &mut Option<Box<str>>,
        oddities: &mut ContentOddityList,
        offset: usize,
    ) -> bool {
        self.space = false;
        self.weigher = TextAmountCounter::default();
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
        self.blocks.push(UnclassifiedBlock {
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

    /// Returns the whole text without the last line end, and the blocks.
    pub(super) fn into_parts(mut self) -> (String, Vec<UnclassifiedBlock>) {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        (self.text, self.blocks)
    }

    fn push_char(&mut self, c: char) {
        self.push_space();
        self.text.push(c);
        self.weight = self.weight.saturating_add(self.weigher.add(c));
    }

    /// Adds text of visible ASCII characters.
    fn push_word(&mut self, word: &str) {
        self.push_space();
        self.text.push_str(word);
        let weight = self.weigher.add_ascii(word.as_bytes());
        self.weight = self.weight.saturating_add(weight);
    }

    /// Adds the pending space before the next character.
    fn push_space(&mut self) {
        if self.space && !self.is_empty() {
            self.text.push(' ');
            self.weigher = TextAmountCounter::default();
        }
        self.space = false;
    }

    /// Removes white space and permalink signs from the end of the block, and empty lines from its
    /// start.
    fn trim(&mut self) {
        let block = &self.text[self.start..];
        let is_mark = |c: char| c.is_whitespace() || matches!(c, '¶' | '🔗');
        let trimmed = block.trim_end_matches(is_mark);
        self.text.truncate(self.start + trimmed.len());
        // Remove the empty lines at the start of a block in which white space is kept, such as
        // code.
        let block = &self.text[self.start..];
        let empty = block.len() - block.trim_start_matches(['\n', '\r']).len();
        if empty > 0 {
            self.text.replace_range(self.start..self.start + empty, "");
        }
    }
}

/// Returns the number of visible ASCII characters at the start of a text.
fn visible_ascii(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii_graphic());
    end.unwrap_or(text.len())
}

/// Returns whether to drop a character that is invisible and not part of any word: NUL and other
/// controls, soft hyphens, zero-width spaces, word joiners, byte order marks. Joiners (U+200C,
/// U+200D) are kept, because Persian, Hindi and other scripts need them.
pub(super) fn is_dropped(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
        || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::BlockBuilder;
    use crate::content::content_limits::{ContentLimits, ContentOddityList};

    proptest! {
        #[test]
        fn a_text_equals_its_characters_pushed_one_by_one(
            text in "([a-z0-9.'-]{1,9}|[ \n\t]{1,2}|é|東|\u{ad}|\u{200b}|\u{7}){0,40}",
            text_bytes in 0_usize..60,
            exact in any::<bool>(),
        ) {
            let of = |parts: &[&str], text_bytes: usize| {
                let limits = ContentLimits { text_bytes, ..ContentLimits::default() };
                let (mut flow, mut oddities) = (BlockBuilder::new(&limits), ContentOddityList::default());
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
