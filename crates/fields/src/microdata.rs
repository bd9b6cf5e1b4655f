//! Values in the microdata of a page, by path.
//!
//! A path starts with the type of an item, which is the last segment of its `itemtype`. Each
//! further part is the name of a property. The attribute `itemref` is ignored.

use scraper::ElementRef;
use url::Url;

use crate::element_text::text_of;
use crate::rule_work_budget::RuleWorkBudget;

/// Returns the values at a path, in page order.
pub(crate) fn values(
    root: ElementRef<'_>,
    path: &[String],
    base: Option<&Url>,
    budget: &RuleWorkBudget,
) -> Vec<String> {
    let Some((kind, properties)) = path.split_first() else {
        return Vec::new();
    };
    let elements = root.descendants().take_while(|_| budget.step());
    let mut items: Vec<_> = elements
        .filter_map(ElementRef::wrap)
        .filter(|element| is_item_of(*element, kind))
        .collect();
    for property in properties {
        let inner = items
            .iter()
            .flat_map(|item| of_property(*item, property, budget));
        items = inner.collect();
    }
    let values = items.into_iter().filter(|_| !properties.is_empty());
    values
        .map(|element| value_of(element, base, budget))
        .collect()
}

fn is_item_of(element: ElementRef<'_>, kind: &str) -> bool {
    let types = element.attr("itemtype").unwrap_or_default();
    let mut types = types.split_ascii_whitespace();
    element.attr("itemscope").is_some()
        && types.any(|name| name.rsplit(['/', '#']).next() == Some(kind))
}

/// Returns the elements with the given `itemprop` that belong to `item`. An element belongs to its
/// nearest ancestor with `itemscope`.
fn of_property<'a>(
    item: ElementRef<'a>,
    property: &str,
    budget: &RuleWorkBudget,
) -> Vec<ElementRef<'a>> {
    let elements = item.descendants().skip(1).take_while(|_| budget.step());
    let named = elements.filter_map(ElementRef::wrap).filter(|element| {
        let names = element.attr("itemprop").unwrap_or_default();
        names.split_ascii_whitespace().any(|name| name == property)
    });
    let owner = |element: &ElementRef<'a>| {
        let mut above = element.ancestors().take_while(|_| budget.step());
        above.find_map(|node| {
            ElementRef::wrap(node).filter(|above| above.attr("itemscope").is_some())
        })
    };
    named
        .filter(|element| owner(element) == Some(item))
        .collect()
}

/// Returns the value of an element with `itemprop`, as defined by the HTML standard.
fn value_of(element: ElementRef<'_>, base: Option<&Url>, budget: &RuleWorkBudget) -> String {
    let url = |name: &str| {
        let text = element.attr(name).unwrap_or_default();
        let url = Url::options().base_url(base).parse(text);
        url.map_or_else(|_| text.to_owned(), Into::into)
    };
    let plain = |name: &str| element.attr(name).map(str::to_owned);
    match element.value().name() {
        "meta" => plain("content").unwrap_or_default(),
        "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => url("src"),
        "a" | "area" | "link" => url("href"),
        "object" => url("data"),
        "data" | "meter" => plain("value").unwrap_or_default(),
        "time" => plain("datetime").unwrap_or_else(|| text_of(element, budget)),
        _ => plain("content").unwrap_or_else(|| text_of(element, budget)),
    }
}
