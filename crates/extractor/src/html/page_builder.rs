//! Builds an [`ExtractedPage`](crate::ExtractedPage) from tags and text.

use super::element_name;
use super::link_reader::LinkReader;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_kinds::TagKinds;
use super::tokenizer::{Tag, TagAttributes, TextBetweenTags};
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};
use crate::extracted_page::{ExtractedPage, NamedMeta};
use crate::head_end::HeadTracker;
use crate::meta_refresh::{is_immediate, refresh_target};
use crate::oddities::OddityList;
use crate::reading_limits::{DocumentOddityKind, ReadingLimits};

/// Builds a page from its tags and text.
pub(super) struct PageBuilder {
    limits: ReadingLimits,
    page: ExtractedPage,
    links: LinkReader,
    /// The kind of text that comes next.
    text_of: PageTextKind,
    title: CollapsedTextBuilder,
    has_title: bool,
    head_end: HeadTracker,
    /// The text of the open style element.
    css: String,
    css_offset: usize,
    oddities: OddityList<DocumentOddityKind>,
}

/// The kind of text that comes next, which depends on its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageTextKind {
    /// Text of the page or, if a link is open, of the link.
    Page,
    Title,
    Style,
    /// Text of a script or form field, which is ignored.
    Raw,
}

impl PageBuilder {
    pub(super) fn new(limits: &ReadingLimits) -> PageBuilder {
        PageBuilder {
            page: ExtractedPage::default(),
            links: LinkReader::new(limits),
            text_of: PageTextKind::Page,
            title: CollapsedTextBuilder::new(limits.title_bytes),
            has_title: false,
            head_end: HeadTracker::default(),
            css: String::new(),
            css_offset: 0,
            oddities: OddityList::default(),
            limits: limits.clone(),
        }
    }

    /// Returns the page read from `text`.
    pub(super) fn finish(mut self, text: &str) -> ExtractedPage {
        self.end_title(0);
        self.end_style();
        self.links.end_anchor(&mut self.oddities, 0);
        self.page.links = self.links.into_links();
        self.page.oddities = self.oddities.into_list(text);
        self.page
    }

    /// Processes a tag that contains metadata of the page, such as its base or title.
    fn about_page(&mut self, tag: &Tag<'_>, attributes: TagAttributes<'_>, at: TagContext) {
        let is_html = at.space == Namespace::Html;
        match tag.name {
            element_name::LINK if is_html => self.canonical(attributes, at.offset),
            element_name::BASE if is_html => self.base(attributes, at.offset),
            element_name::META if is_html => self.meta(attributes, at.offset),
            element_name::TITLE if is_html && !self.has_title => {
                self.has_title = true;
                self.text_of = PageTextKind::Title;
            }
            element_name::STYLE if is_css(attributes) => {
                self.text_of = PageTextKind::Style;
                self.css_offset = at.offset;
            }
            _ => {}
        }
    }

    fn base(&mut self, attributes: TagAttributes<'_>, offset: usize) {
        let Some(href) = attributes.get("href").map(trim) else {
            return;
        };
        if self.page.base.is_none() {
            if href.len() > self.limits.href_bytes {
                self.note(DocumentOddityKind::HrefTooLong, offset);
            } else {
                self.page.base = Some(href.to_owned());
            }
        }
    }

    /// Records the URL of the first `rel=canonical` in the head.
    fn canonical(&mut self, attributes: TagAttributes<'_>, offset: usize) {
        let (Some(rel), Some(href)) = (attributes.get("rel"), attributes.get("href")) else {
            return;
        };
        let mut words = rel.split_ascii_whitespace();
        let href = trim(href);
        if href.is_empty() || !words.any(|word| word.eq_ignore_ascii_case("canonical")) {
            return;
        }
        if !self.head_end.is_head() {
            return self.note(DocumentOddityKind::CanonicalInBody, offset);
        }
        match &self.page.canonical {
            None if href.len() > self.limits.href_bytes => {
                self.note(DocumentOddityKind::HrefTooLong, offset);
            }
            None => self.page.canonical = Some(href.to_owned()),
            Some(first) if first != href => {
                self.note(DocumentOddityKind::SeveralCanonicals, offset);
            }
            Some(_) => {}
        }
    }

    fn meta(&mut self, attributes: TagAttributes<'_>, offset: usize) {
        let Some(content) = attributes.get("content") else {
            return;
        };
        let equiv = attributes.get("http-equiv").unwrap_or_default();
        if equiv.eq_ignore_ascii_case("refresh")
            && let Some(target) = refresh_target(content)
        {
            self.links.refresh(target, &mut self.oddities, offset);
            let is_short = target.len() <= self.limits.href_bytes;
            if is_short && is_immediate(content) && self.head_end.is_head() {
                self.page.redirect.get_or_insert_with(|| target.to_owned());
            }
        }
        if let Some(name) = attributes.get("name") {
            self.named_meta(trim(name), content, offset);
        }
    }

    fn named_meta(&mut self, name: &str, content: &str, offset: usize) {
        let limit = self.limits.meta_bytes;
        if self.page.metas.len() >= self.limits.metas {
            return self.note(DocumentOddityKind::MetasFull, offset);
        }
        if name.len() > limit || content.len() > limit {
            self.note(DocumentOddityKind::MetaCut, offset);
        }
        if !name.is_empty() && name.len() <= limit {
            let content = content[..content.floor_char_boundary(limit)].to_owned();
            if name.eq_ignore_ascii_case("url")
                && self.head_end.is_head()
                && self.page.master_url.is_none()
            {
                let url = Some(trim(&content)).filter(|url| !url.is_empty());
                self.page.master_url = url.map(str::to_owned);
            }
            self.page.metas.push(NamedMeta {
                name: name.to_ascii_lowercase(),
                content,
            });
        }
    }

    fn end_title(&mut self, offset: usize) {
        let (title, cut) = self.title.take();
        if cut {
            self.note(DocumentOddityKind::TitleCut, offset);
        }
        self.page.title = self.page.title.take().or(title);
    }

    fn style_text(&mut self, text: &str) {
        let room = self.limits.css_bytes.saturating_sub(self.css.len());
        let fitting = &text[..text.floor_char_boundary(room)];
        self.css.push_str(fitting);
        if fitting.len() < text.len() {
            self.note(DocumentOddityKind::CssTooLong, self.css_offset);
        }
    }

    fn end_style(&mut self) {
        let oddities = &mut self.oddities;
        self.links
            .style_element(&self.css, oddities, self.css_offset);
        self.css.clear();
    }

    /// Ends the title or style element that is open, if there is one.
    #[inline]
    fn end_text(&mut self, offset: usize) {
        if self.text_of != PageTextKind::Page {
            self.end_own_text(offset);
        }
    }

    fn end_own_text(&mut self, offset: usize) {
        match std::mem::replace(&mut self.text_of, PageTextKind::Page) {
            PageTextKind::Title => self.end_title(offset),
            PageTextKind::Style => self.end_style(),
            PageTextKind::Page | PageTextKind::Raw => {}
        }
    }

    fn note(&mut self, what: DocumentOddityKind, offset: usize) {
        self.oddities.note(what, offset);
    }

    /// Returns the attributes of a tag up to the limit. Notes an oddity if the tag has more.
    #[inline]
    fn attributes<'a>(&mut self, tag: &Tag<'a>, at: TagContext) -> TagAttributes<'a> {
        let (attributes, was_cut) = tag.attributes_up_to(self.limits.attributes);
        if was_cut {
            self.note(DocumentOddityKind::AttributesFull, at.offset);
        }
        attributes
    }

    /// Returns whether this reader can ignore a visible HTML tag. After the head, it can ignore
    /// most tags.
    #[inline]
    fn passes_over(&self, tag: &Tag<'_>) -> bool {
        self.text_of == PageTextKind::Page
            && self.head_end.is_over()
            && !tag.kinds.is(TagKinds::ABOUT_PAGE)
            && !self.links.wants(tag)
            && !tag.attributes_up_to(self.limits.attributes).1
    }

    fn start_tag(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.end_text(at.offset);
        let attributes = self.attributes(tag, at);
        if at.raw {
            self.text_of = PageTextKind::Raw;
        }
        if at.in_template {
            let oddities = &mut self.oddities;
            return self.links.in_template(tag, attributes, at, oddities);
        }
        if !at.shown {
            return;
        }
        if at.space == Namespace::Html {
            self.head_end.start(tag.name);
        }
        if tag.kinds.is(TagKinds::ABOUT_PAGE) {
            self.about_page(tag, attributes, at);
        }
        let oddities = &mut self.oddities;
        self.links.start(tag, attributes, at, oddities);
    }

    fn end_tag(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.end_text(at.offset);
        self.attributes(tag, at);
        if at.shown {
            if at.space == Namespace::Html {
                self.head_end.end(tag.name);
            }
            self.links.end(tag, &mut self.oddities, at.offset);
        }
    }

    /// Processes text that may be needed: the text of a link, a title or a style, or text that ends
    /// the head.
    fn wanted_text(&mut self, text: &TextBetweenTags<'_>) {
        text.parts(|part| match self.text_of {
            PageTextKind::Page => {
                self.head_end.text(part);
                if self.links.wants_text() {
                    self.links.text(part);
                }
            }
            PageTextKind::Title => self.title.push(part),
            PageTextKind::Style => self.style_text(part),
            PageTextKind::Raw => {}
        });
    }
}

impl TagConsumer for PageBuilder {
    #[inline]
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        if !at.is_shown_html() || !self.passes_over(tag) {
            self.start_tag(tag, at);
        }
    }

    #[inline]
    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        if !at.is_shown_html() || !self.passes_over(tag) {
            self.end_tag(tag, at);
        }
    }

    #[inline]
    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext) {
        let is_wanted = match self.text_of {
            PageTextKind::Page => at.shown && (self.links.wants_text() || self.head_end.is_head()),
            PageTextKind::Title | PageTextKind::Style => true,
            PageTextKind::Raw => false,
        };
        if is_wanted {
            self.wanted_text(text);
        }
    }
}

/// Returns whether a `style` element contains CSS, because it declares no other type (HTML Standard
/// 4.2.6).
pub(super) fn is_css(attributes: TagAttributes<'_>) -> bool {
    let media_type = attributes.get("type").unwrap_or_default();
    media_type.is_empty() || media_type.eq_ignore_ascii_case("text/css")
}
