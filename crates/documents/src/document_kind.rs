//! Detects the kind of a document and converts it to HTML.

use crate::limits::{DocumentConversionError, DocumentLimits};

/// A kind of document that this crate converts to HTML.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display, strum::EnumString,
)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum DocumentKind {
    /// Plain text.
    Text,
    /// Markdown (CommonMark, with tables).
    Markdown,
    /// A word processor document (Office Open XML, ISO/IEC 29500).
    Docx,
    /// PDF (ISO 32000).
    Pdf,
}

/// Maximum bytes of Markdown to parse without a separate process. If the text consists mostly of
/// markup, the parser's memory is about 100 times its size.
const SMALL_MARKDOWN: usize = 256 << 10;
/// Maximum bytes of Markdown to parse; the rest is ignored. This keeps the parser below 512 MiB.
/// Beyond the limit: ignored.
#[cfg(feature = "markdown")]
const MAX_MARKDOWN: usize = 2 << 20;

/// The byte order marks of UTF-16. A resource that starts with one is text (MIME Sniffing Standard
/// section 7.2).
const UTF_16_MARKS: [[u8; 2]; 2] = [[0xFE, 0xFF], [0xFF, 0xFE]];
/// The labels of UTF-16 (Encoding Standard section 4.2).
const UTF_16_LABELS: [&str; 9] = [
    "csunicode",
    "iso-10646-ucs-2",
    "ucs-2",
    "unicode",
    "unicodefeff",
    "unicodefffe",
    "utf-16",
    "utf-16be",
    "utf-16le",
];

impl DocumentKind {
    /// Detects the kind of a document from the value of its `Content-Type` field, the path of its
    /// URL and its first bytes. `None` for HTML and for kinds that can't be converted.
    ///
    /// Usually the header field decides. If the field is missing, or is `text/plain`,
    /// `application/octet-stream` or `application/zip`, the extension in the path decides, because
    /// servers send these values for types that they don't know. The first bytes must also fit: a
    /// DOCX starts with its signature, a PDF has its signature within the first 1,024 bytes, and
    /// text has no NUL byte there unless it is in UTF-16.
    #[must_use]
    pub fn of(content_type: Option<&str>, path: &str, first: &[u8]) -> Option<DocumentKind> {
        let kind = DocumentKind::named(content_type, path);
        kind.filter(|kind| kind.may_begin_with(first, content_type))
    }

    /// Detects the kind of a document like [`DocumentKind::of`], but from `Content-Type` and path
    /// alone.
    #[must_use]
    pub fn named(content_type: Option<&str>, path: &str) -> Option<DocumentKind> {
        let essence = content_type.and_then(|value| value.split(';').next());
        let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let by_path = match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Some(DocumentKind::Markdown),
            "txt" | "text" => Some(DocumentKind::Text),
            "docx" => Some(DocumentKind::Docx),
            "pdf" => Some(DocumentKind::Pdf),
            _ => None,
        };
        match essence.as_str() {
            "application/pdf" | "application/x-pdf" => Some(DocumentKind::Pdf),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => {
                Some(DocumentKind::Docx)
            }
            "text/markdown" | "text/x-markdown" => Some(DocumentKind::Markdown),
            "text/plain" => by_path.or(Some(DocumentKind::Text)),
            "" | "application/octet-stream" | "application/zip" => by_path,
            _ => None,
        }
    }

    /// Returns whether a document of this kind and size must be read in a separate process, because
    /// its parser may panic or take unbounded time or memory.
    #[must_use]
    pub fn needs_process(self, bytes: usize) -> bool {
        match self {
            DocumentKind::Docx | DocumentKind::Pdf => true,
            DocumentKind::Markdown => bytes > SMALL_MARKDOWN,
            DocumentKind::Text => false,
        }
    }

    /// Converts the document to HTML in UTF-8. Text and Markdown are decoded as UTF-8; invalid
    /// bytes are replaced by U+FFFD. `last_modified` is an HTTP date, and is used for text and
    /// Markdown that contain no modification date.
    ///
    /// # Errors
    /// [`DocumentConversionError`] if the document is broken or encrypted, or if this program was
    /// built without a reader for its kind.
    pub fn to_html(
        self,
        bytes: &[u8],
        limits: &DocumentLimits,
        last_modified: Option<&str>,
    ) -> Result<String, DocumentConversionError> {
        let text = |max: usize| {
            let length = bytes.len().min(limits.html_bytes).min(max);
            String::from_utf8_lossy(&bytes[..length])
        };
        match self {
            DocumentKind::Text => {
                let text = text(usize::MAX);
                Ok(crate::plain_text_to_html::to_html(
                    &text,
                    limits,
                    last_modified,
                ))
            }
            #[cfg(feature = "markdown")]
            DocumentKind::Markdown => {
                let text = text(MAX_MARKDOWN);
                Ok(crate::markdown_to_html::to_html(
                    &text,
                    limits,
                    last_modified,
                ))
            }
            #[cfg(feature = "docx")]
            DocumentKind::Docx => crate::docx::to_html(bytes, limits),
            #[cfg(feature = "pdf")]
            DocumentKind::Pdf => crate::pdf::to_html(bytes, limits),
            #[expect(
                clippy::allow_attributes,
                reason = "it is reachable without a feature alone"
            )]
            #[allow(unreachable_patterns)]
            _ => Err(DocumentConversionError::NotBuiltIn),
        }
    }

    fn may_begin_with(self, first: &[u8], content_type: Option<&str>) -> bool {
        match self {
            // As in PDF readers, up to 1,024 bytes may precede the header, because some programs
            // write other data before the header.
            DocumentKind::Pdf => first[..first.len().min(1024)]
                .windows(5)
                .any(|bytes| bytes == b"%PDF-"),
            DocumentKind::Docx => first.starts_with(b"PK\x03\x04"),
            DocumentKind::Text | DocumentKind::Markdown => {
                !first[..first.len().min(1024)].contains(&0)
                    || UTF_16_MARKS.iter().any(|mark| first.starts_with(mark))
                    || content_type.is_some_and(declares_utf_16)
            }
        }
    }
}

fn declares_utf_16(content_type: &str) -> bool {
    let charset = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"').trim())
    });
    charset.is_some_and(|label| UTF_16_LABELS.contains(&label.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::DocumentKind;

    #[test]
    fn header_path_and_bytes_decide_the_kind() {
        let check = |header: Option<&str>, path: &str, first: &[u8], expected: Option<&str>| {
            let kind = DocumentKind::of(header, path, first).map(|kind| kind.to_string());
            assert_eq!(kind.as_deref(), expected, "{header:?} {path}");
        };
        let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
        check(
            Some("text/plain; charset=utf-8"),
            "/a",
            b"words",
            Some("text"),
        );
        check(
            Some("text/plain"),
            "/a.md?v=1.txt",
            b"# a",
            Some("markdown"),
        );
        check(Some("Text/Markdown"), "/a", b"# a", Some("markdown"));
        check(Some("application/pdf"), "/a", b"%PDF-1.4", Some("pdf"));
        check(Some("application/pdf"), "/a.pdf", b"<html>", None);
        check(None, "/a.pdf", b"\n%PDF-1.4", Some("pdf"));
        check(Some(docx), "/download?id=7", b"PK\x03\x04", Some("docx"));
        check(
            Some("application/zip"),
            "/a.DOCX",
            b"PK\x03\x04",
            Some("docx"),
        );
        check(Some("application/zip"), "/a.zip", b"PK\x03\x04", None);
        check(Some("text/html"), "/a.md", b"# a", None);
        check(Some("text/css"), "/a.txt", b"a {}", None);
        check(Some("text/plain"), "/a", b"\x7fELF\0\0", None);
        check(None, "/a", b"words", None);
        check(Some("text/plain"), "/a", b"\xFF\xFEa\0", Some("text"));
        check(Some("text/plain"), "/a", b"\xFE\xFF\0a", Some("text"));
        check(None, "/a.md", b"\xFF\xFEa\0", Some("markdown"));
        let utf_16 = "text/plain; format=flowed; Charset=\"UTF-16LE\"";
        check(Some(utf_16), "/a", b"a\0", Some("text"));
        check(Some("text/plain; charset=utf-8"), "/a", b"a\0", None);
    }
}
