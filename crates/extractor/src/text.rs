//! Text with its white space collapsed, up to a limit.

/// Collects text; runs of ASCII white space become one space, none stand at the ends.
#[derive(Debug, Default)]
pub(crate) struct Collapsed {
    text: String,
    limit: usize,
    space: bool,
    cut: bool,
}

impl Collapsed {
    /// Nothing yet; `limit` bytes at most.
    pub(crate) fn new(limit: usize) -> Collapsed {
        Collapsed {
            limit,
            ..Collapsed::default()
        }
    }

    /// Adds `text`. White space between two calls counts as such.
    pub(crate) fn push(&mut self, text: &str) {
        if self.cut {
            return;
        }
        let mut rest = text;
        while let Some(first) = rest.bytes().next() {
            if is_space(first) {
                self.space = true;
                rest = rest.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
                continue;
            }
            let end = rest.bytes().position(is_space).unwrap_or(rest.len());
            self.push_word(&rest[..end]);
            rest = &rest[end..];
        }
    }

    /// Ends a word: what follows does not join what came before.
    pub(crate) fn separate(&mut self) {
        self.space = true;
    }

    /// The text, and whether some of it was left out; empties the collector.
    pub(crate) fn take(&mut self) -> (Option<String>, bool) {
        let text = std::mem::take(&mut self.text);
        let cut = std::mem::take(&mut self.cut);
        self.space = false;
        ((!text.is_empty()).then_some(text), cut)
    }

    fn push_word(&mut self, word: &str) {
        if self.cut {
            return;
        }
        let space = usize::from(self.space && !self.text.is_empty());
        let room = self.limit.saturating_sub(self.text.len() + space);
        self.space = false;
        let kept = &word[..word.floor_char_boundary(room)];
        self.cut = kept.len() < word.len();
        if !kept.is_empty() {
            self.text.extend((space == 1).then_some(' '));
            self.text.push_str(kept);
        }
    }
}

/// `value` without ASCII white space at its ends.
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

/// ASCII white space of the Infra Standard: tab, line feed, form feed, return, space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}
