//! Which parts of a page are SVG or MathML, known without a tree.
//!
//! The meaning of a tag differs there: a `title` in a drawing is not the page's, a `script`
//! is ordinary markup to the tokenizer, and `CDATA` sections exist.

use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

use super::consumer::Space;

/// Deeper nesting of foreign and HTML parts is not followed.
const MAX_DEPTH: usize = 256;

/// The foreign elements that are open, outermost first.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    open: Vec<Part>,
    /// Elements open beyond [`MAX_DEPTH`].
    beyond: u32,
}

#[derive(Debug)]
enum Part {
    Svg,
    Math,
    /// A script or style within a drawing: markup to the tokenizer, nothing to a reader.
    Mute(LocalName),
    /// HTML within a drawing or formula (an integration point).
    Html(LocalName),
}

impl Foreign {
    /// Whether the parser stands in foreign content.
    pub(super) fn is_foreign(&self) -> bool {
        !matches!(self.open.last(), None | Some(Part::Html(_)))
    }

    /// Whether what stands here is shown.
    pub(super) fn is_shown(&self) -> bool {
        !matches!(self.open.last(), Some(Part::Mute(_)))
    }

    /// The language of text that stands here.
    pub(super) fn space(&self) -> Space {
        match self.open.last() {
            None | Some(Part::Html(_)) => Space::Html,
            Some(Part::Svg | Part::Mute(_)) => Space::Svg,
            Some(Part::Math) => Space::Math,
        }
    }

    /// Takes a start tag; says what its element belongs to.
    pub(super) fn start(&mut self, tag: &Tag) -> Space {
        if self.is_foreign() {
            if breaks_out(tag) {
                self.leave();
                return Space::Html;
            }
            let space = self.space_within(tag);
            self.start_within(tag);
            return space;
        }
        match tag.name {
            local_name!("svg") => {
                self.push(Part::Svg, tag);
                Space::Svg
            }
            local_name!("math") => {
                self.push(Part::Math, tag);
                Space::Math
            }
            _ => Space::Html,
        }
    }

    /// Takes an end tag; says what its element belongs to.
    pub(super) fn end(&mut self, name: &LocalName) -> Space {
        let around = self.space();
        if *name == local_name!("svg") && matches!(self.open.last(), Some(Part::Mute(_))) {
            self.open.pop();
        }
        let Some(part) = self.open.last() else {
            return Space::Html;
        };
        let ends = match part {
            Part::Svg => *name == local_name!("svg"),
            Part::Math => *name == local_name!("math"),
            Part::Mute(open) | Part::Html(open) => open == name,
        };
        if ends {
            match self.beyond {
                0 => drop(self.open.pop()),
                _ => self.beyond -= 1,
            }
            // What an integration point belongs to is what stands around it.
            return if around == Space::Html {
                self.space()
            } else {
                around
            };
        }
        if around != Space::Html && matches!(*name, local_name!("p") | local_name!("br")) {
            self.leave();
            return Space::Html;
        }
        around
    }

    /// The language of an element that starts within foreign content.
    fn space_within(&self, tag: &Tag) -> Space {
        // A drawing may stand in the `annotation-xml` of a formula.
        if tag.name == local_name!("svg") {
            return Space::Svg;
        }
        self.space()
    }

    fn start_within(&mut self, tag: &Tag) {
        let name = &tag.name;
        let part = match self.open.last() {
            Some(Part::Svg) => match *name {
                local_name!("svg") => Part::Svg,
                local_name!("script") | local_name!("style") => Part::Mute(name.clone()),
                local_name!("foreignobject") | local_name!("desc") | local_name!("title") => {
                    Part::Html(name.clone())
                }
                _ => return,
            },
            Some(Part::Math) => match *name {
                local_name!("math") => Part::Math,
                local_name!("svg") => Part::Svg,
                local_name!("mi")
                | local_name!("mo")
                | local_name!("mn")
                | local_name!("ms")
                | local_name!("mtext") => Part::Html(name.clone()),
                local_name!("annotation-xml") if holds_html(tag) => Part::Html(name.clone()),
                _ => return,
            },
            _ => return,
        };
        self.push(part, tag);
    }

    fn push(&mut self, part: Part, tag: &Tag) {
        if tag.self_closing {
            return;
        }
        if self.open.len() < MAX_DEPTH {
            self.open.push(part);
        } else {
            self.beyond = self.beyond.saturating_add(1);
        }
    }

    /// Back to the HTML around.
    fn leave(&mut self) {
        self.beyond = 0;
        while self.is_foreign() {
            self.open.pop();
        }
    }
}

/// HTML Standard 13.2.6.5: the start tags that end foreign content.
fn breaks_out(tag: &Tag) -> bool {
    match tag.name {
        local_name!("b")
        | local_name!("big")
        | local_name!("blockquote")
        | local_name!("body")
        | local_name!("br")
        | local_name!("center")
        | local_name!("code")
        | local_name!("dd")
        | local_name!("div")
        | local_name!("dl")
        | local_name!("dt")
        | local_name!("em")
        | local_name!("embed")
        | local_name!("h1")
        | local_name!("h2")
        | local_name!("h3")
        | local_name!("h4")
        | local_name!("h5")
        | local_name!("h6")
        | local_name!("head")
        | local_name!("hr")
        | local_name!("i")
        | local_name!("img")
        | local_name!("li")
        | local_name!("listing")
        | local_name!("menu")
        | local_name!("meta")
        | local_name!("nobr")
        | local_name!("ol")
        | local_name!("p")
        | local_name!("pre")
        | local_name!("ruby")
        | local_name!("s")
        | local_name!("small")
        | local_name!("span")
        | local_name!("strong")
        | local_name!("strike")
        | local_name!("sub")
        | local_name!("sup")
        | local_name!("table")
        | local_name!("tt")
        | local_name!("u")
        | local_name!("ul")
        | local_name!("var") => true,
        local_name!("font") => tag.attrs.iter().any(|attribute| {
            matches!(
                attribute.name.local,
                local_name!("color") | local_name!("face") | local_name!("size")
            )
        }),
        _ => false,
    }
}

/// An `annotation-xml` whose encoding says that it holds HTML.
fn holds_html(tag: &Tag) -> bool {
    tag.attrs.iter().any(|attribute| {
        attribute.name.local == local_name!("encoding")
            && (attribute.value.eq_ignore_ascii_case("text/html")
                || attribute
                    .value
                    .eq_ignore_ascii_case("application/xhtml+xml"))
    })
}
