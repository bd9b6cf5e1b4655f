//! Guesses the charset of bytes without any declaration.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// Maximum bytes to guess a charset from, starting at the first non-ASCII byte.
/// Beyond the limit: not considered.
const MAX_DETECT_BYTES: usize = 256 * 1024;
/// Number of bytes before the first non-ASCII byte or escape (0x1B) that are examined too.
const MAX_CONTEXT_BYTES: usize = 64;

/// Guesses the charset of `body` with Firefox's detector. Returns UTF-8 if all bytes are ASCII.
pub(crate) fn detect(body: &[u8]) -> &'static Encoding {
    let first = Encoding::ascii_valid_up_to(body);
    let escape = memchr::memchr(0x1b, &body[..first]).unwrap_or(first);
    let start = escape.saturating_sub(MAX_CONTEXT_BYTES);
    let end = body.len().min(escape.saturating_add(MAX_DETECT_BYTES));
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&body[start..end], end == body.len());
    detector.guess(None, Utf8Detection::Allow)
}

/// Detects UTF-16 without a byte order mark. In UTF-16 markup, many characters are an ASCII byte
/// and a NUL, always in the same order. `None` if this is not the case for `head`.
pub(crate) fn utf_16_without_mark(head: &[u8]) -> Option<&'static Encoding> {
    memchr::memchr(0, head)?;
    let pairs = || head.chunks_exact(2);
    let little = pairs()
        .filter(|pair| is_text(pair[0]) && pair[1] == 0)
        .count();
    let big = pairs()
        .filter(|pair| pair[0] == 0 && is_text(pair[1]))
        .count();
    // In UTF-16 markup, at least four characters are ASCII, and at least a third of all characters.
    let plainly = |count: usize, others: usize| {
        count >= 4 && 3 * count >= pairs().count() && others * 16 <= count
    };
    if plainly(little, big) {
        Some(UTF_16LE)
    } else if plainly(big, little) {
        Some(UTF_16BE)
    } else {
        None
    }
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}
