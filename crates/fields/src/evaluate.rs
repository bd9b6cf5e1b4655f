//! Applies compiled rules to the tree of a page.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use scraper::ElementRef;
use serde_json::{Map, Value};
use url::Url;

use crate::compiled_rule::{CompiledField, CompiledRule, ElementPart, FieldSource};
use crate::config::{ElementContent, FieldType};
use crate::css_selector_matching::CssSelectorList;
use crate::element_text::{html_of, normalized, own_text, text_of};
use crate::field_value_parser::SourceText;
use crate::json_ld::JsonLd;
use crate::page_tree::PageTree;
use crate::rule_inputs_and_results::{ExtractedFields, REQUIRED_BUT_MISSING};
use crate::rule_work_budget::{MAX_VALUES, RuleWorkBudget};
use crate::{json_ld, microdata};

/// Applies rules to a page. If `language` is `None`, the `lang` of the root element is used.
pub(crate) fn rules(
    rules: &[&CompiledRule],
    tree: &PageTree,
    url: Url,
    language: Option<&str>,
) -> Vec<ExtractedFields> {
    let Some(root) = tree.root() else {
        return Vec::new();
    };
    let budget = RuleWorkBudget::new(tree.cut);
    let page = RuleEvaluator {
        root,
        base: base_of(root, url, &budget),
        json_ld: OnceCell::new(),
        budget: &budget,
    };
    let language = language.or_else(|| root.attr("lang"));
    let rules = rules.iter().filter(|rule| rule.is_language(language));
    rules.map(|rule| page.rule(rule)).collect()
}

/// Returns the base URL of a page: the `href` of the first BASE element that has one, or else the
/// page's URL.
fn base_of(root: ElementRef<'_>, url: Url, budget: &RuleWorkBudget) -> Url {
    let Ok(selector) = CssSelectorList::parse("base[href]") else {
        return url;
    };
    let element = selector.matches(root, budget).next();
    let href = element.and_then(|element| element.attr("href"));
    href.and_then(|href| url.join(href).ok()).unwrap_or(url)
}

struct RuleEvaluator<'a> {
    root: ElementRef<'a>,
    base: Url,
    /// The JSON-LD of the page, read when a field first needs it.
    json_ld: OnceCell<JsonLd>,
    budget: &'a RuleWorkBudget,
}

/// The fields of a rule that are missing or that failed, by path.
#[derive(Default)]
struct FieldProblems {
    missing: BTreeSet<String>,
    failed: BTreeMap<String, String>,
}

impl<'a> RuleEvaluator<'a> {
    fn rule(&self, rule: &CompiledRule) -> ExtractedFields {
        let mut problems = FieldProblems::default();
        let fields = self.fields(&rule.fields, self.root, "", &mut problems);
        let FieldProblems {
            mut missing,
            failed,
        } = problems;
        // In a list of groups, a field may be missing in one group and fail in another. Such a
        // field counts as failed.
        missing.retain(|name| !failed.contains_key(name));
        ExtractedFields {
            rule: rule.name.clone(),
            fields,
            missing: in_order(&rule.fields, missing),
            failed,
            cut: self.budget.end_rule(),
        }
    }

    /// Extracts fields within the element `scope`. `prefix` is the path of the containing group and
    /// ends with a dot. Outside of groups, the prefix is empty.
    fn fields(
        &self,
        fields: &[CompiledField],
        scope: ElementRef<'_>,
        prefix: &str,
        problems: &mut FieldProblems,
    ) -> Map<String, Value> {
        let values = fields.iter().map(|field| {
            let path = format!("{prefix}{}", field.name);
            let value = match &field.group {
                Some(group) => self.group(field, group, scope, &path, problems),
                None => self.value(field, scope, &path, problems),
            };
            let is_missing = match &value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                _ => false,
            };
            if is_missing && !problems.failed.contains_key(&path) {
                match field.required {
                    true => {
                        problems
                            .failed
                            .insert(path, REQUIRED_BUT_MISSING.to_owned());
                    }
                    false => {
                        problems.missing.insert(path);
                    }
                }
            }
            (field.name.clone(), value)
        });
        values.collect()
    }

    /// Extracts a group: an object for the first matching element, or with `all` a list of objects
    /// for all matching elements.
    fn group(
        &self,
        field: &CompiledField,
        group: &[CompiledField],
        scope: ElementRef<'_>,
        path: &str,
        problems: &mut FieldProblems,
    ) -> Value {
        let prefix = format!("{path}.");
        let mut objects = Vec::new();
        for element in self.elements(field, scope) {
            objects.push(Value::Object(
                self.fields(group, element, &prefix, problems),
            ));
        }
        match field.all {
            true => Value::Array(objects),
            false => objects.pop().unwrap_or(Value::Null),
        }
    }

    /// Extracts a field that is not a group: its first value, or with `all` a list of all values.
    fn value(
        &self,
        field: &CompiledField,
        scope: ElementRef<'_>,
        path: &str,
        problems: &mut FieldProblems,
    ) -> Value {
        let texts = self.texts(field, scope);
        if field.value.kind == FieldType::Bool && !field.all && texts.is_empty() {
            return Value::Bool(false);
        }
        let values = texts.into_iter().map(|text| {
            let value = field.value.value(&text, Some(&self.base));
            value.unwrap_or_else(|why| {
                problems.failed.entry(path.to_owned()).or_insert(why);
                Value::Null
            })
        });
        let mut values: Vec<Value> = values.collect();
        match field.all {
            true => Value::Array(values),
            false => values.pop().unwrap_or(Value::Null),
        }
    }

    /// Returns the texts of a field, after its regular expression was applied. Without `all`,
    /// returns at most one text. Leaves out empty texts unless the type is bool: for a bool, any
    /// matching element counts, even without text.
    fn texts(&self, field: &CompiledField, scope: ElementRef<'_>) -> Vec<SourceText> {
        let is_markup = matches!(field.part, ElementPart::Content(ElementContent::Html));
        let texts: Vec<SourceText> = match &field.source {
            FieldSource::Select { .. } | FieldSource::GroupElement => {
                let elements = self.elements(field, scope);
                let texts = elements
                    .iter()
                    .filter_map(|element| self.part(field, *element));
                texts.map(SourceText::from).collect()
            }
            FieldSource::JsonLd(path) => {
                let json_ld = self.json_ld.get_or_init(|| self.read_json_ld());
                if json_ld.is_cut {
                    self.budget.note("size");
                }
                self.bounded(field, json_ld::values(&json_ld.data, path, self.budget))
            }
            FieldSource::Microdata(path) => {
                let base = Some(&self.base);
                let values = microdata::values(self.root, path, base, self.budget);
                self.bounded(field, values)
            }
            FieldSource::OpenGraph(property) => self.bounded(field, self.open_graph(property)),
        };
        let is_bool = field.value.kind == FieldType::Bool && field.regex.is_none();
        let texts = texts.into_iter().filter_map(|source| match &field.regex {
            None => Some(source),
            Some(regex) => {
                let captures = regex.captures(&source.text)?;
                let group = captures.get(1).or_else(|| captures.get(0))?;
                let text = match is_markup {
                    true => group.as_str().to_owned(),
                    false => group.as_str().trim().to_owned(),
                };
                Some(SourceText { text, ..source })
            }
        });
        texts
            .filter(|source| is_bool || !source.text.is_empty())
            .collect()
    }

    /// Returns the elements that a field's selector matches, or `scope` if the field has no
    /// selector. Without `all`, returns at most one element.
    fn elements<'s>(&self, field: &'s CompiledField, scope: ElementRef<'s>) -> Vec<ElementRef<'s>>
    where
        'a: 's,
    {
        let budget: &'s RuleWorkBudget = self.budget;
        match &field.source {
            FieldSource::Select { selector, .. } => {
                let mut elements = selector.matches(scope, budget);
                let most = if field.all { MAX_VALUES } else { 1 };
                let found: Vec<_> = elements.by_ref().take(most).collect();
                if field.all && found.len() == MAX_VALUES && elements.next().is_some() {
                    budget.note("values");
                }
                found
            }
            _ => vec![scope],
        }
    }

    fn part(&self, field: &CompiledField, element: ElementRef<'_>) -> Option<String> {
        match &field.part {
            ElementPart::Attribute(name) => {
                let value = element.attr(name)?;
                Some(normalized(value, self.budget))
            }
            ElementPart::Content(ElementContent::Text) => Some(text_of(element, self.budget)),
            ElementPart::Content(ElementContent::OwnText) => Some(own_text(element, self.budget)),
            ElementPart::Content(ElementContent::Html) => Some(html_of(element, self.budget)),
        }
    }

    fn bounded(
        &self,
        field: &CompiledField,
        values: Vec<impl Into<SourceText>>,
    ) -> Vec<SourceText> {
        let most = if field.all { MAX_VALUES } else { 1 };
        if field.all && values.len() > most {
            self.budget.note("values");
        }
        let values = values.into_iter().take(most).map(Into::into);
        values
            .map(|source| SourceText {
                text: normalized(&source.text, self.budget),
                ..source
            })
            .collect()
    }

    fn read_json_ld(&self) -> JsonLd {
        let scripts = CssSelectorList::parse("script[type=\"application/ld+json\" i]");
        scripts.map_or_else(
            |_| JsonLd::default(),
            |scripts| json_ld::read(self.root, &scripts, self.budget),
        )
    }

    fn open_graph(&self, property: &str) -> Vec<String> {
        let Ok(metas) = CssSelectorList::parse("meta[content]") else {
            return Vec::new();
        };
        let metas = metas.matches(self.root, self.budget).filter(|meta| {
            let names = ["property", "name"]
                .into_iter()
                .filter_map(|name| meta.attr(name));
            names
                .flat_map(str::split_ascii_whitespace)
                .any(|name| name == property)
        });
        metas
            .filter_map(|meta| meta.attr("content").map(str::to_owned))
            .collect()
    }
}

/// Sorts the names of missing fields in the order of the rule's fields.
fn in_order(fields: &[CompiledField], mut missing: BTreeSet<String>) -> Vec<String> {
    let mut names = Vec::new();
    for field in fields {
        names.extend(missing.take(&field.name));
        let group = format!("{}.", field.name);
        let within = missing.iter().filter(|name| name.starts_with(&group));
        names.extend(within.cloned().collect::<Vec<_>>());
    }
    names
}
