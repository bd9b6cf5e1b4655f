//! Prescans bytes to determine their encoding (HTML Standard 13.2.3.2).

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use crate::collapsed_text_builder::is_space;

/// Returns the encoding that a `meta` element or an XML declaration in `bytes` names. Returns UTF-8
/// if a `meta` names UTF-16. Such a `meta` must be wrong, because only a `meta` in ASCII bytes is
/// recognised.
pub(crate) fn prescan(bytes: &[u8]) -> Option<&'static Encoding> {
    if let Some(utf_16) = bare_utf_16(bytes) {
        return Some(utf_16);
    }
    let mut scan = CharsetPrescan { bytes, at: 0 };
    // An error means that the bytes ended within a tag or comment, which is then ignored.
    scan.run()
        .unwrap_or_default()
        .or_else(|| xml_encoding(bytes))
}

/// Returns the encoding that an XML declaration at the very start names. If the declaration itself
/// is written in UTF-16, returns UTF-16.
pub(crate) fn xml_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    if let Some(utf_16) = bare_utf_16(bytes) {
        return Some(utf_16);
    }
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..declaration.iter().position(|&byte| byte == b'>')?];
    let name = declaration
        .windows(8)
        .position(|window| window == b"encoding")?;
    let rest = skip_control(&declaration[name + 8..]).strip_prefix(b"=")?;
    let rest = skip_control(rest);
    let quote = *rest.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let label = rest[1..].split(|&byte| byte == quote).next()?;
    if label.len() + 2 > rest.len() || label.iter().any(|&byte| byte <= b' ') {
        return None;
    }
    Encoding::for_label(label).map(readable_as_ascii)
}

fn skip_control(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|&byte| byte > b' ')
        .unwrap_or(bytes.len());
    &bytes[start..]
}

/// Detects `<?x` in UTF-16 without a byte order mark.
fn bare_utf_16(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        Some(UTF_16LE)
    } else if bytes.starts_with(b"\0<\0?\0x") {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// Returns the encoding that an `@charset` at the very start names (CSS Syntax Level 3, section
/// 3.2). The rule must be exactly `@charset "..";`, with a single space and double quotes.
pub(crate) fn css_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let rest = bytes.strip_prefix(b"@charset \"")?;
    let end = rest.iter().position(|&byte| byte == b'"')?;
    let encoding = Encoding::for_label(&rest[..end]);
    encoding
        .filter(|_| rest.get(end + 1) == Some(&b';'))
        .map(readable_as_ascii)
}

/// Replaces UTF-16 by UTF-8, because a document that names its charset in ASCII can't be in UTF-16.
fn readable_as_ascii(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else {
        encoding
    }
}

/// The bytes ended within a tag or comment.
struct UnexpectedEnd;

/// The name and the value of an attribute, both in lower case.
type Attribute = (Vec<u8>, Vec<u8>);

struct CharsetPrescan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl CharsetPrescan<'_> {
    fn run(&mut self) -> Result<Option<&'static Encoding>, UnexpectedEnd> {
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            match rest {
                [b'<', b'!', b'-', b'-', ..] => {
                    // The two dashes of `<!--` may also be the first two of `-->`, as in `<!-->`.
                    let end = rest[2..].windows(3).position(|window| window == b"-->");
                    self.at += 2 + end.ok_or(UnexpectedEnd)? + 2;
                }
                [b'<', ..] if is_meta(rest) => {
                    self.at += 5;
                    if let Some(encoding) = self.meta()? {
                        return Ok(Some(encoding));
                    }
                }
                [b'<', b'/', letter, ..] | [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.skip_to(|byte| is_space(byte) || byte == b'>')?;
                    while self.attribute()?.is_some() {}
                }
                [b'<', b'!' | b'/' | b'?', ..] => self.skip_to(|byte| byte == b'>')?,
                _ => {}
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Reads the attributes of a `meta`, and returns the encoding that they name.
    fn meta(&mut self) -> Result<Option<&'static Encoding>, UnexpectedEnd> {
        let (mut pragma, mut needs_pragma) = (false, None);
        let mut charset: Option<Option<&'static Encoding>> = None;
        let (mut seen_equiv, mut seen_content, mut seen_charset) = (false, false, false);
        while let Some((name, value)) = self.attribute()? {
            match name.as_slice() {
                b"http-equiv" if !std::mem::replace(&mut seen_equiv, true) => {
                    pragma |= value == b"content-type";
                }
                b"content" if !std::mem::replace(&mut seen_content, true) => {
                    let named = charset_in_content(&value).and_then(Encoding::for_label);
                    if charset.is_none() && named.is_some() {
                        (charset, needs_pragma) = (Some(named), Some(true));
                    }
                }
                b"charset" if !std::mem::replace(&mut seen_charset, true) => {
                    (charset, needs_pragma) = (Some(Encoding::for_label(&value)), Some(false));
                }
                _ => {}
            }
        }
        let counts = needs_pragma.is_some_and(|needed| pragma || !needed);
        Ok(charset.flatten().filter(|_| counts).map(|encoding| {
            if encoding == X_USER_DEFINED {
                WINDOWS_1252
            } else {
                readable_as_ascii(encoding)
            }
        }))
    }

    /// Reads the next attribute ("get an attribute"). `None` at the end of the tag.
    fn attribute(&mut self) -> Result<Option<Attribute>, UnexpectedEnd> {
        self.skip_while(|byte| is_space(byte) || byte == b'/')?;
        if self.peek()? == b'>' {
            return Ok(None);
        }
        let mut name = Vec::new();
        loop {
            match self.peek()? {
                b'=' if !name.is_empty() => break,
                b'/' | b'>' => return Ok(Some((name, Vec::new()))),
                byte if is_space(byte) => {
                    self.skip_while(is_space)?;
                    if self.peek()? != b'=' {
                        return Ok(Some((name, Vec::new())));
                    }
                    break;
                }
                byte => name.push(byte.to_ascii_lowercase()),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(Some((name, self.value()?)))
    }

    fn value(&mut self) -> Result<Vec<u8>, UnexpectedEnd> {
        self.skip_while(is_space)?;
        let start = self.at;
        match self.peek()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                self.skip_to(|byte| byte == quote)?;
                self.at += 1;
                Ok(self.bytes[start + 1..self.at - 1].to_ascii_lowercase())
            }
            _ => {
                self.skip_to(|byte| is_space(byte) || byte == b'>')?;
                Ok(self.bytes[start..self.at].to_ascii_lowercase())
            }
        }
    }

    fn peek(&self) -> Result<u8, UnexpectedEnd> {
        self.bytes.get(self.at).copied().ok_or(UnexpectedEnd)
    }

    fn skip_while(&mut self, is_skipped: impl Fn(u8) -> bool) -> Result<(), UnexpectedEnd> {
        self.skip_to(|byte| !is_skipped(byte))
    }

    fn skip_to(&mut self, is_end: impl Fn(u8) -> bool) -> Result<(), UnexpectedEnd> {
        let end = self.bytes[self.at..].iter().position(|&byte| is_end(byte));
        self.at += end.ok_or(UnexpectedEnd)?;
        Ok(())
    }
}

fn is_meta(rest: &[u8]) -> bool {
    rest.get(1..5)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
        && rest
            .get(5)
            .is_some_and(|&byte| is_space(byte) || byte == b'/')
}

/// Returns the label of the charset in `content`, the `content` attribute of a `meta` in lower case
/// ("extracting a character encoding from a meta element").
fn charset_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        let at = rest.windows(7).position(|window| window == b"charset")?;
        rest = skip_space(&rest[at + 7..]);
        if let Some(value) = rest.strip_prefix(b"=") {
            rest = skip_space(value);
            break;
        }
    }
    match rest.first()? {
        quote @ (b'"' | b'\'') => {
            let end = rest[1..].iter().position(|byte| byte == quote)?;
            Some(&rest[1..=end])
        }
        _ => rest.split(|&byte| is_space(byte) || byte == b';').next(),
    }
}

fn skip_space(bytes: &[u8]) -> &[u8] {
    let start = bytes
        .iter()
        .position(|&byte| !is_space(byte))
        .unwrap_or(bytes.len());
    &bytes[start..]
}
