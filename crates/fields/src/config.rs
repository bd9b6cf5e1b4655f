//! The format of rules in a settings file.

use std::fmt;

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A rule, written as a table `[[extract]]`: conditions on pages, and the fields to extract from
/// them. A page must meet all conditions that are given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RuleConfig {
    /// The name of the rule, unique among the rules of a file.
    pub name: String,
    /// The host of the pages. Subdomains of the host match too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The prefix of the URL's path, which begins with `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A regular expression that must match anywhere in the URL.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// The label of the seed that led to the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The media type of the page, without parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The language of the page. For example, `de` also matches `de-AT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The fields, by name.
    pub fields: FieldConfigList,
}

/// Fields by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldConfigList(pub Vec<(String, FieldConfig)>);

/// A field, written either as a selector alone or as a table.
#[derive(Clone, Debug)]
pub enum FieldConfig {
    /// A selector. The field is the text of the first element that matches.
    Select(String),
    /// A table, which may have keys other than `select`.
    Table(Box<FieldConfigTable>),
}

/// The keys of a field that is written as a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FieldConfigTable {
    /// A CSS selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// An XPath expression. Always refused, with a hint to write CSS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xpath: Option<String>,
    /// A path in the page's JSON-LD: a type and properties, such as `Product.offers.price`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_ld: Option<String>,
    /// A path in the page's microdata: a type and properties, such as `Product.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microdata: Option<String>,
    /// The property of a META element whose content to take, such as `og:title`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_graph: Option<String>,
    /// The name of the attribute to take instead of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attr: Option<String>,
    /// The part of the element to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ElementContent>,
    /// Whether the value is a list of all matches instead of only the first match.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all: bool,
    /// A regular expression to apply to the text. The value is the first group of the match, or the
    /// whole match if the expression has no group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The type of the value.
    #[serde(rename = "type", default, skip_serializing_if = "is_text")]
    pub kind: FieldType,
    /// The locale of numbers and dates, such as `de`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Whether the field fails if a page lacks it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// The fields of a group. If set, this field is a group, and its fields are searched within
    /// each element that `select` matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldConfigList>,
}

/// Which content of an element a field takes: all its text, its own text without that of
/// descendants, or its HTML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElementContent {
    /// The text of the element and its descendants, without that of scripts, styles and templates.
    #[default]
    Text,
    /// The text of the element without that of its descendants.
    OwnText,
    /// The HTML of the element, with its own tags.
    Html,
}

/// The type of a field's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldType {
    /// Text, with each run of white space replaced by a space.
    #[default]
    Text,
    /// A number.
    Number,
    /// A date without a time, written as `2026-03-08`.
    Date,
    /// An absolute URL.
    Url,
    /// True if something matches, unless its text is `false`, `no`, `off` or `0`.
    Bool,
}

impl FieldConfigList {
    /// Iterates over the fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldConfig)> {
        self.0.iter().map(|(name, field)| (&**name, field))
    }
}

impl FieldConfig {
    /// Converts the field to a table. A plain selector becomes a table with only `select`.
    #[must_use]
    pub fn to_table(&self) -> FieldConfigTable {
        match self {
            FieldConfig::Select(select) => FieldConfigTable {
                select: Some(select.clone()),
                ..FieldConfigTable::default()
            },
            FieldConfig::Table(table) => (**table).clone(),
        }
    }
}

// A plain selector equals a table that contains only this selector.
impl PartialEq for FieldConfig {
    fn eq(&self, other: &FieldConfig) -> bool {
        self.to_table() == other.to_table()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_text(kind: &FieldType) -> bool {
    *kind == FieldType::Text
}

impl Serialize for FieldConfigList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // In a TOML file, plain values come before tables, which would change the order of the
        // fields. So write all fields as tables if any field is a table.
        let is_table = |(_, field): &(String, FieldConfig)| matches!(field, FieldConfig::Table(_));
        let has_tables = self.0.iter().any(is_table);
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, field) in &self.0 {
            match has_tables {
                true => map.serialize_entry(name, &field.to_table())?,
                false => map.serialize_entry(name, field)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for FieldConfigList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldConfigList, D::Error> {
        struct FieldListVisitor;
        impl<'de> Visitor<'de> for FieldListVisitor {
            type Value = FieldConfigList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldConfigList, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(FieldConfigList(fields))
            }
        }
        deserializer.deserialize_map(FieldListVisitor)
    }
}

impl Serialize for FieldConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FieldConfig::Select(select) => select.serialize(serializer),
            FieldConfig::Table(table) => table.serialize(serializer),
        }
    }
}

// Deserialize by hand. With a derived untagged enum, errors would contain neither the unknown key
// nor its position.
impl<'de> Deserialize<'de> for FieldConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldConfig, D::Error> {
        struct TextOrTableVisitor;
        impl<'de> Visitor<'de> for TextOrTableVisitor {
            type Value = FieldConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a selector or a table such as { select = \"h1\", type = \"text\" }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FieldConfig, E> {
                Ok(FieldConfig::Select(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FieldConfig, A::Error> {
                let table = FieldConfigTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(FieldConfig::Table(Box::new(table)))
            }
        }
        deserializer.deserialize_any(TextOrTableVisitor)
    }
}
