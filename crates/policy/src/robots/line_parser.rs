//! Splits a robots.txt into lines and fields, byte by byte (RFC 9309 section 2.2).

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3, memrchr2};

/// Maximum bytes of a robots.txt to read after decoding. The line that the limit cuts is dropped.
/// RFC 9309 section 2.5 requires at least 500 KiB.
/// Beyond the limit: ignored (RFC 9309 section 2.5).
pub const MAX_ROBOTS_BYTES: usize = 512 * 1024;

/// The part of a file that is parsed, converted from UTF-16 if necessary. Invalid UTF-8 is kept.
#[derive(PartialEq, Eq)]
pub(crate) struct RobotsFileBody<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Whether the file was longer than [`MAX_ROBOTS_BYTES`].
    pub(crate) cut: bool,
    /// Whether the file had a UTF-16 byte order mark and was converted to UTF-8.
    pub(crate) bridged: bool,
}

impl RobotsFileBody<'_> {
    /// Skips the byte order mark, and cuts at the limit. Converts UTF-16 if the text is plausible
    /// (RFC 9309 section 2.2.2 allows it).
    pub(crate) fn of(file: &[u8]) -> RobotsFileBody<'_> {
        let (bytes, bridged) = match file {
            [0xFF, 0xFE, rest @ ..] => marked(rest, u16::from_le_bytes),
            [0xFE, 0xFF, rest @ ..] => marked(rest, u16::from_be_bytes),
            _ => (Cow::Borrowed(skip_mark(file)), false),
        };
        let cut = bytes.len() > MAX_ROBOTS_BYTES;
        let bytes = match bytes {
            whole if !cut => whole,
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..end_of_whole_lines(bytes)]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(end_of_whole_lines(&bytes));
                Cow::Owned(bytes)
            }
        };
        RobotsFileBody {
            bytes,
            cut,
            bridged,
        }
    }

    pub(crate) fn into_owned(self) -> RobotsFileBody<'static> {
        RobotsFileBody {
            bytes: Cow::Owned(self.bytes.into_owned()),
            cut: self.cut,
            bridged: self.bridged,
        }
    }
}

/// Skips a byte order mark, even a partial one.
fn skip_mark(file: &[u8]) -> &[u8] {
    let mark = [0xEF, 0xBB, 0xBF];
    let skipped = mark.iter().zip(file).take_while(|(a, b)| a == b).count();
    &file[skipped..]
}

/// Decodes the text after a UTF-16 byte order mark, and returns whether it is UTF-16. A file in
/// ASCII or UTF-8 may have the mark by mistake. Decoding such a file would lose its rules, so
/// everything would be allowed.
fn marked(rest: &[u8], unit: fn([u8; 2]) -> u16) -> (Cow<'_, [u8]>, bool) {
    let decoded = from_utf16(rest, unit);
    let as_bytes = &rest[..rest.len().min(MAX_ROBOTS_BYTES)];
    match known_fields(&decoded) >= known_fields(as_bytes) {
        true => (Cow::Owned(decoded), true),
        false => (Cow::Borrowed(rest), false),
    }
}

/// Returns the number of lines with a known field.
fn known_fields(text: &[u8]) -> usize {
    let fields = RobotsLineIterator::of(text).filter_map(|line| field(line.text));
    fields
        .filter(|field| forgiving_key(field.key) != RobotsFieldName::Unknown)
        .count()
}

/// Decodes only the bytes that fit into the limit.
fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Vec<u8> {
    let units = bytes[..bytes.len().min(2 * (MAX_ROBOTS_BYTES + 1))]
        .chunks_exact(2)
        .map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect::<String>()
        .into_bytes()
}

fn end_of_whole_lines(bytes: &[u8]) -> usize {
    memrchr2(b'\n', b'\r', &bytes[..MAX_ROBOTS_BYTES]).map_or(0, |last| last + 1)
}

/// A line without its comment, trimmed.
#[derive(Clone, Copy)]
pub(crate) struct RobotsLine<'a> {
    /// The number of the line, from 1.
    pub(crate) number: u32,
    /// The text before `#`, without blanks at either end.
    pub(crate) text: &'a [u8],
    /// Whether the line has a comment.
    pub(crate) comment: bool,
    /// Whether the line contains a NUL. The text after a NUL is not read.
    pub(crate) nul: bool,
}

/// The lines of a body. Only CR, LF and CRLF end a line.
pub(crate) struct RobotsLineIterator<'a> {
    rest: &'a [u8],
    number: u32,
    any_nul: bool,
}

impl<'a> RobotsLineIterator<'a> {
    pub(crate) fn of(body: &'a [u8]) -> RobotsLineIterator<'a> {
        RobotsLineIterator {
            rest: body,
            number: 0,
            any_nul: memchr(0, body).is_some(),
        }
    }
}

impl<'a> Iterator for RobotsLineIterator<'a> {
    type Item = RobotsLine<'a>;

    #[inline]
    fn next(&mut self) -> Option<RobotsLine<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let rest = self.rest;
        let stop = memchr3(b'\n', b'\r', b'#', rest).unwrap_or(rest.len());
        let comment = rest.get(stop) == Some(&b'#');
        let end = match comment {
            true => memchr2(b'\n', b'\r', &rest[stop..]).map_or(rest.len(), |at| stop + at),
            false => stop,
        };
        let ended = match rest.get(end..end + 2) {
            Some(b"\r\n") => end + 2,
            _ => rest.len().min(end + 1),
        };
        self.rest = &rest[ended..];
        let mut text = &rest[..stop];
        let mut nul = false;
        if self.any_nul
            && let Some(at) = memchr(0, &rest[..end])
        {
            text = &text[..at.min(stop)];
            nul = true;
        }
        Some(RobotsLine {
            number: self.number,
            text: trim(text),
            comment,
            nul,
        })
    }
}

/// Trims blanks: SP, HT, VT and FF only.
#[inline]
pub(crate) fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0B | 0x0C)
}

/// A line's field name and value.
pub(crate) struct RobotsField<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Whether the name is followed by blanks instead of a colon.
    pub(crate) no_colon: bool,
}

/// Splits a line at the first colon. A line without a colon is split at its blanks if it consists
/// of exactly two words.
#[inline]
pub(crate) fn field(text: &[u8]) -> Option<RobotsField<'_>> {
    if let Some(colon) = colon(text) {
        return Some(RobotsField {
            key: trim(&text[..colon]),
            value: trim(&text[colon + 1..]),
            no_colon: false,
        });
    }
    let is_gap = |b: &u8| matches!(b, b' ' | b'\t');
    let gap = text.iter().position(is_gap)?;
    let value = trim(&text[gap..]);
    (!value.iter().any(is_gap)).then_some(RobotsField {
        key: &text[..gap],
        value,
        no_colon: true,
    })
}

/// Finds the colon. Looks at the first bytes one by one, because the colon is usually there, and
/// searches a longer text with `memchr`.
#[inline]
fn colon(text: &[u8]) -> Option<usize> {
    const NEAR: usize = 16;
    let (near, far) = text.split_at(text.len().min(NEAR));
    match near.iter().position(|&b| b == b':') {
        None if !far.is_empty() => memchr(b':', far).map(|at| NEAR + at),
        found => found,
    }
}

/// Parses a line of the form `Disallow: VALUE` or `Allow: VALUE` (ignoring case). Returns true for
/// `Allow`, and the value. Returns `None` for all other lines. This is faster than a search for the
/// colon, and half of all lines are of this form.
#[inline]
pub(crate) fn plain_rule(text: &[u8]) -> Option<(bool, &[u8])> {
    const LOWER: u64 = 0x2020_2020_2020_2020;
    const DISALLOW: u64 = u64::from_le_bytes(*b"disallow");
    const ALLOW: u64 = u64::from_le_bytes(*b"allow\0\0\0");
    const FIVE: u64 = (1 << (8 * 5)) - 1;
    // Setting the bits of `LOWER` lower-cases letters and turns no other byte into a letter.
    let word = u64::from_le_bytes(*text.first_chunk()?) | LOWER;
    if word == DISALLOW && text.get(8) == Some(&b':') {
        Some((false, trim(&text[9..])))
    } else if word & FIVE == ALLOW && text[5] == b':' {
        Some((true, trim(&text[6..])))
    } else {
        None
    }
}

/// The field names that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RobotsFieldName {
    UserAgent,
    Allow,
    Disallow,
    Sitemap,
    CrawlDelay,
    RequestRate,
    VisitTime,
    Host,
    CleanParam,
    ContentUsage,
    ContentSignal,
    License,
    Noindex,
    Unknown,
}

/// Parses a field name as Google's parser does, ignoring case. The four main fields are recognised
/// by their prefix, including six misspellings of `disallow`. All other fields are recognised by
/// their whole name.
#[inline]
pub(crate) fn forgiving_key(key: &[u8]) -> RobotsFieldName {
    let Some(first) = key.first() else {
        return RobotsFieldName::Unknown;
    };
    match first.to_ascii_lowercase() {
        b'd' if DISALLOW.iter().any(|name| begins(key, name)) => RobotsFieldName::Disallow,
        b'a' if begins(key, b"allow") => RobotsFieldName::Allow,
        b'u' if USER_AGENT.iter().any(|name| begins(key, name)) => RobotsFieldName::UserAgent,
        b's' if begins(key, b"sitemap") || begins(key, b"site-map") => RobotsFieldName::Sitemap,
        b'c' | b'r' | b'v' | b'h' | b'l' | b'n' => other_key(key),
        _ => RobotsFieldName::Unknown,
    }
}

/// Parses an exact field name, ignoring case.
pub(crate) fn exact_key(key: &[u8]) -> RobotsFieldName {
    let forgiven = forgiving_key(key);
    match spelling(forgiven) {
        Some(name) if !key.eq_ignore_ascii_case(name.as_bytes()) => RobotsFieldName::Unknown,
        _ => forgiven,
    }
}

/// Returns the correct spelling of a main field, in lower case. `None` for other fields.
pub(crate) fn spelling(key: RobotsFieldName) -> Option<&'static str> {
    match key {
        RobotsFieldName::UserAgent => Some("user-agent"),
        RobotsFieldName::Allow => Some("allow"),
        RobotsFieldName::Disallow => Some("disallow"),
        RobotsFieldName::Sitemap => Some("sitemap"),
        _ => None,
    }
}

const USER_AGENT: [&[u8]; 3] = [b"user-agent", b"useragent", b"user agent"];
const DISALLOW: [&[u8]; 6] = [
    b"disallow",
    b"dissallow",
    b"dissalow",
    b"disalow",
    b"diasllow",
    b"disallaw",
];
const OTHERS: [(&str, RobotsFieldName); 11] = [
    ("crawl-delay", RobotsFieldName::CrawlDelay),
    ("crawldelay", RobotsFieldName::CrawlDelay),
    ("request-rate", RobotsFieldName::RequestRate),
    ("visit-time", RobotsFieldName::VisitTime),
    ("host", RobotsFieldName::Host),
    ("clean-param", RobotsFieldName::CleanParam),
    ("content-usage", RobotsFieldName::ContentUsage),
    ("content-signal", RobotsFieldName::ContentSignal),
    ("content-signals", RobotsFieldName::ContentSignal),
    ("license", RobotsFieldName::License),
    ("noindex", RobotsFieldName::Noindex),
];

fn other_key(key: &[u8]) -> RobotsFieldName {
    OTHERS
        .iter()
        .find(|(name, _)| key.eq_ignore_ascii_case(name.as_bytes()))
        .map_or(RobotsFieldName::Unknown, |&(_, key)| key)
}

#[inline]
fn begins(key: &[u8], name: &[u8]) -> bool {
    key.len() >= name.len() && key[..name.len()].eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::{
        MAX_ROBOTS_BYTES, RobotsFieldName, RobotsFileBody, RobotsLineIterator, exact_key, field,
        forgiving_key, plain_rule,
    };

    fn texts(body: &[u8]) -> Vec<(u32, String)> {
        RobotsLineIterator::of(body)
            .map(|line| (line.number, String::from_utf8_lossy(line.text).into_owned()))
            .collect()
    }

    #[test]
    fn rfc9309_2_2_line_ends_are_cr_lf_and_crlf() {
        let lines = texts(b"a\rb\r\nc\n\r d \x0bx\x0b\x0c#e\n");
        let expect = [(1, "a"), (2, "b"), (3, "c"), (4, ""), (5, "d \u{b}x")];
        assert_eq!(lines, expect.map(|(n, t)| (n, t.to_owned())));
    }

    #[test]
    fn nul_ends_a_line_s_content() {
        assert_eq!(texts(b"a\0b\nc#\0\n")[0].1, "a");
        assert!(RobotsLineIterator::of(b"a\0b\nc#\0\n").all(|line| line.nul));
    }

    #[test]
    fn partial_byte_order_marks_vanish() {
        for (file, rest) in [
            (&b"\xEF\xBB\xBFa"[..], &b"a"[..]),
            (b"\xEF\xBBa", b"a"),
            (b"\xEFa", b"a"),
            (b"\xEF\xBF", b"\xBF"),
            (b"\xBB\xBF", b"\xBB\xBF"),
        ] {
            assert_eq!(&*RobotsFileBody::of(file).bytes, rest);
        }
    }

    #[test]
    fn a_utf_16_mark_is_used_only_if_plausible() {
        let rules = "User-agent: *\nDisallow: /\u{4e2d}\u{6587}\n";
        let utf16 = |unit: fn(u16) -> [u8; 2]| {
            let units = "\u{feff}".encode_utf16().chain(rules.encode_utf16());
            units.flat_map(unit).collect::<Vec<u8>>()
        };
        for file in [utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
            let body = RobotsFileBody::of(&file);
            assert_eq!((&*body.bytes, body.bridged), (rules.as_bytes(), true));
        }
        for mark in [b"\xFF\xFE", b"\xFE\xFF"] {
            let file = [mark, rules.as_bytes()].concat();
            let body = RobotsFileBody::of(&file);
            assert_eq!((&*body.bytes, body.bridged), (rules.as_bytes(), false));
        }
        // A file in UTF-8 after a comment in UTF-16.
        let mixed = [&b"\xFF\xFE#\0\n\0"[..], b"User-agent: *\nDisallow: /\n"].concat();
        assert!(!RobotsFileBody::of(&mixed).bridged);
        assert!(
            RobotsFileBody::of(b"\xFF\xFE#\0").bridged,
            "nothing speaks against it"
        );
    }

    #[test]
    fn rfc9309_2_5_the_line_that_the_limit_cuts_is_dropped() {
        let mut file = vec![b'#'; MAX_ROBOTS_BYTES - 5];
        file.extend_from_slice(b"\nabc\n");
        assert_eq!(RobotsFileBody::of(&file).bytes.len(), MAX_ROBOTS_BYTES);
        assert!(!RobotsFileBody::of(&file).cut);
        file.insert(0, b'#');
        assert_eq!(RobotsFileBody::of(&file).bytes.len(), MAX_ROBOTS_BYTES - 3);
        assert!(RobotsFileBody::of(&file).cut);
        assert_eq!(
            RobotsFileBody::of(&[b'a'; MAX_ROBOTS_BYTES + 1])
                .bytes
                .len(),
            0
        );
    }

    #[test]
    fn a_missing_colon_is_forgiven_between_two_words_only() {
        let split = |text: &'static str| {
            field(text.as_bytes()).map(|f| (f.key.to_vec(), f.value.to_vec(), f.no_colon))
        };
        assert_eq!(
            split("disallow \t /q"),
            Some((b"disallow".to_vec(), b"/q".to_vec(), true))
        );
        assert_eq!(
            split("disallow-everything: /q"),
            Some((b"disallow-everything".to_vec(), b"/q".to_vec(), false))
        );
        assert_eq!(split("disallow /q /r"), None);
        assert_eq!(split("disallow"), None);
        assert_eq!(
            split("disallow /q:x"),
            Some((b"disallow /q".to_vec(), b"x".to_vec(), false))
        );
    }

    #[test]
    fn plain_rules_are_read_without_a_search() {
        for text in ["Disallow: /a", "DISALLOW:/a", "disallow:\t/a "] {
            assert_eq!(plain_rule(text.as_bytes()), Some((false, &b"/a"[..])));
        }
        for text in ["Allow: /", "aLLOW:/ ", "allow:   /"] {
            assert_eq!(plain_rule(text.as_bytes()), Some((true, &b"/"[..])));
        }
        for text in [
            "Disallow /a",
            "Disallowed: /a",
            "Allowed: /",
            "Sitemap: /",
            "Allow:/",
        ] {
            assert_eq!(plain_rule(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn accepted_misspellings() {
        for (key, expect) in [
            ("USERAGENT", RobotsFieldName::UserAgent),
            ("user agent", RobotsFieldName::UserAgent),
            ("user_agent", RobotsFieldName::Unknown),
            ("Disallow-all", RobotsFieldName::Disallow),
            ("dissalow", RobotsFieldName::Disallow),
            ("diasllow", RobotsFieldName::Disallow),
            ("dsallow", RobotsFieldName::Unknown),
            ("allowed", RobotsFieldName::Allow),
            ("alow", RobotsFieldName::Unknown),
            ("site-map", RobotsFieldName::Sitemap),
            ("Crawl-Delay", RobotsFieldName::CrawlDelay),
            ("", RobotsFieldName::Unknown),
        ] {
            assert_eq!(forgiving_key(key.as_bytes()), expect, "{key}");
        }
        assert_eq!(exact_key(b"dissalow"), RobotsFieldName::Unknown);
        assert_eq!(exact_key(b"DISALLOW"), RobotsFieldName::Disallow);
    }
}
