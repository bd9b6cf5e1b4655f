//! Elements within a line of text that change what is done with it.

use super::dates::{DateKind, DateSource};
use super::hints::Traits;
use super::ruby::Ruby;
use crate::html::name::{self, Name};
use crate::html::tokenizer::Tag;

/// A date as text is no longer.
const MAX_TIME_BYTES: usize = 80;

/// The elements that are open within a line of text.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// A link is open.
    pub(super) in_link: bool,
    /// The last thing was the end of a link.
    pub(super) after_link: bool,
    /// The last thing was a line break.
    pub(super) after_break: bool,
    /// The element whose text is a date.
    pub(super) time: Option<TimeText>,
    /// The text that comes next is that of a `noscript`, as far as is known of it.
    pub(super) noscript: NoscriptText,
    /// The ruby that is open.
    pub(super) ruby: Option<Ruby>,
    /// Ruby readings to append to the current block.
    pub(super) readings: String,
    hidden: Option<Hidden>,
}

/// The text at the beginning of a `noscript`: a browser that saved a page with scripts on writes
/// the markup in it out as text (`&lt;img src=..&gt;`), which nobody sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NoscriptText {
    /// Other text comes next.
    #[default]
    No,
    /// Its first letter has not come.
    Unknown,
    /// It is markup.
    Markup,
}

impl NoscriptText {
    /// Takes the next piece of text; whether it is markup.
    pub(super) fn is_markup(&mut self, text: &str) -> bool {
        if *self == NoscriptText::Unknown
            && let Some(first) = text.chars().find(|c| !c.is_whitespace())
        {
            *self = match first {
                '<' => NoscriptText::Markup,
                _ => NoscriptText::No,
            };
        }
        *self == NoscriptText::Markup
    }
}

/// A hidden element that is no container.
#[derive(Debug)]
struct Hidden {
    name: Name,
    /// Elements of that name open in it, with itself.
    open: u32,
    /// Containers that were open around it.
    depth: usize,
}

/// Text that is a date.
#[derive(Debug)]
pub(super) struct TimeText {
    pub(super) kind: DateKind,
    pub(super) source: DateSource,
    pub(super) name: &'static str,
    pub(super) name_of_element: Name,
    pub(super) text: String,
}

impl TimeText {
    pub(super) fn new(
        kind: DateKind,
        source: DateSource,
        name: &'static str,
        name_of_element: Name,
    ) -> TimeText {
        TimeText {
            kind,
            source,
            name,
            name_of_element,
            text: String::new(),
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        if self.text.len() <= MAX_TIME_BYTES {
            self.text
                .push_str(&text[..text.floor_char_boundary(MAX_TIME_BYTES + 1)]);
        }
    }
}

impl Spans {
    /// Returns whether text here is hidden.
    pub(super) fn is_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// A hidden element begins; `depth` containers are open.
    pub(super) fn hide(&mut self, name: Name, depth: usize) {
        match &mut self.hidden {
            None => {
                self.hidden = Some(Hidden {
                    name,
                    open: 1,
                    depth,
                });
            }
            Some(_) => self.open_again(name),
        }
    }

    /// An element begins; in a hidden one of the same name its end is not that one's.
    pub(super) fn open_again(&mut self, name: Name) {
        if let Some(hidden) = self.hidden.as_mut().filter(|hidden| hidden.name == name) {
            hidden.open = hidden.open.saturating_add(1);
        }
    }

    /// An element ends.
    pub(super) fn end(&mut self, name: Name) {
        if let Some(hidden) = self.hidden.as_mut().filter(|hidden| hidden.name == name) {
            hidden.open -= 1;
            if hidden.open == 0 {
                self.hidden = None;
            }
        }
    }

    /// A block begins. It ends a hidden `p` or heading, whose end tags may be left out or are
    /// lost, but no hidden `span` around it.
    pub(super) fn end_hidden_at_block(&mut self, block: Name) {
        let ends = |hidden: &mut Hidden| {
            matches!(
                hidden.name,
                name::P
                    | name::H1
                    | name::H2
                    | name::H3
                    | name::H4
                    | name::H5
                    | name::H6
                    | name::SUMMARY
                    | name::OPTION
            ) && !matches!(block, name::THEAD | name::TBODY | name::TFOOT)
        };
        self.hidden.take_if(ends);
    }

    /// Containers were closed: `depth` are open still.
    pub(super) fn end_hidden_above(&mut self, depth: usize) {
        self.hidden.take_if(|hidden| hidden.depth > depth);
    }

    /// An element of a drawing or formula begins. Titles and descriptions of drawings, and
    /// annotations of formulas, are not seen.
    pub(super) fn start_foreign(&mut self, tag: &Tag<'_>, depth: usize) {
        let unseen = matches!(
            tag.name,
            name::TITLE
                | name::DESC
                | name::METADATA
                | name::ANNOTATION
                | name::ANNOTATION_XML
                | name::DEFS
                | name::SYMBOL
        );
        if tag.self_closing {
            return;
        }
        if unseen || Traits::of(tag).hidden {
            self.hide(tag.name, depth);
        } else {
            self.open_again(tag.name);
        }
    }
}
