//! Finds where a selector that matches nothing goes wrong.

use crate::budget::Budget;
use crate::rule::{Field, Source};
use crate::select::Selector;
use crate::tree::Tree;

/// Returns the longest beginning of the selector of `field` that matches an element of the page.
/// `None` if no beginning matches, or if the field has no selector.
pub(crate) fn nearest(fields: &[Field], field: &str, tree: &Tree) -> Option<String> {
    let budget = Budget::new(None);
    let mut scope = tree.root()?;
    let mut fields = fields;
    let mut path = field.split('.').peekable();
    loop {
        let name = path.next()?;
        let field = fields.iter().find(|field| field.name == name)?;
        let Source::Select { selector, text } = &field.source else {
            return None;
        };
        let element = selector.matches(scope, &budget).next();
        match (element, &field.group, path.peek()) {
            (Some(element), Some(group), Some(_)) => (scope, fields) = (element, group),
            _ => {
                let mut beginnings = beginnings(text).into_iter();
                return beginnings.find_map(|begin| {
                    let selector = Selector::parse(begin).ok()?;
                    let is_match = selector.matches(scope, &budget).next().is_some();
                    is_match.then(|| begin.to_owned())
                });
            }
        }
    }
}

/// Returns the beginnings of a selector that end before a combinator, class, id, attribute or
/// pseudo-class, the longest first.
fn beginnings(selector: &str) -> Vec<&str> {
    let (mut brackets, mut quote) = (0_usize, None);
    let mut ends = vec![selector.len()];
    for (at, c) in selector.char_indices() {
        match (c, quote) {
            (_, Some(open)) => {
                if c == open {
                    quote = None;
                }
                continue;
            }
            ('"' | '\'', None) => quote = Some(c),
            _ => {}
        }
        if brackets == 0 && matches!(c, ' ' | '>' | '+' | '~' | '.' | '#' | '[' | ':' | ',') {
            ends.push(at);
        }
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
    }
    ends.sort_unstable_by(|a, b| b.cmp(a));
    let mut beginnings: Vec<&str> = ends
        .into_iter()
        .map(|end| selector[..end].trim_end())
        .collect();
    beginnings.dedup();
    beginnings.retain(|begin| !begin.is_empty());
    beginnings
}
