//! The elements of HTML by their meaning for a reader of text.

use html5ever::{LocalName, local_name};

/// The part an element plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `html` and `body`.
    Page,
    Main,
    Article,
    Section,
    /// A container of blocks that says no more about them.
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
    /// It ends a block and holds none.
    Rule,
    Anchor,
    Inline,
}

impl Part {
    /// Whether what holds it ends the block at hand.
    pub(super) fn is_block(self) -> bool {
        !matches!(self, Part::Break | Part::Anchor | Part::Inline)
    }

    /// Whether it is kept among the open elements.
    pub(super) fn is_container(self) -> bool {
        self.is_block() && !matches!(self, Part::Heading(_) | Part::Paragraph | Part::Rule)
    }

    /// Whether what stands in it is told apart from what stands around it.
    pub(super) fn is_region(self) -> bool {
        self.is_container()
            && !matches!(self, Part::Item | Part::Term | Part::Definition | Part::Row)
    }
}

/// The part that elements of that name play.
pub(super) fn part_of(name: &LocalName) -> Part {
    match *name {
        local_name!("html") | local_name!("body") => Part::Page,
        local_name!("main") => Part::Main,
        local_name!("article") => Part::Article,
        local_name!("section") => Part::Section,
        local_name!("div")
        | local_name!("center")
        | local_name!("figure")
        | local_name!("details")
        | local_name!("fieldset")
        | local_name!("hgroup")
        | local_name!("address") => Part::Plain,
        local_name!("nav") => Part::Nav,
        local_name!("aside") => Part::Aside,
        local_name!("header") => Part::Header,
        local_name!("footer") => Part::Footer,
        local_name!("form") => Part::Form,
        local_name!("button") | local_name!("select") | local_name!("datalist") => Part::Control,
        local_name!("dialog") => Part::Dialog,
        local_name!("ul") | local_name!("ol") | local_name!("menu") | local_name!("dir") => {
            Part::List
        }
        local_name!("li") => Part::Item,
        local_name!("dl") => Part::Terms,
        local_name!("dt") => Part::Term,
        local_name!("dd") => Part::Definition,
        local_name!("table") => Part::Table,
        local_name!("tr") => Part::Row,
        local_name!("td") | local_name!("th") => Part::Cell,
        local_name!("caption") | local_name!("figcaption") => Part::Caption,
        local_name!("blockquote") => Part::Quote,
        local_name!("pre") | local_name!("listing") | local_name!("xmp") => Part::Pre,
        local_name!("plaintext") => Part::Pre,
        local_name!("h1") => Part::Heading(1),
        local_name!("h2") => Part::Heading(2),
        local_name!("h3") => Part::Heading(3),
        local_name!("h4") => Part::Heading(4),
        local_name!("h5") => Part::Heading(5),
        local_name!("h6") => Part::Heading(6),
        local_name!("p") => Part::Paragraph,
        local_name!("br") => Part::Break,
        local_name!("hr")
        | local_name!("thead")
        | local_name!("tbody")
        | local_name!("tfoot")
        | local_name!("summary")
        | local_name!("legend")
        | local_name!("option")
        | local_name!("optgroup") => Part::Rule,
        local_name!("a") => Part::Anchor,
        _ => Part::Inline,
    }
}

/// Elements that never hold anything.
pub(super) fn is_void(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("area")
            | local_name!("base")
            | local_name!("br")
            | local_name!("col")
            | local_name!("embed")
            | local_name!("hr")
            | local_name!("img")
            | local_name!("input")
            | local_name!("link")
            | local_name!("meta")
            | local_name!("source")
            | local_name!("track")
            | local_name!("wbr")
    )
}
