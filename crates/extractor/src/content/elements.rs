//! Classifies HTML elements by their role in the text: main text, lists, tables, navigation and so
//! on.

use crate::html::name::{self, Name};

/// The role of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `html` and `body`.
    Page,
    Main,
    Article,
    Section,
    /// A generic container of blocks.
    Plain,
    Nav,
    Aside,
    Header,
    Footer,
    Form,
    /// A button or choice of a form.
    Control,
    Dialog,
    List,
    Item,
    Terms,
    Term,
    Definition,
    Table,
    Row,
    Cell,
    Caption,
    Quote,
    Pre,
    Heading(u8),
    Paragraph,
    Break,
    /// A rule such as `hr`: ends a block and has no text.
    Rule,
    Anchor,
    Inline,
}

impl Part {
    /// Returns whether the element ends the current block.
    pub(super) fn is_block(self) -> bool {
        !matches!(self, Part::Break | Part::Anchor | Part::Inline)
    }

    /// Returns whether the element is kept on the stack of open elements.
    pub(super) fn is_container(self) -> bool {
        self.is_block() && !matches!(self, Part::Heading(_) | Part::Paragraph | Part::Rule)
    }

    /// Returns whether the element forms a region: a part of the page that is main text or
    /// surroundings.
    pub(super) fn is_region(self) -> bool {
        self.is_container()
            && !matches!(self, Part::Item | Part::Term | Part::Definition | Part::Row)
    }
}

/// Returns the role of an element.
pub(super) fn part_of(name: Name) -> Part {
    match name {
        name::HTML | name::BODY => Part::Page,
        name::MAIN => Part::Main,
        name::ARTICLE => Part::Article,
        name::SECTION => Part::Section,
        name::DIV
        | name::CENTER
        | name::FIGURE
        | name::DETAILS
        | name::FIELDSET
        | name::HGROUP
        | name::ADDRESS => Part::Plain,
        name::NAV => Part::Nav,
        name::ASIDE => Part::Aside,
        name::HEADER => Part::Header,
        name::FOOTER => Part::Footer,
        name::FORM => Part::Form,
        name::BUTTON | name::SELECT | name::DATALIST => Part::Control,
        name::DIALOG => Part::Dialog,
        name::UL | name::OL | name::MENU | name::DIR => Part::List,
        name::LI => Part::Item,
        name::DL => Part::Terms,
        name::DT => Part::Term,
        name::DD => Part::Definition,
        name::TABLE => Part::Table,
        name::TR => Part::Row,
        name::TD | name::TH => Part::Cell,
        name::CAPTION | name::FIGCAPTION => Part::Caption,
        name::BLOCKQUOTE => Part::Quote,
        name::PRE | name::LISTING | name::XMP => Part::Pre,
        name::PLAINTEXT => Part::Pre,
        name::H1 => Part::Heading(1),
        name::H2 => Part::Heading(2),
        name::H3 => Part::Heading(3),
        name::H4 => Part::Heading(4),
        name::H5 => Part::Heading(5),
        name::H6 => Part::Heading(6),
        name::P => Part::Paragraph,
        name::BR => Part::Break,
        name::HR
        | name::THEAD
        | name::TBODY
        | name::TFOOT
        | name::SUMMARY
        | name::LEGEND
        | name::OPTION
        | name::OPTGROUP => Part::Rule,
        name::A => Part::Anchor,
        _ => Part::Inline,
    }
}
