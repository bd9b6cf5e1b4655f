//! The interface of a consumer of tags and text.

use html5ever::tokenizer::Tag;

/// Takes the tags and the text of a page in their order, in the one pass that is made over
/// it. Two consumers that look for different things are one, as a pair.
pub(crate) trait Consumer {
    /// Takes a start tag.
    fn start(&mut self, tag: &Tag, at: At);

    /// Takes an end tag.
    fn end(&mut self, tag: &Tag, at: At);

    /// Whether the text between the last tag and the next is wanted. Asked after each tag;
    /// most text is wanted by nobody, and costs less then.
    fn wants_text(&self, at: At) -> bool;

    /// Takes text that is wanted. It comes in parts of any size.
    fn text(&mut self, text: &str, at: At);

    /// The tag that comes next lost attributes, since it had too many.
    fn tag_was_cut(&mut self);
}

/// Where in the page a tag or text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// The line; the first is 1.
    pub(crate) line: u64,
    /// The language that the tag belongs to, or the element that the text stands in.
    pub(crate) space: Space,
    /// Whether it is shown: not the content of a `template`, nor of a script or style
    /// within a drawing.
    pub(crate) shown: bool,
    /// Whether it is the content of a `template`: markup that a script may put into the page.
    pub(crate) in_template: bool,
    /// Whether the text is that of an element without markup: `script`, `style`, `title`,
    /// `textarea`, `xmp` and such.
    pub(crate) raw: bool,
}

/// The namespace of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Html,
    Svg,
    Math,
}

impl<A: Consumer, B: Consumer> Consumer for (A, B) {
    fn start(&mut self, tag: &Tag, at: At) {
        self.0.start(tag, at);
        self.1.start(tag, at);
    }

    fn end(&mut self, tag: &Tag, at: At) {
        self.0.end(tag, at);
        self.1.end(tag, at);
    }

    fn wants_text(&self, at: At) -> bool {
        self.0.wants_text(at) || self.1.wants_text(at)
    }

    fn text(&mut self, text: &str, at: At) {
        if self.0.wants_text(at) {
            self.0.text(text, at);
        }
        if self.1.wants_text(at) {
            self.1.text(text, at);
        }
    }

    fn tag_was_cut(&mut self) {
        self.0.tag_was_cut();
        self.1.tag_was_cut();
    }
}
