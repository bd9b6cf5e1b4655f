//! Counts images without alternative text or size for an audit of a page, and checks whether the
//! page declares its language.

use super::decoded_page::DecodedPage;
use super::element_name::{self, ElementName};
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_dispatcher::walk;
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
/// `aria-label`, `aria-labelledby` and `title`, and not marked as decoration by their `role` or by
/// `aria-hidden`. An empty `alt` marks a decoration too (HTML Standard 4.8.4.4.2). Images in
/// `noscript` don't count, nor those that `hidden` or a `style` hides. These attributes also apply
/// to everything within their element, unless its end tag may be omitted, such as that of `li`. An
/// image has a size if it has the attributes `width` and `height`, or a `style` that names both.
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
    /// The element around the current tag that screen readers skip.
    skipped: Option<HiddenElement>,
}

impl TagConsumer for ElementAuditor {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        if !at.shown || at.space != Namespace::Html {
            return;
        }
        if let Some(hidden) = &mut self.hidden {
            return hidden.start(tag);
        }
        let is_skipped = match &mut self.skipped {
            Some(skipped) => {
                skipped.start(tag);
                true
            }
            None if is_hidden_from_screen_readers(tag) => {
                self.skipped = requires_end_tag(tag).then(|| HiddenElement::begun_by(tag));
                true
            }
            None => false,
        };
        match tag.name {
            element_name::HTML => {
                let languages = ["lang", "xml:lang"].map(|name| tag.attributes.get(name));
                let mut languages = languages.iter().flatten();
                self.audit.has_language |= languages.any(|language| !language.trim().is_empty());
            }
            name if name == element_name::NOSCRIPT || is_hidden(tag) => {
                self.hidden = requires_end_tag(tag).then(|| HiddenElement::begun_by(tag));
            }
            element_name::IMG => self.audit.image(tag, is_skipped),
            _ => {}
        }
    }

    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        if at.shown && at.space == Namespace::Html {
            self.hidden = self.hidden.and_then(|hidden| hidden.end(tag));
            self.skipped = self.skipped.and_then(|skipped| skipped.end(tag));
        }
    }

    fn text(&mut self, _text: &TextBetweenTags<'_>, _at: TagContext) {}
}

impl ImageAndLanguageAudit {
    /// Adds an image. `is_skipped` means that screen readers skip it.
    fn image(&mut self, tag: &Tag<'_>, is_skipped: bool) {
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
        if is_named || is_decoration || is_skipped {
            return;
        }
        self.without_text += 1;
        keep(&mut self.sources, source);
    }
}

/// Returns whether screen readers skip the element of a tag (WAI-ARIA 1.2 section 6.7.2).
fn is_hidden_from_screen_readers(tag: &Tag<'_>) -> bool {
    let hidden = tag.attributes.get("aria-hidden");
    hidden.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Returns whether the element of a tag has content, and requires an end tag (HTML Standard
/// 13.1.2.4).
fn requires_end_tag(tag: &Tag<'_>) -> bool {
    use element_name as name;
    const COLGROUP: ElementName = ElementName::of(b"colgroup");
    let may_lack_end_tag = matches!(
        tag.name,
        name::HTML
            | name::HEAD
            | name::BODY
            | name::LI
            | name::DT
            | name::DD
            | name::P
            | name::RB
            | name::RT
            | name::RTC
            | name::RP
            | name::OPTGROUP
            | name::OPTION
            | COLGROUP
            | name::CAPTION
            | name::THEAD
            | name::TBODY
            | name::TFOOT
            | name::TR
            | name::TD
            | name::TH
    );
    let is_obsolete_void = matches!(
        tag.name,
        name::BASEFONT | name::BGSOUND | name::FRAME | name::IMAGE
    );
    !may_lack_end_tag && !is_obsolete_void && !name::is_void(tag.name)
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
            audit_elements(&page).sources.join(" ")
        };
        for hidden in [
            "<img src=x hidden>",
            "<img src=x aria-hidden=true>",
            "<img src=x style='display: none'>",
            "<noscript><img src=x></noscript>",
            "<div hidden><p><div><img src=x></div><img src=x></div>",
            "<a href=/ aria-hidden=true><span><img src=x></span></a>",
            "<picture aria-hidden=true><source srcset=x><img src=x></picture>",
            "<label hidden><i><img src=x></i></label>",
            "<b aria-hidden=true><b><img src=x></b><img src=x></b>",
            "<my-teaser hidden><img src=x></my-teaser>",
            "<p hidden><span aria-hidden=TRUE><img src=x></span>",
        ] {
            assert_eq!(sources(&format!("{hidden}<img src=y>")), "y", "{hidden}");
        }
        // These don't hide an image.
        for shown in [
            "<input type=hidden>",
            "<div aria-hidden=false>",
            "<br hidden><p hidden>",
            "<hr aria-hidden=true><li aria-hidden=true>",
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
        let page = "<a aria-hidden=true><img src=1.png></a><img src=2.png aria-hidden=true>                    <div hidden><img src=3.png></div><noscript><img src=4.png></noscript>";
        let texts = audit_elements(&DecodedPage::decode(page.as_bytes(), Some("text/html")));
        assert_eq!(texts.unsized_sources, ["1.png", "2.png"]);
        assert_eq!((texts.images, texts.without_text), (2, 0));
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
