//! Finds where texts, names and values in markup end. Examines sixteen bytes at a time, as long as
//! that many bytes are left.

use memchr::{memchr, memchr2};
use wide::u8x16;

use crate::collapsed_text_builder::is_space;
use crate::html::element_name::{ElementName, MAX_EXACT_BYTES};

/// Number of bytes to examine at a time.
pub(super) const WIDTH: usize = 16;
/// Number of bytes within which most texts and values end. Longer ones are searched with `memchr`,
/// which is slow to start but faster per byte.
const NEAR: usize = 2 * WIDTH;

/// Returns the offset of the first `<` at or after `from`.
#[inline]
pub(super) fn next_less_than(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let (Some(chunk), true) = (sixteen(bytes, at), at < from + NEAR) {
        if let Some(place) = first(equal(chunk, b'<')) {
            return Some(at + place);
        }
        at += WIDTH;
    }
    memchr(b'<', &bytes[at..]).map(|place| at + place)
}

/// Returns the offset of the end of a quoted value: the first quotation mark `QUOTE` at or after
/// `from`. Also returns whether the value contains a `&` or NUL.
#[inline(always)]
pub(super) fn quoted_value_end<const QUOTE: u8>(
    bytes: &[u8],
    from: usize,
) -> Option<(usize, bool)> {
    let (mut at, mut encoded) = (from, 0);
    while let (Some(chunk), true) = (sixteen(bytes, at), at < from + 2 * NEAR) {
        let quotes = equal(chunk, QUOTE).to_bitmask();
        let marks = (equal(chunk, b'&') | equal(chunk, 0)).to_bitmask();
        if quotes != 0 {
            let up_to_first = quotes ^ (quotes - 1);
            let end = at + quotes.trailing_zeros() as usize;
            return Some((end, (encoded | marks & up_to_first) != 0));
        }
        encoded |= marks;
        at += WIDTH;
    }
    let end = at + memchr(QUOTE, &bytes[at..])?;
    let is_encoded = encoded != 0 || memchr2(b'&', 0, &bytes[at..end]).is_some();
    Some((end, is_encoded))
}

/// Returns the end of the tag name that begins at `from`, and the name itself.
#[inline(always)]
pub(super) fn tag_name(bytes: &[u8], from: usize) -> Option<(usize, ElementName)> {
    if let Some(first) = bytes.get(from..).and_then(|rest| rest.first_chunk()) {
        let chunk = u8x16::new(*first);
        let ends = up_to_space(chunk) | equal(chunk, b'/') | equal(chunk, b'>');
        let length = first_or_width(ends);
        // The mask also has control characters, which don't end a name. So check the byte itself.
        if (1..=MAX_EXACT_BYTES).contains(&length)
            && is_one_of(first[length], SPACE | SLASH | END)
            && let Some(eight) = first.first_chunk()
        {
            return Some((from + length, ElementName::beginning(*eight, length)));
        }
    }
    long_tag_name(bytes, from)
}

#[cold]
fn long_tag_name(bytes: &[u8], from: usize) -> Option<(usize, ElementName)> {
    let end = position(bytes, from, SPACE | SLASH | END)?;
    Some((end, ElementName::at(bytes, from, end)))
}

/// Returns the end of an attribute name, searching from `from` on.
#[inline(always)]
pub(super) fn attribute_name_end(bytes: &[u8], from: usize) -> Option<usize> {
    const ENDS: u8 = SPACE | SLASH | END | EQUALS;
    if let Some(chunk) = sixteen(bytes, from) {
        let ends = up_to_space(chunk) | equal(chunk, b'/') | equal(chunk, b'>');
        let end = from + first_or_width(ends | equal(chunk, b'='));
        // The mask also has control characters, which don't end a name. So check the byte itself.
        if bytes.get(end).is_some_and(|byte| is_one_of(*byte, ENDS)) {
            return Some(end);
        }
    }
    position(bytes, from, ENDS)
}

/// Returns the end of the unquoted value that begins at `from`.
#[inline]
pub(super) fn bare_value_end(bytes: &[u8], from: usize) -> Option<usize> {
    position(bytes, from, SPACE | END)
}

/// Returns the offset of the first byte at or after `from` that is not white space.
#[inline(always)]
pub(super) fn after_spaces(bytes: &[u8], from: usize) -> Option<usize> {
    // Usually there is at most one space, so try two bytes before a search.
    for at in [from, from + 1] {
        if !is_one_of(*bytes.get(at)?, SPACE) {
            return Some(at);
        }
    }
    after_many_spaces(bytes, from)
}

#[cold]
fn after_many_spaces(bytes: &[u8], from: usize) -> Option<usize> {
    let mut rest = bytes[from..].iter();
    let spaces = rest.position(|byte| !is_one_of(*byte, SPACE))?;
    Some(from + spaces)
}

#[inline]
pub(super) fn sixteen(bytes: &[u8], at: usize) -> Option<u8x16> {
    bytes.get(at..)?.first_chunk().copied().map(u8x16::new)
}

#[inline]
pub(super) fn equal(bytes: u8x16, byte: u8) -> u8x16 {
    bytes.simd_eq(u8x16::splat(byte))
}

/// Returns a mask of the bytes that are a space or a control character.
#[inline]
fn up_to_space(bytes: u8x16) -> u8x16 {
    bytes.min(u8x16::splat(b' ')).simd_eq(bytes)
}

/// Returns the index of the first byte that is set in a mask. `None` if there is none.
#[inline]
fn first(mask: u8x16) -> Option<usize> {
    match mask.to_bitmask() {
        0 => None,
        places => Some(places.trailing_zeros() as usize),
    }
}

/// Returns the index of the first byte that is set in a mask, or sixteen if there is none.
#[inline]
fn first_or_width(mask: u8x16) -> usize {
    (mask.to_bitmask() | 1 << WIDTH).trailing_zeros() as usize
}

/// Returns the offset of the first byte at or after `from` that has any of the kinds in `kinds`.
#[cold]
fn position(bytes: &[u8], from: usize, kinds: u8) -> Option<usize> {
    let mut rest = bytes.get(from..)?.iter();
    Some(from + rest.position(|byte| is_one_of(*byte, kinds))?)
}

/// The kinds of bytes that end parts of a tag, one bit each.
const SPACE: u8 = 1;
const SLASH: u8 = 2;
const END: u8 = 4;
const EQUALS: u8 = 8;

static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'/' => SLASH,
            b'>' => END,
            b'=' => EQUALS,
            byte if is_space(byte) => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

#[inline]
fn is_one_of(byte: u8, kinds: u8) -> bool {
    KINDS[usize::from(byte)] & kinds != 0
}

#[cfg(test)]
mod tests {
    use super::{attribute_name_end, bare_value_end, next_less_than, quoted_value_end, tag_name};

    /// A function that searches bytes from an offset on.
    type Search = fn(&[u8], usize) -> Option<usize>;

    #[test]
    fn each_search_finds_the_first_of_its_bytes_at_any_place() {
        let searches: [(Search, &[u8]); 5] = [
            (next_less_than, b"<"),
            (
                |bytes, from| Some(quoted_value_end::<b'"'>(bytes, from)?.0),
                b"\"",
            ),
            (
                |bytes, from| Some(tag_name(bytes, from)?.0),
                b" \t\n\x0c\r/>",
            ),
            (attribute_name_end, b" \t\n\x0c\r/>="),
            (bare_value_end, b" \t\n\x0c\r>"),
        ];
        for (search, wanted) in searches {
            for byte in 0..=255 {
                let is_wanted = wanted.contains(&byte);
                for place in 0..70 {
                    // Test with less and with more than sixteen bytes before and after the wanted
                    // byte.
                    for (from, after) in [(0, 0), (3, 0), (0, 40), (3, 40)] {
                        let mut bytes = vec![b'x'; from + place];
                        bytes.push(byte);
                        bytes.resize(bytes.len() + after, b'y');
                        let expected = is_wanted.then_some(from + place);
                        assert_eq!(search(&bytes, from), expected, "{byte} at {place}");
                    }
                }
                // `byte` is found if it is wanted; if not, it must not hide the wanted byte after
                // it.
                let text = [b"abc", &[byte][..], b"de", &wanted[..1], b"f"].concat();
                let expected = if is_wanted { 3 } else { 6 };
                assert_eq!(search(&text, 0), Some(expected), "{byte}");
            }
        }
    }

    #[test]
    fn a_value_is_encoded_if_it_contains_a_reference_or_a_nul() {
        for (mark, is_mark) in [(b'&', true), (0, true), (b'\'', false)] {
            for place in 0..150 {
                let mut bytes = vec![b'x'; 150];
                bytes[100] = b'"';
                if place != 100 {
                    bytes[place] = mark;
                }
                let actual = quoted_value_end::<b'"'>(&bytes, 0);
                assert_eq!(
                    actual,
                    Some((100, is_mark && place < 100)),
                    "{mark} at {place}"
                );
            }
        }
    }
}
