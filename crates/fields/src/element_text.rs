//! Extracts the text or the HTML of an element.

use std::io::{self, Write};

use ego_tree::iter::Edge;
use html5ever::serialize::{SerializeOpts, TraversalScope, serialize};
use scraper::ElementRef;
use scraper::node::Node;

use crate::rule_work_budget::RuleWorkBudget;

/// Returns the text of an element and its descendants, with each run of white space replaced by a
/// space. Block elements and line breaks separate words. The text of descendant scripts, styles and
/// templates is left out.
pub(crate) fn text_of(element: ElementRef<'_>, budget: &RuleWorkBudget) -> String {
    let mut text = SpacedTextBuilder::default();
    let mut hidden = 0_usize;
    for edge in element.traverse() {
        if !budget.step() {
            break;
        }
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Text(part) if hidden == 0 && !text.push(part, budget) => break,
                Node::Element(inner) => {
                    let is_hidden = node.id() != element.id() && is_hidden(inner.name());
                    hidden += usize::from(is_hidden);
                    text.is_space |= separates(inner.name());
                }
                _ => {}
            },
            Edge::Close(node) => {
                if let Node::Element(inner) = node.value() {
                    let is_hidden = node.id() != element.id() && is_hidden(inner.name());
                    hidden -= usize::from(is_hidden);
                    text.is_space |= separates(inner.name());
                }
            }
        }
    }
    text.out
}

/// Returns the text of an element without that of its descendants.
pub(crate) fn own_text(element: ElementRef<'_>, budget: &RuleWorkBudget) -> String {
    let mut text = SpacedTextBuilder::default();
    for child in element.children() {
        if !budget.step() {
            break;
        }
        match child.value() {
            Node::Text(part) if !text.push(part, budget) => break,
            Node::Element(_) => text.is_space = true,
            _ => {}
        }
    }
    text.out
}

/// Returns a text with each run of white space replaced by a space.
pub(crate) fn normalized(text: &str, budget: &RuleWorkBudget) -> String {
    let mut words = SpacedTextBuilder::default();
    words.push(text, budget);
    words.out
}

/// Returns the HTML of an element, including its own tags.
pub(crate) fn html_of(element: ElementRef<'_>, budget: &RuleWorkBudget) -> String {
    let mut out = BudgetedWriter {
        out: Vec::new(),
        budget,
    };
    let options = SerializeOpts {
        traversal_scope: TraversalScope::IncludeNode,
        ..SerializeOpts::default()
    };
    // Ignore errors: the writer fails only at a limit, and the budget has recorded the limit.
    let _ = serialize(&mut out, &element, options);
    let mut out = out.out;
    let whole = match std::str::from_utf8(&out) {
        Ok(_) => out.len(),
        Err(error) => error.valid_up_to(),
    };
    out.truncate(whole);
    String::from_utf8(out).unwrap_or_default()
}

/// Collects words, separated by single spaces.
#[derive(Default)]
struct SpacedTextBuilder {
    out: String,
    is_space: bool,
}

impl SpacedTextBuilder {
    /// Adds a piece of text. Returns false if the budget was used up and the piece was cut.
    fn push(&mut self, part: &str, budget: &RuleWorkBudget) -> bool {
        let mut words = part.split_whitespace().peekable();
        self.is_space |= part.starts_with(char::is_whitespace);
        while let Some(word) = words.next() {
            let space = match self.is_space && !self.out.is_empty() {
                true => " ",
                false => "",
            };
            let wanted = space.len() + word.len();
            let granted = budget.bytes(wanted);
            if granted > space.len() {
                self.out.push_str(space);
                let end = word.floor_char_boundary(granted - space.len());
                self.out.push_str(&word[..end]);
            }
            if granted < wanted {
                return false;
            }
            self.is_space = words.peek().is_some() || part.ends_with(char::is_whitespace);
        }
        true
    }
}

struct BudgetedWriter<'a> {
    out: Vec<u8>,
    budget: &'a RuleWorkBudget,
}

impl Write for BudgetedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let granted = self.budget.bytes(bytes.len());
        self.out.extend_from_slice(&bytes[..granted]);
        match self.budget.step() && granted == bytes.len() {
            true => Ok(granted),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_hidden(name: &str) -> bool {
    matches!(name, "script" | "style" | "template")
}

/// Returns whether the start and end of an element separate words. True for blocks and line breaks.
fn separates(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "br"
            | "button"
            | "caption"
            | "dd"
            | "details"
            | "dialog"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "legend"
            | "li"
            | "main"
            | "nav"
            | "ol"
            | "optgroup"
            | "option"
            | "p"
            | "pre"
            | "section"
            | "select"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "textarea"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
    )
}
