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
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            if is_space(first) {
                self.space = true;
                at += 1;
                continue;
            }
            let word = &bytes[at..];
            let end = word.iter().position(|byte| is_space(*byte));
            let end = end.map_or(bytes.len(), |end| at + end);
            self.push_word(&text[at..end]);
            at = end;
        }
    }

    /// Ends a word: what follows does not join what came before.
    pub(crate) fn separate(&mut self) {
        self.space = true;
    }

    /// The text, and whether some of it was left out; empties the collector.
    pub(crate) fn take(&mut self) -> (Option<String>, bool) {
        // The buffer stays for the next text, so that each is one allocation of its own size.
        let text = (!self.text.is_empty()).then(|| self.text.as_str().to_owned());
        let cut = std::mem::take(&mut self.cut);
        self.text.clear();
        self.space = false;
        (text, cut)
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
            if space == 1 {
                self.text.push(' ');
            }
            self.text.push_str(kept);
        }
    }
}

/// `value` without ASCII white space at its ends.
pub(crate) fn trim(value: &str) -> &str {
    value.trim_ascii()
}

/// ASCII white space of the Infra Standard: tab, line feed, form feed, return, space.
#[inline]
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}
