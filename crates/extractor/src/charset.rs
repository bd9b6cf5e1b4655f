//! The charset of a document.

use encoding_rs::{Encoding, UTF_8};

use crate::charset_guess::{detect, utf_16_without_mark};
use crate::content_type::charset_parameter;
use crate::document_kind::Syntax;
use crate::prescan::{css_charset, prescan, xml_encoding};

/// The bytes in which the HTML Standard looks for a `meta` that names the charset.
const MAX_PRESCAN_BYTES: usize = 1024;
/// The bytes in which we look before we guess. Browsers find such a `meta` while parsing and begin
/// anew; this has the same effect.
const MAX_LATE_PRESCAN_BYTES: usize = 64 * 1024;

/// The source that named a page's charset, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The `Content-Type` header.
    Header,
    /// A `meta` element or XML declaration in the first 1,024 bytes (HTML Standard
    /// 13.2.3.2).
    Meta,
    /// Nothing said anything, and the bytes are UTF-8. Our choice: the HTML Standard
    /// would take windows-1252 in most places.
    ValidUtf8,
    /// A `meta` element after the first 1,024 bytes, within 64 KiB (HTML Standard
    /// 13.2.3.4).
    LateMeta,
    /// Nothing said anything: what the bytes look like most.
    Detected,
}

/// The charset of a document, and how it is known.
#[derive(Debug)]
pub(crate) struct Charset {
    pub(crate) encoding: &'static Encoding,
    pub(crate) source: CharsetSource,
    /// Length of the byte order mark.
    pub(crate) skip: usize,
    /// The header named a charset that nobody knows.
    pub(crate) unknown: bool,
}

/// The charset of an HTML page: the encoding sniffing algorithm of the HTML Standard
/// (13.2.3.2), with UTF-8 taken by default where the bytes are UTF-8.
/// In XML's syntax a `meta` counts only if the bytes are not UTF-8, XML's default.
pub(crate) fn of_page(body: &[u8], content_type: Option<&str>, syntax: Syntax) -> Charset {
    let label = content_type.and_then(charset_parameter);
    let declared = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let (encoding, source, skip) = if let Some((encoding, skip)) = Encoding::for_bom(body) {
        (encoding, CharsetSource::Bom, skip)
    } else if let Some(encoding) = declared {
        (encoding, CharsetSource::Header, 0)
    } else {
        let of_xml = || {
            (syntax == Syntax::Xml)
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

/// The charset of a page in XML's syntax without a header: that of the XML declaration, or UTF-8.
fn undeclared_xml(body: &[u8]) -> Option<(&'static Encoding, CharsetSource)> {
    if let Some(encoding) = xml_encoding(head(body, MAX_PRESCAN_BYTES)) {
        return Some((encoding, CharsetSource::Meta));
    }
    (is_utf8(body) && !body.contains(&ESCAPE)).then_some((UTF_8, CharsetSource::ValidUtf8))
}

/// The charset of a page of which only its bytes speak.
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

/// With it, ISO-2022-JP switches between its sets; the bytes are ASCII, and so UTF-8 too.
const ESCAPE: u8 = 0x1b;

/// The charset of an XML document and the length of its byte order mark: that mark, then
/// the header (RFC 7303 section 3), then the XML declaration, else UTF-8.
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

/// The charset of a style sheet and the length of its byte order mark: CSS Syntax Level 3,
/// section 3.2, without a page that refers to it.
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

/// The charset of JSON: UTF-8 (RFC 8259 section 8.1), or UTF-16 by its byte order mark.
pub(crate) fn of_json(body: &[u8]) -> (&'static Encoding, usize) {
    Encoding::for_bom(body).unwrap_or((UTF_8, 0))
}

fn head(body: &[u8], bytes: usize) -> &[u8] {
    &body[..body.len().min(bytes)]
}

/// Returns whether `body` is UTF-8; it may end in the middle of a character, as a body that was
/// cut off does.
fn is_utf8(body: &[u8]) -> bool {
    std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true)
}
