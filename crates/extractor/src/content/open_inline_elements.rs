//! Inline elements that change how their text is read.

use super::dates::{DateKind, DateSource};
use super::role_hints::RoleHints;
use super::ruby::OpenRubyElement;
use crate::html::element_name::{self, ElementName};
use crate::html::tokenizer::Tag;

/// Maximum bytes to keep of an element's text that may be a date.
const MAX_TIME_BYTES: usize = 80;

/// The open inline elements.
#[derive(Debug, Default)]
pub(super) struct OpenInlineElements {
    /// Whether a link is open.
    pub(super) in_link: bool,
    /// Whether a link has just ended.
    pub(super) after_link: bool,
    /// Whether the current position is directly after a line break.
    pub(super) after_break: bool,
    /// The text so far of the open element whose text may be a date.
    pub(super) time: Option<DateText>,
    /// Whether the next text is in a `noscript`, and whether that text is markup.
    pub(super) noscript: NoscriptTextKind,
    /// The open ruby.
    pub(super) ruby: Option<OpenRubyElement>,
    /// Ruby readings to append to the current block.
    pub(super) readings: String,
    hidden: Option<SuppressedElement>,
    /// The element whose text snippets must not contain.
    withheld: Option<SuppressedElement>,
}

/// The kind of text in a `noscript`. A browser with scripts enabled saves the markup in a
/// `noscript` as escaped text (`&lt;img src=..&gt;`), which must be dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NoscriptTextKind {
    /// The next text is not in a `noscript`, or is not markup.
    #[default]
    No,
    /// Whether the text is markup is unknown until its first visible character.
    Unknown,
    /// The text is markup.
    Markup,
}

impl NoscriptTextKind {
    /// Processes the next piece of text, and returns the part that isn't `noscript` markup. White
    /// space before the markup is returned too, so that the result doesn't depend on how the text
    /// is split into pieces.
    pub(super) fn without_markup<'t>(&mut self, text: &'t str) -> &'t str {
        let visible = text.trim_start();
        if *self == NoscriptTextKind::Unknown && !visible.is_empty() {
            *self = match visible.starts_with('<') {
                true => NoscriptTextKind::Markup,
                false => NoscriptTextKind::No,
            };
            if *self == NoscriptTextKind::Markup {
                return &text[..text.len() - visible.len()];
            }
        }
        match self {
            NoscriptTextKind::Markup => "",
            NoscriptTextKind::No | NoscriptTextKind::Unknown => text,
        }
    }
}

/// A hidden or withheld element that is not a container. (`RegionTracker` tracks containers.)
#[derive(Debug)]
struct SuppressedElement {
    name: ElementName,
    /// Number of open elements with this name, including the marked one.
    open: u32,
    /// Number of containers around the element.
    depth: usize,
}

/// Processes the start of an element within `depth` open containers. The element is marked if
/// `starts` is true. Counts an element within the marked one if both have the same name: the marked
/// element ends only after as many end tags.
fn start_in(marked: &mut Option<SuppressedElement>, starts: bool, name: ElementName, depth: usize) {
    match marked {
        None if starts => {
            let open = 1;
            *marked = Some(SuppressedElement { name, open, depth });
        }
        Some(marked) if marked.name == name => marked.open = marked.open.saturating_add(1),
        _ => {}
    }
}

/// The text so far of an element that contains a date.
#[derive(Debug)]
pub(super) struct DateText {
    pub(super) kind: DateKind,
    pub(super) source: DateSource,
    pub(super) name: &'static str,
    pub(super) name_of_element: ElementName,
    pub(super) text: String,
}

impl DateText {
    pub(super) fn new(
        kind: DateKind,
        source: DateSource,
        name: &'static str,
        name_of_element: ElementName,
    ) -> DateText {
        DateText {
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

impl OpenInlineElements {
    /// Returns whether the current text is hidden.
    pub(super) fn is_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// Returns whether snippets must not contain the current text.
    pub(super) fn is_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// Processes the start of an element within `depth` open containers.
    pub(super) fn start(&mut self, name: ElementName, is_hidden: bool, depth: usize) {
        start_in(&mut self.hidden, is_hidden, name, depth);
    }

    /// Processes the start of an element within `depth` open containers, whose text snippets must
    /// not contain if `is_withheld` is true.
    pub(super) fn withhold(&mut self, name: ElementName, is_withheld: bool, depth: usize) {
        start_in(&mut self.withheld, is_withheld, name, depth);
    }

    /// Processes the end tag of an inline element.
    pub(super) fn end(&mut self, name: ElementName) {
        for marked in [&mut self.hidden, &mut self.withheld] {
            if let Some(element) = marked.as_mut().filter(|element| element.name == name) {
                element.open -= 1;
                marked.take_if(|element| element.open == 0);
            }
        }
    }

    /// Processes the start of a block. The block ends a hidden `p` or heading, whose end tag may be
    /// missing, but not a hidden `span` around the block.
    pub(super) fn end_hidden_at_block(&mut self, block: ElementName) {
        let ends = |hidden: &mut SuppressedElement| {
            matches!(
                hidden.name,
                element_name::P
                    | element_name::H1
                    | element_name::H2
                    | element_name::H3
                    | element_name::H4
                    | element_name::H5
                    | element_name::H6
                    | element_name::SUMMARY
                    | element_name::OPTION
            ) && !matches!(
                block,
                element_name::THEAD | element_name::TBODY | element_name::TFOOT
            )
        };
        self.hidden.take_if(ends);
    }

    /// Ends each marked element if a container around it was closed. `depth` is the number of
    /// containers that are still open.
    pub(super) fn end_above(&mut self, depth: usize) {
        for marked in [&mut self.hidden, &mut self.withheld] {
            marked.take_if(|element| element.depth > depth);
        }
    }

    /// Processes the start of an element in a drawing or formula. Titles and descriptions of
    /// drawings, and annotations of formulas, are not shown.
    pub(super) fn start_foreign(&mut self, tag: &Tag<'_>, depth: usize) {
        let is_unseen = matches!(
            tag.name,
            element_name::TITLE
                | element_name::DESC
                | element_name::METADATA
                | element_name::ANNOTATION
                | element_name::ANNOTATION_XML
                | element_name::DEFS
                | element_name::SYMBOL
        );
        if tag.self_closing {
            return;
        }
        let is_hidden = is_unseen || RoleHints::of(tag).hidden;
        self.start(tag.name, is_hidden, depth);
        self.withhold(tag.name, false, depth);
    }
}
