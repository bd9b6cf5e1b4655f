//! Compiled rules.

use regex::Regex;
use url::Url;

use crate::config::ElementContent;
use crate::css_selector_matching::CssSelectorList;
use crate::field_value_parser::FieldValueParser;
use crate::rule_inputs_and_results::PageToMatch;

/// An extraction rule: its conditions on pages, and its fields with compiled selectors and regular
/// expressions.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRule {
    pub(crate) name: String,
    pub(crate) host: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) matches: Option<Regex>,
    pub(crate) label: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) fields: Vec<CompiledField>,
}

/// A field of a compiled rule: where its value is found, and how it is converted.
#[derive(Clone, Debug)]
pub(crate) struct CompiledField {
    pub(crate) name: String,
    pub(crate) source: FieldSource,
    pub(crate) part: ElementPart,
    pub(crate) all: bool,
    pub(crate) regex: Option<Regex>,
    pub(crate) value: FieldValueParser,
    pub(crate) required: bool,
    /// The fields of a group; `None` if the field is a single value.
    pub(crate) group: Option<Vec<CompiledField>>,
}

/// The part of a page that a field is taken from.
#[derive(Clone, Debug)]
pub(crate) enum FieldSource {
    Select {
        selector: CssSelectorList,
        text: String,
    },
    /// The element that the containing group matched.
    GroupElement,
    JsonLd(Vec<String>),
    Microdata(Vec<String>),
    OpenGraph(String),
}

/// The part of an element that a field takes: its content or one attribute.
#[derive(Clone, Debug)]
pub(crate) enum ElementPart {
    Content(ElementContent),
    Attribute(String),
}

/// The keys of all conditions that a rule can have.
const CONDITIONS: [&str; 6] = ["host", "path", "match", "label", "content-type", "language"];

impl CompiledRule {
    /// Returns whether a page meets the conditions of the rule. If the page's language is unknown,
    /// a condition on the language counts as met.
    pub(crate) fn may_match(&self, url: &Url, facts: &PageToMatch<'_>) -> bool {
        self.conditions(url, facts).all(|(_, is_met)| is_met)
    }

    /// Iterates over the conditions of the rule. Yields the key of each condition, and whether a
    /// page meets it.
    pub(crate) fn conditions(
        &self,
        url: &Url,
        facts: &PageToMatch<'_>,
    ) -> impl Iterator<Item = (&'static str, bool)> {
        let named = CONDITIONS.into_iter();
        named.filter_map(|name| Some((name, self.meets(name, url, facts)?)))
    }

    /// Returns whether a page meets a condition. `None` if the rule has no such condition.
    fn meets(&self, condition: &str, url: &Url, facts: &PageToMatch<'_>) -> Option<bool> {
        Some(match condition {
            "host" => is_host(url, self.host.as_deref()?),
            "path" => url.path().starts_with(self.path.as_deref()?),
            "match" => self.matches.as_ref()?.is_match(facts.url),
            "label" => facts.label == Some(self.label.as_deref()?),
            "content-type" => {
                let sent = facts.content_type.unwrap_or_default();
                let media_type = sent.split(';').next().unwrap_or_default().trim();
                media_type.eq_ignore_ascii_case(self.content_type.as_deref()?)
            }
            _ => {
                self.language.as_ref()?;
                facts.language.is_none() || self.is_language(facts.language)
            }
        })
    }

    /// Returns whether the rule applies to pages in `language`. If the language is unknown
    /// (`None`), only a rule without a language applies.
    pub(crate) fn is_language(&self, language: Option<&str>) -> bool {
        let Some(wanted) = &self.language else {
            return true;
        };
        let language = language.unwrap_or_default().trim();
        let begin = language.get(..wanted.len()).unwrap_or_default();
        let rest = language.get(wanted.len()..).unwrap_or_default();
        begin.eq_ignore_ascii_case(wanted) && (rest.is_empty() || rest.starts_with('-'))
    }
}

/// Returns whether the URL's host is `host` or a subdomain of it. If `host` contains a port, the
/// URL's port must match too.
fn is_host(url: &Url, host: &str) -> bool {
    let name = url.host_str().unwrap_or_default();
    let with_port = url.port().map(|port| format!("{name}:{port}"));
    [Some(name), with_port.as_deref()]
        .into_iter()
        .flatten()
        .any(|name| {
            let above = name.strip_suffix(host);
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        })
}
