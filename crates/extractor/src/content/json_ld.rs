//! Reads JSON-LD: the items that describe a page.

use serde_json::{Map, Value};

use super::content_limits::{ContentLimits, ContentOddityKind, ContentOddityList};
use crate::collapsed_text_builder::CollapsedTextBuilder;

/// Maximum number of names in each list of an item: types, authors, breadcrumbs.
const MAX_NAMES: usize = 32;

/// An item of a page's JSON-LD, with the schema.org properties that are read. Items nested in
/// another one are not listed, except those in `@graph` or `mainEntity`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonLdItem {
    /// The values of `@type`, without the URL of the vocabulary.
    pub types: Vec<String>,
    /// The title: `headline`, or else `name`.
    pub name: Option<String>,
    /// The description (`description`).
    pub description: Option<String>,
    /// The URL: `url`, or else an `@id` that starts with `http`, as written.
    pub url: Option<String>,
    /// The language (`inLanguage`).
    pub language: Option<String>,
    /// The names of the authors (`author`).
    pub authors: Vec<String>,
    /// The section of the site that contains the text (`articleSection`).
    pub section: Option<String>,
    /// The publication date: `datePublished`, or else `dateCreated`, as written.
    pub published: Option<String>,
    /// The date of the last modification (`dateModified`), as written.
    pub modified: Option<String>,
    /// The names in a `BreadcrumbList`, outermost first.
    pub breadcrumbs: Vec<String>,
}

impl JsonLdItem {
    /// Returns whether the item describes a text, such as an article. The dates of such an item are
    /// the dates of the text.
    pub(super) fn is_text(&self) -> bool {
        let ends = |kind: &String| {
            [
                "Article", "Posting", "Page", "Report", "Work", "Book", "Question", "Recipe",
                "Review",
            ]
            .iter()
            .any(|end| kind.ends_with(end))
        };
        self.types.iter().any(ends)
    }
}

/// Collects the items of a page's JSON-LD scripts.
pub(super) struct JsonLdReader {
    pub(super) items: Vec<JsonLdItem>,
    script: String,
    too_long: bool,
    scripts: usize,
    limits: [usize; 4],
}

impl JsonLdReader {
    pub(super) fn new(limits: &ContentLimits) -> JsonLdReader {
        JsonLdReader {
            items: Vec::new(),
            script: String::new(),
            too_long: false,
            scripts: 0,
            limits: [
                limits.json_ld_bytes,
                limits.json_ld_scripts,
                limits.json_ld_items,
                limits.field_bytes,
            ],
        }
    }

    /// Adds a part of the open script.
    pub(super) fn text(&mut self, text: &str) {
        if self.script.len() + text.len() > self.limits[0] {
            self.too_long = true;
        } else if !self.too_long {
            self.script.push_str(text);
        }
    }

    /// Reads the finished script.
    pub(super) fn end_script(&mut self, offset: usize, oddities: &mut ContentOddityList) {
        let script = std::mem::take(&mut self.script);
        if std::mem::take(&mut self.too_long) {
            return oddities.note(ContentOddityKind::JsonLdTooLong, offset);
        }
        let script = unwrapped(&script);
        if script.is_empty() {
            return;
        }
        self.scripts += 1;
        if self.scripts > self.limits[1] {
            return oddities.note(ContentOddityKind::JsonLdFull, offset);
        }
        match serde_json::from_str::<Value>(script) {
            Ok(value) => self.items_of(&value, offset, oddities),
            Err(_) => oddities.note(ContentOddityKind::BrokenJsonLd, offset),
        }
    }

    fn items_of(&mut self, value: &Value, offset: usize, oddities: &mut ContentOddityList) {
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            match value {
                Value::Array(list) => waiting.extend(list.iter().rev()),
                Value::Object(object) => {
                    waiting.extend(
                        ["mainEntity", "@graph"]
                            .iter()
                            .filter_map(|name| object.get(*name)),
                    );
                    if !object.contains_key("@type") {
                        continue;
                    }
                    if self.items.len() >= self.limits[2] {
                        return oddities.note(ContentOddityKind::JsonLdFull, offset);
                    }
                    self.items.push(self.item(object));
                }
                _ => {}
            }
        }
    }

    fn item(&self, object: &Map<String, Value>) -> JsonLdItem {
        let text = |name: &str| object.get(name).and_then(|value| self.text_of(value));
        let types = names(object.get("@type"), |value| self.text_of(value));
        let types: Vec<String> = types
            .into_iter()
            .map(|name| local_name(&name).to_owned())
            .collect();
        let breadcrumbs = match types.iter().any(|name| name == "BreadcrumbList") {
            true => self.breadcrumbs(object.get("itemListElement")),
            false => Vec::new(),
        };
        JsonLdItem {
            types,
            name: text("headline").or_else(|| text("name")),
            description: text("description"),
            url: text("url").or_else(|| text("@id").filter(|id| id.starts_with("http"))),
            language: text("inLanguage"),
            authors: names(object.get("author"), |value| self.name_of(value)),
            section: text("articleSection"),
            published: text("datePublished").or_else(|| text("dateCreated")),
            modified: text("dateModified"),
            breadcrumbs,
        }
    }

    fn breadcrumbs(&self, list: Option<&Value>) -> Vec<String> {
        let list = list
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let step = |value: &Value| {
            let place = value.get("position");
            let place = place.and_then(|place| match place {
                Value::String(text) => text.trim().parse::<f64>().ok(),
                other => other.as_f64(),
            });
            let name = self
                .name_of(value)
                .or_else(|| self.name_of(value.get("item")?))?;
            Some((place.unwrap_or(0.0), name))
        };
        let mut steps: Vec<(f64, String)> = list.iter().take(MAX_NAMES).filter_map(step).collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        steps.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the name of a person or thing. `value` is the name itself, or an item with a name.
    fn name_of(&self, value: &Value) -> Option<String> {
        match value {
            Value::Object(object) => object.get("name").and_then(|name| self.text_of(name)),
            other => self.text_of(other),
        }
    }

    /// Returns the text of `value`: the string itself, or the string in its `@value`. For a list,
    /// returns the text of its first element.
    fn text_of(&self, value: &Value) -> Option<String> {
        let value = match value {
            Value::Array(list) => list.first()?,
            other => other,
        };
        let text = match value {
            Value::Object(object) => object.get("@value")?.as_str()?,
            other => other.as_str()?,
        };
        let mut collapsed = CollapsedTextBuilder::new(self.limits[3]);
        collapsed.push(text);
        collapsed.take().0
    }
}

fn names(value: Option<&Value>, name: impl Fn(&Value) -> Option<String>) -> Vec<String> {
    match value {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().take(MAX_NAMES).filter_map(name).collect(),
        Some(other) => name(other).into_iter().collect(),
    }
}

/// Returns a type without its vocabulary: `Article` for `http://schema.org/Article` or
/// `schema:Article`.
fn local_name(name: &str) -> &str {
    name.rsplit(['/', '#', ':']).next().unwrap_or(name)
}

/// Returns the script without a surrounding comment or CDATA section.
fn unwrapped(script: &str) -> &str {
    let script =
        script.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\0' | ';'));
    for (start, end) in [
        ("<!--", "-->"),
        ("//<![CDATA[", "//]]>"),
        ("/*<![CDATA[*/", "/*]]>*/"),
        ("<![CDATA[", "]]>"),
    ] {
        if let Some(inner) = script.strip_prefix(start) {
            return inner.strip_suffix(end).unwrap_or(inner).trim();
        }
    }
    script
}
