//! Counts images without alternative text or size for an audit of a page, and checks whether the
//! page declares its language.

use super::decoded_page::DecodedPage;
use super::element_name;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_dispatcher::walk;
use super::tag_kinds::TagKinds;
use super::tokenizer::{Tag, TextBetweenTags};
use super::visible_text::{HiddenElement, is_hidden};
use crate::reading_limits::ReadingLimits;

/// Maximum number of images whose `src` is kept in each list.
const MAX_SOURCES: usize = 100;
/// Maximum bytes of a `src` to keep; longer ones (data URLs) are dropped.
const MAX_SOURCE_BYTES: usize = 1024;

/// The visible `img` elements of a page, and whether the page declares its language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageAndLanguageAudit {
    /// Number of `img` elements.
    pub images: u64,
    /// Number of `img` elements without alternative text.
    pub without_text: u64,
    /// The `src` of the first 100 images without alternative text, as written. An image without a
    /// `src` has an empty string.
    pub sources: Vec<String>,
    /// The `src` of the first 100 images without a width and a height, as written. An image without
    /// a `src` has an empty string.
    pub unsized_sources: Vec<String>,
    /// Whether the `html` element has a `lang` (or `xml:lang`) that isn't empty.
    pub has_language: bool,
}

/// Counts the visible images of a page, and those without alternative text: without `alt`,
/// `aria-label`, `aria-labelledby` and `title`, and not marked as decoration by their `role`. An
/// empty `alt` marks a decoration too (HTML Standard 4.8.4.4.2). Images in `noscript` don't count,
/// nor those that `hidden`, `aria-hidden` or a `style` hides, also around them. An image has a size if it has the
/// attributes `width` and `height`, or a `style` that names both.
///
/// Never fails. Takes linear time.
///
/// ```
/// use crawl_extractor::{DecodedPage, audit_elements};
///
/// let page = b"<html lang=en><img src=a.png width=1 height=1><img src=b.png alt=''>";
/// let audit = audit_elements(&DecodedPage::decode(page, Some("text/html")));
/// assert_eq!((audit.images, audit.without_text), (2, 1));
/// assert_eq!(audit.sources, ["a.png"]);
/// assert_eq!(audit.unsized_sources, ["b.png"]);
/// assert!(audit.has_language);
/// ```
#[must_use]
pub fn audit_elements(text: &DecodedPage<'_>) -> ImageAndLanguageAudit {
    walk(
        text,
        ReadingLimits::default().attributes,
        ElementAuditor::default(),
    )
    .audit
}

#[derive(Default)]
struct ElementAuditor {
    audit: ImageAndLanguageAudit,
    /// The hidden element around the current tag.
    hidden: Option<HiddenElement>,
}

impl TagConsumer for ElementAuditor {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        if !at.shown || at.space != Namespace::Html {
            return;
        }
        if let Some(hidden) = &mut self.hidden {
            return hidden.start(tag);
        }
        match tag.name {
            element_name::HTML => {
                let languages = ["lang", "xml:lang"].map(|name| tag.attributes.get(name));
                let mut languages = languages.iter().flatten();
                self.audit.has_language |= languages.any(|language| !language.trim().is_empty());
            }
            name if name == element_name::NOSCRIPT || is_hidden_from_readers(tag) => {
                self.hidden = requires_end_tag(tag).then(|| HiddenElement::begun_by(tag));
            }
            element_name::IMG => self.audit.image(tag),
            _ => {}
        }
    }

    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        if at.shown && at.space == Namespace::Html {
            self.hidden = self.hidden.and_then(|hidden| hidden.end(tag));
        }
    }

    fn text(&mut self, _text: &TextBetweenTags<'_>, _at: TagContext) {}
}

impl ImageAndLanguageAudit {
    fn image(&mut self, tag: &Tag<'_>) {
        self.images += 1;
        let attributes = tag.attributes;
        let source = attributes.get("src").map(str::trim).unwrap_or_default();
        let is_sized = ["width", "height"].iter().all(|name| {
            let style = || attributes.get("style");
            attributes.get(name).is_some() || style().is_some_and(|style| declares(style, name))
        });
        if !is_sized {
            keep(&mut self.unsized_sources, source);
        }
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
        keep(&mut self.sources, source);
    }
}

/// Returns whether screen readers skip the element of a tag, and browsers reserve no space for it or
/// show it as decoration.
fn is_hidden_from_readers(tag: &Tag<'_>) -> bool {
    let aria = tag.attributes.get("aria-hidden");
    is_hidden(tag) || aria.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Returns whether the element of a tag may contain images, and requires an end tag.
fn requires_end_tag(tag: &Tag<'_>) -> bool {
    tag.kinds.is(TagKinds::CONTAINER)
        || matches!(
            tag.name,
            element_name::A
                | element_name::BUTTON
                | element_name::FIGURE
                | element_name::NOSCRIPT
                | element_name::SPAN
        )
}

/// Returns whether the value of a `style` attribute declares a property.
fn declares(style: &str, property: &str) -> bool {
    let mut declarations = style.split(';').filter_map(|text| text.split_once(':'));
    declarations.any(|(name, _)| name.trim().eq_ignore_ascii_case(property))
}

/// Adds a `src`, unless it is too long or the limit is reached.
fn keep(sources: &mut Vec<String>, source: &str) {
    if sources.len() < MAX_SOURCES && source.len() <= MAX_SOURCE_BYTES {
        sources.push(source.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::{DecodedPage, audit_elements};

    #[test]
    fn images_need_a_text_or_a_mark_as_decoration() {
        let page = "<img src=1.png><img src=2.png alt=Cup><img src=3.png alt=''><img alt>\
                    <img src=4.png role=presentation><img src=5.png aria-label=Tea>\
                    <img><template><img src=6.png></template><!-- <img src=7.png> -->\
                    <svg><image href=8.png /></svg><img src='data:image/png;base64,AAAA'>";
        let texts = audit_elements(&DecodedPage::decode(page.as_bytes(), Some("text/html")));
        assert_eq!((texts.images, texts.without_text), (8, 3));
        assert_eq!(texts.sources, ["1.png", "", "data:image/png;base64,AAAA"]);
        let many = "<img src=a.png>".repeat(109) + &format!("<img src={}>", "b".repeat(2000));
        let texts = audit_elements(&DecodedPage::decode(many.as_bytes(), Some("text/html")));
        assert_eq!((texts.without_text, texts.sources.len()), (110, 100));
    }

    #[test]
    fn hidden_images_need_no_text() {
        let sources = |page: &str| {
            let page = DecodedPage::decode(page.as_bytes(), Some("text/html"));
            let audit = audit_elements(&page);
            assert_eq!(audit.sources.len(), audit.images as usize);
            audit.sources.join(" ")
        };
        for hidden in [
            "<img src=x hidden>",
            "<img src=x aria-hidden=true>",
            "<img src=x style='display: none'>",
            "<noscript><img src=x></noscript>",
            "<div hidden><p><div><img src=x></div><img src=x></div>",
            "<a href=/ aria-hidden=true><span><img src=x></span></a>",
            "<p hidden><span aria-hidden=TRUE><img src=x></span>",
        ] {
            assert_eq!(sources(&format!("{hidden}<img src=y>")), "y", "{hidden}");
        }
        // These don't hide an image.
        for shown in [
            "<input type=hidden>",
            "<div aria-hidden=false>",
            "<br hidden><p hidden>",
            "<div hidden></div>",
        ] {
            assert_eq!(sources(&format!("{shown}<img src=y>")), "y", "{shown}");
        }
    }

    #[test]
    fn images_need_a_width_and_a_height() {
        let page = "<img src=1.png width=3><img src=2.png width=3 height=4>\
                    <img src=3.png style='Width: 3px; height : auto'><img src=4.png>\
                    <img src=5.png style='max-width: 9px; line-height: 1; x: height'>";
        let texts = audit_elements(&DecodedPage::decode(page.as_bytes(), Some("text/html")));
        assert_eq!(texts.unsized_sources, ["1.png", "4.png", "5.png"]);
    }

    #[test]
    fn the_language_is_that_of_the_html_element() {
        let has_language = |page: &str| {
            audit_elements(&DecodedPage::decode(page.as_bytes(), Some("text/html"))).has_language
        };
        assert!(has_language("<!doctype html><html lang=de><p>x"));
        assert!(has_language(
            "<html lang=de style='visibility: hidden'><p>x"
        ));
        assert!(!has_language("<html lang=''><p lang=de>x"));
        assert!(!has_language("<p lang=de>x"));
    }
}
