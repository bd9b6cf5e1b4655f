//! The interface of a consumer of tags and text.

use super::tokenizer::{Tag, Text};

/// Takes the tags and the text of a page in their order, in the one pass that is made over
/// it. Two consumers that look for different things are one, as a pair.
pub(crate) trait Consumer {
    /// Takes a start tag.
    fn start(&mut self, tag: &Tag<'_>, at: At);

    /// Takes an end tag.
    fn end(&mut self, tag: &Tag<'_>, at: At);

    /// Takes text, or passes over it. What stands between two tags may come in parts. Most text is
    /// wanted by nobody, so that it is the first thing to ask.
    fn text(&mut self, text: &Text<'_>, at: At);

    /// Returns whether nobody will use what is read of the page, so that the rest is left.
    fn is_given_up(&self) -> bool {
        false
    }
}

/// The place in the page of a tag or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// The byte of the text at which it begins; of text, that of the tag before it.
    pub(crate) offset: usize,
    /// The language that the tag belongs to, or the element that the text stands in.
    pub(crate) space: Space,
    /// True if it is shown: not the content of a `template`, nor of a script or style
    /// within a drawing.
    pub(crate) shown: bool,
    /// True if it is the content of a `template`: markup that a script may put into the page.
    pub(crate) in_template: bool,
    /// True if the text is that of an element without markup: `script`, `style`, `title`,
    /// `textarea`, `xmp` and such.
    pub(crate) raw: bool,
}

impl At {
    /// The place of HTML that is shown, as most of a page is.
    #[inline]
    pub(super) fn shown(offset: usize) -> At {
        At {
            offset,
            space: Space::Html,
            shown: true,
            in_template: false,
            raw: false,
        }
    }

    /// Returns whether it is such a place.
    #[inline]
    pub(super) fn is_shown_html(self) -> bool {
        self == At::shown(self.offset)
    }
}

/// The namespace of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Html,
    Svg,
    Math,
}

/// The consumer that wants nothing.
pub(super) struct Nobody;

impl Consumer for Nobody {
    fn start(&mut self, _tag: &Tag<'_>, _at: At) {}

    fn end(&mut self, _tag: &Tag<'_>, _at: At) {}

    fn text(&mut self, _text: &Text<'_>, _at: At) {}
}

impl<A: Consumer, B: Consumer> Consumer for (A, B) {
    #[inline]
    fn start(&mut self, tag: &Tag<'_>, at: At) {
        self.0.start(tag, at);
        self.1.start(tag, at);
    }

    #[inline]
    fn end(&mut self, tag: &Tag<'_>, at: At) {
        self.0.end(tag, at);
        self.1.end(tag, at);
    }

    #[inline]
    fn text(&mut self, text: &Text<'_>, at: At) {
        self.0.text(text, at);
        self.1.text(text, at);
    }

    #[inline]
    fn is_given_up(&self) -> bool {
        self.0.is_given_up() || self.1.is_given_up()
    }
}
