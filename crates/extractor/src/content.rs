//! The content of a page: its main text, its structure, and its metadata.
//!
//! [`read_content`] reads the bytes of a page. [`ContentReader`] reads the content too, but in a
//! pass over the page that it can share with other readers. [`main_text`] separates the main text
//! from its surroundings, working on a flat list of blocks and their regions, without an element
//! tree.

mod block_builder;
mod boilerplate_lines;
mod content_limits;
mod content_reader;
mod dates;
mod element_roles;
mod head_metadata;
mod heading_controls;
mod json_ld;
mod language;
mod main_text;
mod markdown;
mod open_inline_elements;
mod page_content;
mod regions;
mod role_hints;
mod ruby;
mod teasers;
mod text_amount;

use crate::extracted_page::ExtractedPage;
use crate::html::{DecodedPage, VisibleTextObserver, pass_over, read_with};
use crate::reading_limits::ReadingLimits;

pub use content_limits::{ContentLimits, ContentOddity, ContentOddityKind};
pub(crate) use content_reader::ContentReader;
pub use crawl_dates::{DatePrecision, TimeWithPrecision};
pub use dates::{DateKind, DateSource, PageDate};
pub use head_metadata::OpenGraph;
pub use json_ld::JsonLdItem;
pub use language::{DeclaredLanguage, DetectedLanguage, LanguageSource, PageLanguage};
pub use markdown::{escape_markdown, read_markdown};
pub use page_content::{Block, BlockKind, BlockRole, PageContent, Section};

/// Facts about a page that are not in its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageContext<'a> {
    /// The value of the `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The value of the `Content-Language` header.
    pub content_language: Option<&'a str>,
    /// The time of the fetch, in seconds since 1970-01-01T00:00:00Z. Dates more than two days later
    /// are rejected. If `None`, no date is rejected as too late.
    pub fetched_at: Option<i64>,
}

/// Reads the content of the page in `body`, whose content coding is already removed.
///
/// Never fails: any bytes give a value. Takes linear time in the length of `body`; memory is
/// bounded by `limits` and by the size of the text, as for [`read_html`](crate::read_html).
///
/// ```
/// use crawl_extractor::{ContentLimits, PageContext, read_content};
///
/// let html = b"<html lang=en><title>Tea</title><nav><a href=/>Home</a></nav>\
///     <main><h1 id=tea>Tea</h1><p>Water the leaves, wait, and pour.</main>";
/// let content = read_content(html, &PageContext::default(), &ContentLimits::default());
/// assert_eq!(content.title.as_deref(), Some("Tea"));
/// assert_eq!(content.main_text(), "Tea\nWater the leaves, wait, and pour.");
/// assert_eq!(content.visible_text(), "Home\nTea\nWater the leaves, wait, and pour.");
/// assert_eq!(content.sections()[0].id, Some("tea"));
/// ```
#[must_use]
pub fn read_content(body: &[u8], context: &PageContext<'_>, limits: &ContentLimits) -> PageContent {
    let reader = ContentReader::new(limits);
    let text = DecodedPage::decode(body, context.content_type);
    pass_over(&text, limits.attributes, reader).finish(context, text.as_str())
}

/// Returns the results of [`read_html`](crate::read_html) and [`read_content`], in one pass over
/// the page.
#[must_use]
pub fn read_page(
    body: &[u8],
    context: &PageContext<'_>,
    limits: &ReadingLimits,
    content_limits: &ContentLimits,
) -> (ExtractedPage, PageContent) {
    let text = DecodedPage::decode(body, context.content_type);
    read_page_text(&text, context, limits, content_limits, &mut ())
}

/// Reads a decoded page like [`read_page`], and also passes its visible text and images to
/// `observer`. If the observer gives up, the returned [`PageContent`] is empty.
#[must_use]
pub fn read_page_text(
    text: &DecodedPage<'_>,
    context: &PageContext<'_>,
    limits: &ReadingLimits,
    content_limits: &ContentLimits,
    observer: &mut dyn VisibleTextObserver,
) -> (ExtractedPage, PageContent) {
    let reader = ContentReader::new(content_limits);
    let (page, reader) = read_with(text, limits, observer, reader);
    let content = match observer.is_given_up() {
        true => PageContent::default(),
        false => reader.finish(context, text.as_str()),
    };
    (page, content)
}
