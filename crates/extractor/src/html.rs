//! Reads an HTML page: decodes the bytes, tokenizes the text, and builds an
//! [`ExtractedPage`](crate::ExtractedPage).

mod declared_media_type;
mod decoded_page;
pub(crate) mod element_name;
mod foreign_elements;
mod fragment_targets;
#[cfg(any(test, fuzzing))]
mod html5ever_agreement;
#[cfg(test)]
mod html5lib_tokenizer_cases;
mod image_and_language_audit;
mod link_attributes;
mod link_reader;
mod page_builder;
mod page_url_rewriter;
mod post_forms;
mod srcset;
pub(crate) mod tag_consumer;
mod tag_dispatcher;
mod tag_kinds;
pub(crate) mod tokenizer;
mod visible_text;
mod xml_name_resolver;

use crate::extracted_page::ExtractedPage;
use crate::query_encoding::encode_queries;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits, note};
pub use decoded_page::DecodedPage;
pub use fragment_targets::read_anchors;
pub use image_and_language_audit::{ImageAndLanguageAudit, audit_elements};
use page_builder::PageBuilder;
pub(crate) use page_url_rewriter::{PageUrlEdits, page_edits};
pub use post_forms::{PostForm, read_post_forms};
use tag_consumer::{NullTagConsumer, TagConsumer};
use tag_dispatcher::{walk, walk_html};
pub use visible_text::VisibleTextObserver;
use visible_text::VisibleTextReader;
pub(crate) use visible_text::is_hidden;

/// Reads the page in `body`, whose content coding is already removed. `content_type` is the value
/// of the `Content-Type` header.
///
/// Never fails: any bytes give a page. Takes linear time in the length of `body`. Allocates memory
/// for the result and, if the bytes are not UTF-8 or contain carriage returns, for the decoded
/// text.
#[must_use]
pub fn read_html(body: &[u8], content_type: Option<&str>, limits: &ReadingLimits) -> ExtractedPage {
    read_text(&DecodedPage::decode(body, content_type), limits, &mut ())
}

/// Reads a page like [`read_html`], and in the same pass sends its visible text and images to
/// `observer`.
#[must_use]
pub fn read_text(
    text: &DecodedPage<'_>,
    limits: &ReadingLimits,
    observer: &mut dyn VisibleTextObserver,
) -> ExtractedPage {
    read_with(text, limits, observer, NullTagConsumer).0
}

/// Reads a page like [`read_text`], and passes all tags and text to `other` too.
pub(crate) fn read_with<C: TagConsumer>(
    text: &DecodedPage<'_>,
    limits: &ReadingLimits,
    observer: &mut dyn VisibleTextObserver,
    other: C,
) -> (ExtractedPage, C) {
    let consumers = (PageBuilder::new(limits), VisibleTextReader::new(observer));
    let ((reader, shown), other) = walk(text, limits.attributes, (consumers, other));
    let mut page = reader.finish(text.as_str());
    for _ in 0..encode_queries(&mut page, text.charset.encoding, limits.href_bytes) {
        note(&mut page.oddities, DocumentOddityKind::HrefTooLong, 1);
    }
    page.outline = shown.finish(text.as_str());
    page.charset = text.charset.encoding.name();
    page.charset_source = text.charset.source;
    if text.charset.unknown {
        note(&mut page.oddities, DocumentOddityKind::UnknownCharset, 1);
    }
    if text.is_broken {
        note(&mut page.oddities, DocumentOddityKind::UndecodableBytes, 1);
    }
    (page, other)
}

/// Compares our tokens of a page with html5ever's tokens, for a fuzz target.
///
/// # Panics
/// If the tokens differ.
#[cfg(fuzzing)]
pub fn compare_with_html5ever(html: &str) {
    html5ever_agreement::compare(html);
}

/// Walks over the tags and text of a page without a consumer. A benchmark uses this to measure the
/// time of the walk alone.
#[doc(hidden)]
pub fn walk_tokens(html: &str) {
    let NullTagConsumer = walk_html(html, ReadingLimits::default().attributes, NullTagConsumer);
}

/// Passes all tags and text of a page to `consumer`, with at most `attributes` attributes per tag.
pub(crate) fn pass_over<C: TagConsumer>(
    text: &DecodedPage<'_>,
    attributes: usize,
    consumer: C,
) -> C {
    walk(text, attributes, consumer)
}
