//! A prefilter for patterns and paths. Each pattern and each path is summarised in two 64-bit
//! words, which suffice to rule out nearly every rule that does not match a path.
//!
//! The first word holds the first eight bytes. The second word is a bit mask of the bytes that
//! occur. All rules are tried in one pass over a list, so ruling out a rule should take only a
//! handful of instructions and should not need its text.

/// The summary of a path: its first eight bytes, and a bit mask of the bytes that occur.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathByteSummary {
    head: u64,
    marks: u64,
}

/// The summary of a pattern: the first bytes and the bit mask of bytes that any matching path must
/// have.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternByteSummary {
    head: u64,
    marks: u64,
    /// The shift (in bits) that drops the bytes after the end of the pattern when the first bytes
    /// of pattern and path are compared.
    beyond: u8,
}

/// The bit in a byte mask (see [`marks`]) for `%`, and for bytes that never occur in normal form.
pub(super) const ODD: u64 = 1 << 63;
/// The bit in a byte mask (see [`marks`]) for `*` and `$`.
pub(super) const SPECIAL: u64 = 1 << 62;

/// Number of leading bytes of a pattern that the prefilter compares.
pub(super) const HEAD: usize = size_of::<u64>();

/// Returns the set of the bytes of `text` as a bit mask, with [`ODD`] and [`SPECIAL`].
#[inline]
pub(super) fn marks(text: &[u8]) -> u64 {
    text.iter().fold(0, |all, &byte| all | MARKS[byte as usize])
}

impl PathByteSummary {
    /// Summarises `path`, whose bytes have the bit mask `marks`.
    #[inline]
    pub(super) fn of(path: &[u8], marks: u64) -> PathByteSummary {
        let head = first_bytes(path);
        PathByteSummary { head, marks }
    }
}

impl PatternByteSummary {
    /// Summarises a pattern. `head` is the part before the first wildcard, and `marks` is the bit
    /// mask of the bytes in the whole pattern.
    #[inline]
    pub(super) fn of(head: &[u8], marks: u64) -> PatternByteSummary {
        // Every normal path begins with a slash, so an empty head is replaced by a slash.
        let head = if head.is_empty() { b"/" } else { head };
        PatternByteSummary {
            head: first_bytes(head),
            marks: marks & !(ODD | SPECIAL),
            beyond: (8 * HEAD.saturating_sub(head.len())) as u8,
        }
    }

    /// Returns false only if the pattern can't match the path.
    #[inline]
    pub(super) fn may_match(&self, path: PathByteSummary) -> bool {
        ((self.head ^ path.head) << self.beyond) | (self.marks & !path.marks) == 0
    }
}

/// Returns the first eight bytes, padded with zeros. The zeros are unambiguous, because no pattern
/// contains a zero byte.
#[inline]
fn first_bytes(text: &[u8]) -> u64 {
    if let Some(first) = text.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    let mut first = [0; HEAD];
    first[..text.len()].copy_from_slice(text);
    u64::from_le_bytes(first)
}

const MARKS: [u64; 256] = {
    let mut marks = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        marks[byte] = mark(byte as u8);
        byte += 1;
    }
    marks
};

/// Returns the bit that stands for a byte. Bytes that distinguish texts best (such as lower-case
/// letters, digits, and above all punctuation) have a bit of their own. The slash has no bit,
/// because every path contains it. Rare bytes share a bit.
const fn mark(byte: u8) -> u64 {
    match byte {
        b'a'..=b'z' => 1 << (byte - b'a'),
        b'0'..=b'9' => 1 << (26 + byte - b'0'),
        b'A'..=b'Z' => 1 << (36 + (byte - b'A') / 2),
        b'/' => 0,
        b'.' => 1 << 49,
        b'?' => 1 << 50,
        b'=' => 1 << 51,
        b'&' => 1 << 52,
        b'-' => 1 << 53,
        b'_' => 1 << 54,
        b'+' => 1 << 55,
        b':' => 1 << 56,
        b';' => 1 << 57,
        b',' => 1 << 58,
        b'!' | b'\'' | b'(' | b')' | b'@' | b'[' | b']' | b'~' => 1 << 59,
        b'%' => 1 << 60 | ODD,
        b'*' | b'$' => 1 << 61 | SPECIAL,
        _ => ODD,
    }
}
