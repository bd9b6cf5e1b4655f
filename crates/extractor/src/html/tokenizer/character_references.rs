//! Character references (HTML Standard 13.2.5.72 to 13.2.5.80).

use std::sync::LazyLock;

use encoding_rs::WINDOWS_1252;
use memchr::{memchr, memchr2};

/// The place of a character reference. In an attribute value, some references are kept as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharacterReferenceContext {
    Text,
    Value,
}

/// Passes `raw` in parts to `part`, with references decoded and each NUL replaced by `nul`.
pub(super) fn decode(
    raw: &str,
    place: CharacterReferenceContext,
    nul: &str,
    mut part: impl FnMut(&str),
) {
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

/// Returns the length of the character reference at the start of `text`, and the one or two
/// characters that it stands for. Returns no characters if the text isn't a reference.
fn reference(text: &str, place: CharacterReferenceContext) -> (usize, [Option<char>; 2]) {
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
        // Saturate instead of overflowing. All numbers near the maximum are invalid.
        number = number.saturating_mul(radix).saturating_add(digit);
    }
    if count == 0 {
        return (marks, [None, None]);
    }
    let end = marks + count;
    let semicolon = usize::from(text.as_bytes().get(end) == Some(&b';'));
    let character = match number {
        // Numbers in this range are control characters. Authors who write them mean bytes of
        // windows-1252, and the standard decodes them in this way.
        0x80..=0x9f => {
            let byte = [number as u8];
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(&byte);
            text.chars().next()
        }
        number => char::from_u32(number).filter(|c| *c != '\0'),
    };
    (
        end + semicolon,
        [Some(character.unwrap_or('\u{fffd}')), None],
    )
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

/// The name of a character reference without `&`, and the one or two characters that it stands for.
type NamedReference = (&'static str, [Option<char>; 2]);

/// The named character references (HTML Standard 13.5), sorted by the bytes of the names. The file
/// has the characters as hexadecimal numbers.
static NAMED: LazyLock<Vec<NamedReference>> = LazyLock::new(|| {
    let rows = include_str!("named_references.tsv").lines();
    let parsed = rows.map(|row| {
        let mut columns = row.split('\t');
        let name = columns.next().unwrap_or_default();
        let mut character = || {
            let number = u32::from_str_radix(columns.next()?, 16).ok()?;
            char::from_u32(number)
        };
        (name, [character(), character()])
    });
    parsed.collect()
});

/// Returns the longest name of the table at the start of `text`, and its characters.
fn longest_name(text: &str) -> Option<NamedReference> {
    // The rows whose names begin with the bytes of `text` compared so far.
    let mut rows = NAMED.as_slice();
    let mut longest = None;
    for (at, byte) in text.bytes().enumerate() {
        // Rows whose names have no byte at this index sort before all others.
        let of = |(name, _): &NamedReference| name.as_bytes().get(at).copied();
        let first = rows.partition_point(|row| of(row) < Some(byte));
        let last = rows.partition_point(|row| of(row) <= Some(byte));
        rows = &rows[first..last];
        match rows.first() {
            Some(row) if row.0.len() == at + 1 => longest = Some(*row),
            Some(_) => {}
            None => break,
        }
    }
    longest
}

fn named(text: &str, place: CharacterReferenceContext) -> (usize, [Option<char>; 2]) {
    let name = &text[1..];
    // A frequent name needs no look-up in the table. No longer name can match, because a frequent
    // name ends with a semicolon.
    let frequent = FREQUENT.iter().find(|(entity, _)| name.starts_with(entity));
    if let Some((entity, character)) = frequent {
        return (1 + entity.len(), [Some(*character), None]);
    }
    let Some((found, characters)) = longest_name(name) else {
        return (1, [None, None]);
    };
    let end = found.len();
    let next = name.as_bytes().get(end);
    let continues = next.is_some_and(|next| *next == b'=' || next.is_ascii_alphanumeric());
    if place == CharacterReferenceContext::Value && continues && !name[..end].ends_with(';') {
        return (1 + end, [None, None]);
    }
    (1 + end, characters)
}

#[cfg(test)]
mod tests {
    use web_atoms::{C1_REPLACEMENTS, NAMED_ENTITIES};

    use super::{NAMED, longest_name, numeric};

    #[test]
    fn whatwg_html_13_5_names_are_those_of_html5ever() {
        let others = NAMED_ENTITIES
            .entries()
            .filter(|(_, (first, _))| *first != 0);
        let mut count = 0;
        for (name, (first, second)) in others {
            let second = char::from_u32(*second).filter(|c| *c != '\0');
            let expected = Some((*name, [char::from_u32(*first), second]));
            assert_eq!(longest_name(name), expected);
            count += 1;
        }
        assert_eq!(NAMED.len(), count);
    }

    #[test]
    fn whatwg_html_13_2_5_80_c1_controls_are_replaced() {
        for (number, replacement) in (0x80_u32..).zip(C1_REPLACEMENTS) {
            let expected = replacement.or(char::from_u32(number));
            assert_eq!(numeric(&format!("&#{number};")).1, [expected, None]);
        }
    }
}
