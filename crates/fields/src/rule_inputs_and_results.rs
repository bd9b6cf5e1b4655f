//! The facts about a page that rules depend on, and the results of rules.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The facts about a page that decide which rules apply to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageToMatch<'a> {
    /// The absolute URL of the page.
    pub url: &'a str,
    /// The `Content-Type` of the page.
    pub content_type: Option<&'a str>,
    /// The language tag of the page. If `None`, the `lang` of the page's root element is used.
    pub language: Option<&'a str>,
    /// The label of the seed that led to the page.
    pub label: Option<&'a str>,
}

/// The reason in [`ExtractedFields::failed`] for a required field that was not found on the page.
pub const REQUIRED_BUT_MISSING: &str = "required, but nothing matches";

/// The fields that one rule extracted from one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtractedFields {
    /// The name of the rule.
    pub rule: String,
    /// The value of each field of the rule, by name. A missing or failed field is null. Exception:
    /// a missing field with `all` is an empty list.
    pub fields: Map<String, Value>,
    /// The names of the fields that were not found on the page. A field of a group is named
    /// `group.field`.
    pub missing: Vec<String>,
    /// The fields that failed, each with the reason: the text can't be converted to the field's
    /// type, or a required field is missing.
    pub failed: BTreeMap<String, String>,
    /// The first limit that was reached: `bytes`, `nodes`, `depth`, `steps`, `values` or `size`.
    /// `None` if no limit was reached.
    pub cut: Option<&'static str>,
}

/// Hints at the reason why a field has no value on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoMatchReason {
    /// Why an element that the selector matches gives no value, such as `the first match has no
    /// text`. `None` if the selector matches no element.
    pub unusable_match: Option<String>,
    /// The longest prefix of the selector that matches an element. `None` if no prefix does.
    pub beginning: Option<String>,
    /// The first element name, class or id in the selector that doesn't occur on the page, such as
    /// `.prices`.
    pub lacking: Option<String>,
    /// The class or id on the page that is most similar to `lacking`, such as `.price`.
    pub similar: Option<String>,
}
