//! Values in the JSON-LD of a page, by path.
//!
//! A path starts with the type of an object, which may be anywhere in the page's JSON-LD. Each
//! further part is the name of a property. If a value is a list, the rest of the path is applied to
//! each item.

use scraper::ElementRef;
use serde_json::Value;

use crate::css_selector_matching::CssSelectorList;
use crate::field_value_parser::SourceText;
use crate::rule_work_budget::{MAX_JSON_LD_BYTES, RuleWorkBudget};

/// The JSON-LD of a page.
#[derive(Debug, Default)]
pub(crate) struct JsonLd {
    pub(crate) data: Vec<Value>,
    /// Whether a script was ignored because of its size.
    pub(crate) is_cut: bool,
}

/// Parses the JSON-LD scripts of a page. A script that is not valid JSON is ignored.
pub(crate) fn read(
    root: ElementRef<'_>,
    scripts: &CssSelectorList,
    budget: &RuleWorkBudget,
) -> JsonLd {
    let mut data = JsonLd::default();
    let mut room = MAX_JSON_LD_BYTES;
    for script in scripts.matches(root, budget) {
        let bytes: usize = script.text().map(str::len).sum();
        match room.checked_sub(bytes) {
            Some(rest) => room = rest,
            None => {
                data.is_cut = true;
                continue;
            }
        }
        let text: String = script.text().collect();
        data.data.extend(serde_json::from_str::<Value>(text.trim()));
    }
    data
}

/// Returns the values at a path, in page order.
pub(crate) fn values(data: &[Value], path: &[String], budget: &RuleWorkBudget) -> Vec<SourceText> {
    let Some((kind, properties)) = path.split_first() else {
        return Vec::new();
    };
    let mut objects = Vec::new();
    for value in data {
        collect_typed(value, kind, &mut objects, budget);
    }
    let mut data = Vec::new();
    for object in objects {
        follow(object, properties, &mut data, budget);
    }
    data
}

/// Collects all objects of a type, including nested ones. The recursion is bounded, because
/// serde_json limits the nesting of values.
fn collect_typed<'a>(
    value: &'a Value,
    kind: &str,
    into: &mut Vec<&'a Value>,
    budget: &RuleWorkBudget,
) {
    if !budget.step() {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                collect_typed(item, kind, into, budget);
            }
        }
        Value::Object(object) => {
            if object
                .get("@type")
                .is_some_and(|types| has_type(types, kind))
            {
                into.push(value);
            }
            for inner in object.values() {
                collect_typed(inner, kind, into, budget);
            }
        }
        _ => {}
    }
}

fn has_type(types: &Value, kind: &str) -> bool {
    let is_kind = |name: &str| name.rsplit(['/', '#', ':']).next() == Some(kind);
    match types {
        Value::String(name) => is_kind(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is_kind),
        _ => false,
    }
}

fn follow(
    value: &Value,
    properties: &[String],
    data: &mut Vec<SourceText>,
    budget: &RuleWorkBudget,
) {
    if !budget.step() {
        return;
    }
    match (value, properties) {
        (Value::Array(items), _) => {
            for item in items {
                follow(item, properties, data, budget);
            }
        }
        (Value::Object(object), [first, rest @ ..]) => {
            if let Some(inner) = object.get(first) {
                follow(inner, rest, data, budget);
            }
        }
        (Value::Object(object), []) => {
            if let Some(inner) = object.get("@value").or_else(|| object.get("@id")) {
                follow(inner, &[], data, budget);
            }
        }
        (Value::String(text), []) => data.push(text.clone().into()),
        (Value::Number(number), []) => data.push(SourceText {
            text: number.to_string(),
            is_json_number: true,
        }),
        (Value::Bool(value), []) => data.push(value.to_string().into()),
        _ => {}
    }
}
