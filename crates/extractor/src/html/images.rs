//! The images of a page, and those without alternative text.

use super::consumer::{At, Consumer, Namespace};
use super::name;
use super::page_text::PageText;
use super::tag_walk::walk;
use super::tokenizer::{Tag, Text};
use crate::limits::Limits;

/// Maximum number of images without alternative text whose `src` is kept.
const MAX_SOURCES: usize = 5;
/// Maximum bytes of a `src` to keep; longer ones (data URLs) are dropped.
const MAX_SOURCE_BYTES: usize = 1024;

/// The visible `img` elements of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageTexts {
    /// Number of `img` elements.
    pub images: u64,
    /// Number of `img` elements without alternative text.
    pub without_text: u64,
    /// The `src` of the first five images without alternative text, as written.
    pub sources: Vec<String>,
}

/// Counts the visible images of a page, and those without alternative text: without `alt`,
/// `aria-label`, `aria-labelledby` and `title`, and not marked as decoration by their `role`. An
/// empty `alt` marks a decoration too (HTML Standard 4.8.4.4.2).
///
/// Never fails. Takes linear time.
///
/// ```
/// use crawl_extractor::{PageText, read_image_texts};
///
/// let page = PageText::decode(b"<img src=a.png><img src=b.png alt=''>", Some("text/html"));
/// let texts = read_image_texts(&page);
/// assert_eq!((texts.images, texts.without_text), (2, 1));
/// assert_eq!(texts.sources, ["a.png"]);
/// ```
#[must_use]
pub fn read_image_texts(text: &PageText<'_>) -> ImageTexts {
    walk(text, Limits::default().attributes, ImageTexts::default())
}

impl Consumer for ImageTexts {
    fn start(&mut self, tag: &Tag<'_>, at: At) {
        if tag.name != name::IMG || !at.shown || at.space != Namespace::Html {
            return;
        }
        self.images += 1;
        let attributes = tag.attributes;
        let is_named = ["alt", "aria-label", "aria-labelledby", "title"]
            .iter()
            .any(|name| attributes.get(name).is_some());
        let is_decoration = attributes
            .get("role")
            .is_some_and(|role| matches!(role.trim(), "presentation" | "none"));
        if is_named || is_decoration {
            return;
        }
        self.without_text += 1;
        let source = attributes.get("src").map(str::trim).unwrap_or_default();
        if self.sources.len() < MAX_SOURCES
            && !source.is_empty()
            && source.len() <= MAX_SOURCE_BYTES
        {
            self.sources.push(source.to_owned());
        }
    }

    fn end(&mut self, _tag: &Tag<'_>, _at: At) {}

    fn text(&mut self, _text: &Text<'_>, _at: At) {}
}

#[cfg(test)]
mod tests {
    use super::{PageText, read_image_texts};

    #[test]
    fn images_need_a_text_or_a_mark_as_decoration() {
        let page = "<img src=1.png><img src=2.png alt=Cup><img src=3.png alt=''><img alt>\
                    <img src=4.png role=presentation><img src=5.png aria-label=Tea>\
                    <img><template><img src=6.png></template><!-- <img src=7.png> -->\
                    <svg><image href=8.png /></svg><img src='data:image/png;base64,AAAA'>";
        let texts = read_image_texts(&PageText::decode(page.as_bytes(), Some("text/html")));
        assert_eq!((texts.images, texts.without_text), (8, 3));
        assert_eq!(texts.sources, ["1.png", "data:image/png;base64,AAAA"]);
        let many = "<img src=a.png>".repeat(9) + &format!("<img src={}>", "b".repeat(2000));
        let texts = read_image_texts(&PageText::decode(many.as_bytes(), Some("text/html")));
        assert_eq!((texts.without_text, texts.sources.len()), (10, 5));
    }
}
