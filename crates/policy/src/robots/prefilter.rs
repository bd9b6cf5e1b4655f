//! A prefilter for patterns and paths: two words of each suffice to rule out nearly every rule that
//! does not match a path.
//!
//! One word holds the first eight bytes. The other is the set of bytes that occur, as a bit mask.
//! Rules are tried in one pass over a list, so a rule should be ruled out within a handful of
//! instructions and without reading its text.

/// The summary of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSummary {
    head: u64,
    marks: u64,
}

/// What a pattern requires of the summary of any path it matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternSummary {
    head: u64,
    marks: u64,
    /// Number of bits to shift out a difference of heads beyond the pattern's length.
    beyond: u8,
}

/// Bit in a set of marks: a byte that never occurs in normal form, or a `%`.
pub(super) const ODD: u64 = 1 << 63;
/// Bit in a set of marks: `*` or `$`.
pub(super) const SPECIAL: u64 = 1 << 62;

/// Bytes of a pattern that the prefilter compares.
pub(super) const HEAD: usize = size_of::<u64>();

/// Returns the set of bytes in `text`, with [`ODD`] and [`SPECIAL`].
#[inline]
pub(super) fn marks(text: &[u8]) -> u64 {
    text.iter().fold(0, |all, &byte| all | MARKS[byte as usize])
}

impl PathSummary {
    /// Summarises `path`, whose marks are `marks`.
    #[inline]
    pub(super) fn of(path: &[u8], marks: u64) -> PathSummary {
        let head = first_bytes(path);
        PathSummary { head, marks }
    }
}

impl PatternSummary {
    /// Summarises a pattern. `head` is the part before the first wildcard, and `marks` belong to
    /// the whole pattern.
    #[inline]
    pub(super) fn of(head: &[u8], marks: u64) -> PatternSummary {
        // Every normal path begins with a slash, so an empty head can require one.
        let head = if head.is_empty() { b"/" } else { head };
        PatternSummary {
            head: first_bytes(head),
            marks: marks & !(ODD | SPECIAL),
            beyond: (8 * HEAD.saturating_sub(head.len())) as u8,
        }
    }

    /// Returns false only if the pattern does not match the path.
    #[inline]
    pub(super) fn may_match(&self, path: PathSummary) -> bool {
        ((self.head ^ path.head) << self.beyond) | (self.marks & !path.marks) == 0
    }
}

/// Returns the first eight bytes, padded with zeros, which no pattern contains.
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

/// Gives informative bytes their own bit: letters and digits, and signs above all. A slash is in
/// every path, and rare bytes share a bit.
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
