//! The decoded text of a page.

use std::borrow::Cow;

use memchr::memchr;

use crate::charset::{self, Charset};
use crate::document_kind::{MarkupSyntax, is_xhtml};

/// The decoded text of a page, with all line ends converted to line feeds. If the bytes are UTF-8
/// and have no other line ends, the text borrows them instead of copying them.
#[derive(Debug)]
pub struct DecodedPage<'b> {
    text: Cow<'b, str>,
    syntax: MarkupSyntax,
    pub(crate) charset: Charset,
    /// Whether some bytes were invalid in the page's charset.
    pub(crate) is_broken: bool,
}

impl<'b> DecodedPage<'b> {
    /// Decodes the page in `body`, whose content coding is already removed. `content_type` is the
    /// value of the `Content-Type` header, which also decides whether the page is in HTML or
    /// XML syntax.
    #[must_use]
    pub fn decode(body: &'b [u8], content_type: Option<&str>) -> DecodedPage<'b> {
        let syntax = match is_xhtml(content_type, body) {
            true => MarkupSyntax::Xml,
            false => MarkupSyntax::Html,
        };
        let charset = charset::of_page(body, content_type, syntax);
        let (text, is_broken) = charset
            .encoding
            .decode_without_bom_handling(&body[charset.skip..]);
        DecodedPage {
            text: with_line_feeds(text),
            syntax,
            charset,
            is_broken,
        }
    }

    /// Returns the syntax of the page.
    pub(crate) fn syntax(&self) -> MarkupSyntax {
        self.syntax
    }

    /// Returns the decoded text of the page.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Replaces each carriage return, or carriage return and line feed, by one line feed (HTML Standard
/// 13.2.3.5).
pub(super) fn with_line_feeds(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return text;
    }
    let mut lines = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = memchr(b'\r', rest.as_bytes()) {
        lines.push_str(&rest[..at]);
        lines.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    lines.push_str(rest);
    Cow::Owned(lines)
}
