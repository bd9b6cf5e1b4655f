//! The interface of a consumer of tags and text.

use super::tokenizer::{Tag, TextBetweenTags};

/// Receives the tags and the text of a page in order, in a single pass over it. A pair of consumers
/// is a consumer too.
pub(crate) trait TagConsumer {
    /// Processes a start tag.
    fn start(&mut self, tag: &Tag<'_>, at: TagContext);

    /// Processes an end tag.
    fn end(&mut self, tag: &Tag<'_>, at: TagContext);

    /// Processes or ignores text. The text between two tags may come in several parts.
    /// Implementations should first check whether they need the text, because most text isn't
    /// needed.
    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext);

    /// Returns whether the consumer needs nothing more, so that reading can stop.
    fn is_given_up(&self) -> bool {
        false
    }
}

/// The context of a tag or text in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagContext {
    /// The offset of the tag in the page. For text, the offset of the last tag before the text.
    pub(crate) offset: usize,
    /// The namespace of the tag, or of the element around the text.
    pub(crate) space: Namespace,
    /// Whether the tag or text is visible: not in a `template`, nor in a script or style within a
    /// drawing.
    pub(crate) shown: bool,
    /// Whether the tag or text is in a `template`: markup that a script may insert into the page.
    pub(crate) in_template: bool,
    /// Whether the text is in an element that contains no markup: `script`, `style`, `title`,
    /// `textarea`, `xmp` and the like.
    pub(crate) raw: bool,
}

impl TagContext {
    /// Returns the context of visible HTML, which most tags of a page have.
    #[inline]
    pub(super) fn shown(offset: usize) -> TagContext {
        TagContext {
            offset,
            space: Namespace::Html,
            shown: true,
            in_template: false,
            raw: false,
        }
    }

    /// Returns whether this is the context of visible HTML.
    #[inline]
    pub(super) fn is_shown_html(self) -> bool {
        self == TagContext::shown(self.offset)
    }
}

/// The namespace of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    Html,
    Svg,
    Math,
}

/// A consumer that ignores everything.
pub(super) struct NullTagConsumer;

impl TagConsumer for NullTagConsumer {
    fn start(&mut self, _tag: &Tag<'_>, _at: TagContext) {}

    fn end(&mut self, _tag: &Tag<'_>, _at: TagContext) {}

    fn text(&mut self, _text: &TextBetweenTags<'_>, _at: TagContext) {}
}

impl<A: TagConsumer, B: TagConsumer> TagConsumer for (A, B) {
    #[inline]
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.0.start(tag, at);
        self.1.start(tag, at);
    }

    #[inline]
    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.0.end(tag, at);
        self.1.end(tag, at);
    }

    #[inline]
    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext) {
        self.0.text(text, at);
        self.1.text(text, at);
    }

    #[inline]
    fn is_given_up(&self) -> bool {
        self.0.is_given_up() || self.1.is_given_up()
    }
}
