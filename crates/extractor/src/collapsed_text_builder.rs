//! Text with white space collapsed, up to a limit.

/// Collects text. Runs of ASCII white space become one space, and are dropped at both ends.
#[derive(Debug, Default)]
pub(crate) struct CollapsedTextBuilder {
    text: String,
    limit: usize,
    space: bool,
    cut: bool,
}

impl CollapsedTextBuilder {
    /// Creates an empty collector for at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> CollapsedTextBuilder {
        CollapsedTextBuilder {
            limit,
            ..CollapsedTextBuilder::default()
        }
    }

    /// Adds `text`. White space at its start or end separates it from the text added before or
    /// after it.
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

    /// Separates the next text from the text so far, as if there were white space between them.
    pub(crate) fn separate(&mut self) {
        self.space = true;
    }

    /// Returns the text (`None` if it is empty) and whether it was cut, and empties the collector.
    pub(crate) fn take(&mut self) -> (Option<String>, bool) {
        // Copy the text, so that the buffer can be reused and the result has no spare capacity.
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
        let fitting = &word[..word.floor_char_boundary(room)];
        self.cut = fitting.len() < word.len();
        if !fitting.is_empty() {
            if space == 1 {
                self.text.push(' ');
            }
            self.text.push_str(fitting);
        }
    }
}

/// Returns `value` without ASCII white space at both ends.
pub(crate) fn trim(value: &str) -> &str {
    value.trim_ascii()
}

/// Returns whether a byte is ASCII white space of the Infra Standard: tab, line feed, form feed,
/// return, space.
#[inline]
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}
