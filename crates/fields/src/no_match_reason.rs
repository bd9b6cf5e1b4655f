//! Explains why a field has no value on a page.

use std::collections::BTreeSet;

use scraper::ElementRef;

use crate::compiled_rule::{CompiledField, ElementPart, FieldSource};
use crate::css_selector_matching::CssSelectorList;
use crate::page_tree::PageTree;
use crate::rule_inputs_and_results::NoMatchReason;
use crate::rule_work_budget::RuleWorkBudget;

/// Minimum likeness (0 to 1) of a name on the page to a name in the selector. Less similar names
/// are not suggested as corrections.
const MIN_LIKENESS: f64 = 0.85;

/// Returns why `field` has no value on a page. `None` if there is no such field, or if it has no
/// selector. A field of a group is named `group.field`.
pub(crate) fn nearest(
    fields: &[CompiledField],
    field: &str,
    tree: &PageTree,
) -> Option<NoMatchReason> {
    let budget = RuleWorkBudget::new(None);
    let mut scope = tree.root()?;
    let mut fields = fields;
    let mut path = field.split('.').peekable();
    loop {
        let name = path.next()?;
        let field = fields.iter().find(|field| field.name == name)?;
        let FieldSource::Select { selector, text } = &field.source else {
            return None;
        };
        let element = selector.matches(scope, &budget).next();
        match (element, &field.group, path.peek()) {
            (Some(element), Some(group), Some(_)) => (scope, fields) = (element, group),
            (Some(_), ..) => {
                return Some(NoMatchReason {
                    unusable_match: Some(unusable_match(field)),
                    ..NoMatchReason::default()
                });
            }
            (None, ..) => return Some(reason(scope, text, &budget)),
        }
    }
}

/// Returns why a field has no value although its selector matches an element.
fn unusable_match(field: &CompiledField) -> String {
    match (&field.regex, &field.part) {
        (Some(_), _) => "its text doesn't match the regex".to_owned(),
        (None, ElementPart::Attribute(name)) => {
            format!("the first match has no attribute {name:?}")
        }
        (None, ElementPart::Content(_)) => "the first match has no text".to_owned(),
    }
}

fn reason(scope: ElementRef<'_>, selector: &str, budget: &RuleWorkBudget) -> NoMatchReason {
    let is_found = |text: &str| {
        let selector = CssSelectorList::parse(text).ok();
        selector.is_some_and(|selector| selector.matches(scope, budget).next().is_some())
    };
    let beginnings = beginnings(selector).into_iter();
    let lacking = names(selector).into_iter().find(|name| !is_found(name));
    NoMatchReason {
        unusable_match: None,
        beginning: beginnings.map(str::to_owned).find(|begin| is_found(begin)),
        similar: lacking.and_then(|name| similar(scope, name, budget)),
        lacking: lacking.map(str::to_owned),
    }
}

/// Returns the class or id within `scope` that is most similar to `name`, with its `.` or `#`.
/// `name` starts with `.` or `#` too. `None` if no class or id is similar enough.
fn similar(scope: ElementRef<'_>, name: &str, budget: &RuleWorkBudget) -> Option<String> {
    let (mark, attribute) = match name.chars().next()? {
        '.' => (".", "class"),
        '#' => ("#", "id"),
        _ => return None,
    };
    let nodes = scope.descendants().take_while(|_| budget.step());
    let values = nodes.filter_map(|node| ElementRef::wrap(node)?.attr(attribute));
    let names: BTreeSet<&str> = values.flat_map(str::split_ascii_whitespace).collect();
    let wanted = name[1..].to_lowercase();
    let likenesses = names
        .into_iter()
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name));
    let (_, name) = likenesses
        .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    // Skip a name that is valid in a selector only with escapes, such as `md:flex`.
    let selector = format!("{mark}{name}");
    CssSelectorList::parse(&selector)
        .is_ok()
        .then_some(selector)
}

/// Returns the likeness of two names, from 0 to 1. If one name contains all words of the other
/// (`product-price` contains `price`), the likeness is at least [`MIN_LIKENESS`].
fn likeness(wanted: &str, name: &str) -> f64 {
    fn words(name: &str) -> Vec<&str> {
        name.split(['-', '_'])
            .filter(|word| !word.is_empty())
            .collect()
    }
    let (wanted_words, words) = (words(wanted), words(name));
    let is_within = |few: &[&str], many: &[&str]| few.iter().all(|word| many.contains(word));
    let is_part = !wanted_words.is_empty()
        && !words.is_empty()
        && (is_within(&wanted_words, &words) || is_within(&words, &wanted_words));
    let likeness = strsim::jaro_winkler(wanted, name);
    if is_part {
        likeness.max(MIN_LIKENESS)
    } else {
        likeness
    }
}

/// Returns the elements, classes and ids in a selector, such as `td`, `.price` and `#main`. Ignores
/// names within brackets.
fn names(selector: &str) -> Vec<&str> {
    let mut ends = beginnings(selector);
    ends.reverse();
    let mut names = Vec::new();
    let mut start = 0;
    for begin in ends {
        let part = selector[start..begin.len()].trim_start_matches([' ', '>', '+', '~', ',']);
        start = begin.len();
        let name = part.trim_start_matches(['.', '#']);
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if !name.is_empty() && name.chars().all(is_name) {
            names.push(part);
        }
    }
    names
}

/// Returns the prefixes of a selector, longest first: the whole selector, and each prefix that ends
/// before a combinator, comma, class, id, attribute or pseudo-class outside of brackets.
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

#[cfg(test)]
mod tests {
    use super::{likeness, names};

    #[test]
    fn names_are_elements_classes_and_ids() {
        for (selector, expected) in [
            ("td.price > b", &["td", ".price", "b"][..]),
            ("#main li:not(.a, .b) ~ .c", &["#main", "li", ".c"]),
            ("a[href*='.x#y'],*", &["a"]),
            (".a.b , p", &[".a", ".b", "p"]),
        ] {
            assert_eq!(names(selector), expected, "{selector}");
        }
    }

    #[test]
    fn names_with_a_slip_or_a_prefix_are_alike() {
        for (wanted, name, is_alike) in [
            ("prices", "price", true),
            ("price", "product-price", true),
            ("product_title", "title", true),
            ("author", "autor", true),
            ("author", "date", false),
            ("price", "-", false),
        ] {
            let likeness = likeness(wanted, name);
            assert_eq!(
                likeness >= super::MIN_LIKENESS,
                is_alike,
                "{wanted} {name} {likeness}"
            );
        }
    }
}
