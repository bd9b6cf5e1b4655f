//! Classifies HTML elements by their role in the text: main text, lists, tables, navigation and so
//! on.

use crate::html::element_name::{self, ElementName};

/// The role of an HTML element in the text, by its name: main text, navigation, list, table and so
/// on. Not the ARIA role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementRole {
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
    /// A button or a selection list.
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
    /// An element that only separates blocks, such as `hr`, `tbody` or `summary`.
    Rule,
    Anchor,
    Inline,
}

impl ElementRole {
    /// Returns whether the element ends the current block.
    pub(super) fn is_block(self) -> bool {
        !matches!(
            self,
            ElementRole::Break | ElementRole::Anchor | ElementRole::Inline
        )
    }

    /// Returns whether the element is kept on the stack of open elements.
    pub(super) fn is_container(self) -> bool {
        self.is_block()
            && !matches!(
                self,
                ElementRole::Heading(_) | ElementRole::Paragraph | ElementRole::Rule
            )
    }

    /// Returns whether the element forms a region. Each region is classified as main text or
    /// surroundings.
    pub(super) fn is_region(self) -> bool {
        self.is_container()
            && !matches!(
                self,
                ElementRole::Item | ElementRole::Term | ElementRole::Definition | ElementRole::Row
            )
    }
}

/// Returns the role of an element.
pub(super) fn part_of(name: ElementName) -> ElementRole {
    match name {
        element_name::HTML | element_name::BODY => ElementRole::Page,
        element_name::MAIN => ElementRole::Main,
        element_name::ARTICLE => ElementRole::Article,
        element_name::SECTION => ElementRole::Section,
        element_name::DIV
        | element_name::CENTER
        | element_name::FIGURE
        | element_name::DETAILS
        | element_name::FIELDSET
        | element_name::HGROUP
        | element_name::ADDRESS => ElementRole::Plain,
        element_name::NAV => ElementRole::Nav,
        element_name::ASIDE => ElementRole::Aside,
        element_name::HEADER => ElementRole::Header,
        element_name::FOOTER => ElementRole::Footer,
        element_name::FORM => ElementRole::Form,
        element_name::BUTTON | element_name::SELECT | element_name::DATALIST => {
            ElementRole::Control
        }
        element_name::DIALOG => ElementRole::Dialog,
        element_name::UL | element_name::OL | element_name::MENU | element_name::DIR => {
            ElementRole::List
        }
        element_name::LI => ElementRole::Item,
        element_name::DL => ElementRole::Terms,
        element_name::DT => ElementRole::Term,
        element_name::DD => ElementRole::Definition,
        element_name::TABLE => ElementRole::Table,
        element_name::TR => ElementRole::Row,
        element_name::TD | element_name::TH => ElementRole::Cell,
        element_name::CAPTION | element_name::FIGCAPTION => ElementRole::Caption,
        element_name::BLOCKQUOTE => ElementRole::Quote,
        element_name::PRE | element_name::LISTING | element_name::XMP => ElementRole::Pre,
        element_name::PLAINTEXT => ElementRole::Pre,
        element_name::H1 => ElementRole::Heading(1),
        element_name::H2 => ElementRole::Heading(2),
        element_name::H3 => ElementRole::Heading(3),
        element_name::H4 => ElementRole::Heading(4),
        element_name::H5 => ElementRole::Heading(5),
        element_name::H6 => ElementRole::Heading(6),
        element_name::P => ElementRole::Paragraph,
        element_name::BR => ElementRole::Break,
        element_name::HR
        | element_name::THEAD
        | element_name::TBODY
        | element_name::TFOOT
        | element_name::SUMMARY
        | element_name::LEGEND
        | element_name::OPTION
        | element_name::OPTGROUP => ElementRole::Rule,
        element_name::A => ElementRole::Anchor,
        _ => ElementRole::Inline,
    }
}
