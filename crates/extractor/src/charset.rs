//! Determines the charset of a document.

use encoding_rs::{Encoding, UTF_8};

use crate::charset_guess::{detect, utf_16_without_mark};
use crate::charset_prescan::{css_charset, prescan, xml_encoding};
use crate::content_type::charset_parameter;
use crate::document_kind::MarkupSyntax;

/// Number of leading bytes in which the HTML Standard looks for a `meta` that declares a charset.
const MAX_PRESCAN_BYTES: usize = 1024;
/// Number of leading bytes to search for a late `meta` before the charset is guessed. Browsers find
/// such a `meta` while they parse the page, and then parse the page again.
const MAX_LATE_PRESCAN_BYTES: usize = 64 * 1024;

/// The source of a page's charset, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The `Content-Type` header.
    Header,
    /// A `meta` element or XML declaration in the first 1,024 bytes (HTML Standard 13.2.3.2).
    Meta,
    /// The page declares no charset, but its bytes are valid UTF-8. (Here the HTML Standard would
    /// usually choose windows-1252.)
    ValidUtf8,
    /// A `meta` element after the first 1,024 bytes, within 64 KiB (HTML Standard 13.2.3.4).
    LateMeta,
    /// The charset was guessed from the bytes, because the page declares none.
    Detected,
}

/// The charset of a document, and its source.
#[derive(Debug)]
pub(crate) struct Charset {
    pub(crate) encoding: &'static Encoding,
    pub(crate) source: CharsetSource,
    /// Length of the byte order mark.
    pub(crate) skip: usize,
    /// Whether the `Content-Type` header names an unknown charset.
    pub(crate) unknown: bool,
}

/// Returns the charset of an HTML page: the encoding sniffing algorithm of the HTML Standard
/// (13.2.3.2), with UTF-8 as the default if the bytes are valid UTF-8. A page in XML syntax is
/// UTF-8 by default, so there a `meta` counts only if the bytes are not valid UTF-8.
pub(crate) fn of_page(body: &[u8], content_type: Option<&str>, syntax: MarkupSyntax) -> Charset {
    let label = content_type.and_then(charset_parameter);
    let declared = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let (encoding, source, skip) = if let Some((encoding, skip)) = Encoding::for_bom(body) {
        (encoding, CharsetSource::Bom, skip)
    } else if let Some(encoding) = declared {
        (encoding, CharsetSource::Header, 0)
    } else {
        let of_xml = || {
            (syntax == MarkupSyntax::Xml)
                .then(|| undeclared_xml(body))
                .flatten()
        };
        let (encoding, source) = of_xml().unwrap_or_else(|| undeclared(body));
        (encoding, source, 0)
    };
    Charset {
        encoding,
        source,
        skip,
        unknown: label.is_some() && declared.is_none(),
    }
}

/// Returns the charset of a page in XML syntax whose `Content-Type` header names none: the
/// charset of the XML declaration, or UTF-8 if the bytes are valid UTF-8. `None` if neither
/// applies.
fn undeclared_xml(body: &[u8]) -> Option<(&'static Encoding, CharsetSource)> {
    if let Some(encoding) = xml_encoding(head(body, MAX_PRESCAN_BYTES)) {
        return Some((encoding, CharsetSource::Meta));
    }
    (is_utf8(body) && !body.contains(&ESCAPE)).then_some((UTF_8, CharsetSource::ValidUtf8))
}

/// Returns the charset of a page whose `Content-Type` header names none.
fn undeclared(body: &[u8]) -> (&'static Encoding, CharsetSource) {
    if let Some(encoding) = prescan(head(body, MAX_PRESCAN_BYTES)) {
        (encoding, CharsetSource::Meta)
    } else if let Some(encoding) = utf_16_without_mark(head(body, MAX_PRESCAN_BYTES)) {
        (encoding, CharsetSource::Detected)
    } else if is_utf8(body) && !body.contains(&ESCAPE) {
        (UTF_8, CharsetSource::ValidUtf8)
    } else if let Some(encoding) = prescan(head(body, MAX_LATE_PRESCAN_BYTES)) {
        (encoding, CharsetSource::LateMeta)
    } else {
        match detect(body) {
            encoding if encoding == UTF_8 && is_utf8(body) => (UTF_8, CharsetSource::ValidUtf8),
            encoding => (encoding, CharsetSource::Detected),
        }
    }
}

/// The first byte of an escape sequence. In ISO-2022-JP, escape sequences switch between character
/// sets. All other bytes of such text are ASCII, so it would pass for UTF-8 if this byte were not
/// checked.
const ESCAPE: u8 = 0x1b;

/// Returns the charset of an XML document and the length of its byte order mark. The order is: byte
/// order mark, header (RFC 7303 section 3), XML declaration, UTF-8.
pub(crate) fn of_xml(body: &[u8], content_type: Option<&str>) -> (&'static Encoding, usize) {
    let header = || {
        let label = content_type.and_then(charset_parameter)?;
        Encoding::for_label(label.as_bytes())
    };
    let head = head(body, MAX_PRESCAN_BYTES);
    Encoding::for_bom(body).unwrap_or_else(|| {
        let declared = || xml_encoding(head).or_else(|| utf_16_without_mark(head));
        (header().or_else(declared).unwrap_or(UTF_8), 0)
    })
}

/// Returns the charset of a style sheet and the length of its byte order mark (CSS Syntax Level 3,
/// section 3.2). The charset of the page that refers to the style sheet is not considered.
pub(crate) fn of_css(body: &[u8], content_type: Option<&str>) -> (&'static Encoding, usize) {
    let header = || {
        let label = content_type.and_then(charset_parameter)?;
        Encoding::for_label(label.as_bytes())
    };
    Encoding::for_bom(body).unwrap_or_else(|| {
        let encoding = header().or_else(|| css_charset(head(body, MAX_PRESCAN_BYTES)));
        (encoding.unwrap_or(UTF_8), 0)
    })
}

/// Returns the charset of JSON: UTF-8 (RFC 8259 section 8.1), or UTF-16 with a byte order mark.
pub(crate) fn of_json(body: &[u8]) -> (&'static Encoding, usize) {
    Encoding::for_bom(body).unwrap_or((UTF_8, 0))
}

fn head(body: &[u8], bytes: usize) -> &[u8] {
    &body[..body.len().min(bytes)]
}

/// Returns whether `body` is UTF-8. An incomplete character at the end is allowed, because the body
/// may be truncated.
fn is_utf8(body: &[u8]) -> bool {
    std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true)
}
