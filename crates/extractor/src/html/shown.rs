//! The text and images that a page shows.

use std::ops::Range;

use super::consumer::{At, Consumer, Space};
use super::name;
use super::tag_kinds::TagKinds;
use super::tokenizer::{LetterCount, Tag, Text};
use crate::page::Outline;
use crate::text::{Collapsed, trim};

/// Bytes of a heading that are kept.
const MAX_HEADING_BYTES: usize = 1024;

/// Letters of a page that are counted: an outline tells pages with little text from others.
const MAX_LETTERS: usize = 8192;

/// Texts that an observer is told of together.
const MAX_TEXTS: usize = 64;

/// Takes the text and the images of a page while it is read.
pub trait PageObserver {
    /// Returns whether more text is wanted: it is asked before the page and behind each call with
    /// texts.
    fn wants_text(&self) -> bool;

    /// Takes texts in the order of the page, some at once. Each is what stands between two tags, a
    /// part of the page, as it is written, its character references not decoded: what the page
    /// shows, its title, and form fields. Comments may part it.
    fn texts(&mut self, page: &str, texts: &[Range<usize>]);

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

    fn texts(&mut self, _page: &str, _texts: &[Range<usize>]) {}

    fn image(&mut self, _tag: &str) {}
}

/// Makes the outline of a page, and tells an observer what it shows.
pub(super) struct ShownReader<'o> {
    observer: &'o mut dyn PageObserver,
    /// True if the observer wants more text.
    is_text_wanted: bool,
    /// The texts whose letters are counted next, and that it is told of.
    texts: Vec<Range<usize>>,
    outline: Outline,
    letters: LetterCount,
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
            is_text_wanted: observer.wants_text(),
            texts: Vec::with_capacity(MAX_TEXTS),
            observer,
            outline: Outline::default(),
            letters: LetterCount::default(),
            heading: Collapsed::new(MAX_HEADING_BYTES),
            inside: Inside::Page,
        }
    }

    /// The outline of `page`, which was read.
    pub(super) fn finish(mut self, page: &str) -> Outline {
        self.take_texts(page);
        self.end_heading();
        self.outline.letters = self.letters.finish().min(MAX_LETTERS);
        self.outline
    }

    /// Counts the letters of the texts that were put aside, and tells the observer of them.
    #[inline(never)]
    fn take_texts(&mut self, page: &str) {
        if self.letters.so_far() < MAX_LETTERS {
            for text in &self.texts {
                self.letters.add(page.as_bytes(), text.clone());
            }
        }
        let texts = std::mem::take(&mut self.texts);
        self.tell(page, &texts);
        self.texts = texts;
        self.texts.clear();
    }

    fn tell(&mut self, page: &str, texts: &[Range<usize>]) {
        if self.is_text_wanted && !texts.is_empty() {
            self.observer.texts(page, texts);
            self.is_text_wanted = self.observer.wants_text();
        }
    }

    /// Takes text that is none of the page itself, or that of its heading too.
    #[cold]
    fn text_inside(&mut self, text: &Text<'_>) {
        match self.inside {
            Inside::Title => {
                self.take_texts(text.page);
                self.tell(text.page, std::slice::from_ref(&text.place()));
            }
            Inside::Heading => {
                text.parts(|part| self.heading.push(part));
                self.put_aside(text);
            }
            Inside::Page | Inside::Script => {}
        }
    }

    #[inline]
    fn put_aside(&mut self, text: &Text<'_>) {
        self.texts.push(text.place());
        if self.texts.len() == MAX_TEXTS {
            self.take_texts(text.page);
        }
    }

    fn end_heading(&mut self) {
        if self.inside == Inside::Heading {
            self.outline.heading = self.heading.take().0;
            self.inside = Inside::Page;
        }
    }

    #[inline]
    fn end_raw(&mut self) {
        if matches!(self.inside, Inside::Title | Inside::Script) {
            self.inside = Inside::Page;
        }
    }
}

impl ShownReader<'_> {
    /// Takes the start tag of an element that tells of what the page shows.
    fn element(&mut self, tag: &Tag<'_>) {
        match tag.name {
            name::A => self.outline.links += 1,
            name::SCRIPT | name::STYLE => {
                self.end_heading();
                self.inside = Inside::Script;
            }
            name::TITLE | name::TEXTAREA => {
                self.end_heading();
                self.inside = Inside::Title;
            }
            name::H1 if self.outline.heading.is_none() => self.inside = Inside::Heading,
            name::INPUT => {
                let kind = tag.attributes.get("type").map(trim);
                let is_password = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("password"));
                self.outline.passwords += usize::from(is_password);
            }
            name::IMG => {
                self.take_texts(tag.page);
                self.observer.image(tag.source());
            }
            _ => {}
        }
    }
}

impl Consumer for ShownReader<'_> {
    #[inline]
    fn start(&mut self, tag: &Tag<'_>, at: At) {
        self.end_raw();
        if tag.kinds.is(TagKinds::SHOWN) && at.shown && at.space == Space::Html {
            self.element(tag);
        }
    }

    #[inline]
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
    fn text(&mut self, text: &Text<'_>, at: At) {
        match self.inside {
            _ if !at.shown => {}
            Inside::Page => self.put_aside(text),
            _ => self.text_inside(text),
        }
    }
}
