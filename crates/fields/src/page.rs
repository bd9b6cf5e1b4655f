//! The facts about a page that rules read, and a rule's result.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The facts about a page, apart from its text, that decide which rules apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageFacts<'a> {
    /// The absolute URL of the page.
    pub url: &'a str,
    /// The `Content-Type` of the page.
    pub content_type: Option<&'a str>,
    /// The tag of the page's language. If `None`, the `lang` of the page's root element counts.
    pub language: Option<&'a str>,
    /// The label of the seed that led to the page.
    pub label: Option<&'a str>,
}

/// The fields that one rule extracted from one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extract {
    /// The name of the rule.
    pub rule: String,
    /// A value for each field of the rule. Null if the field is missing or failed, and an empty
    /// list for a missing field with `all`.
    pub fields: Map<String, Value>,
    /// The fields without a value on the page. Fields of a group are named `group.field`.
    pub missing: Vec<String>,
    /// Why fields failed: their text can't be read as their type, or they are required and missing.
    pub failed: BTreeMap<String, String>,
    /// The first limit that was reached: `bytes`, `nodes`, `depth`, `steps`, `values` or `size`.
    /// `None` if the page was read to its end.
    pub cut: Option<&'static str>,
}

/// The reason why a selector matches nothing on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nearest {
    /// The longest beginning of the selector that matches something. `None` if no beginning does.
    pub beginning: Option<String>,
    /// The first element, class or id of the selector that the page doesn't have, such as
    /// `.prices`.
    pub lacking: Option<String>,
    /// The class or id of the page that resembles the lacking one most, such as `.price`.
    pub similar: Option<String>,
}
