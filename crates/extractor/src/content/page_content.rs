//! The result of reading the content of a page.

use std::borrow::Cow;
use std::ops::Range;

use super::content_limits::ContentOddity;
use super::dates::{DateKind, PageDate};
use super::head_metadata::OpenGraph;
use super::json_ld::JsonLdItem;
use super::language::PageLanguage;

/// The main text of a page, and the page's own metadata.
///
/// Each text occurs once, in [`PageContent::visible_text`]; blocks are ranges of it. Runs of white
/// space become one space (except in [`BlockKind::Code`]). Soft hyphens and zero-width spaces are
/// removed; zero-width joiners and all other characters stay.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PageContent {
    /// The text of the first `title` outside SVG.
    pub title: Option<String>,
    /// The description of the page: from `meta name=description` or, if missing, from the metadata
    /// for OpenGraph or Twitter.
    pub description: Option<String>,
    /// The keywords in `meta name=keywords` and `article:tag`, in page order and without
    /// duplicates.
    pub keywords: Vec<String>,
    /// The names of the authors, from JSON-LD. If JSON-LD has no authors, the names are from `meta`
    /// elements such as `author` and `article:author`.
    pub authors: Vec<String>,
    /// The section of the site that contains the page: from `article:section`, from
    /// `articleSection` in JSON-LD, or the last breadcrumb but one.
    pub section: Option<String>,
    /// The language of the text.
    pub language: PageLanguage,
    /// The plausible dates of the page, in page order. Dates from JSON-LD come last. See
    /// [`PageContent::published`].
    pub dates: Vec<PageDate>,
    /// The page's basic OpenGraph properties, such as `og:title`.
    pub open_graph: OpenGraph,
    /// The items of the JSON-LD, in page order.
    pub json_ld: Vec<JsonLdItem>,
    /// All blocks of text, in page order.
    pub blocks: Vec<Block>,
    /// Defects and omissions, each kind once.
    pub oddities: Vec<ContentOddity>,
    /// The byte ranges of [`PageContent::visible_text`] that snippets must not contain
    /// (`data-nosnippet`), in order.
    pub withheld: Vec<Range<usize>>,
    pub(super) text: String,
}

/// A separate run of text, such as a paragraph or a list item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// The kind of block.
    pub kind: BlockKind,
    /// The byte range in [`PageContent::visible_text`].
    pub range: Range<usize>,
    /// The role of the block: main text, text beside it, or navigation.
    pub place: BlockRole,
    /// The fragment id with which a link can point to the block: the id of the block's element. A
    /// heading without an id gets the id of an anchor in it or directly before it, or of a
    /// container that begins with the heading.
    pub id: Option<Box<str>>,
}

/// The role of a block on its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum BlockRole {
    /// A part of the main text.
    Main,
    /// Text outside the main text: a footer, a sidebar, a notice, a reader's comment, or a list of
    /// links in an element marked as content.
    Beside,
    /// Navigation: menus, buttons, and lists of links outside elements marked as content.
    Navigation,
}

/// The kind of a block by its markup: heading, paragraph, list item, code, table cell and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum BlockKind {
    /// `h1` to `h6`, or `role=heading`.
    Heading {
        /// The level, from 1 to 6.
        level: u8,
    },
    /// Running text.
    Paragraph,
    /// Text of a list item.
    ListItem,
    /// Preformatted text (`pre`), with its white space.
    Code,
    /// A cell of a table.
    Cell,
    /// A term with a definition.
    Term,
    /// The definition of a term.
    Definition,
    /// Quoted text.
    Quote,
    /// The caption of a table or figure.
    Caption,
}

impl BlockKind {
    /// Returns the level of a heading, from 1 to 6. `None` for other kinds of blocks.
    #[must_use]
    pub fn level(self) -> Option<u8> {
        match self {
            BlockKind::Heading { level } => Some(level),
            _ => None,
        }
    }
}

/// A part of the main text under one heading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section<'a> {
    /// The text of the heading. `None` before the first heading.
    pub heading: Option<&'a str>,
    /// The level of the heading, 1 to 6; 0 without a heading.
    pub level: u8,
    /// The fragment id with which a link can point to the heading.
    pub id: Option<&'a str>,
    /// The blocks under the heading, up to the next heading of any level.
    pub blocks: Vec<&'a Block>,
}

impl PageContent {
    /// Returns the text of a block.
    #[must_use]
    pub fn text_of(&self, block: &Block) -> &str {
        self.text.get(block.range.clone()).unwrap_or_default()
    }

    /// Returns the text of a block without the parts that snippets must not contain.
    #[must_use]
    pub fn quotable_text_of(&self, block: &Block) -> Cow<'_, str> {
        let mut withheld = self.withheld_in(block).peekable();
        if withheld.peek().is_none() {
            return Cow::Borrowed(self.text_of(block));
        }
        let mut quotable = String::new();
        let mut from = block.range.start;
        for range in withheld {
            quotable.push_str(self.text.get(from..range.start).unwrap_or_default());
            from = range.end;
        }
        quotable.push_str(self.text.get(from..block.range.end).unwrap_or_default());
        Cow::Owned(quotable.trim().to_owned())
    }

    /// Returns the parts of a block that snippets must not contain.
    pub fn withheld_text_of(&self, block: &Block) -> impl Iterator<Item = &str> {
        let text = |range| self.text.get(range).unwrap_or_default();
        self.withheld_in(block).map(text)
    }

    fn withheld_in(&self, block: &Block) -> impl Iterator<Item = Range<usize>> {
        let Range { start, end } = block.range;
        let first = self.withheld.partition_point(|range| range.end <= start);
        let ranges = self.withheld[first..].iter().cloned();
        ranges.take_while(move |range| range.start < end)
    }

    /// Returns all text that a person sees, with a line feed between blocks.
    #[must_use]
    pub fn visible_text(&self) -> &str {
        &self.text
    }

    /// Returns the blocks of the main text.
    pub fn main_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.is_main())
    }

    /// Returns the main text, with a line feed between blocks.
    #[must_use]
    pub fn main_text(&self) -> String {
        let mut text = String::new();
        for block in self.main_blocks() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(self.text_of(block));
        }
        text
    }

    /// Returns all headings with their levels, including headings outside the main text.
    pub fn headings(&self) -> impl Iterator<Item = (u8, &Block)> {
        let level = |block| Block::level(block).map(|level| (level, block));
        self.blocks.iter().filter_map(level)
    }

    /// Returns the main text as sections, one per heading. Text before the first heading is a
    /// section too.
    #[must_use]
    pub fn sections(&self) -> Vec<Section<'_>> {
        let mut sections: Vec<Section<'_>> = Vec::new();
        for block in self.main_blocks() {
            let level = block.level();
            if level.is_some() || sections.is_empty() {
                sections.push(Section {
                    heading: level.map(|_| self.text_of(block)),
                    level: level.unwrap_or(0),
                    id: level.and(block.id.as_deref()),
                    blocks: Vec::new(),
                });
            }
            if let Some(section) = sections.last_mut().filter(|_| level.is_none()) {
                section.blocks.push(block);
            }
        }
        sections
    }

    /// Returns the publication date from the most reliable source, in the order of
    /// [`DateSource`](super::DateSource).
    #[must_use]
    pub fn published(&self) -> Option<&PageDate> {
        self.best_date(DateKind::Published)
    }

    /// Returns the date of the last modification from the most reliable source, in the order of
    /// [`DateSource`](super::DateSource).
    #[must_use]
    pub fn modified(&self) -> Option<&PageDate> {
        self.best_date(DateKind::Modified)
    }

    fn best_date(&self, kind: DateKind) -> Option<&PageDate> {
        let of_kind = self.dates.iter().filter(|date| date.kind == kind);
        of_kind.min_by_key(|date| date.rank())
    }
}

impl Block {
    /// Returns whether the block belongs to the main text.
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.place == BlockRole::Main
    }

    fn level(&self) -> Option<u8> {
        self.kind.level()
    }
}
