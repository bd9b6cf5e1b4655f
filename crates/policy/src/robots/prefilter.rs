//! A prefilter for patterns and paths: a look at two words of each shows, for nearly
//! every rule that does not match a path, that it does not.
//!
//! One word holds the first eight bytes; the other is the set of bytes that occur, a bit
//! for each kind. Rules are tried in one run over a list, so what matters is that a rule
//! which is out is out after a handful of instructions and without a look at its text.

/// A path at a glance.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSummary {
    head: u64,
    marks: u64,
}

/// The marks that a pattern demands of every path that it matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatternSummary {
    head: u64,
    marks: u64,
    /// By how many bits a difference of heads moves out where the pattern does not reach.
    beyond: u8,
}

/// In a set of marks: a byte was there that is in normal form nowhere, or a `%`.
pub(super) const ODD: u64 = 1 << 63;
/// In a set of marks: `*` or `$` was there.
pub(super) const SPECIAL: u64 = 1 << 62;

/// So many bytes of a pattern are compared at a glance.
pub(super) const HEAD: usize = size_of::<u64>();

/// The set of bytes that occur in `text`, with [`ODD`] and [`SPECIAL`].
#[inline]
pub(super) fn marks(text: &[u8]) -> u64 {
    text.iter().fold(0, |all, &byte| all | MARKS[byte as usize])
}

impl PathSummary {
    /// `marks` are those of `path`.
    #[inline]
    pub(super) fn of(path: &[u8], marks: u64) -> PathSummary {
        let head = first_bytes(path);
        PathSummary { head, marks }
    }
}

impl PatternSummary {
    /// `head` is what stands before the first wildcard, `marks` those of the whole pattern.
    #[inline]
    pub(super) fn of(head: &[u8], marks: u64) -> PatternSummary {
        // Every normal path begins with a slash: so much may be asked where nothing is.
        let head = if head.is_empty() { b"/" } else { head };
        PatternSummary {
            head: first_bytes(head),
            marks: marks & !(ODD | SPECIAL),
            beyond: (8 * HEAD.saturating_sub(head.len())) as u8,
        }
    }

    /// False only where the pattern does not match the path.
    #[inline]
    pub(super) fn may_match(&self, path: PathSummary) -> bool {
        ((self.head ^ path.head) << self.beyond) | (self.marks & !path.marks) == 0
    }
}

/// The first eight bytes; where there are fewer, zeros follow, which no pattern holds.
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

/// A letter or a digit of a path tells something, and a sign most of all; a slash is
/// everywhere. What is rare shares its bit.
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
