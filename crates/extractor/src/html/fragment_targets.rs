//! The targets in a page that a fragment can refer to.

use std::collections::HashSet;

use super::decoded_page::DecodedPage;
use super::element_name;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_dispatcher::walk;
use super::tokenizer::{Tag, TextBetweenTags};
use crate::reading_limits::ReadingLimits;

/// Maximum bytes of an id; longer ids are dropped.
const MAX_ID_BYTES: usize = 4096;

/// Returns the possible targets of a fragment (HTML Standard 7.4.6.3): the ids of all elements of a
/// page, and the names of its `a` elements. Elements in a template are included, because a script
/// may show the template.
///
/// Never fails. Takes linear time, and memory for the ids.
///
/// ```
/// use crawl_extractor::{DecodedPage, read_anchors};
///
/// let page = DecodedPage::decode(b"<h2 id=tea>Tea</h2><a name=pour>Pour</a>", Some("text/html"));
/// let anchors = read_anchors(&page);
/// assert!(anchors.contains("tea") && anchors.contains("pour"));
/// ```
#[must_use]
pub fn read_anchors(text: &DecodedPage<'_>) -> HashSet<String> {
    walk(
        text,
        ReadingLimits::default().attributes,
        PageAnchors::default(),
    )
    .0
}

#[derive(Default)]
struct PageAnchors(HashSet<String>);

impl TagConsumer for PageAnchors {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        let id = tag.attributes.get("id");
        let is_anchor = at.space == Namespace::Html && tag.name == element_name::A;
        let named = is_anchor.then(|| tag.attributes.get("name")).flatten();
        for value in id.into_iter().chain(named) {
            if !value.is_empty() && value.len() <= MAX_ID_BYTES {
                self.0.insert(value.to_owned());
            }
        }
    }

    fn end(&mut self, _tag: &Tag<'_>, _at: TagContext) {}

    fn text(&mut self, _text: &TextBetweenTags<'_>, _at: TagContext) {}
}
