//! Compiled rules.

use regex::Regex;
use url::Url;

use crate::config::Content;
use crate::page::PageFacts;
use crate::select::Selector;
use crate::value::ValueType;

/// A compiled rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) host: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) matches: Option<Regex>,
    pub(crate) label: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) fields: Vec<Field>,
}

/// A compiled field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) part: Part,
    pub(crate) all: bool,
    pub(crate) regex: Option<Regex>,
    pub(crate) value: ValueType,
    pub(crate) required: bool,
    /// The fields of a group; `None` if the field is a single value.
    pub(crate) group: Option<Vec<Field>>,
}

/// The source of a field in a page.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Select {
        selector: Selector,
        text: String,
    },
    /// The element of the group that contains the field.
    GroupElement,
    JsonLd(Vec<String>),
    Microdata(Vec<String>),
    OpenGraph(String),
}

/// The part of an element that is taken.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Content(Content),
    Attribute(String),
}

impl Rule {
    /// Returns whether the rule applies to a page with these facts.
    pub(crate) fn may_match(&self, url: &Url, facts: &PageFacts<'_>) -> bool {
        let is = |wanted: &Option<String>, test: &dyn Fn(&str) -> bool| {
            wanted.as_deref().is_none_or(test)
        };
        let media_type = facts.content_type.unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        is(&self.host, &|host| is_host(url, host))
            && is(&self.path, &|path| url.path().starts_with(path))
            && self
                .matches
                .as_ref()
                .is_none_or(|regex| regex.is_match(facts.url))
            && is(&self.label, &|label| facts.label == Some(label))
            && is(&self.content_type, &|kind| {
                media_type.eq_ignore_ascii_case(kind)
            })
            && (facts.language.is_none() || self.is_language(facts.language))
    }

    /// Returns whether the rule reads pages in a language. `None` is an unknown language.
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

/// Returns whether a URL's host, with its port if `host` has one, is `host` or a subdomain of it.
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
