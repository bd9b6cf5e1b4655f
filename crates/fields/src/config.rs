//! Rules as a settings file writes them.

use std::fmt;

use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A table `[[extract]]`: the pages that the rule reads, and the fields it takes from them. A page
/// must satisfy every condition that is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RuleConfig {
    /// The name of the rule, unique among the rules of a file.
    pub name: String,
    /// The host of the pages. Includes its subdomains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The start of the URL's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A regular expression that matches some part of the URL.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// The label of the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The media type, without parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The language: `de` includes `de-AT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The fields, by name.
    pub fields: Fields,
}

/// Fields by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(pub Vec<(String, FieldConfig)>);

/// A field: either only its selector, or a table.
#[derive(Clone, Debug)]
pub enum FieldConfig {
    /// The text of the first element that this selector matches.
    Select(String),
    /// A field with more keys than `select`.
    Table(Box<FieldTable>),
}

/// The keys of a field that is a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FieldTable {
    /// A CSS selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select: Option<String>,
    /// An XPath expression, which is refused with a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xpath: Option<String>,
    /// A path in the JSON-LD of the page, such as `Product.offers.price`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_ld: Option<String>,
    /// A path in the microdata of the page, such as `Product.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microdata: Option<String>,
    /// A property of a META element, such as `og:title`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_graph: Option<String>,
    /// The attribute to take instead of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attr: Option<String>,
    /// The part of the element to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Whether to take all matches, as a list, instead of the first one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all: bool,
    /// A regular expression over the text. The value is the first group, or the whole match if the
    /// regex has no group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The type of the value.
    #[serde(rename = "type", default, skip_serializing_if = "is_text")]
    pub kind: FieldKind,
    /// The locale of numbers and dates, such as `de`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Whether a page without the field is a failure.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// The fields of a group, which are read within the elements that `select` matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Fields>,
}

/// The part of an element that a field takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The text of the element and its descendants, without scripts and styles.
    #[default]
    Text,
    /// The text of the element alone.
    OwnText,
    /// The markup of the element and its descendants.
    Html,
}

/// The type of a field's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    /// Text, with each run of white space replaced by a space.
    #[default]
    Text,
    /// A number.
    Number,
    /// A day, as `2026-03-08`.
    Date,
    /// An absolute URL.
    Url,
    /// Whether anything matches that isn't `false`, `no`, `off` or `0`.
    Bool,
}

impl Fields {
    /// Iterates over the fields in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FieldConfig)> {
        self.0.iter().map(|(name, field)| (&**name, field))
    }
}

impl FieldConfig {
    /// Returns the field as a table.
    #[must_use]
    pub fn to_table(&self) -> FieldTable {
        match self {
            FieldConfig::Select(select) => FieldTable {
                select: Some(select.clone()),
                ..FieldTable::default()
            },
            FieldConfig::Table(table) => (**table).clone(),
        }
    }
}

// A table with nothing but a selector is the same field as that selector.
impl PartialEq for FieldConfig {
    fn eq(&self, other: &FieldConfig) -> bool {
        self.to_table() == other.to_table()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_text(kind: &FieldKind) -> bool {
    *kind == FieldKind::Text
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A TOML file has tables behind all plain values, which would change the order of the
        // fields. So write either no tables or only tables.
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

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
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

// Not an untagged enum: its errors would name neither the unknown key nor the place.
impl<'de> Deserialize<'de> for FieldConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldConfig, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = FieldConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a selector or a table such as { select = \"h1\", type = \"text\" }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FieldConfig, E> {
                Ok(FieldConfig::Select(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FieldConfig, A::Error> {
                let table = FieldTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(FieldConfig::Table(Box::new(table)))
            }
        }
        deserializer.deserialize_any(TextOrTable)
    }
}
