//! Paths and path patterns in normal form, and how to match them.
//!
//! RFC 9309 section 2.2.2 compares bytes after normalising the percent-encoding on both sides: hex
//! digits are upper-cased, unreserved bytes decoded, bytes outside ASCII encoded, and reserved ones
//! left unchanged (`%2F` is not `/`). Two refinements: `%2A` and `%24` are the literal `*` and `$`
//! (section 2.2.3, figure 6), and ASCII bytes that are not allowed in a URI (blanks, controls,
//! `"<>\^{|}` and the backtick) are encoded, as they are in parsed URLs. A `%` that does not begin
//! an escape is an ordinary byte.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::prefilter::{ODD, PathByteSummary, SPECIAL, marks};

/// Represents `*` in a normal pattern. Never occurs in a normal path.
pub(super) const WILD: u8 = 0;

/// The properties of a pattern besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PatternProperties {
    /// Whether the pattern contains at least one [`WILD`].
    pub(super) wild: bool,
    /// Whether the pattern ended in `$`, so that it must match the path up to the path's end.
    pub(super) anchored: bool,
    /// Length of the pattern in bytes, including `*` and `$`. The longest match wins.
    pub(super) bytes: u32,
}

/// Whether `*` and `$` have a special meaning in a pattern. In the 1994 standard they are literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpecialCharacters {
    Meant,
    Literal,
}

/// Returns whether a pattern is in normal form already. `marks` is the bit mask of the pattern's
/// bytes.
#[inline]
pub(super) fn is_normal(marks: u64) -> bool {
    marks & (ODD | SPECIAL) == 0
}

/// Appends `value` in normal form to `out`.
pub(super) fn push_pattern(
    value: &[u8],
    specials: SpecialCharacters,
    out: &mut Vec<u8>,
) -> PatternProperties {
    let mut shape = PatternProperties::default();
    let is_special = specials == SpecialCharacters::Meant;
    let mut rest = value;
    if is_special && let [body @ .., b'$'] = rest {
        (rest, shape.anchored, shape.bytes) = (body, true, 1);
    }
    let begin = out.len();
    loop {
        let plain = rest
            .iter()
            .position(|&b| CLASS[b as usize] != ByteClass::Plain);
        let (run, behind) = rest.split_at(plain.unwrap_or(rest.len()));
        out.extend_from_slice(run);
        shape.bytes += bytes(run.len());
        rest = behind;
        let Some(&byte) = rest.first() else {
            return shape;
        };
        if is_special && byte == b'*' {
            shape.bytes += 1;
            shape.wild = true;
            // Several wildcards in a row match the same texts as one, so keep only one.
            if out[begin..].last() != Some(&WILD) {
                out.push(WILD);
            }
            rest = &rest[1..];
            continue;
        }
        let counted = byte < 0x80 && byte != b'%';
        let before = out.len();
        rest = push_byte(rest, out);
        let pushed = bytes(out.len() - before);
        shape.bytes += match out[before] {
            _ if counted => 1,
            b'*' | b'$' => 3,
            _ => pushed,
        };
    }
}

/// A path in normal form.
#[derive(Clone, Debug)]
pub(super) struct NormalizedPath<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) glance: PathByteSummary,
}

impl NormalizedPath<'_> {
    /// Normalises a path. Adds a leading `/` if it is missing, and cuts off the fragment.
    #[inline]
    pub(super) fn of(path: &str) -> NormalizedPath<'_> {
        let bytes = path.as_bytes();
        let marks = marks(bytes);
        match bytes.first() == Some(&b'/') && marks & ODD == 0 {
            true => NormalizedPath {
                glance: PathByteSummary::of(bytes, marks),
                bytes: Cow::Borrowed(bytes),
            },
            false => NormalizedPath::odd(bytes),
        }
    }

    #[cold]
    fn odd(bytes: &[u8]) -> NormalizedPath<'static> {
        let bytes = odd_path(bytes);
        NormalizedPath {
            glance: PathByteSummary::of(&bytes, marks(&bytes)),
            bytes: Cow::Owned(bytes),
        }
    }
}

fn odd_path(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.split(|&b| b == b'#').next().unwrap_or_default();
    let mut out = Vec::with_capacity(rest.len() + 16);
    if rest.first() != Some(&b'/') {
        out.push(b'/');
    }
    while !rest.is_empty() {
        rest = push_byte(rest, &mut out);
    }
    out
}

/// Moves one byte or escape from the front of `text` to `out`, and returns the rest.
fn push_byte<'a>(text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let byte = text[0];
    match CLASS[byte as usize] {
        ByteClass::Plain | ByteClass::Special => out.push(byte),
        ByteClass::Encoded => push_escape(byte, out),
        ByteClass::Percent => {
            let Some(value) = escaped(text) else {
                out.push(b'%');
                return &text[1..];
            };
            match value {
                b'*' | b'$' => out.push(value),
                _ if is_unreserved(value) => out.push(value),
                _ => push_escape(value, out),
            }
            return &text[3..];
        }
    }
    &text[1..]
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
}

fn escaped(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

fn bytes(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Returns whether `pattern` matches a prefix of `path` (RFC 9309 section 2.2.2).
///
/// Each part between wildcards is placed at its leftmost match. If the parts fit anywhere, they
/// also fit at their leftmost matches. So no other positions are tried, and the cost is linear in
/// the length of the path.
#[inline]
pub(super) fn matches(pattern: &[u8], shape: PatternProperties, path: &[u8]) -> bool {
    if !shape.wild {
        return match shape.anchored {
            true => pattern == path,
            false => path.starts_with(pattern),
        };
    }
    matches_wild(pattern, shape.anchored, path)
}

fn matches_wild(pattern: &[u8], anchored: bool, path: &[u8]) -> bool {
    // Compare the last byte first, which rules out most anchored patterns.
    let end = pattern.last();
    if anchored && end != Some(&WILD) && end != path.last() {
        return false;
    }
    let mut parts = pattern.split(|&b| b == WILD);
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let last = match anchored {
        true => parts.next_back().unwrap_or_default(),
        false => b"",
    };
    for part in parts {
        match find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    !anchored || rest.ends_with(last)
}

/// Returns the first occurrence of `needle`. Tries a few positions one by one, which costs less
/// than building a searcher.
pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    const PLAINLY: usize = 8;
    let Some(&first) = needle.first() else {
        return Some(0);
    };
    let places = haystack.len().checked_sub(needle.len())? + 1;
    let mut from = 0;
    for _ in 0..PLAINLY {
        let at = from + memchr(first, &haystack[from..places])?;
        if haystack[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    memmem::find(&haystack[from..], needle).map(|at| from + at)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    /// An unreserved or reserved byte, which stays as it is.
    Plain,
    /// `*` or `$`: plain in a path, special in a pattern.
    Special,
    /// A `%`, which may begin an escape.
    Percent,
    /// A byte that must be percent-encoded in normal form.
    Encoded,
}

const CLASS: [ByteClass; 256] = {
    let mut class = [ByteClass::Encoded; 256];
    let mut byte = 0x21;
    while byte < 0x7F {
        class[byte as usize] = match byte {
            b'*' | b'$' => ByteClass::Special,
            b'%' => ByteClass::Percent,
            b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                ByteClass::Encoded
            }
            _ => ByteClass::Plain,
        };
        byte += 1;
    }
    class
};

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::{
        ByteClass, CLASS, NormalizedPath, ODD, PatternProperties, SPECIAL, SpecialCharacters,
        marks, matches, push_pattern,
    };

    fn check(pattern: &str, path: &str, expect: bool) {
        let mut bytes = Vec::new();
        let shape = push_pattern(pattern.as_bytes(), SpecialCharacters::Meant, &mut bytes);
        assert_eq!(
            matches(&bytes, shape, &NormalizedPath::of(path).bytes),
            expect,
            "{pattern} {path}"
        );
    }

    #[test]
    fn rfc9309_2_2_3_wildcards_and_end() {
        check("/a*b$", "/abb", true);
        check("/*.cgi$", "/a.cgi.cgi", true);
        check("/a*a$", "/a", false);
        check("/*ab*ab$", "/ab", false);
        check("/*ab*ab$", "/xababab", true);
        check("*$", "/", true);
        check("/a$b", "/a", false);
        check("/a$b", "/a$bc", true);
        check("/a$*", "/a$x", true);
        check("$", "/", false);
        check("/a**b", "/axb", true);
        check("/a*", "/a", true);
    }

    #[test]
    fn rfc9309_2_2_2_percent_encoding_on_both_sides() {
        check("/a%2fb", "/a%2Fb", true);
        check("/a%2Fb", "/a/b", false);
        check("/%7eann", "/~ann/x", true);
        check("/~ann", "/%7Eann/x", true);
        check("/ツ", "/%e3%83%84", true);
        check("/%E3%83%84", "/ツ", true);
        check("/a%2Ab", "/a*b", true);
        check("/a%2Ab", "/axb", false);
        check("/f-%24", "/f-$", true);
        check("/a$b", "/a%24b", true);
        check("/a b", "/a%20b", true);
        check("/a<d", "/a%3Cd", true);
        check("/a^b", "/a%5Eb", true);
        check("/a%5eb", "/a^b", true);
        check("/a\u{7f}", "/a%7f", true);
        check("/a~", "/a%7e", true);
        check("/a!", "/a%21", false);
        check("/a%zz", "/a%zz", true);
        check("/a%2520", "/a%20", false);
    }

    #[test]
    fn marks_detect_normal_form_and_distinguish_nearly_all_bytes() {
        for byte in 0..=u8::MAX {
            let (class, mark) = (CLASS[byte as usize], marks(&[byte]));
            let is_odd = matches!(class, ByteClass::Encoded | ByteClass::Percent);
            assert_eq!(mark & ODD != 0, is_odd, "{byte}");
            assert_eq!(mark & SPECIAL != 0, class == ByteClass::Special, "{byte}");
        }
        // Use only every second capital letter and no rare punctuation, because some capitals share
        // a bit, and so do some punctuation marks.
        let capitals = (b'A'..=b'Z').step_by(2);
        let bytes = (b'a'..=b'z').chain(b'0'..=b'9').chain(capitals);
        let mut all: Vec<u64> = bytes
            .chain(*b".?=&-_+:;,!")
            .map(|byte| marks(&[byte]))
            .collect();
        assert!(all.iter().all(|mark| mark.count_ones() == 1));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert_eq!((marks(b"B"), marks(b"/")), (marks(b"A"), 0));
    }

    #[test]
    fn rfc9309_2_2_2_bytes_are_counted_in_normal_form() {
        let shape =
            |pattern: &str| push_pattern(pattern.as_bytes(), SpecialCharacters::Meant, &mut vec![]);
        assert_eq!(shape("/ツ").bytes, 10);
        assert_eq!(shape("/%7E").bytes, 2);
        assert_eq!(shape("/%2f").bytes, 4);
        assert_eq!(shape("/**a$").bytes, 5);
        assert_eq!(shape("/a$b|c d").bytes, 8);
        assert_eq!(shape("/%24").bytes, 4);
        let literal = push_pattern(b"/a*$", SpecialCharacters::Literal, &mut vec![]);
        let expect = PatternProperties {
            wild: false,
            anchored: false,
            bytes: 4,
        };
        assert_eq!(literal, expect);
    }
}
