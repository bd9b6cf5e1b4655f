//! Counts the characters of texts, except white space, sixteen bytes at a time. The code calls them
//! letters.

use std::ops::Range;

use wide::u8x16;

use super::delimiter_search::{WIDTH, equal, sixteen};

/// Counts the characters of texts, except white space.
#[derive(Default)]
pub(crate) struct NonSpaceCharacterCounter {
    /// The number of letters counted, without the letters that are still in `counters`.
    total: usize,
    counters: u8x16,
    /// Number of additions to `counters` since they were last cleared. Each addition adds at most 1
    /// to each counter, and a counter holds at most 255.
    added: u8,
}

impl NonSpaceCharacterCounter {
    /// Counts the letters in the range `text` of a page.
    #[inline]
    pub(crate) fn add(&mut self, page: &[u8], text: Range<usize>) {
        let mut at = text.start;
        while at < text.end {
            // The mask of a letter is 255, which is -1 in a byte, so subtracting it adds one.
            self.counters -= letters_at(page, at) & first_bytes(text.end - at);
            self.added += 1;
            if self.added == u8::MAX {
                self.add_up();
            }
            at += WIDTH;
        }
    }

    /// Returns the number of letters counted so far. The letters of the last few texts may be
    /// missing.
    #[inline]
    pub(crate) fn so_far(&self) -> usize {
        self.total
    }

    /// Returns the number of letters in all texts.
    pub(crate) fn finish(mut self) -> usize {
        self.add_up();
        self.total
    }

    #[cold]
    fn add_up(&mut self) {
        let counted = self.counters.to_array().into_iter().map(usize::from);
        self.total += counted.sum::<usize>();
        self.counters = u8x16::default();
        self.added = 0;
    }
}

/// Returns a mask for the sixteen bytes at `at`: 255 for the first byte of each character except
/// white space, and 0 for all other bytes. Bytes after the end of the page count as spaces.
#[inline]
fn letters_at(page: &[u8], at: usize) -> u8x16 {
    let chunk = sixteen(page, at).unwrap_or_else(|| {
        let rest = page.get(at..).unwrap_or_default();
        let mut bytes = [b' '; WIDTH];
        bytes[..rest.len()].copy_from_slice(rest);
        u8x16::new(bytes)
    });
    // The characters from tab to carriage return are white space, except for vertical tab.
    let controls = chunk - u8x16::splat(b'\t');
    let controls = controls.min(u8x16::splat(b'\r' - b'\t')).simd_eq(controls);
    let blanks = equal(chunk, b' ') | (controls & !equal(chunk, 0x0b));
    let continued = equal(chunk & u8x16::splat(0xc0), 0x80);
    !(blanks | continued)
}

/// Returns a mask that is 255 for the first `count` of sixteen bytes, and 0 for the others.
#[inline]
fn first_bytes(count: usize) -> u8x16 {
    static BYTES: [u8; 2 * WIDTH] = {
        let mut bytes = [0; 2 * WIDTH];
        let mut at = 0;
        while at < WIDTH {
            bytes[at] = 0xff;
            at += 1;
        }
        bytes
    };
    let from = WIDTH - count.min(WIDTH);
    BYTES[from..]
        .first_chunk()
        .copied()
        .map_or(u8x16::splat(0), u8x16::new)
}

#[cfg(test)]
mod tests {
    use super::NonSpaceCharacterCounter;

    #[test]
    fn letters_are_all_characters_except_white_space() {
        let page = "a b\u{e9}\t\u{4e00}\n\u{b}\u{c}\r0<\u{1f600} x".repeat(9);
        for from in (0..page.len()).filter(|at| page.is_char_boundary(*at)) {
            for to in (from..=page.len()).filter(|at| page.is_char_boundary(*at)) {
                let blank = |c: char| matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ');
                let letters = page[from..to].chars().filter(|c| !blank(*c)).count();
                let mut count = NonSpaceCharacterCounter::default();
                count.add(page.as_bytes(), from..to);
                assert_eq!(count.finish(), letters, "{from}..{to}");
            }
        }
    }

    #[test]
    fn letters_of_many_texts_are_added_up() {
        let mut count = NonSpaceCharacterCounter::default();
        for _ in 0..1_000 {
            count.add(b"0123456789abcdef, and no more", 0..20);
        }
        assert_eq!(count.finish(), 19_000);
    }
}
