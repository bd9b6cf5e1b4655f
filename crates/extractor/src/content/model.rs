//! The content of a page as it was read.

use std::ops::Range;

use super::dates::{DateKind, PageDate};
use super::head::OpenGraph;
use super::json_ld::JsonLd;
use super::language::Language;
use super::limits::ContentOddity;

/// The main text of a page, and the page's own metadata.
///
/// All of its text stands once, in [`Content::visible_text`]; blocks are ranges of it. In it,
/// runs of white space are one space (in [`BlockKind::Code`] they stay), soft hyphens and
/// zero-width spaces are gone, joiners stay, and nothing else was changed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Content {
    /// The text of the first `title` outside SVG.
    pub title: Option<String>,
    /// `meta name=description`; where there is none, what OpenGraph or Twitter says.
    pub description: Option<String>,
    /// `meta name=keywords`, then `article:tag`; in their order, none twice.
    pub keywords: Vec<String>,
    /// The names of its authors: of its JSON-LD, else of `author`, `article:author` and their like.
    pub authors: Vec<String>,
    /// The part of its site that it stands in: `article:section`, `articleSection` of its JSON-LD, or
    /// the last but one of its breadcrumbs.
    pub section: Option<String>,
    /// The language it is written in.
    pub language: Language,
    /// The dates that were found and can be, in the order of the page; see
    /// [`Content::published`].
    pub dates: Vec<PageDate>,
    /// OpenGraph basics.
    pub open_graph: OpenGraph,
    /// The items of its JSON-LD, in the order of the page.
    pub json_ld: Vec<JsonLd>,
    /// All blocks of text in the order of the page.
    pub blocks: Vec<Block>,
    /// Defects, and parts that were left out, each kind once.
    pub oddities: Vec<ContentOddity>,
    pub(super) text: String,
}

/// A run of text that stands by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// The kind of block.
    pub kind: BlockKind,
    /// Its place in [`Content::visible_text`], in bytes.
    pub range: Range<usize>,
    /// The place of it on the page.
    pub place: BlockPlace,
    /// The id to link to it: the element's own; a heading's may also be of an anchor in it or
    /// right before it, or of a block that it opens.
    pub id: Option<Box<str>>,
}

/// The place of a block on its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum BlockPlace {
    /// In the main text.
    Main,
    /// Outside of the main text: a footer, a box, a notice, a reader's comment, or links in an element
    /// that is named as content.
    Beside,
    /// Part of the navigation: menus, lists of links outside of content, buttons.
    Navigation,
}

/// The kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum BlockKind {
    /// `h1` to `h6`, or `role=heading`.
    Heading {
        /// 1 to 6.
        level: u8,
    },
    /// Running text.
    Paragraph,
    /// Text of a list's item.
    ListItem,
    /// `pre`: white space stands as it was.
    Code,
    /// A cell of a table.
    Cell,
    /// A term that is defined.
    Term,
    /// The definition.
    Definition,
    /// Text that is quoted.
    Quote,
    /// The caption of a table or figure.
    Caption,
}

impl BlockKind {
    /// The level of a heading.
    #[must_use]
    pub fn level(self) -> Option<u8> {
        match self {
            BlockKind::Heading { level } => Some(level),
            _ => None,
        }
    }
}

/// A part of the main text that one heading stands over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section<'a> {
    /// The heading's text; none for what comes before the first.
    pub heading: Option<&'a str>,
    /// Its level, 1 to 6; 0 without a heading.
    pub level: u8,
    /// The id to link to it.
    pub id: Option<&'a str>,
    /// The blocks under it, up to the next heading of any level.
    pub blocks: Vec<&'a Block>,
}

impl Content {
    /// The text of a block.
    #[must_use]
    pub fn text_of(&self, block: &Block) -> &str {
        self.text.get(block.range.clone()).unwrap_or_default()
    }

    /// All text that a person sees, a line for each block.
    #[must_use]
    pub fn visible_text(&self) -> &str {
        &self.text
    }

    /// The blocks of the main text.
    pub fn main_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.is_main())
    }

    /// The main text, a line for each block.
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

    /// The headings, those outside of the main text too: level, block.
    pub fn headings(&self) -> impl Iterator<Item = (u8, &Block)> {
        let level = |block| Block::level(block).map(|level| (level, block));
        self.blocks.iter().filter_map(level)
    }

    /// The main text by its headings. What stands before the first one is a section too.
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

    /// The date of publication: of all such dates the one from the best source.
    #[must_use]
    pub fn published(&self) -> Option<&PageDate> {
        self.best_date(DateKind::Published)
    }

    /// The date of the last change, as the page says itself.
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
    /// Returns whether it belongs to the main text.
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.place == BlockPlace::Main
    }

    fn level(&self) -> Option<u8> {
        self.kind.level()
    }
}
