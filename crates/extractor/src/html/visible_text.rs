//! The visible text and images of a page.

use std::ops::Range;

use super::element_name::{self, ElementName};
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_kinds::TagKinds;
use super::tokenizer::{NonSpaceCharacterCounter, Tag, TextBetweenTags};
use crate::collapsed_text_builder::{CollapsedTextBuilder, trim};
use crate::extracted_page::VisibleContentCounts;

/// Maximum bytes of a heading to keep.
const MAX_HEADING_BYTES: usize = 1024;

/// Maximum number of letters to count. The rest isn't counted, because the summary only has to show
/// whether a page has little text.
const MAX_LETTERS: usize = 8192;

/// Maximum number of texts to pass to an observer at once.
const MAX_TEXTS: usize = 64;

/// Observes the text and the images of a page while it is read.
pub trait VisibleTextObserver {
    /// Returns whether more text is wanted. Called before the page is read and after each call of
    /// [`VisibleTextObserver::texts`].
    fn wants_text(&self) -> bool;

    /// Processes several texts in page order. Each is a range of `page` between two tags, or a part
    /// of it if a comment splits the text. Character references are not decoded. The texts are
    /// those of visible elements, of the title and of form fields.
    fn texts(&mut self, page: &str, texts: &[Range<usize>]);

    /// Processes an image. `tag` is its start tag as written, from `<` to `>`.
    fn image(&mut self, tag: &str);

    /// Returns whether the observer needs nothing more, so that reading can stop. Called before the
    /// page is read, and then at the first start tag after each 64 KiB.
    fn is_given_up(&self) -> bool {
        false
    }
}

/// An observer that ignores everything.
impl VisibleTextObserver for () {
    fn wants_text(&self) -> bool {
        false
    }

    fn texts(&mut self, _page: &str, _texts: &[Range<usize>]) {}

    fn image(&mut self, _tag: &str) {}
}

/// Builds the [`VisibleContentCounts`] of a page, and passes its visible text and images to an
/// observer.
pub(super) struct VisibleTextReader<'o> {
    observer: &'o mut dyn VisibleTextObserver,
    /// Whether the observer wants more text.
    is_text_wanted: bool,
    /// Texts that are neither counted nor passed to the observer yet.
    texts: Vec<Range<usize>>,
    outline: VisibleContentCounts,
    /// The letters outside hidden elements.
    shown_letters: NonSpaceCharacterCounter,
    /// The letters in hidden elements.
    hidden_letters: NonSpaceCharacterCounter,
    /// The hidden element around the current text.
    hidden: Option<HiddenElement>,
    heading: CollapsedTextBuilder,
    inside: VisibleTextKind,
}

/// The kind of element that the next text is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisibleTextKind {
    Page,
    /// The first non-empty `h1`.
    Heading,
    /// A title or form field, whose text goes to the observer but doesn't count as text of the
    /// page.
    Title,
    /// A script or style, whose content is not text.
    Script,
}

/// An open element that is hidden until a script shows it. Only for elements that require an end
/// tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct HiddenElement {
    name: ElementName,
    /// Number of open elements with this name, including the hidden one.
    open: u32,
}

impl HiddenElement {
    /// Returns the element that this start tag opens.
    pub(super) fn begun_by(tag: &Tag<'_>) -> HiddenElement {
        let name = tag.name;
        HiddenElement { name, open: 1 }
    }

    /// Counts a start tag within the element.
    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        if self.name == tag.name {
            self.open = self.open.saturating_add(1);
        }
    }

    /// Counts an end tag. Returns the element; `None` if the tag ends it.
    pub(super) fn end(self, tag: &Tag<'_>) -> Option<HiddenElement> {
        if self.name != tag.name {
            return Some(self);
        }
        let open = self.open - 1;
        (open > 0).then_some(HiddenElement { open, ..self })
    }
}

impl<'o> VisibleTextReader<'o> {
    pub(super) fn new(observer: &'o mut dyn VisibleTextObserver) -> VisibleTextReader<'o> {
        VisibleTextReader {
            is_text_wanted: observer.wants_text(),
            texts: Vec::with_capacity(MAX_TEXTS),
            observer,
            outline: VisibleContentCounts::default(),
            shown_letters: NonSpaceCharacterCounter::default(),
            hidden_letters: NonSpaceCharacterCounter::default(),
            hidden: None,
            heading: CollapsedTextBuilder::new(MAX_HEADING_BYTES),
            inside: VisibleTextKind::Page,
        }
    }

    /// Returns the summary of `page`.
    pub(super) fn finish(mut self, page: &str) -> VisibleContentCounts {
        self.take_texts(page);
        self.end_heading();
        let shown = self.shown_letters.finish();
        self.outline.shown_letters = shown.min(MAX_LETTERS);
        self.outline.letters = (shown + self.hidden_letters.finish()).min(MAX_LETTERS);
        self.outline
    }

    /// Counts the letters of the collected texts, and passes the texts to the observer.
    #[inline(never)]
    fn take_texts(&mut self, page: &str) {
        let letters = match self.hidden {
            None => &mut self.shown_letters,
            Some(_) => &mut self.hidden_letters,
        };
        if letters.so_far() < MAX_LETTERS {
            for text in &self.texts {
                letters.add(page.as_bytes(), text.clone());
            }
        }
        let texts = std::mem::take(&mut self.texts);
        self.notify(page, &texts);
        self.texts = texts;
        self.texts.clear();
    }

    fn notify(&mut self, page: &str, texts: &[Range<usize>]) {
        if self.is_text_wanted && !texts.is_empty() {
            self.observer.texts(page, texts);
            self.is_text_wanted = self.observer.wants_text();
        }
    }

    /// Processes text that is in a heading, title, form field or script.
    #[cold]
    fn text_inside(&mut self, text: &TextBetweenTags<'_>) {
        match self.inside {
            VisibleTextKind::Title => {
                self.take_texts(text.page);
                self.notify(text.page, std::slice::from_ref(&text.place()));
            }
            VisibleTextKind::Heading => {
                text.parts(|part| self.heading.push(part));
                self.put_aside(text);
            }
            VisibleTextKind::Page | VisibleTextKind::Script => {}
        }
    }

    #[inline]
    fn put_aside(&mut self, text: &TextBetweenTags<'_>) {
        self.texts.push(text.place());
        if self.texts.len() == MAX_TEXTS {
            self.take_texts(text.page);
        }
    }

    fn end_heading(&mut self) {
        if self.inside == VisibleTextKind::Heading {
            self.outline.heading = self.heading.take().0;
            self.inside = VisibleTextKind::Page;
        }
    }

    #[inline]
    fn end_raw(&mut self) {
        if matches!(
            self.inside,
            VisibleTextKind::Title | VisibleTextKind::Script
        ) {
            self.inside = VisibleTextKind::Page;
        }
    }
}

impl VisibleTextReader<'_> {
    /// Processes the start tag of an element that affects the summary or is passed to the observer.
    fn element(&mut self, tag: &Tag<'_>) {
        match tag.name {
            element_name::A => self.outline.links += 1,
            element_name::SCRIPT | element_name::STYLE => {
                self.outline.has_scripts |= tag.name == element_name::SCRIPT && !is_data(tag);
                self.end_heading();
                self.inside = VisibleTextKind::Script;
            }
            element_name::TITLE | element_name::TEXTAREA => {
                self.end_heading();
                self.inside = VisibleTextKind::Title;
            }
            element_name::H1 if self.outline.heading.is_none() => {
                self.inside = VisibleTextKind::Heading;
            }
            element_name::INPUT => {
                let kind = tag.attributes.get("type").map(trim);
                let is_password = kind.is_some_and(|kind| kind.eq_ignore_ascii_case("password"));
                self.outline.passwords += usize::from(is_password);
            }
            element_name::IMG => {
                self.take_texts(tag.page);
                self.observer.image(tag.source());
            }
            _ => {}
        }
    }

    /// Processes the start tag of a container. If the container is hidden, or is within a hidden
    /// element of the same name, records that.
    fn start_container(&mut self, tag: &Tag<'_>) {
        match &mut self.hidden {
            Some(hidden) => hidden.start(tag),
            None if is_hidden(tag) => {
                self.take_texts(tag.page);
                self.hidden = Some(HiddenElement::begun_by(tag));
            }
            None => {}
        }
    }

    /// Processes the end tag of a container. If it is the end of the hidden element, the text after
    /// it is visible again.
    fn end_container(&mut self, tag: &Tag<'_>) {
        let hidden = self.hidden.and_then(|hidden| hidden.end(tag));
        if hidden.is_none() {
            self.take_texts(tag.page);
        }
        self.hidden = hidden;
    }
}

/// Returns whether a tag's `hidden` or `style` attribute hides its element.
pub(crate) fn is_hidden(tag: &Tag<'_>) -> bool {
    let get = |name| tag.attributes.get(name);
    get("hidden").is_some() || get("style").is_some_and(hides)
}

/// Returns whether a `style` attribute hides its element.
fn hides(style: &str) -> bool {
    style.split(';').take(32).any(|declaration| {
        let (name, value) = declaration.split_once(':').unwrap_or_default();
        let is = |value: &str, keyword: &str| {
            let value = value.trim();
            value
                .get(..keyword.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(keyword))
        };
        let name = name.trim();
        (name.eq_ignore_ascii_case("display") && is(value, "none"))
            || (name.eq_ignore_ascii_case("visibility") && is(value, "hidden"))
    })
}

/// Returns whether a `script` contains only data according to its `type`, such as
/// `application/ld+json` or `speculationrules`.
fn is_data(script: &Tag<'_>) -> bool {
    let kind = script.attributes.get("type").map(str::to_ascii_lowercase);
    kind.is_some_and(|kind| kind.contains("json") || kind.contains("rules"))
}

impl TagConsumer for VisibleTextReader<'_> {
    #[inline]
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.end_raw();
        if tag.kinds.is(TagKinds::SHOWN) && at.shown && at.space == Namespace::Html {
            self.element(tag);
        }
        if tag.kinds.is(TagKinds::CONTAINER) && at.shown && at.space == Namespace::Html {
            self.start_container(tag);
        }
    }

    #[inline]
    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        self.end_raw();
        if tag.name == element_name::H1 {
            self.end_heading();
        }
        if self.hidden.is_some() && at.shown && at.space == Namespace::Html {
            self.end_container(tag);
        }
    }

    fn is_given_up(&self) -> bool {
        self.observer.is_given_up()
    }

    #[inline]
    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext) {
        match self.inside {
            _ if !at.shown => {}
            VisibleTextKind::Page => self.put_aside(text),
            _ => self.text_inside(text),
        }
    }
}
