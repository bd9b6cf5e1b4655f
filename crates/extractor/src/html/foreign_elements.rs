//! Finds the SVG and MathML parts of a page, without a tree.
//!
//! In these parts, tags have other meanings: a `title` in a drawing is not the title of the page,
//! the tokenizer reads the content of a `script` as ordinary markup, and `CDATA` sections exist.

use super::element_name::{self, ElementName};
use super::tag_consumer::Namespace;
use super::tag_kinds::TagKinds;
use super::tokenizer::Tag;

/// Maximum depth of nested drawings, formulas and HTML parts within them. Deeper parts are ignored.
const MAX_DEPTH: usize = 256;

/// The open drawings (SVG) and formulas (MathML), and HTML within them; outermost first.
#[derive(Debug, Default)]
pub(super) struct ForeignElements {
    open: Vec<ForeignPart>,
    /// Number of open parts beyond [`MAX_DEPTH`].
    beyond: u32,
}

#[derive(Debug)]
enum ForeignPart {
    Svg,
    Math,
    /// A script or style within a drawing. The tokenizer reads its content as markup, which
    /// consumers must ignore.
    Mute(ElementName),
    /// HTML within a drawing or formula (an integration point).
    Html(ElementName),
}

impl ForeignElements {
    /// Returns whether no foreign element is open.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether the current position is in a drawing or formula, and not in HTML within it.
    #[inline]
    pub(super) fn is_foreign(&self) -> bool {
        !matches!(self.open.last(), None | Some(ForeignPart::Html(_)))
    }

    /// Returns whether the current position is visible: not in a script or style of a drawing.
    pub(super) fn is_shown(&self) -> bool {
        !matches!(self.open.last(), Some(ForeignPart::Mute(_)))
    }

    /// Returns the namespace of text at the current position.
    pub(super) fn space(&self) -> Namespace {
        match self.open.last() {
            None | Some(ForeignPart::Html(_)) => Namespace::Html,
            Some(ForeignPart::Svg | ForeignPart::Mute(_)) => Namespace::Svg,
            Some(ForeignPart::Math) => Namespace::Math,
        }
    }

    /// Processes a start tag. Returns the namespace of its element.
    pub(super) fn start(&mut self, tag: &Tag<'_>) -> Namespace {
        if self.is_foreign() {
            if breaks_out(tag) {
                self.exit_foreign();
                return Namespace::Html;
            }
            let space = self.space_within(tag);
            self.start_within(tag);
            return space;
        }
        if !tag.kinds.is(TagKinds::FOREIGN) {
            return Namespace::Html;
        }
        match tag.name {
            element_name::SVG => {
                self.push(ForeignPart::Svg, tag);
                Namespace::Svg
            }
            element_name::MATH => {
                self.push(ForeignPart::Math, tag);
                Namespace::Math
            }
            _ => Namespace::Html,
        }
    }

    /// Processes an end tag. Returns the namespace of its element.
    pub(super) fn end(&mut self, name: ElementName) -> Namespace {
        let around = self.space();
        if name == element_name::SVG && matches!(self.open.last(), Some(ForeignPart::Mute(_))) {
            self.open.pop();
        }
        let Some(part) = self.open.last() else {
            return Namespace::Html;
        };
        let ends = match part {
            ForeignPart::Svg => name == element_name::SVG,
            ForeignPart::Math => name == element_name::MATH,
            ForeignPart::Mute(open) | ForeignPart::Html(open) => *open == name,
        };
        if ends {
            match self.beyond {
                0 => drop(self.open.pop()),
                _ => self.beyond -= 1,
            }
            // An integration point (such as `foreignObject`) contains HTML, but its own tags have
            // the namespace of the drawing or formula around it.
            return if around == Namespace::Html {
                self.space()
            } else {
                around
            };
        }
        if around != Namespace::Html && matches!(name, element_name::P | element_name::BR) {
            self.exit_foreign();
            return Namespace::Html;
        }
        around
    }

    /// Returns the namespace of an element whose start tag is in SVG or MathML.
    fn space_within(&self, tag: &Tag<'_>) -> Namespace {
        // An `annotation-xml` in MathML may contain SVG.
        if tag.name == element_name::SVG {
            return Namespace::Svg;
        }
        self.space()
    }

    fn start_within(&mut self, tag: &Tag<'_>) {
        let name = tag.name;
        let part = match self.open.last() {
            Some(ForeignPart::Svg) => match name {
                element_name::SVG => ForeignPart::Svg,
                element_name::SCRIPT | element_name::STYLE => ForeignPart::Mute(name),
                element_name::FOREIGNOBJECT | element_name::DESC | element_name::TITLE => {
                    ForeignPart::Html(name)
                }
                _ => return,
            },
            Some(ForeignPart::Math) => match name {
                element_name::MATH => ForeignPart::Math,
                element_name::SVG => ForeignPart::Svg,
                element_name::MI
                | element_name::MO
                | element_name::MN
                | element_name::MS
                | element_name::MTEXT => ForeignPart::Html(name),
                element_name::ANNOTATION_XML if holds_html(tag) => ForeignPart::Html(name),
                _ => return,
            },
            _ => return,
        };
        self.push(part, tag);
    }

    fn push(&mut self, part: ForeignPart, tag: &Tag<'_>) {
        if tag.self_closing {
            return;
        }
        if self.open.len() < MAX_DEPTH {
            self.open.push(part);
        } else {
            self.beyond = self.beyond.saturating_add(1);
        }
    }

    /// Ends all drawings and formulas up to the innermost HTML around them.
    fn exit_foreign(&mut self) {
        self.beyond = 0;
        while self.is_foreign() {
            self.open.pop();
        }
    }
}

/// Returns whether a start tag in a drawing or formula is an HTML tag that ends the drawing or
/// formula (HTML Standard 13.2.6.5).
fn breaks_out(tag: &Tag<'_>) -> bool {
    match tag.name {
        element_name::B
        | element_name::BIG
        | element_name::BLOCKQUOTE
        | element_name::BODY
        | element_name::BR
        | element_name::CENTER
        | element_name::CODE
        | element_name::DD
        | element_name::DIV
        | element_name::DL
        | element_name::DT
        | element_name::EM
        | element_name::EMBED
        | element_name::H1
        | element_name::H2
        | element_name::H3
        | element_name::H4
        | element_name::H5
        | element_name::H6
        | element_name::HEAD
        | element_name::HR
        | element_name::I
        | element_name::IMG
        | element_name::LI
        | element_name::LISTING
        | element_name::MENU
        | element_name::META
        | element_name::NOBR
        | element_name::OL
        | element_name::P
        | element_name::PRE
        | element_name::RUBY
        | element_name::S
        | element_name::SMALL
        | element_name::SPAN
        | element_name::STRONG
        | element_name::STRIKE
        | element_name::SUB
        | element_name::SUP
        | element_name::TABLE
        | element_name::TT
        | element_name::U
        | element_name::UL
        | element_name::VAR => true,
        element_name::FONT => ["color", "face", "size"]
            .iter()
            .any(|attribute| tag.attributes.get(attribute).is_some()),
        _ => false,
    }
}

/// Returns whether an `annotation-xml` declares that its content is HTML.
fn holds_html(tag: &Tag<'_>) -> bool {
    ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|html| tag.attributes.has_value("encoding", html))
}
