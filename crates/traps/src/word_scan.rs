//! Finds the words of a text, sixteen bytes at a time.

use std::ops::Range;

use wide::u8x16;

const WIDTH: usize = 16;

/// The beginning of a text, scanned for words.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordScan {
    /// A bit for each byte, set if the byte belongs to a word.
    pub(super) words: u64,
    /// The number of scanned bytes. The scan ends at the end of the text, after 32 bytes, or before
    /// an ampersand.
    pub(super) length: usize,
    /// Whether the scan ended before an ampersand.
    pub(super) is_before_reference: bool,
}

impl WordScan {
    /// Scans the beginning of `text`, which is a part of a page.
    #[inline]
    pub(super) fn at(page: &[u8], text: Range<usize>) -> WordScan {
        let first = ByteKinds::at(page, text.start);
        let (kinds, scanned) = match text.len() {
            ..=WIDTH => (first, WIDTH),
            _ => (
                first.and(ByteKinds::at(page, text.start + WIDTH)),
                2 * WIDTH,
            ),
        };
        let all = scanned.min(text.len());
        let before = (kinds.ampersands.trailing_zeros() as usize).min(all);
        WordScan {
            words: kinds.words & ((1 << before) - 1),
            length: before,
            is_before_reference: before < all,
        }
    }
}

/// Two bit sets for the bytes of a text: which bytes belong to words, and which are ampersands.
#[derive(Clone, Copy)]
struct ByteKinds {
    words: u64,
    ampersands: u64,
}

impl ByteKinds {
    /// Classifies sixteen bytes of a page. No bit is set for bytes past the page's end.
    #[inline]
    fn at(page: &[u8], at: usize) -> ByteKinds {
        let rest = page.get(at..).unwrap_or_default();
        let bytes = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; WIDTH];
            bytes[..rest.len()].copy_from_slice(rest);
            bytes
        });
        let bytes = u8x16::new(bytes);
        let letters = in_range(bytes | u8x16::splat(0x20), b'a', 26);
        let digits = in_range(bytes, b'0', 10);
        let beyond_ascii = bytes.max(u8x16::splat(0x80)).simd_eq(bytes);
        let words = letters | digits | beyond_ascii;
        let ampersands = bytes.simd_eq(u8x16::splat(b'&'));
        ByteKinds {
            words: words.to_bitmask().into(),
            ampersands: ampersands.to_bitmask().into(),
        }
    }

    /// Appends the classes of the following sixteen bytes.
    #[inline]
    fn and(self, next: ByteKinds) -> ByteKinds {
        ByteKinds {
            words: self.words | next.words << WIDTH,
            ampersands: self.ampersands | next.ampersands << WIDTH,
        }
    }
}

/// Finds the bytes with one of `count` consecutive values from `first` on.
#[inline]
fn in_range(bytes: u8x16, first: u8, count: u8) -> u8x16 {
    let places = bytes - u8x16::splat(first);
    places.min(u8x16::splat(count - 1)).simd_eq(places)
}

/// Returns the length of the word at the beginning of a text, in bytes.
pub(super) fn word_bytes(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !is_word(*byte));
    end.unwrap_or(text.len())
}

/// Returns whether a byte belongs to a word. Words consist of ASCII letters and digits, and all
/// bytes beyond ASCII.
#[inline]
pub(super) fn is_word(byte: u8) -> bool {
    byte >= 0x80 || byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::{WordScan, is_word, word_bytes};

    #[test]
    fn a_block_distinguishes_words_from_other_bytes_at_every_offset() {
        for byte in 0..=255 {
            for place in 0..40 {
                for (around, behind) in [(b'x', 0), (b' ', 0), (b'x', 40), (b' ', 40)] {
                    let mut page = vec![around; place];
                    page.push(byte);
                    page.resize(page.len() + behind, around);
                    for text in [0..page.len(), 0..place + 1] {
                        let block = WordScan::at(&page, text.clone());
                        let scanned = text.len().min(32);
                        let is_reference = byte == b'&' && place < scanned;
                        let length = if is_reference { place } else { scanned };
                        assert_eq!(block.length, length, "{byte} at {place}");
                        assert_eq!(block.is_before_reference, is_reference);
                        let words = page[..length].iter().rev();
                        let words =
                            words.fold(0, |bits, byte| bits << 1 | u64::from(is_word(*byte)));
                        assert_eq!(block.words, words, "{byte} at {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_word_ends_before_the_first_byte_that_is_not_alphanumeric() {
        for (text, length) in [
            ("", 0),
            (" a", 0),
            ("ab c", 2),
            ("ab1-", 3),
            ("e\u{301}.", 3),
        ] {
            assert_eq!(word_bytes(text.as_bytes()), length, "{text}");
        }
    }
}
