//! Style sheets, and the resources that they load.

mod url_scanner;

use std::borrow::Cow;
use std::ops::Range;

use crate::charset;
use crate::link::{Link, LinkCollector, LinkElement, LinkKind};
use crate::reading_limits::{DocumentOddity, DocumentOddityKind, ReadingLimits, note};
use url_scanner::{CssContext, CssUrlScanner};

/// The URLs in a style sheet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StyleSheetLinks {
    /// The URLs that the style sheet loads, in order: other style sheets (`@import`), images and
    /// fonts (`url`). All are resources.
    pub links: Vec<Link>,
    /// The charset that the style sheet was decoded with, by its name in the Encoding Standard.
    pub charset: &'static str,
    /// Defects and omissions, each kind once.
    pub oddities: Vec<DocumentOddity>,
}

/// Reads the URLs that the style sheet in `body` loads. The content coding of `body` is already
/// removed; `content_type` is the value of the `Content-Type` header.
///
/// Never fails. Tokens follow CSS Syntax Level 3, so text in a comment, in another string or in a
/// name is not a URL. URLs are relative to the style sheet.
#[must_use]
pub fn read_css(
    body: &[u8],
    content_type: Option<&str>,
    limits: &ReadingLimits,
) -> StyleSheetLinks {
    let (encoding, skip) = charset::of_css(body, content_type);
    let body = &body[skip..];
    let mut oddities = Vec::new();
    if body.len() > limits.css_bytes {
        note(&mut oddities, DocumentOddityKind::CssTooLong, 1);
    }
    let body = &body[..body.len().min(limits.css_bytes)];
    let (text, undecodable) = encoding.decode_without_bom_handling(body);
    if undecodable {
        note(&mut oddities, DocumentOddityKind::UndecodableBytes, 1);
    }
    let mut links = LinkCollector::default();
    let mut lines = LineCounter::of(&text);
    let mut scan = CssUrlScanner::new(&text, CssContext::Sheet);
    while let Some(url) = scan.next() {
        match links.room(&url.url, LinkKind::Resource, limits) {
            Ok(href) => {
                let kind = LinkKind::Resource;
                links.push(Link::new(href, LinkElement::StyleSheet, url.how(), kind));
            }
            Err(Some(what)) => note(&mut oddities, what, lines.at(scan.position())),
            Err(None) => {}
        }
    }
    StyleSheetLinks {
        links: links.found,
        charset: encoding.name(),
        oddities,
    }
}

/// A URL in CSS.
pub(crate) struct CssUrl<'a> {
    pub(crate) url: Cow<'a, str>,
    /// Whether the URL leads to another style sheet.
    pub(crate) is_import: bool,
    /// The range of the URL in the CSS as written. For a string, the quotation marks are included.
    /// For a URL in `url()` without quotes, the range is that of the URL.
    pub(crate) range: Range<usize>,
}

impl CssUrl<'_> {
    /// Returns the name of the construct that loads the URL: `@import` or `url`.
    pub(crate) fn how(&self) -> &'static str {
        if self.is_import { "@import" } else { "url" }
    }
}

/// Returns the URLs in a style sheet.
pub(crate) fn sheet(text: &str) -> impl Iterator<Item = CssUrl<'_>> {
    CssUrlScanner::new(text, CssContext::Sheet)
}

/// Returns the URLs in declarations, such as those of a `style` attribute.
pub(crate) fn declarations(text: &str) -> impl Iterator<Item = CssUrl<'_>> {
    CssUrlScanner::new(text, CssContext::Declarations)
}

/// Counts the lines before given positions, which must be in ascending order.
struct LineCounter<'a> {
    text: &'a [u8],
    counted_to: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    fn of(text: &'a str) -> LineCounter<'a> {
        LineCounter {
            text: text.as_bytes(),
            counted_to: 0,
            line: 1,
        }
    }

    fn at(&mut self, position: usize) -> u64 {
        let passed = &self.text[self.counted_to..position];
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.counted_to = position;
        self.line
    }
}
