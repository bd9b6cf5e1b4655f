//! Reading an HTML page: bytes to text to tokens to a [`Page`].

#[cfg(any(test, fuzzing))]
mod agreement;
mod anchors;
pub(crate) mod consumer;
mod declared_type;
mod foreign;
#[cfg(test)]
mod html5lib_cases;
mod link_attributes;
mod links;
pub(crate) mod name;
mod page_reader;
mod page_text;
mod shown;
mod srcset;
mod tag_kinds;
mod tag_walk;
pub(crate) mod tokenizer;
mod xml_names;

use crate::limits::{DocumentOddityKind, Limits, note};
use crate::page::Page;
use crate::query_encoding::encode_queries;
pub use anchors::read_anchors;
use consumer::{Consumer, Nobody};
use page_reader::PageReader;
pub use page_text::PageText;
pub use shown::PageObserver;
use shown::ShownReader;
use tag_walk::{walk, walk_html};

/// Reads the page in `body`. `content_type` is the value of its header; content
/// codings are undone already.
///
/// Never fails; any bytes give a page. The time is linear in `body`, the memory is that of the
/// result and, where the bytes are no UTF-8 or their line ends are not line feeds alone, of the
/// text.
#[must_use]
pub fn read_html(body: &[u8], content_type: Option<&str>, limits: &Limits) -> Page {
    read_text(&PageText::decode(body, content_type), limits, &mut ())
}

/// Reads a page as [`read_html`] does, and tells `observer` what it shows, in one pass over it.
#[must_use]
pub fn read_text(text: &PageText<'_>, limits: &Limits, observer: &mut dyn PageObserver) -> Page {
    read_beside(text, limits, observer, Nobody).0
}

/// Reads all that [`read_text`] does, while the same tags and text go to `other`.
pub(crate) fn read_beside<C: Consumer>(
    text: &PageText<'_>,
    limits: &Limits,
    observer: &mut dyn PageObserver,
    other: C,
) -> (Page, C) {
    let consumers = (PageReader::new(limits), ShownReader::new(observer));
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

/// Compares what we find in a page with what html5ever finds, for a fuzz target.
///
/// # Panics
/// Where the two differ.
#[cfg(fuzzing)]
pub fn compare_with_html5ever(html: &str) {
    agreement::compare(html);
}

/// Passes over the tags and the text of a page for nobody, for benchmarks.
#[doc(hidden)]
pub fn pass_over_tokens(html: &str) {
    let Nobody = walk_html(html, Limits::default().attributes, Nobody);
}

/// Gives all tags and text of a page to `consumer`, tags with `attributes` at most.
pub(crate) fn pass_over<C: Consumer>(text: &PageText<'_>, attributes: usize, consumer: C) -> C {
    walk(text, attributes, consumer)
}
