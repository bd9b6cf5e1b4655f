//! Finds the bytes at which parts of markup end: sixteen at once, where so many are left.

use memchr::{memchr, memchr2};
use wide::u8x16;

use crate::html::name::{MAX_EXACT_BYTES, Name};
use crate::text::is_space;

/// Bytes that are looked at at once.
pub(super) const WIDTH: usize = 16;
/// Most texts and values end within so many bytes, sooner than a long search begins.
const NEAR: usize = 2 * WIDTH;

/// The place of the first `<`, from `from` on.
#[inline]
pub(super) fn next_less_than(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let (Some(some), true) = (sixteen(bytes, at), at < from + NEAR) {
        if let Some(found) = first(equal(some, b'<')) {
            return Some(at + found);
        }
        at += WIDTH;
    }
    memchr(b'<', &bytes[at..]).map(|found| at + found)
}

/// The place of the first quotation mark `QUOTE` from `from` on, which ends a value, and whether a
/// `&` or NUL stands before it.
#[inline(always)]
pub(super) fn quoted_value_end<const QUOTE: u8>(
    bytes: &[u8],
    from: usize,
) -> Option<(usize, bool)> {
    let (mut at, mut encoded) = (from, 0);
    while let (Some(some), true) = (sixteen(bytes, at), at < from + 2 * NEAR) {
        let quotes = equal(some, QUOTE).to_bitmask();
        let found = (equal(some, b'&') | equal(some, 0)).to_bitmask();
        if quotes != 0 {
            let up_to_first = quotes ^ (quotes - 1);
            let end = at + quotes.trailing_zeros() as usize;
            return Some((end, (encoded | found & up_to_first) != 0));
        }
        encoded |= found;
        at += WIDTH;
    }
    let end = at + memchr(QUOTE, &bytes[at..])?;
    let is_encoded = encoded != 0 || memchr2(b'&', 0, &bytes[at..end]).is_some();
    Some((end, is_encoded))
}

/// The end of the name of a tag that begins at `from`, and that name.
#[inline(always)]
pub(super) fn tag_name(bytes: &[u8], from: usize) -> Option<(usize, Name)> {
    if let Some(first) = bytes.get(from..).and_then(|rest| rest.first_chunk()) {
        let some = u8x16::new(*first);
        let ends = up_to_space(some) | equal(some, b'/') | equal(some, b'>');
        let length = first_or_width(ends);
        // A control character may have been found, which is a part of the name.
        if (1..=MAX_EXACT_BYTES).contains(&length)
            && is_one_of(first[length], SPACE | SLASH | END)
            && let Some(eight) = first.first_chunk()
        {
            return Some((from + length, Name::beginning(*eight, length)));
        }
    }
    long_tag_name(bytes, from)
}

#[cold]
fn long_tag_name(bytes: &[u8], from: usize) -> Option<(usize, Name)> {
    let end = position(bytes, from, SPACE | SLASH | END)?;
    Some((end, Name::at(bytes, from, end)))
}

/// The end of the name of an attribute, from `from` on.
#[inline(always)]
pub(super) fn attribute_name_end(bytes: &[u8], from: usize) -> Option<usize> {
    const ENDS: u8 = SPACE | SLASH | END | EQUALS;
    if let Some(some) = sixteen(bytes, from) {
        let ends = up_to_space(some) | equal(some, b'/') | equal(some, b'>');
        let end = from + first_or_width(ends | equal(some, b'='));
        // A control character may have been found, which is a part of the name.
        if bytes.get(end).is_some_and(|byte| is_one_of(*byte, ENDS)) {
            return Some(end);
        }
    }
    position(bytes, from, ENDS)
}

/// The end of a value without quotation marks, from `from` on.
#[inline]
pub(super) fn bare_value_end(bytes: &[u8], from: usize) -> Option<usize> {
    position(bytes, from, SPACE | END)
}

/// The place of the first byte that is no space, from `from` on.
#[inline(always)]
pub(super) fn behind_spaces(bytes: &[u8], from: usize) -> Option<usize> {
    // None or one stand at most places, for which nothing is searched.
    for at in [from, from + 1] {
        if !is_one_of(*bytes.get(at)?, SPACE) {
            return Some(at);
        }
    }
    behind_many_spaces(bytes, from)
}

#[cold]
fn behind_many_spaces(bytes: &[u8], from: usize) -> Option<usize> {
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

/// Finds the bytes that are a space or a control character.
#[inline]
fn up_to_space(bytes: u8x16) -> u8x16 {
    bytes.min(u8x16::splat(b' ')).simd_eq(bytes)
}

/// The place of the first of sixteen bytes that was found.
#[inline]
fn first(found: u8x16) -> Option<usize> {
    match found.to_bitmask() {
        0 => None,
        places => Some(places.trailing_zeros() as usize),
    }
}

/// The place of the first of sixteen bytes that was found, or sixteen.
#[inline]
fn first_or_width(found: u8x16) -> usize {
    (found.to_bitmask() | 1 << WIDTH).trailing_zeros() as usize
}

/// The place of the first byte of some kinds, from `from` on.
#[cold]
fn position(bytes: &[u8], from: usize, kinds: u8) -> Option<usize> {
    let mut rest = bytes.get(from..)?.iter();
    Some(from + rest.position(|byte| is_one_of(*byte, kinds))?)
}

/// Kinds of bytes at which parts of a tag end.
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

    /// A search that is given where to begin.
    type Search = fn(&[u8], usize) -> Option<usize>;

    #[test]
    fn ours_each_search_finds_the_first_of_its_bytes_wherever_it_stands() {
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
                    // Whatever stands before it and behind it: little, or more than a search at
                    // once takes.
                    for (from, behind) in [(0, 0), (3, 0), (0, 40), (3, 40)] {
                        let mut bytes = vec![b'x'; from + place];
                        bytes.push(byte);
                        bytes.resize(bytes.len() + behind, b'y');
                        let found = is_wanted.then_some(from + place);
                        assert_eq!(search(&bytes, from), found, "{byte} at {place}");
                    }
                }
                // The first of two counts, whatever kind of byte the one before it is.
                let text = [b"abc", &[byte][..], b"de", &wanted[..1], b"f"].concat();
                let found = if is_wanted { 3 } else { 6 };
                assert_eq!(search(&text, 0), Some(found), "{byte}");
            }
        }
    }

    #[test]
    fn ours_a_value_is_encoded_where_a_reference_or_a_nul_stands_before_its_end() {
        for (mark, is_mark) in [(b'&', true), (0, true), (b'\'', false)] {
            for place in 0..150 {
                let mut bytes = vec![b'x'; 150];
                bytes[100] = b'"';
                if place != 100 {
                    bytes[place] = mark;
                }
                let found = quoted_value_end::<b'"'>(&bytes, 0);
                assert_eq!(
                    found,
                    Some((100, is_mark && place < 100)),
                    "{mark} at {place}"
                );
            }
        }
    }
}
