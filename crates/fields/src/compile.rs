//! Checks rules and compiles their selectors and regular expressions.

use std::collections::HashSet;

use regex::{Regex, RegexBuilder};

use crate::compiled_rule::{CompiledField, CompiledRule, ElementPart, FieldSource};
use crate::config::{FieldConfig, FieldConfigList, FieldConfigTable, FieldType, RuleConfig};
use crate::css_selector_matching::CssSelectorList;
use crate::field_value_parser::FieldValueParser;
use crate::locale::Locale;
use crate::rule_error::RuleError;

/// Maximum bytes of the name of a rule or a field.
/// Beyond the limit: refused.
const MAX_NAME_BYTES: usize = 64;

/// Maximum nesting depth of groups (tables of fields).
/// Beyond the limit: refused.
const MAX_GROUPS: usize = 4;

/// Maximum bytes of a compiled regular expression. Matching takes time in proportion to it.
/// Beyond the limit: refused.
const MAX_REGEX_BYTES: usize = 4 << 20;

/// Maximum nesting depth of brackets in a selector, which the parser reads by recursion.
/// Beyond the limit: refused.
const MAX_BRACKETS: usize = 32;

/// Columns that each table of extracted fields has besides the fields themselves. Fields can't have
/// these names.
const OTHER_COLUMNS: [&str; 3] = ["page_url", "page_round", "item"];

/// The names of the tables of every crawl. Rules can't have these names.
const OTHER_TABLES: [&str; 7] = [
    "excluded", "hosts", "links", "pages", "requests", "robots", "walk",
];

/// Compiles rules.
///
/// # Errors
/// All mistakes in the rules, each with the path of its key.
pub(crate) fn rules(configs: &[RuleConfig]) -> Result<Vec<CompiledRule>, Vec<RuleError>> {
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    let mut rules = Vec::new();
    for (index, config) in configs.iter().enumerate() {
        let mut compiler = RuleCompiler {
            rule: index,
            path: Vec::new(),
            errors: &mut errors,
        };
        compiler.name("rule", &config.name, "name");
        if OTHER_TABLES.contains(&config.name.as_str()) {
            let message = format!("a rule can't be named `{}`", config.name);
            compiler.error(
                Some("name"),
                None,
                message,
                "an export has a table of this name",
            );
        }
        if !names.insert(config.name.as_str()) {
            let message = format!("there are two rules named `{}`", config.name);
            compiler.error(
                Some("name"),
                None,
                message,
                "give each rule a name of its own",
            );
        }
        rules.push(compiler.rule(config));
    }
    match errors.is_empty() {
        true => Ok(rules),
        false => Err(errors),
    }
}

const REGEX_HINT: &str = "the syntax is that of https://docs.rs/regex; look-around doesn't exist";
const NAME_HINT: &str = "use letters, digits, `-` and `_`";
const XPATH_HINT: &str = "write CSS: //ul/li[2]//a[@class='x']/@href is select = \"ul > li:nth-of-type(2) \
     a.x\", attr = \"href\"; contains(., 'x') is a `regex`";
const SOURCE_HINT: &str = "give one of `select`, `json-ld`, `microdata`, `open-graph`";

/// The compiler of one rule, which collects the mistakes in it.
struct RuleCompiler<'a> {
    rule: usize,
    /// The keys that lead to the table that is being compiled.
    path: Vec<String>,
    errors: &'a mut Vec<RuleError>,
}

impl RuleCompiler<'_> {
    fn error(
        &mut self,
        key: Option<&str>,
        offset: Option<usize>,
        message: String,
        hint: &'static str,
    ) {
        let mut path = self.path.clone();
        path.extend(key.map(str::to_owned));
        self.errors.push(RuleError {
            rule: self.rule,
            path,
            offset,
            message,
            hint,
        });
    }

    fn name(&mut self, what: &str, name: &str, key: &str) {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
            self.error(
                Some(key),
                None,
                format!("unusable name of a {what}: `{name}`"),
                NAME_HINT,
            );
        }
    }

    fn regex(&mut self, key: &str, text: Option<&String>) -> Option<Regex> {
        RegexBuilder::new(text?)
            .size_limit(MAX_REGEX_BYTES)
            .build()
            .map_err(|error| {
                let why = error.to_string();
                let why = why
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ");
                let message = format!(
                    "bad regular expression `{}`: {why}",
                    text.map_or("", |text| text)
                );
                self.error(Some(key), None, message, REGEX_HINT);
            })
            .ok()
    }

    fn rule(&mut self, config: &RuleConfig) -> CompiledRule {
        if let Some(path) = config.path.as_ref().filter(|path| !path.starts_with('/')) {
            let message = format!("`path` is `{path}`, but a path begins with `/`");
            self.error(
                Some("path"),
                None,
                message,
                "use `match` for a regular expression",
            );
        }
        if let Some(host) = config
            .host
            .as_ref()
            .filter(|host| host.contains('/') || host.is_empty())
        {
            let message = format!("`host` is `{host}`, which is not a host");
            self.error(
                Some("host"),
                None,
                message,
                "use a name such as example.org",
            );
        }
        if let Some(kind) = config
            .content_type
            .as_ref()
            .filter(|kind| !kind.contains('/'))
        {
            let message = format!("`content-type` is `{kind}`, which is not a media type");
            self.error(
                Some("content-type"),
                None,
                message,
                "use for example text/html",
            );
        }
        if config.fields.0.is_empty() {
            let message = format!("the rule `{}` has no fields", config.name);
            self.error(
                Some("fields"),
                None,
                message,
                "add a table [extract.fields]",
            );
        }
        CompiledRule {
            name: config.name.clone(),
            host: config.host.as_ref().map(|host| host.to_ascii_lowercase()),
            path: config.path.clone(),
            matches: self.regex("match", config.matches.as_ref()),
            label: config.label.clone(),
            content_type: config.content_type.clone(),
            language: config.language.clone(),
            fields: self.fields(&config.fields, 0),
        }
    }

    fn fields(&mut self, fields: &FieldConfigList, groups: usize) -> Vec<CompiledField> {
        self.path.push("fields".to_owned());
        let mut compiled = Vec::new();
        for (name, config) in fields.iter() {
            self.name("field", name, name);
            if OTHER_COLUMNS.contains(&name) {
                let message = format!("a field can't be named `{name}`");
                self.error(
                    Some(name),
                    None,
                    message,
                    "tables have a column with this name",
                );
            }
            let is_table = matches!(config, FieldConfig::Table(_));
            if is_table {
                self.path.push(name.to_owned());
            }
            let key = |key: &'static str| if is_table { key } else { name };
            compiled.extend(self.field(name, &config.to_table(), groups, &key));
            if is_table {
                self.path.pop();
            }
        }
        self.path.pop();
        compiled
    }

    /// Compiles a field. `key` maps a key of the field to the key that an error message names. A
    /// field that is written as a plain selector has no keys, so the message names the field
    /// itself.
    fn field<'k>(
        &mut self,
        name: &str,
        table: &FieldConfigTable,
        groups: usize,
        key: &dyn Fn(&'static str) -> &'k str,
    ) -> Option<CompiledField> {
        let source = self.source(table, groups, key);
        self.check_keys(name, table);
        let part = match &table.attr {
            Some(attr) => ElementPart::Attribute(attr.to_ascii_lowercase()),
            None => ElementPart::Content(table.content.unwrap_or_default()),
        };
        let locale = table
            .locale
            .as_deref()
            .map(|locale| (locale, Locale::find(locale)));
        if let Some((name, None)) = locale {
            let message = format!("unknown locale `{name}`: known are {}", Locale::languages());
            self.error(
                Some("locale"),
                None,
                message,
                "a region may follow, as in de-CH",
            );
        }
        let group = table.fields.as_ref().map(|fields| {
            if groups >= MAX_GROUPS {
                let message = format!("groups nested more than {MAX_GROUPS} deep");
                self.error(Some("fields"), None, message, "use a rule for each");
                return Vec::new();
            }
            self.fields(fields, groups + 1)
        });
        Some(CompiledField {
            name: name.to_owned(),
            source: source?,
            part,
            all: table.all,
            regex: self.regex("regex", table.regex.as_ref()),
            value: FieldValueParser {
                kind: table.kind,
                locale: locale.and_then(|(_, locale)| locale),
                locale_name: table.locale.clone(),
            },
            required: table.required,
            group,
        })
    }

    fn source<'k>(
        &mut self,
        table: &FieldConfigTable,
        groups: usize,
        key: &dyn Fn(&'static str) -> &'k str,
    ) -> Option<FieldSource> {
        let path = |text: &String| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let mut sources = Vec::new();
        if let Some(text) = &table.xpath {
            let message = format!("XPath is not supported: `{text}`");
            self.error(Some("xpath"), None, message, XPATH_HINT);
            return None;
        }
        if let Some(text) = &table.select {
            let parsed = match brackets(text) > MAX_BRACKETS {
                true => Err((0, format!("brackets nested more than {MAX_BRACKETS} deep"))),
                false => CssSelectorList::parse(text),
            };
            match parsed {
                Ok(selector) => sources.push(FieldSource::Select {
                    selector,
                    text: text.clone(),
                }),
                Err((at, why)) => {
                    let message = format!("bad selector `{text}`: {why}");
                    let hint = "selectors are CSS; use the keys `content` and `attr` for ::text and ::attr(..)";
                    self.error(Some(key("select")), Some(at), message, hint);
                    return None;
                }
            }
        }
        for (name, text) in [("json-ld", &table.json_ld), ("microdata", &table.microdata)] {
            let Some(parts) = text.as_ref().map(path) else {
                continue;
            };
            if parts.len() < 2 || parts.iter().any(String::is_empty) {
                let text = parts.join(".");
                let message = format!("`{name}` is `{text}`, but needs a type and a property");
                self.error(Some(name), None, message, "use for example Product.name");
                return None;
            }
            sources.push(match name {
                "json-ld" => FieldSource::JsonLd(parts),
                _ => FieldSource::Microdata(parts),
            });
        }
        sources.extend(table.open_graph.clone().map(FieldSource::OpenGraph));
        if groups > 0 && sources.is_empty() {
            sources.push(FieldSource::GroupElement);
        }
        let count = sources.len();
        if count != 1 {
            let message = match count {
                0 => "the field has no selector or other source",
                _ => "the field has more than one source",
            };
            self.error(None, None, message.to_owned(), SOURCE_HINT);
        }
        sources.pop().filter(|_| count == 1)
    }

    /// Checks that the keys of a field can be combined.
    fn check_keys(&mut self, name: &str, table: &FieldConfigTable) {
        let mut refuse =
            |key: &str, message: String, hint| self.error(Some(key), None, message, hint);
        let has_data = [&table.json_ld, &table.microdata, &table.open_graph];
        let has_data = has_data.into_iter().any(Option::is_some);
        for (key, is_set) in [
            ("attr", table.attr.is_some()),
            ("content", table.content.is_some()),
        ] {
            if is_set && has_data {
                let message = format!("`{key}` of the field `{name}` needs `select`");
                refuse(key, message, "structured data has values of its own");
            }
        }
        if table.attr.is_some() && table.content.is_some() {
            let message = format!("the field `{name}` has both `attr` and `content`");
            refuse(
                "content",
                message,
                "an attribute has no content; remove one of them",
            );
        }
        if table.locale.is_some() && !matches!(table.kind, FieldType::Number | FieldType::Date) {
            let message = format!("`locale` of the field `{name}` has no effect");
            refuse(
                "locale",
                message,
                "only numbers and dates have a locale: add `type`",
            );
        }
        let is_value = [
            ("attr", table.attr.is_some()),
            ("content", table.content.is_some()),
            ("regex", table.regex.is_some()),
            ("type", table.kind != FieldType::Text),
            ("json-ld", table.json_ld.is_some()),
            ("microdata", table.microdata.is_some()),
            ("open-graph", table.open_graph.is_some()),
        ];
        let is_value = is_value.into_iter().filter(|(_, is_set)| *is_set);
        for (key, _) in is_value.filter(|_| table.fields.is_some()) {
            let message = format!("the group `{name}` can't have `{key}`");
            refuse(key, message, "put it into the fields of the group");
        }
        if table
            .fields
            .as_ref()
            .is_some_and(|fields| fields.0.is_empty())
        {
            let message = format!("the group `{name}` has no fields");
            refuse(
                "fields",
                message,
                "add fields, such as fields = { name = \"h2\" }",
            );
        }
    }
}

/// Returns how deeply the brackets in a selector are nested.
fn brackets(selector: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in selector.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}
