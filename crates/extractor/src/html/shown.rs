//! The text and images that a page shows.

use std::ops::Range;

use super::consumer::{At, Consumer, Space};
use super::name;
use super::tag_kinds::TagKinds;
use super::tokenizer::{Tag, Text, WIDTH, first_bits, letters_of_sixteen};
use crate::page::Outline;
use crate::text::{Collapsed, trim};

/// Bytes of a heading that are kept.
const MAX_HEADING_BYTES: usize = 1024;

/// Letters of a page that are counted: an outline tells pages with little text from others.
const MAX_LETTERS: usize = 8192;

/// Takes the text and the images of a page while it is read.
pub trait PageObserver {
    /// Returns whether more text is wanted.
    fn wants_text(&self) -> bool;

    /// Takes text between two tags, a part of the page, as it is written, its character references
    /// not decoded: what the page shows, its title, and form fields. Comments may part it.
    fn text(&mut self, page: &str, text: Range<usize>);

    /// Takes an image, by its tag as it is written.
    fn image(&mut self, tag: &str);

    /// Returns whether nobody will use what is read of the page: it is asked before the page and at
    /// the first tag behind each 64 KiB of it, and the rest is left then.
    fn is_given_up(&self) -> bool {
        false
    }
}

/// Observes nothing.
impl PageObserver for () {
    fn wants_text(&self) -> bool {
        false
    }

    fn text(&mut self, _page: &str, _text: Range<usize>) {}

    fn image(&mut self, _tag: &str) {}
}

/// Makes the outline of a page, and tells an observer what it shows.
pub(super) struct ShownReader<'o> {
    observer: &'o mut dyn PageObserver,
    outline: Outline,
    heading: Collapsed,
    inside: Inside,
}

/// The element whose text comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Page,
    /// The first `h1` that has text.
    Heading,
    /// A title or form field, which are no text of the page, though of interest to an observer.
    Title,
    /// A script or style, which are no text.
    Script,
}

impl<'o> ShownReader<'o> {
    pub(super) fn new(observer: &'o mut dyn PageObserver) -> ShownReader<'o> {
        ShownReader {
            observer,
            outline: Outline::default(),
            heading: Collapsed::new(MAX_HEADING_BYTES),
            inside: Inside::Page,
        }
    }

    pub(super) fn finish(mut self) -> Outline {
        self.end_heading();
        self.outline
    }

    fn end_heading(&mut self) {
        if self.inside == Inside::Heading {
            self.outline.heading = self.heading.take().0;
            self.inside = Inside::Page;
        }
    }

    fn end_raw(&mut self) {
        if matches!(self.inside, Inside::Title | Inside::Script) {
            self.inside = Inside::Page;
        }
    }
}

impl Consumer for ShownReader<'_> {
    fn start(&mut self, tag: &Tag<'_>, at: At) {
        self.end_raw();
        if !tag.kinds.is(TagKinds::SHOWN) || !at.shown || at.space != Space::Html {
            return;
        }
        match tag.name {
            name::SCRIPT | name::STYLE => {
                self.end_heading();
                self.inside = Inside::Script;
            }
            name::TITLE | name::TEXTAREA => {
                self.end_heading();
                self.inside = Inside::Title;
            }
            name::H1 if self.outline.heading.is_none() => self.inside = Inside::Heading,
            name::A => self.outline.links += 1,
            name::INPUT => {
                let kind = tag.attributes.get("type").map(trim);
                let is_password = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("password"));
                self.outline.passwords += usize::from(is_password);
            }
            name::IMG => self.observer.image(tag.source),
            _ => {}
        }
    }

    fn end(&mut self, tag: &Tag<'_>, _at: At) {
        self.end_raw();
        if tag.name == name::H1 {
            self.end_heading();
        }
    }

    fn is_given_up(&self) -> bool {
        self.observer.is_given_up()
    }

    #[inline]
    fn wants_text(&self, at: At) -> bool {
        at.shown && self.inside != Inside::Script
    }

    fn text(&mut self, text: &Text<'_>, _at: At) {
        if self.inside == Inside::Heading {
            text.parts(|part| self.heading.push(part));
        }
        if self.inside != Inside::Title && self.outline.letters < MAX_LETTERS {
            let letters = self.outline.letters + letters(text.page.as_bytes(), text.place());
            self.outline.letters = letters.min(MAX_LETTERS);
        }
        if self.observer.wants_text() {
            self.observer.text(text.page, text.place());
        }
    }
}

/// The number of characters of a text but blanks.
#[inline]
fn letters(page: &[u8], text: Range<usize>) -> usize {
    let parts = text.clone().step_by(WIDTH);
    let counts = parts.map(|at| letters_of_sixteen(page, at) & first_bits(text.end - at));
    counts.map(|letters| letters.count_ones() as usize).sum()
}
