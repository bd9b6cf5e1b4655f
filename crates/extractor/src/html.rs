//! Reading an HTML page: bytes to text to tokens to a [`Page`].

#[cfg(test)]
mod agreement;
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
mod srcset;
mod tag_walk;
pub(crate) mod tokenizer;
mod word_boundaries;

use crate::limits::{DocumentOddityKind, Limits, note};
use crate::page::Page;
use consumer::Consumer;
use page_reader::PageReader;
use page_text::PageText;
use tag_walk::walk;

/// Reads the page in `body`. `content_type` is the value of its header; content
/// codings are undone already.
///
/// Never fails; any bytes give a page. The time is linear in `body`, the memory is that of the
/// result and, where the bytes are no UTF-8 or their line ends are not line feeds alone, of the
/// text.
#[must_use]
pub fn read_html(body: &[u8], content_type: Option<&str>, limits: &Limits) -> Page {
    let text = PageText::decode(body, content_type);
    let reader = PageReader::new(limits);
    finish(walk(&text.text, limits.attributes, reader), &text)
}

/// Reads all that [`read_html`] does, while the same tags and text go to `other`; gives the text
/// too.
pub(crate) fn read_beside<'b, C: Consumer>(
    body: &'b [u8],
    content_type: Option<&str>,
    limits: &Limits,
    other: C,
) -> (Page, C, PageText<'b>) {
    let text = PageText::decode(body, content_type);
    let both = (PageReader::new(limits), other);
    let (reader, other) = walk(&text.text, limits.attributes, both);
    (finish(reader, &text), other, text)
}

/// Gives all tags and text of a page to `consumer`, tags with `attributes` at most; gives the text
/// too.
pub(crate) fn pass_over<'b, C: Consumer>(
    body: &'b [u8],
    content_type: Option<&str>,
    attributes: usize,
    consumer: C,
) -> (C, PageText<'b>) {
    let text = PageText::decode(body, content_type);
    (walk(&text.text, attributes, consumer), text)
}

fn finish(reader: PageReader, text: &PageText<'_>) -> Page {
    let mut page = reader.finish(&text.text);
    page.charset = text.charset.encoding.name();
    page.charset_source = text.charset.source;
    if text.charset.unknown {
        note(&mut page.oddities, DocumentOddityKind::UnknownCharset, 1);
    }
    if text.is_broken {
        note(&mut page.oddities, DocumentOddityKind::UndecodableBytes, 1);
    }
    page
}
