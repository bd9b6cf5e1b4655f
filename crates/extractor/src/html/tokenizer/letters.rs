//! The count of a text's letters, sixteen bytes at once.

use std::ops::Range;

use wide::u8x16;

use super::scan::{WIDTH, equal, sixteen};

/// Counts the characters of texts but blanks.
#[derive(Default)]
pub(crate) struct LetterCount {
    /// Those that were counted by each of sixteen counters, and since added up.
    total: usize,
    counters: u8x16,
    /// The sums that were added to the counters since, each at most 1 to each: they hold 255.
    added: u8,
}

impl LetterCount {
    /// Counts those of a part of a page.
    #[inline]
    pub(crate) fn add(&mut self, page: &[u8], text: Range<usize>) {
        let mut at = text.start;
        while at < text.end {
            // A letter is 255, which is taken away: so one is added.
            self.counters -= letters_at(page, at) & first_bytes(text.end - at);
            self.added += 1;
            if self.added == u8::MAX {
                self.add_up();
            }
            at += WIDTH;
        }
    }

    /// Those of all texts but the last few.
    #[inline]
    pub(crate) fn so_far(&self) -> usize {
        self.total
    }

    /// Those of all texts.
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

/// The characters but blanks among sixteen bytes of a page: 255 for the first byte of each, and 0
/// for other bytes. Behind the page's end stands nothing.
#[inline]
fn letters_at(page: &[u8], at: usize) -> u8x16 {
    let some = sixteen(page, at).unwrap_or_else(|| {
        let rest = page.get(at..).unwrap_or_default();
        let mut bytes = [b' '; WIDTH];
        bytes[..rest.len()].copy_from_slice(rest);
        u8x16::new(bytes)
    });
    // Of tab, line feed, vertical tab, form feed and return one is no blank.
    let controls = some - u8x16::splat(b'\t');
    let controls = controls.min(u8x16::splat(b'\r' - b'\t')).simd_eq(controls);
    let blanks = equal(some, b' ') | (controls & !equal(some, 0x0b));
    let continued = equal(some & u8x16::splat(0xc0), 0x80);
    !(blanks | continued)
}

/// 255 for the first `count` of sixteen bytes, or for all.
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
    use super::LetterCount;

    #[test]
    fn ours_letters_are_characters_but_blanks_wherever_they_stand() {
        let page = "a b\u{e9}\t\u{4e00}\n\u{b}\u{c}\r0<\u{1f600} x".repeat(9);
        for from in (0..page.len()).filter(|at| page.is_char_boundary(*at)) {
            for to in (from..=page.len()).filter(|at| page.is_char_boundary(*at)) {
                let blank = |c: char| matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ');
                let letters = page[from..to].chars().filter(|c| !blank(*c)).count();
                let mut count = LetterCount::default();
                count.add(page.as_bytes(), from..to);
                assert_eq!(count.finish(), letters, "{from}..{to}");
            }
        }
    }

    #[test]
    fn ours_many_texts_have_their_letters_together() {
        let mut count = LetterCount::default();
        for _ in 0..1_000 {
            count.add(b"0123456789abcdef, and no more", 0..20);
        }
        assert_eq!(count.finish(), 19_000);
    }
}
