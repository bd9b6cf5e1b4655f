//! The consumer that rewrites the URLs in a page.

use std::ops::Range;

use super::declared_media_type::below;
use super::decoded_page::DecodedPage;
use super::element_name;
use super::link_attributes::{LinkAttributeSyntax, holders};
use super::link_reader::{has_placeholder, looks_like_url};
use super::page_builder::is_css;
use super::srcset;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_dispatcher::{walk, walk_html};
use super::tokenizer::{Attribute, Tag, TagAttributes, TextBetweenTags};
use crate::collapsed_text_builder::trim;
use crate::css;
use crate::meta_refresh::refresh_target;
use crate::reading_limits::ReadingLimits;
use crate::text_edits::{TextEdit, edited_text};
use crate::url_rewriter::{RewriteDestination, UrlRewriter};

/// The edits of a page's text.
#[derive(Debug, Default)]
pub(crate) struct PageUrlEdits {
    /// The edits in ascending order.
    pub(crate) edits: Vec<TextEdit>,
    /// The offset at which to insert a `meta` that declares the charset: after the `head` tag if
    /// the page has one, else after the `html` tag, else before the first tag.
    pub(crate) meta_place: usize,
}

/// Returns the edits that give each reference in a page its new URL.
pub(crate) fn page_edits(page: &DecodedPage<'_>, rewriter: &mut UrlRewriter<'_>) -> PageUrlEdits {
    let collector = walk(
        page,
        ReadingLimits::default().attributes,
        UrlEditCollector::new(rewriter),
    );
    collector.finish()
}

/// Collects the edits of a page.
struct UrlEditCollector<'r, 'f> {
    rewriter: &'r mut UrlRewriter<'f>,
    edits: Vec<TextEdit>,
    meta_place: Option<usize>,
    /// Whether `meta_place` is final.
    has_meta_place: bool,
    /// Whether the next text is CSS.
    is_in_style: bool,
    /// Whether the page is the `srcdoc` of a frame. A `srcdoc` within it stays as it is.
    is_srcdoc: bool,
}

impl<'r, 'f> UrlEditCollector<'r, 'f> {
    fn new(rewriter: &'r mut UrlRewriter<'f>) -> UrlEditCollector<'r, 'f> {
        UrlEditCollector {
            rewriter,
            edits: Vec::new(),
            meta_place: None,
            has_meta_place: false,
            is_in_style: false,
            is_srcdoc: false,
        }
    }

    fn finish(mut self) -> PageUrlEdits {
        // Sort the edits, because the attributes of a tag are not rewritten in page order.
        self.edits.sort_by_key(|edit| edit.range.start);
        // A tag with several URLs has several edits that remove its `crossorigin`. Keep one.
        self.edits.dedup();
        PageUrlEdits {
            edits: self.edits,
            meta_place: self.meta_place.unwrap_or(0),
        }
    }

    fn find_meta_place(&mut self, tag: &Tag<'_>) {
        if matches!(tag.name, element_name::HTML | element_name::HEAD) {
            self.meta_place = Some(tag.end);
        } else {
            self.meta_place.get_or_insert(tag.offset);
        }
        self.has_meta_place = tag.name != element_name::HTML;
    }

    /// Replaces the value of an attribute by `value`, which is escaped here.
    fn set(&mut self, attribute: Attribute<'_>, value: &str) {
        let mut with = escaped(value);
        if !attribute.is_quoted() {
            with = format!("\"{with}\"");
        }
        let range = attribute.value_range();
        self.edits.push(TextEdit { range, with });
    }

    fn remove(&mut self, attributes: TagAttributes<'_>, name: &str) {
        if let Some(attribute) = attributes.first(name) {
            let (range, with) = (attribute.range(), String::new());
            self.edits.push(TextEdit { range, with });
        }
    }

    /// Rewrites an attribute that contains a URL. Returns whether it now leads to a file.
    fn rewrite_attribute(
        &mut self,
        attributes: TagAttributes<'_>,
        name: &str,
        destination: RewriteDestination,
    ) -> bool {
        let attribute = attributes.first(name);
        let Some(attribute) = attribute.filter(|one| !trim(one.value()).is_empty()) else {
            return false;
        };
        let Some(new) = self.rewriter.of_attribute(attribute.value(), destination) else {
            return false;
        };
        self.set(attribute, &new.text);
        new.is_file
    }

    /// Rewrites the URL of a hyperlink. An empty URL needs care: if the page has a `base`, it leads
    /// to the URL of the `base`.
    fn hyperlink(&mut self, attributes: TagAttributes<'_>) {
        let href = attributes.first("href");
        match href.filter(|href| self.rewriter.has_base && trim(href.value()).is_empty()) {
            None => _ = self.rewrite_attribute(attributes, "href", RewriteDestination::FileIfAny),
            Some(href) => {
                let new = self
                    .rewriter
                    .of_attribute("", RewriteDestination::FileIfAny);
                self.edits.extend(new.map(|new| TextEdit {
                    range: href.range(),
                    with: format!("href=\"{}\"", escaped(&new.text)),
                }));
            }
        }
    }

    /// Rewrites the URL of a resource. If the new URL leads to a file, removes `integrity` and
    /// `crossorigin`, with which a browser would not load the file. `integrity` is the digest of
    /// the resource before it was rewritten, and `crossorigin` requires an origin, which a file
    /// doesn't have.
    fn resource(&mut self, attributes: TagAttributes<'_>, name: &str) {
        if self.rewrite_attribute(attributes, name, RewriteDestination::FileIfAny) {
            self.remove(attributes, "integrity");
            self.remove(attributes, "crossorigin");
        }
    }

    fn srcset(&mut self, attributes: TagAttributes<'_>, name: &str) {
        let Some(attribute) = attributes.first(name) else {
            return;
        };
        let value = attribute.value();
        let mut edits = Vec::new();
        for url in srcset::urls(value) {
            if let Some(new) = self
                .rewriter
                .of_attribute(url, RewriteDestination::FileIfAny)
            {
                // A comma at the end of the URL would end the image candidate, so encode it.
                let bare = new.text.trim_end_matches(',');
                let commas = "%2C".repeat(new.text.len() - bare.len());
                edits.push(TextEdit {
                    range: range_in(value, url),
                    with: format!("{bare}{commas}"),
                });
            }
        }
        self.set_edited(attribute, &edits);
    }

    fn style_attribute(&mut self, attributes: TagAttributes<'_>) {
        let style = attributes.first("style");
        let Some(style) = style.filter(|style| style.value().contains('(')) else {
            return;
        };
        let edits = self.rewriter.of_css(css::declarations(style.value()));
        self.set_edited(style, &edits);
    }

    /// Applies edits to the value of an attribute.
    fn set_edited(&mut self, attribute: Attribute<'_>, edits: &[TextEdit]) {
        if !edits.is_empty() {
            self.set(attribute, &edited_text(attribute.value(), edits));
        }
    }

    fn html(&mut self, tag: &Tag<'_>, attributes: TagAttributes<'_>) {
        if let Some((_, held)) = holders(tag.name) {
            for holder in held {
                match holder.holds {
                    LinkAttributeSyntax::Srcset => self.srcset(attributes, holder.attribute),
                    LinkAttributeSyntax::UrlOrProse
                        if !attributes.get(holder.attribute).is_some_and(looks_like_url) => {}
                    LinkAttributeSyntax::Url | LinkAttributeSyntax::UrlOrProse => {
                        self.resource(attributes, holder.attribute);
                    }
                }
            }
            return;
        }
        match tag.name {
            element_name::A | element_name::AREA => self.hyperlink(attributes),
            element_name::LINK => self.link(attributes),
            element_name::BASE => self.remove(attributes, "href"),
            element_name::META => self.meta(attributes),
            element_name::FRAME | element_name::IFRAME => self.frame(attributes),
            element_name::EMBED => self.resource(attributes, "src"),
            element_name::OBJECT => self.object(attributes),
            element_name::FORM => {
                self.rewrite_attribute(attributes, "action", RewriteDestination::Web);
            }
            element_name::BUTTON => {
                self.rewrite_attribute(attributes, "formaction", RewriteDestination::Web);
            }
            element_name::INPUT => {
                self.resource(attributes, "src");
                self.rewrite_attribute(attributes, "formaction", RewriteDestination::Web);
            }
            _ => {}
        }
    }

    fn link(&mut self, attributes: TagAttributes<'_>) {
        let rel = attributes.get("rel").unwrap_or_default();
        let mut words = rel.split_ascii_whitespace();
        if words.any(|word| word.eq_ignore_ascii_case("canonical")) {
            self.rewrite_attribute(attributes, "href", RewriteDestination::Web);
        } else {
            self.resource(attributes, "href");
        }
        self.srcset(attributes, "imagesrcset");
    }

    fn meta(&mut self, attributes: TagAttributes<'_>) {
        let equiv = attributes.get("http-equiv").unwrap_or_default();
        let is = |word: &str| equiv.eq_ignore_ascii_case(word);
        if is("refresh") {
            self.refresh(attributes);
        } else if is("content-security-policy") {
            // A file has no origin. The policy allows only the origins that it names, so it would
            // block every resource.
            self.remove(attributes, "http-equiv");
            self.remove(attributes, "content");
        }
    }

    fn refresh(&mut self, attributes: TagAttributes<'_>) {
        let Some(content) = attributes.first("content") else {
            return;
        };
        let Some(target) = refresh_target(content.value()) else {
            return;
        };
        if let Some(new) = self
            .rewriter
            .of_attribute(target, RewriteDestination::FileIfAny)
        {
            let edit = TextEdit {
                range: range_in(content.value(), target),
                // Encode `'`, because the URL may be in single quotation marks.
                with: new.text.replace('\'', "%27"),
            };
            self.set_edited(content, &[edit]);
        }
    }

    fn frame(&mut self, attributes: TagAttributes<'_>) {
        self.rewrite_attribute(attributes, "src", RewriteDestination::FileIfAny);
        if attributes.get("longdesc").is_some_and(looks_like_url) {
            self.rewrite_attribute(attributes, "longdesc", RewriteDestination::FileIfAny);
        }
        let srcdoc = attributes.first("srcdoc").filter(|_| !self.is_srcdoc);
        let Some(srcdoc) = srcdoc else { return };
        let mut inner = UrlEditCollector::new(&mut *self.rewriter);
        inner.is_srcdoc = true;
        let edits = walk_html(srcdoc.value(), ReadingLimits::default().attributes, inner).finish();
        self.set_edited(srcdoc, &edits.edits);
    }

    fn object(&mut self, attributes: TagAttributes<'_>) {
        let Some(codebase) = attributes.get("codebase").map(trim) else {
            return self.resource(attributes, "data");
        };
        let data = attributes.first("data");
        let Some(data) = data.filter(|data| !trim(data.value()).is_empty()) else {
            return;
        };
        let href = below(codebase, trim(data.value()));
        if let Some(new) = self
            .rewriter
            .of_attribute(&href, RewriteDestination::FileIfAny)
        {
            self.set(data, &new.text);
            self.remove(attributes, "codebase");
        }
    }

    fn foreign(&mut self, tag: &Tag<'_>, attributes: TagAttributes<'_>, space: Namespace) {
        let is_link = space == Namespace::Math || tag.name == element_name::A;
        let is_resource = matches!(
            tag.name,
            element_name::IMAGE | element_name::USE | element_name::FEIMAGE | element_name::SCRIPT
        );
        if is_link || is_resource {
            for name in ["href", "xlink:href"] {
                self.resource(attributes, name);
            }
        }
    }

    /// Rewrites the CSS in the text of a `style` element.
    fn style_text(&mut self, text: &TextBetweenTags<'_>) {
        let place = text.place();
        let source = &text.page[place.clone()];
        if text.is_raw() || !source.contains('&') {
            let edits = self.rewriter.of_css(css::sheet(source));
            self.edits.extend(edits.into_iter().map(|edit| TextEdit {
                range: place.start + edit.range.start..place.start + edit.range.end,
                ..edit
            }));
            return;
        }
        let mut decoded = String::with_capacity(source.len());
        text.parts(|part| decoded.push_str(part));
        let edits = self.rewriter.of_css(css::sheet(&decoded));
        if !edits.is_empty() {
            let with = escaped(&edited_text(&decoded, &edits));
            self.edits.push(TextEdit { range: place, with });
        }
    }
}

impl TagConsumer for UrlEditCollector<'_, '_> {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.is_in_style = false;
        if !self.has_meta_place {
            self.find_meta_place(tag);
        }
        if !at.shown && !at.in_template {
            return;
        }
        let attributes = tag.attributes;
        if at.in_template && attributes.iter().any(|one| has_placeholder(one.value())) {
            return;
        }
        self.is_in_style = tag.name == element_name::STYLE && is_css(attributes);
        self.style_attribute(attributes);
        match at.space {
            Namespace::Html => self.html(tag, attributes),
            space @ (Namespace::Svg | Namespace::Math) => self.foreign(tag, attributes, space),
        }
    }

    fn end(&mut self, _tag: &Tag<'_>, _at: TagContext) {
        self.is_in_style = false;
    }

    fn text(&mut self, text: &TextBetweenTags<'_>, _at: TagContext) {
        if self.is_in_style {
            self.style_text(text);
        }
    }
}

/// Returns the byte range of `part` in `whole`. `part` must be a slice of `whole`.
fn range_in(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// Returns text escaped for XML text and for an attribute's value in either kind of quotation
/// marks. Characters other than ASCII become numeric references, so that the result can be written
/// in any charset.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c if c.is_ascii() && c != '\r' => escaped.push(c),
            c => escaped.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    escaped
}
