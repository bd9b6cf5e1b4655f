//! Character references (HTML Standard 13.2.5.72 to 13.2.5.80).

use memchr::{memchr, memchr2};
use web_atoms::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// The place of a character reference. In an attribute value, some references are kept as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    Value,
}

/// Passes `raw` in parts to `part`, with references decoded and each NUL replaced by `nul`.
pub(super) fn decode(raw: &str, place: Place, nul: &str, mut part: impl FnMut(&str)) {
    let mut rest = raw;
    while let Some(at) = memchr2(b'&', 0, rest.as_bytes()) {
        let (before, from_mark) = (&rest[..at], &rest[at..]);
        if !before.is_empty() {
            part(before);
        }
        if let Some(after_nul) = from_mark.strip_prefix('\0') {
            if !nul.is_empty() {
                part(nul);
            }
            rest = after_nul;
            continue;
        }
        let (bytes, characters) = reference(from_mark, place);
        let mut buffer = [0; 4];
        match characters {
            [None, _] => part(&from_mark[..bytes]),
            characters => characters
                .iter()
                .flatten()
                .for_each(|c| part(c.encode_utf8(&mut buffer))),
        }
        rest = &from_mark[bytes..];
    }
    if !rest.is_empty() {
        part(rest);
    }
}

/// Passes `raw` in parts to `part`, with each NUL replaced by `nul`.
pub(super) fn without_nul(raw: &str, nul: &str, mut part: impl FnMut(&str)) {
    let mut rest = raw;
    while let Some(at) = memchr(0, rest.as_bytes()) {
        if at > 0 {
            part(&rest[..at]);
        }
        if !nul.is_empty() {
            part(nul);
        }
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        part(rest);
    }
}

/// Returns the length of the character reference at the start of `text`, and the characters that it
/// stands for. There are no characters if the text isn't a reference.
fn reference(text: &str, place: Place) -> (usize, [Option<char>; 2]) {
    match text.as_bytes() {
        [_, b'#', ..] => numeric(text),
        [_, first, ..] if first.is_ascii_alphanumeric() => named(text, place),
        _ => (1, [None, None]),
    }
}

fn numeric(text: &str) -> (usize, [Option<char>; 2]) {
    let (marks, radix) = match text.as_bytes() {
        [_, _, b'x' | b'X', ..] => (3, 16),
        _ => (2, 10),
    };
    let digits = text[marks..].bytes();
    let digits = digits.map_while(|byte| char::from(byte).to_digit(radix));
    let (mut count, mut number) = (0, 0_u32);
    for digit in digits {
        count += 1;
        // Stop at the maximum instead of overflowing: numbers that large are all invalid.
        number = number.saturating_mul(radix).saturating_add(digit);
    }
    if count == 0 {
        return (marks, [None, None]);
    }
    let end = marks + count;
    let semicolon = usize::from(text.as_bytes().get(end) == Some(&b';'));
    let replaced = number
        .checked_sub(0x80)
        .and_then(|place| C1_REPLACEMENTS.get(place as usize).copied().flatten());
    let character = char::from_u32(number).filter(|c| *c != '\0');
    let character = replaced.or(character).unwrap_or('\u{fffd}');
    (end + semicolon, [Some(character), None])
}

/// The most frequent character references, which need no look-up in the table.
const FREQUENT: [(&str, char); 6] = [
    ("nbsp;", '\u{a0}'),
    ("lt;", '<'),
    ("gt;", '>'),
    ("amp;", '&'),
    ("quot;", '"'),
    ("copy;", '\u{a9}'),
];

fn named(text: &str, place: Place) -> (usize, [Option<char>; 2]) {
    let name = &text[1..];
    // No frequent name is the beginning of a longer name in the table, because each of them ends
    // with a semicolon.
    let frequent = FREQUENT.iter().find(|(entity, _)| name.starts_with(entity));
    if let Some((entity, character)) = frequent {
        return (1 + entity.len(), [Some(*character), None]);
    }
    let mut longest = None;
    let mut end = 0;
    for byte in name.bytes() {
        if !byte.is_ascii_alphanumeric() && byte != b';' {
            break;
        }
        end += 1;
        // End the search at the first string that the table lacks, because the table contains all
        // prefixes of all names.
        match NAMED_ENTITIES.get(&name[..end]) {
            None => break,
            Some((0, _)) => {}
            Some(characters) => longest = Some((end, *characters)),
        }
    }
    let Some((end, (first, second))) = longest else {
        return (1, [None, None]);
    };
    let next = name.as_bytes().get(end);
    let continues = next.is_some_and(|next| *next == b'=' || next.is_ascii_alphanumeric());
    if place == Place::Value && continues && !name[..end].ends_with(';') {
        return (1 + end, [None, None]);
    }
    let second = char::from_u32(second).filter(|c| *c != '\0');
    (1 + end, [char::from_u32(first), second])
}
