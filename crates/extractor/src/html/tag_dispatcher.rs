//! Determines the context of each tag and text in a page, without a tree.

use super::decoded_page::DecodedPage;
use super::element_name::{self, ElementName, is_void};
use super::foreign_elements::ForeignElements;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_kinds::TagKinds;
use super::tokenizer::{HtmlTokenKind, Tag, TextBetweenTags, Tokenizer, TokenizerTextState};
use super::xml_name_resolver::XmlNameResolver;
use crate::document_kind::MarkupSyntax;

/// Minimum bytes of a page between two calls of [`TagConsumer::is_given_up`].
const GIVEN_UP_CHECK_BYTES: usize = 64 << 10;

/// Passes all tags and text of a page to `consumer`, with at most `attributes` attributes per tag,
/// until the consumer gives up.
pub(super) fn walk<C: TagConsumer>(page: &DecodedPage<'_>, attributes: usize, consumer: C) -> C {
    match page.syntax() {
        MarkupSyntax::Html => walk_html(page.as_str(), attributes, consumer),
        MarkupSyntax::Xml => walk_xml(page.as_str(), attributes, consumer),
    }
}

/// Passes all tags and text of a page in HTML syntax to `consumer`.
pub(super) fn walk_html<C: TagConsumer>(text: &str, attributes: usize, consumer: C) -> C {
    let mut tokenizer = Tokenizer::new(text, MarkupSyntax::Html, attributes);
    let mut walk = TagDispatcher::new(consumer);
    let mut next_check = 0;
    loop {
        let token = tokenizer.next(walk.foreign.is_foreign());
        if let Some(text) = tokenizer.text() {
            walk.text(&text);
        }
        match token {
            HtmlTokenKind::StartTag => {
                let tag = tokenizer.tag();
                if tag.offset >= next_check {
                    if walk.consumer.is_given_up() {
                        return walk.consumer;
                    }
                    next_check = tag.offset + GIVEN_UP_CHECK_BYTES;
                }
                let mode = walk.start_tag(&tag);
                tokenizer.set_mode(mode);
            }
            HtmlTokenKind::EndTag => walk.end_tag(&tokenizer.tag()),
            HtmlTokenKind::Text => {}
            HtmlTokenKind::EndOfPage => return walk.consumer,
        }
    }
}

/// Passes all tags and text of a page in XML syntax to `consumer`. Unlike in HTML, an empty tag
/// (`<a/>`) ends its element, and prefixes refer to namespaces. `script`, `style`, `title` and the
/// like may contain CDATA sections and comments.
fn walk_xml<C: TagConsumer>(text: &str, attributes: usize, consumer: C) -> C {
    let mut tokenizer = Tokenizer::new(text, MarkupSyntax::Xml, attributes);
    let mut walk = TagDispatcher::new(consumer);
    let mut names = XmlNameResolver::default();
    let mut next_check = 0;
    loop {
        // In XML, CDATA sections are allowed anywhere, not only in drawings and formulas.
        let token = tokenizer.next(true);
        if let Some(text) = tokenizer.text() {
            walk.text(&text);
        }
        match token {
            HtmlTokenKind::StartTag => {
                let tag = tokenizer.tag();
                if tag.offset >= next_check {
                    if walk.consumer.is_given_up() {
                        return walk.consumer;
                    }
                    next_check = tag.offset + GIVEN_UP_CHECK_BYTES;
                }
                let tag = tag.renamed(names.start(&tag, tokenizer.written_name()));
                if tag.self_closing {
                    walk.empty_tag(&tag);
                } else if walk.start_tag(&tag) != TokenizerTextState::Markup {
                    tokenizer.set_mode(TokenizerTextState::XmlText);
                }
            }
            HtmlTokenKind::EndTag => {
                let tag = tokenizer.tag();
                let tag = tag.renamed(names.end(&tag, tokenizer.written_name()));
                // In XML, `<br></br>` is one element, so its end tag is not another line break.
                if !is_void(tag.name) {
                    walk.end_tag(&tag);
                }
            }
            HtmlTokenKind::Text => {}
            HtmlTokenKind::EndOfPage => return walk.consumer,
        }
    }
}

/// Passes tags and text with their contexts to a consumer, and controls the tokenizer.
pub(super) struct TagDispatcher<C> {
    pub(super) consumer: C,
    foreign: ForeignElements,
    /// Number of open `template` elements whose content is inert (not shown).
    inert: u32,
    /// The context of the text after the last tag.
    text_at: TagContext,
}

impl<C: TagConsumer> TagDispatcher<C> {
    pub(super) fn new(consumer: C) -> TagDispatcher<C> {
        TagDispatcher {
            consumer,
            foreign: ForeignElements::default(),
            inert: 0,
            text_at: TagContext::shown(0),
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_foreign()
    }

    #[inline]
    pub(super) fn text(&mut self, text: &TextBetweenTags<'_>) {
        self.consumer.text(text, self.text_at);
    }

    #[inline]
    pub(super) fn start_tag(&mut self, tag: &Tag<'_>) -> TokenizerTextState {
        if !self.is_plain() || tag.kinds.is(TagKinds::CHANGES_CONTEXT) {
            return self.start_tag_in_context(tag);
        }
        let at = TagContext::shown(tag.offset);
        self.consumer.start(tag, at);
        self.text_at = at;
        TokenizerTextState::Markup
    }

    #[inline]
    pub(super) fn end_tag(&mut self, tag: &Tag<'_>) {
        if !self.is_plain() {
            return self.end_tag_in_context(tag);
        }
        let at = TagContext::shown(tag.offset);
        self.consumer.end(tag, at);
        self.text_at = at;
    }

    /// Processes an empty XML element (`<a/>`) as a start tag and an end tag. There are two
    /// exceptions without an end tag. A void element, such as `br`, has no end tag in HTML either.
    /// In a drawing or formula, HTML syntax allows `<a/>` too, so the code for start tags already
    /// handles it.
    fn empty_tag(&mut self, tag: &Tag<'_>) {
        let was_foreign = self.foreign.is_foreign();
        self.start_tag(tag);
        let is_foreign = was_foreign && self.foreign.is_foreign();
        if !is_foreign && !tag.kinds.is(TagKinds::FOREIGN) && !is_void(tag.name) {
            self.end_tag(tag);
        }
    }

    /// Returns whether no drawing, formula or template is open.
    #[inline]
    fn is_plain(&self) -> bool {
        self.inert == 0 && self.foreign.is_empty()
    }

    #[cold]
    fn start_tag_in_context(&mut self, tag: &Tag<'_>) -> TokenizerTextState {
        let was_shown = self.foreign.is_shown();
        let space = self.foreign.start(tag);
        // An HTML tag ends a drawing around it, so the tag can't be within a script or style of the
        // drawing.
        let is_markup = was_shown || space == Namespace::Html;
        let in_template = is_markup && self.inert > 0;
        let mode = match space {
            Namespace::Html if tag.kinds.is(TagKinds::RAW) => mode_after(tag.name),
            Namespace::Html | Namespace::Svg | Namespace::Math => TokenizerTextState::Markup,
        };
        let at = TagContext {
            offset: tag.offset,
            space,
            shown: is_markup && !in_template,
            in_template,
            raw: mode != TokenizerTextState::Markup,
        };
        self.consumer.start(tag, at);
        if space == Namespace::Html && tag.name == element_name::TEMPLATE {
            self.start_template(tag);
        }
        self.text_follows(at);
        mode
    }

    #[cold]
    fn end_tag_in_context(&mut self, tag: &Tag<'_>) {
        let space = self.foreign.end(tag.name);
        if space == Namespace::Html && tag.name == element_name::TEMPLATE {
            self.inert = self.inert.saturating_sub(1);
        }
        let at = TagContext {
            offset: tag.offset,
            space,
            shown: self.inert == 0 && self.foreign.is_shown(),
            in_template: self.inert > 0,
            raw: false,
        };
        self.consumer.end(tag, at);
        self.text_follows(at);
    }

    fn text_follows(&mut self, tag_place: TagContext) {
        self.text_at = TagContext {
            space: self.foreign.space(),
            shown: self.inert == 0 && self.foreign.is_shown(),
            in_template: self.inert > 0,
            ..tag_place
        };
    }

    /// Processes the start tag of a `template`. The template's content is inert, unless the
    /// template is a shadow root, which browsers show.
    fn start_template(&mut self, tag: &Tag<'_>) {
        let is_shadow_root = ["open", "closed"]
            .iter()
            .any(|mode| tag.attributes.has_value("shadowrootmode", mode));
        if self.inert > 0 || !is_shadow_root {
            self.inert = self.inert.saturating_add(1);
        }
    }
}

/// Returns how the text after a start tag is read by a parser without scripts (HTML Standard
/// 13.2.6.4.4 and 13.2.6.4.7). Such a parser reads the content of `noscript` as markup.
fn mode_after(name: ElementName) -> TokenizerTextState {
    match name {
        element_name::SCRIPT => TokenizerTextState::Script,
        element_name::STYLE
        | element_name::XMP
        | element_name::IFRAME
        | element_name::NOEMBED
        | element_name::NOFRAMES => TokenizerTextState::Rawtext,
        element_name::TITLE | element_name::TEXTAREA => TokenizerTextState::Rcdata,
        element_name::PLAINTEXT => TokenizerTextState::Plaintext,
        _ => TokenizerTextState::Markup,
    }
}
