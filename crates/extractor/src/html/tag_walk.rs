//! Where in a page its tags and text stand, known without a tree.

use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

use super::consumer::{At, Consumer, Space};
use super::foreign::Foreign;

/// How the tokenizer goes on behind a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Markup,
    /// Text with character references: `title`, `textarea`.
    Rcdata,
    /// Text alone: `style` and such.
    Rawtext,
    Script,
    /// Text to the very end.
    Plaintext,
}

/// Tells a consumer what stands where, and the tokenizer how to go on.
pub(super) struct Walk<C> {
    pub(super) consumer: C,
    foreign: Foreign,
    /// `template` elements open whose content is nobody's to see.
    inert: u32,
    /// Where the text behind the last tag stands.
    text_at: At,
}

impl<C: Consumer> Walk<C> {
    pub(super) fn new(consumer: C) -> Walk<C> {
        Walk {
            consumer,
            foreign: Foreign::default(),
            inert: 0,
            text_at: At {
                line: 1,
                space: Space::Html,
                shown: true,
                in_template: false,
                raw: false,
            },
        }
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_foreign()
    }

    pub(super) fn wants_text(&self) -> bool {
        self.consumer.wants_text(self.text_at)
    }

    pub(super) fn text(&mut self, text: &str) {
        self.consumer.text(text, self.text_at);
    }

    pub(super) fn start_tag(&mut self, tag: &Tag, line: u64) -> Mode {
        let was_shown = self.foreign.is_shown();
        let space = self.foreign.start(tag);
        // A tag of HTML is never within a script or style of a drawing: it ended that.
        let is_markup = was_shown || space == Space::Html;
        let in_template = is_markup && self.inert > 0;
        let mode = match space {
            Space::Html => mode_behind(&tag.name),
            Space::Svg | Space::Math => Mode::Markup,
        };
        let at = At {
            line,
            space,
            shown: is_markup && !in_template,
            in_template,
            raw: mode != Mode::Markup,
        };
        self.consumer.start(tag, at);
        if space == Space::Html && tag.name == local_name!("template") {
            self.start_template(tag);
        }
        self.text_follows(at);
        mode
    }

    pub(super) fn end_tag(&mut self, tag: &Tag, line: u64) {
        let space = self.foreign.end(&tag.name);
        if space == Space::Html && tag.name == local_name!("template") {
            self.inert = self.inert.saturating_sub(1);
        }
        let at = At {
            line,
            space,
            shown: self.inert == 0 && self.foreign.is_shown(),
            in_template: self.inert > 0,
            raw: false,
        };
        self.consumer.end(tag, at);
        self.text_follows(at);
    }

    fn text_follows(&mut self, behind: At) {
        self.text_at = At {
            space: self.foreign.space(),
            shown: self.inert == 0 && self.foreign.is_shown(),
            in_template: self.inert > 0,
            ..behind
        };
    }

    /// A template is inert, save one that is a shadow root: browsers show that.
    fn start_template(&mut self, tag: &Tag) {
        let name = local_name!("shadowrootmode");
        let mode = tag
            .attrs
            .iter()
            .find(|attribute| attribute.name.local == name);
        let shown = mode.is_some_and(|mode| {
            mode.value.eq_ignore_ascii_case("open") || mode.value.eq_ignore_ascii_case("closed")
        });
        if self.inert > 0 || !shown {
            self.inert = self.inert.saturating_add(1);
        }
    }
}

/// HTML Standard 13.2.6.4.4 and 13.2.6.4.7, for a parser that runs no script: the content
/// of `noscript` is markup.
fn mode_behind(name: &LocalName) -> Mode {
    match *name {
        local_name!("script") => Mode::Script,
        local_name!("style")
        | local_name!("xmp")
        | local_name!("iframe")
        | local_name!("noembed")
        | local_name!("noframes") => Mode::Rawtext,
        local_name!("title") | local_name!("textarea") => Mode::Rcdata,
        local_name!("plaintext") => Mode::Plaintext,
        _ => Mode::Markup,
    }
}
