//! Detects the kind of a document by its `Content-Type` header and its first bytes.

mod mime_patterns;
mod root_element;

use crate::content_type::{essence, is_html_type, is_json_type, is_xml_type};
use mime_patterns::SniffedKind;
use root_element::RootElementKind;

/// Number of leading bytes that determine the kind of a document (MIME Sniffing Standard, section
/// 5.2).
pub const MAX_SNIFF_BYTES: usize = 1445;

/// The kinds of documents that a crawler distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ContentKind {
    /// A page, for [`read_html`](crate::read_html).
    Html,
    /// An XML sitemap, for [`read_sitemap`](crate::read_sitemap). A plain text sitemap is
    /// [`ContentKind::Text`], because its content looks like any other text.
    Sitemap,
    /// RSS, Atom or JSON Feed, for [`read_feed`](crate::read_feed).
    Feed,
    /// A style sheet, for [`read_css`](crate::read_css).
    Css,
    /// A PDF document.
    Pdf,
    /// Other text: plain, XML, JSON, a script.
    Text,
    /// An image, sound, video, font or archive.
    Media,
    /// Anything else.
    Other,
}

/// Returns the kind of the document that begins with `first`, whose content coding is already
/// removed. Only the first [`MAX_SNIFF_BYTES`] bytes are used.
///
/// The type in the header decides, with these exceptions. If the header has no usable type, the
/// bytes decide (MIME Sniffing Standard, section 7.1). A document declared as HTML or XML may turn
/// out to be a feed or a sitemap (section 7.3, extended). A document declared as HTML or text is
/// media or PDF if it begins with the signature of such a type and contains binary bytes (sections
/// 6 and 7.2). The standard has this last rule only for text. For HTML it is safe too, because
/// images and PDF have no HTML links.
#[must_use]
pub fn document_kind(content_type: Option<&str>, first: &[u8]) -> ContentKind {
    let first = &first[..first.len().min(MAX_SNIFF_BYTES)];
    let Some(essence) = essence(content_type) else {
        return unknown(first);
    };
    match essence.as_str() {
        html if is_html_type(html) => html_or_else(first),
        "text/css" => ContentKind::Css,
        "application/pdf" => ContentKind::Pdf,
        "application/rss+xml" | "application/atom+xml" | "application/feed+json" => {
            ContentKind::Feed
        }
        "image/svg+xml" => ContentKind::Media,
        xml if is_xml_type(xml) => match root_element::root_of_xml(first) {
            // Browsers show the document as generic XML if its root is an `html` outside the XHTML
            // namespace.
            Some(RootElementKind::Html) => ContentKind::Text,
            root => by_root(root).unwrap_or(ContentKind::Text),
        },
        json if is_json_type(json) => json_by_version(first),
        "text/plain" => text_or_binary(first),
        text if text.starts_with("text/") || is_script(text) => ContentKind::Text,
        media if is_media(media) => ContentKind::Media,
        _ => ContentKind::Other,
    }
}

/// Returns the media type that the first bytes of a body indicate, whatever its header declares
/// (MIME Sniffing Standard, section 7.1). Beyond the standard, the root element of XML decides.
/// `None` for an empty body.
#[must_use]
pub fn sniff_media_type(first: &[u8]) -> Option<&'static str> {
    let first = &first[..first.len().min(MAX_SNIFF_BYTES)];
    if first.is_empty() {
        return None;
    }
    if mime_patterns::begins_as_html(first) {
        return Some("text/html");
    }
    let by_root = root_element::root_of(first).map(|root| match root {
        RootElementKind::Html => "text/html",
        RootElementKind::Xhtml => "application/xhtml+xml",
        RootElementKind::Rss => "application/rss+xml",
        RootElementKind::Atom => "application/atom+xml",
        RootElementKind::Svg => "image/svg+xml",
        RootElementKind::Sitemap | RootElementKind::Other => "application/xml",
    });
    let is_binary = mime_patterns::is_binary(first);
    let by_pattern = || {
        let (media, media_type) = mime_patterns::typed_media(first)?;
        (is_binary || matches!(media, SniffedKind::Pdf | SniffedKind::Text)).then_some(media_type)
    };
    let usual = match is_binary {
        true => "application/octet-stream",
        false => "text/plain",
    };
    Some(by_root.or_else(by_pattern).unwrap_or(usual))
}

/// Returns whether a body is HTML by the rules of [`document_kind`]. If the body is empty, the type
/// in the header decides.
#[must_use]
pub fn is_html(content_type: Option<&str>, first: &[u8]) -> bool {
    document_kind(content_type, first) == ContentKind::Html
}

/// The syntax of a page (HTML Standard, sections 13 and 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkupSyntax {
    Html,
    Xml,
}

/// Returns whether to read a page in XML syntax. This is the case if the page is served as XHTML,
/// is served as XML and has an XHTML root, or has no type and begins as XML with an XHTML root.
pub(crate) fn is_xhtml(content_type: Option<&str>, first: &[u8]) -> bool {
    let first = &first[..first.len().min(MAX_SNIFF_BYTES)];
    let root = match essence(content_type) {
        Some(html) if html == "application/xhtml+xml" => return true,
        Some(xml) if is_xml_type(&xml) => root_element::root_of_xml(first),
        Some(_) => return false,
        None => root_element::root_of(first).filter(|_| !mime_patterns::begins_as_html(first)),
    };
    root == Some(RootElementKind::Xhtml)
}

/// Returns whether this crate may be able to read a document with this `Content-Type`. This is
/// the case if the type is missing, HTML, XML (except SVG), JSON or CSS. Other documents don't have
/// to be decoded.
#[must_use]
pub fn may_be_read(content_type: Option<&str>) -> bool {
    let Some(essence) = essence(content_type) else {
        return true;
    };
    let essence = essence.as_str();
    essence == "text/css"
        || is_html_type(essence)
        || is_json_type(essence)
        || is_xml_type(essence) && essence != "image/svg+xml"
}

/// Returns the kind of a document without a usable type.
fn unknown(first: &[u8]) -> ContentKind {
    if mime_patterns::begins_as_html(first) {
        return ContentKind::Html;
    }
    if let Some(document) = by_root(root_element::root_of(first)) {
        return document;
    }
    match mime_patterns::media(first) {
        Some(SniffedKind::Pdf) => ContentKind::Pdf,
        None if mime_patterns::is_binary(first) => ContentKind::Other,
        Some(media) if media != SniffedKind::Text => ContentKind::Media,
        _ => match json_by_version(first) {
            ContentKind::Feed => ContentKind::Feed,
            _ => ContentKind::Text,
        },
    }
}

/// Returns the kind of a document served as HTML.
fn html_or_else(first: &[u8]) -> ContentKind {
    if mime_patterns::is_binary(first) {
        match mime_patterns::media(first) {
            Some(SniffedKind::Pdf) => return ContentKind::Pdf,
            Some(_) => return ContentKind::Media,
            None => {}
        }
    }
    match by_root(root_element::root_of(first)) {
        Some(document @ (ContentKind::Feed | ContentKind::Sitemap)) => document,
        _ => ContentKind::Html,
    }
}

/// Returns the kind of a document served as plain text. Old servers also send this type for files
/// of unknown types.
fn text_or_binary(first: &[u8]) -> ContentKind {
    if !mime_patterns::is_binary(first) {
        return ContentKind::Text;
    }
    match mime_patterns::media(first) {
        Some(SniffedKind::Pdf) => ContentKind::Pdf,
        // A byte order mark shows that the document is text.
        Some(SniffedKind::Text) => ContentKind::Text,
        Some(_) => ContentKind::Media,
        None => ContentKind::Other,
    }
}

fn by_root(root: Option<RootElementKind>) -> Option<ContentKind> {
    Some(match root? {
        RootElementKind::Html | RootElementKind::Xhtml => ContentKind::Html,
        RootElementKind::Sitemap => ContentKind::Sitemap,
        RootElementKind::Rss | RootElementKind::Atom => ContentKind::Feed,
        RootElementKind::Svg => ContentKind::Media,
        RootElementKind::Other => ContentKind::Text,
    })
}

/// Detects a JSON Feed by its `version`.
fn json_by_version(first: &[u8]) -> ContentKind {
    let text = root_element::text_of(first);
    let is_feed = text.trim_start().starts_with('{')
        && ["jsonfeed.org/version/", "jsonfeed.org\\/version\\/"]
            .iter()
            .any(|version| text.contains(version));
    if is_feed {
        ContentKind::Feed
    } else {
        ContentKind::Text
    }
}

fn is_script(essence: &str) -> bool {
    matches!(
        essence,
        "application/javascript" | "application/x-javascript" | "application/ecmascript"
    )
}

fn is_media(essence: &str) -> bool {
    ["image/", "audio/", "video/", "font/"]
        .iter()
        .any(|family| essence.starts_with(family))
        || matches!(
            essence,
            "application/zip"
                | "application/gzip"
                | "application/x-gzip"
                | "application/x-rar-compressed"
                | "application/vnd.rar"
                | "application/ogg"
                | "application/x-tar"
                | "application/x-bzip2"
                | "application/x-xz"
                | "application/x-7z-compressed"
        )
}

#[cfg(test)]
mod tests {
    use super::sniff_media_type;

    #[test]
    fn mime_sniffing_7_1_the_bytes_alone_decide_the_type() {
        let check = |first: &[u8], expected: Option<&str>| {
            assert_eq!(
                sniff_media_type(first),
                expected,
                "{}",
                first.escape_ascii()
            );
        };
        check(b"", None);
        check(b"  <!doctype html><title>t</title>", Some("text/html"));
        check(b"%PDF-1.7\n", Some("application/pdf"));
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("image/png"));
        check(b"RIFF\0\x01\0\0WEBPVP8 ", Some("image/webp"));
        check(b"PK\x03\x04\x14\0", Some("application/zip"));
        check(b"\0\0\0\x18ftypmp42\0\0\0\0isommp42", Some("video/mp4"));
        check(b"\0\0\0\x18ftypavif\0\0\0\0mif1miaf", Some("image/avif"));
        // A document without binary bytes is text, even if its first letters are the signature of a
        // media type.
        check(b"BM is a car, and OTTO drives it", Some("text/plain"));
        check(b"BM\x36\0\x0c\0", Some("image/bmp"));
        check(b"{\"a\": 1}", Some("text/plain"));
        check(b"\x01\x02\x03", Some("application/octet-stream"));
        check("\u{feff}text".as_bytes(), Some("text/plain"));
    }

    #[test]
    fn xml_has_the_type_of_its_root() {
        let check = |text: &str, expected: &str| {
            assert_eq!(sniff_media_type(text.as_bytes()), Some(expected), "{text}");
        };
        let xhtml = "<html xmlns='http://www.w3.org/1999/xhtml'>";
        check(
            &format!("<?xml version='1.0'?>{xhtml}"),
            "application/xhtml+xml",
        );
        check("<rss version='2.0'>", "application/rss+xml");
        check(
            "<?xml version='1.0'?><feed xmlns='x'>",
            "application/atom+xml",
        );
        check("<urlset xmlns='x'>", "application/xml");
        check("<?xml version='1.0'?><svg>", "image/svg+xml");
        check("<?xml version='1.0'?><other>", "application/xml");
    }
}
