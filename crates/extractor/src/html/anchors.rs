//! The places in a page that a fragment can lead to.

use std::collections::HashSet;

use super::consumer::{At, Consumer, Space};
use super::name;
use super::page_text::PageText;
use super::tag_walk::walk;
use super::tokenizer::{Tag, Text};
use crate::limits::Limits;

/// Bytes of an id that are kept: one that is longer is led to by nobody.
const MAX_ID_BYTES: usize = 4096;

/// Reads the ids of all elements of a page, and the names of its `a` elements: what a fragment
/// leads to (HTML Standard 7.4.6.3). Those in a template count, since a script may show it.
///
/// Never fails. Time is linear in the page, memory is that of the ids.
///
/// ```
/// use crawl_extractor::{PageText, read_anchors};
///
/// let page = PageText::decode(b"<h2 id=tea>Tea</h2><a name=pour>Pour</a>", Some("text/html"));
/// let anchors = read_anchors(&page);
/// assert!(anchors.contains("tea") && anchors.contains("pour"));
/// ```
#[must_use]
pub fn read_anchors(text: &PageText<'_>) -> HashSet<String> {
    walk(text, Limits::default().attributes, Anchors::default()).0
}

#[derive(Default)]
struct Anchors(HashSet<String>);

impl Consumer for Anchors {
    fn start(&mut self, tag: &Tag<'_>, at: At) {
        let id = tag.attributes.get("id");
        let is_anchor = at.space == Space::Html && tag.name == name::A;
        let named = is_anchor.then(|| tag.attributes.get("name")).flatten();
        for value in id.into_iter().chain(named) {
            if !value.is_empty() && value.len() <= MAX_ID_BYTES {
                self.0.insert(value.to_owned());
            }
        }
    }

    fn end(&mut self, _tag: &Tag<'_>, _at: At) {}

    fn text(&mut self, _text: &Text<'_>, _at: At) {}
}
