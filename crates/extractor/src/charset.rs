//! Which charset a document is written in.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::content_type::charset_parameter;
use crate::prescan::prescan;

/// How far the HTML Standard looks for a `meta` that names the charset.
const PRESCAN_OCTETS: usize = 1024;
/// How far we look before we take windows-1252. Browsers find such a `meta` while
/// parsing and begin anew; this has the same effect.
const LATE_PRESCAN_OCTETS: usize = 64 * 1024;

/// What named a page's charset, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The `Content-Type` header.
    Header,
    /// A `meta` element or XML declaration in the first 1,024 octets (HTML Standard
    /// 13.2.3.2).
    Meta,
    /// Nothing said anything, and the octets are UTF-8. Our choice: the HTML Standard
    /// would take windows-1252 in most places.
    ValidUtf8,
    /// A `meta` element after the first 1,024 octets, within 64 KiB (HTML Standard
    /// 13.2.3.4).
    LateMeta,
    /// Nothing said anything: windows-1252.
    Default,
}

/// The charset of a document, and how it is known.
pub(crate) struct Charset {
    pub(crate) encoding: &'static Encoding,
    pub(crate) source: CharsetSource,
    /// Length of the byte order mark.
    pub(crate) skip: usize,
    /// The header named a charset that nobody knows.
    pub(crate) unknown: bool,
}

/// The charset of an HTML page: the encoding sniffing algorithm of the HTML Standard
/// (13.2.3.2), with UTF-8 taken by default where the octets are UTF-8.
pub(crate) fn of_html(body: &[u8], content_type: Option<&str>) -> Charset {
    let label = content_type.and_then(charset_parameter);
    let declared = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let unknown = label.is_some() && declared.is_none();
    let (encoding, source, skip) = if let Some((encoding, skip)) = Encoding::for_bom(body) {
        (encoding, CharsetSource::Bom, skip)
    } else if let Some(encoding) = declared {
        (encoding, CharsetSource::Header, 0)
    } else if let Some(encoding) = prescan(head(body, PRESCAN_OCTETS)) {
        (encoding, CharsetSource::Meta, 0)
    } else if is_utf8(body) {
        (UTF_8, CharsetSource::ValidUtf8, 0)
    } else if let Some(encoding) = prescan(head(body, LATE_PRESCAN_OCTETS)) {
        (encoding, CharsetSource::LateMeta, 0)
    } else {
        (WINDOWS_1252, CharsetSource::Default, 0)
    };
    Charset {
        encoding,
        source,
        skip,
        unknown,
    }
}

/// The charset of a sitemap: byte order mark, XML declaration, else UTF-8 (sitemaps.org
/// allows nothing else).
pub(crate) fn of_sitemap(body: &[u8]) -> (&'static Encoding, usize) {
    let declared = || {
        (
            crate::prescan::xml_encoding(head(body, PRESCAN_OCTETS)).unwrap_or(UTF_8),
            0,
        )
    };
    Encoding::for_bom(body).unwrap_or_else(declared)
}

fn head(body: &[u8], octets: usize) -> &[u8] {
    &body[..body.len().min(octets)]
}

/// Whether `body` is UTF-8; it may end in the middle of a character, as a body that was
/// cut off does.
fn is_utf8(body: &[u8]) -> bool {
    std::str::from_utf8(body).map_or_else(|error| error.error_len().is_none(), |_| true)
}
