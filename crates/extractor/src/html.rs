//! Reading an HTML page: bytes to text to tokens to a [`Page`].

pub(crate) mod consumer;
mod declared_type;
mod foreign;
#[cfg(test)]
mod html5lib_cases;
mod link_attributes;
mod links;
mod page_reader;
mod srcset;
mod tag;
mod tag_guard;
mod tag_walk;
mod token_sink;
mod tokenizer_input;
mod word_boundaries;

use encoding_rs::CoderResult;

use crate::charset::{self, Charset};
use crate::limits::{DocumentOddityKind, Limits, note};
use crate::page::Page;
use consumer::Consumer;
use page_reader::PageReader;
use tokenizer_input::Pump;

/// Text decoded at a time. The whole page never stands in memory a second time.
const DECODED_BYTES: usize = 64 * 1024;

/// Reads the page in `body`. `content_type` is the value of its header; content
/// codings are undone already.
///
/// Never fails; any bytes give a page. The time is linear in `body`, the memory is that
/// of the result and a few hundred KiB, and one construct that is not closed yet (a comment,
/// a value, a name, a style sheet), which is held whole.
#[must_use]
pub fn read_html(body: &[u8], content_type: Option<&str>, limits: &Limits) -> Page {
    let charset = charset::of_html(body, content_type);
    let (reader, undecodable) = pass(body, &charset, PageReader::new(limits), limits.attributes);
    finish(reader, &charset, undecodable)
}

/// Reads all that [`read_html`] does, while the same tags and text go to `other`.
pub(crate) fn read_beside<C: Consumer>(
    body: &[u8],
    content_type: Option<&str>,
    limits: &Limits,
    other: C,
) -> (Page, C) {
    let charset = charset::of_html(body, content_type);
    let both = (PageReader::new(limits), other);
    let ((reader, other), undecodable) = pass(body, &charset, both, limits.attributes);
    (finish(reader, &charset, undecodable), other)
}

/// Gives all tags and text of a page to `consumer`, tags with `attributes` at most, give or
/// take those that stand in one piece of text.
pub(crate) fn pass_over<C: Consumer>(
    body: &[u8],
    content_type: Option<&str>,
    attributes: usize,
    consumer: C,
) -> C {
    let charset = charset::of_html(body, content_type);
    pass(body, &charset, consumer, attributes).0
}

fn finish(reader: PageReader, charset: &Charset, undecodable: bool) -> Page {
    let mut page = reader.finish();
    page.charset = charset.encoding.name();
    page.charset_source = charset.source;
    if charset.unknown {
        note(&mut page.oddities, DocumentOddityKind::UnknownCharset, 1);
    }
    if undecodable {
        note(&mut page.oddities, DocumentOddityKind::UndecodableBytes, 1);
    }
    page
}

/// Makes the one pass over a page: all its tags and text go to `consumer`. Gives it back,
/// and whether bytes were met that are no text.
fn pass<C: Consumer>(body: &[u8], charset: &Charset, consumer: C, attributes: usize) -> (C, bool) {
    let mut pump = Pump::new(consumer, attributes);
    let mut decoder = charset.encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(DECODED_BYTES);
    let mut rest = &body[charset.skip..];
    let mut undecodable = false;
    loop {
        let (result, read, replaced) = decoder.decode_to_string(rest, &mut text, true);
        undecodable |= replaced;
        rest = &rest[read..];
        pump.push(&text);
        text.clear();
        if result == CoderResult::InputEmpty {
            break;
        }
    }
    (pump.finish(), undecodable)
}
